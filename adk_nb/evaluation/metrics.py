"""Metrics: measures of a run, compared with the expectations of its case."""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, cast

from adk_nb.errors import InputError, UserError, closest, did_you_mean
from adk_nb.evaluation.calls import ExpectedCall, ExpectedCalls, Order, parse_calls
from adk_nb.evaluation.case_run import CaseRun
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.comparison import normalized
from adk_nb.evaluation.eval_case import Invocation, content_text, get_all_tool_calls
from adk_nb.evaluation.rouge import rouge_1
from adk_nb.expression import Expression
from adk_nb.tools.shape import Shape

Verdict = Literal["passed", "failed", "informational", "not evaluated"]
Measured = tuple[float | None, str]
"""A value from 0 to 1, or a count, or None if nothing could be measured; and the first difference in a line."""
Measure = Callable[[CaseRun, Any], Measured | Awaitable[Measured]]
"""`(run, expectation) -> value`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The result of a metric on one run."""

    metric: str
    verdict: Verdict
    value: float | None = None
    reason: str = ""
    """The first difference, or why nothing was measured."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric."""

    name: str
    measure: Measure
    threshold: float | None = 1.0
    """The value from which on it passes. None: it only informs."""
    parse: Callable[[Any], Any] | None = None
    """Parses an expectation as it is written in a table; raises InputError."""
    needs_expectation: bool = False
    """True: it is measured only in cases that have its column."""
    check_case: Callable[[Case], bool] = lambda case: True
    """False: the case does not have what it compares with."""

    def applies_to(self, case: Case) -> bool:
        """True if the case has what the metric needs."""
        return (not self.needs_expectation or self.name in case.expected) and self.check_case(case)

    async def score(self, run: CaseRun) -> Score:
        """Measure a run; an error of the metric becomes its reason, and the others go on."""
        expected = run.case.expected.get(self.name)
        try:
            measured = self.measure(run, self.parse(expected) if self.parse and expected is not None else expected)
            value, reason = await measured if inspect.isawaitable(measured) else measured
        # Anything: a metric is often the user's own function.
        except Exception as error:
            text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            return Score(metric=self.name, verdict="not evaluated", reason=text)
        verdict = self._verdict(value)
        if verdict == "passed" and not reason and value == 1:
            return _passed(self.name)
        if verdict == "failed" and not reason:
            reason = f"{self.name} is {value:g}, below the threshold {self.threshold:g}"
        return Score(metric=self.name, verdict=verdict, value=value, reason=reason)

    def _verdict(self, value: float | None) -> Verdict:
        if value is None:
            return "not evaluated"
        if self.threshold is None:
            return "informational"
        return "passed" if value >= self.threshold else "failed"


@cache
def _passed(name: str) -> Score:
    """One for all runs: most of many are alike."""
    return Score(metric=name, verdict="passed", value=1.0)


def metric(function: Callable[[CaseRun], Any] | None = None, *, name: str = "", threshold: float | None = 1.0) -> Any:
    """Make a function of a run a metric: it returns a bool, or a number that passes from `threshold` on.

    `@metric` and `@metric(threshold=0.7)`; None as threshold: the value is reported, and nothing passes or fails.
    """
    if function is None:
        return partial(metric, name=name, threshold=threshold)
    measured_by: Callable[[CaseRun], Any] = function

    async def measure(run: CaseRun, _: Any) -> Measured:
        value = measured_by(run)
        value = await value if inspect.isawaitable(value) else value
        if value is None:
            return None, "the metric returned None"
        if not isinstance(value, bool | int | float):
            raise InputError(f"a metric returns True, False or a number; this one returned {value!r:.60}")
        return float(value), f"{chosen} is False" if value is False else ""

    chosen = name or getattr(function, "__name__", "metric")
    return Metric(name=chosen, measure=measure, threshold=threshold)


# ---- the answer

_ANSWER = re.compile(r"(equals|contains|matches|one of|like|schema|where)\b(?:\s+([\d.]+):)?\s*:?\s*(.*)", re.DOTALL)


def _parse_answer(value: Any) -> tuple[str, Any, float]:
    """Kind, expectation and, of `like`, the least score."""
    value = normalized(value)
    if not isinstance(value, str):
        return ("schema" if isinstance(value, dict | type) else "equals"), cast(Any, value), 1.0
    match = _ANSWER.fullmatch(value.strip())
    kind, least, expected = (match[1], float(match[2] or 0.8), match[3]) if match else ("contains", 1.0, value.strip())
    if kind == "one of":
        return kind, [option.strip() for option in expected.split(",")], least
    if kind == "where":
        return kind, Expression(expected), least
    if kind == "schema":
        return kind, json.loads(expected), least
    return kind, _pattern(expected) if kind == "matches" else expected, least


def _pattern(text: str) -> re.Pattern[str]:
    inner = text[1:-1] if len(text) > 1 and text[0] == text[-1] == "/" else text
    try:
        return re.compile(inner, re.IGNORECASE)
    except re.error as error:
        raise InputError(f"{text!r} is not a regular expression: {error}") from None


_KINDS = {
    "equals": "equals",
    "contains": "contains",
    "matches": "matches",
    "one of": "is one of",
    "where": "fulfils",
    "schema": "fits",
}


def _measure_answer(run: CaseRun, expectation: tuple[str, Any, float]) -> Measured:
    kind, expected, least = expectation
    text, output = normalized(run.answer), normalized(run.output)
    answer = _folded(text)
    names: Mapping[str, Any] = cast(Mapping[str, Any], output) if isinstance(output, Mapping) else {}
    if kind == "like":
        score = rouge_1(text, expected)
        return (1.0, "") if score >= least else (0.0, f"ROUGE-1 with {expected!r} is {score:.2f}, less than {least:g}")
    checks: dict[str, Callable[[], bool]] = {
        "equals": lambda: output == expected if not isinstance(expected, str) else answer == _folded(expected),
        "contains": lambda: _folded(expected) in answer,
        "matches": lambda: expected.search(text) is not None,
        "one of": lambda: any(answer == _folded(option) for option in expected),
        "where": lambda: expected.holds({**names, "answer": text, "output": output}),
        "schema": lambda: _fits(expected, text),
    }
    if checks[kind]():
        return 1.0, ""
    source = getattr(expected, "pattern", None) or getattr(expected, "source", None) or expected
    return 0.0, f"expected an answer that {_KINDS[kind]} {source!r}, got {text!r:.200}"


def _folded(text: str) -> str:
    """Case, spaces and a last full stop do not count."""
    return " ".join(text.casefold().split()).removesuffix(".")


def _fits(schema: Any, text: str) -> bool:
    try:
        Shape(schema).parse(text)
    except ValueError:
        return False
    return True


# ---- calls, state, and counts


def _measure_calls(run: CaseRun, expected: ExpectedCalls) -> Measured:
    problem = expected.problem(run.calls)
    return float(not problem), problem


def _parse_state(value: Any) -> list[Expression] | Mapping[str, Any]:
    value = normalized(value)
    if isinstance(value, Mapping):
        return cast(Mapping[str, Any], value)
    return [Expression(part.strip()) for part in re.split(r"[;\n]", str(value)) if part.strip()]


def _measure_state(run: CaseRun, expected: list[Expression] | Mapping[str, Any]) -> Measured:
    state = cast(Mapping[str, Any], normalized(run.state))
    if isinstance(expected, Mapping):
        for key, value in expected.items():
            if key not in state or state[key] != value:
                return 0.0, f"expected state {key!r} to be {value!r:.80}, got {state.get(key)!r:.80}"
        return 1.0, ""
    for expression in expected:
        missing = [name for name in expression.names if name not in state]
        if missing:
            return 0.0, f"expected {expression.source}, and the state has no {missing[0]!r}"
        if not expression.holds(state):
            values = ", ".join(f"{name} = {state[name]!r:.60}" for name in expression.names)
            return 0.0, f"expected {expression.source}, got {values}"
    return 1.0, ""


def _at_most(unit: str, value_of: Callable[[CaseRun], float | None]) -> Measure:
    def measure(run: CaseRun, limit: float) -> Measured:
        value = value_of(run)
        if value is None:
            return None, f"the {unit} of this run is not known"
        return float(value <= limit), "" if value <= limit else f"expected at most {limit:g} {unit}, got {value:g}"

    return measure


def _parse_limit(value: Any) -> float:
    try:
        return float(str(value).strip().lstrip("<=").strip().lstrip("$"))
    except ValueError:
        raise InputError(f"a limit is a number such as 0.01 or <= 3, got {value!r}") from None


def _parse_names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [] if value.strip().lower() == "none" else [name.strip() for name in re.split("[,;]", value)]
    return [str(name) for name in value]


def _measure_approvals(run: CaseRun, expected: list[str]) -> Measured:
    same = sorted(run.approvals) == sorted(expected)
    got = ", ".join(run.approvals) or "none"
    return float(same), "" if same else f"expected approvals of {', '.join(expected) or 'none'}, got {got}"


# ---- google-adk's


def trajectory(order: Order = "exact", *, ignore_args: bool = False) -> Measure:
    """`tool_trajectory_avg_score`: the share of turns whose tool calls are as expected."""

    def measure(run: CaseRun, _: Any) -> Measured:
        scores, first = list[float](), ""
        for actual, expected in _pairs(run):
            problem = call_problem(actual, expected, order, ignore_args=ignore_args)
            scores.append(float(not problem))
            first = first or problem
        return sum(scores) / len(scores), first

    return measure


def call_problem(actual: Invocation, expected: Invocation, order: Order, *, ignore_args: bool) -> str:
    """The first difference between the tool calls of two turns; empty if they are as expected."""
    calls = [
        ExpectedCall(name=call.name or "", args=call.args or {})
        for call in get_all_tool_calls(expected.intermediate_data)
    ]
    return ExpectedCalls(calls=tuple(calls), order=order).problem(
        get_all_tool_calls(actual.intermediate_data), ignore_args=ignore_args
    )


def response_match(run: CaseRun, _: Any) -> Measured:
    """`response_match_score`: the mean of the turns' ROUGE-1 with the expected answers."""
    scores = [
        rouge_1(content_text(actual.final_response), content_text(expected.final_response))
        for actual, expected in _pairs(run)
    ]
    mean = sum(scores) / len(scores)
    return mean, "" if mean >= 1 else f"ROUGE-1 {mean:.2f}: got {run.answer!r:.120}"


def _pairs(run: CaseRun) -> Iterable[tuple[Invocation, Invocation]]:
    turns, reference = run.turns, run.case.reference
    if len(turns) != len(reference):
        raise InputError(f"the case has {len(reference)} turns, and its run {len(turns)}")
    return zip(turns, reference, strict=True)


def _has_reference(case: Case) -> bool:
    return bool(case.reference)


TRAJECTORY, RESPONSE_MATCH = "tool_trajectory_avg_score", "response_match_score"

BUILT_IN: Mapping[str, Metric] = {
    built_in.name: built_in
    for built_in in (
        Metric(name="answer", measure=_measure_answer, parse=_parse_answer, needs_expectation=True),
        Metric(name="calls", measure=_measure_calls, parse=parse_calls, needs_expectation=True),
        Metric(name="state", measure=_measure_state, parse=_parse_state, needs_expectation=True),
        Metric(name="approvals", measure=_measure_approvals, parse=_parse_names, needs_expectation=True),
        Metric(
            name="cost",
            measure=_at_most("US dollars", lambda run: run.cost_usd),
            parse=_parse_limit,
            needs_expectation=True,
        ),
        Metric(
            name="tokens",
            measure=_at_most("tokens", lambda run: run.tokens),
            parse=_parse_limit,
            needs_expectation=True,
        ),
        Metric(
            name="seconds",
            measure=_at_most("seconds", lambda run: run.seconds),
            parse=_parse_limit,
            needs_expectation=True,
        ),
        Metric(
            name="model_calls",
            measure=_at_most("model calls", lambda run: run.model_calls),
            parse=_parse_limit,
            needs_expectation=True,
        ),
        Metric(name=TRAJECTORY, measure=trajectory(), check_case=_has_reference),
        Metric(name=RESPONSE_MATCH, measure=response_match, threshold=0.8, check_case=_has_reference),
        Metric(name="tool_call_count_v1", measure=lambda run, _: (float(len(run.calls)), ""), threshold=None),
        Metric(name="inference_call_count_v1", measure=lambda run, _: (float(run.model_calls), ""), threshold=None),
        Metric(name="token_usage_v1", measure=lambda run, _: (float(run.tokens), ""), threshold=None),
        Metric(name="invocation_duration_v1", measure=lambda run, _: (run.seconds, ""), threshold=None),
    )
}
"""Metrics by name; a column of a table of cases is one of these."""


def metrics_of(
    cases: Sequence[Case], extra: Iterable[Any] = (), more: Mapping[str, Metric] | None = None
) -> list[Metric]:
    """The metrics of the columns that the cases have, of their eval sets, and the user's own.

    Args:
        cases: The cases; their expectations are parsed, so that a mistake is found before anything runs.
        extra: Metrics, functions, or names of built-in metrics.
        more: Further metrics that a column can name: judges.

    Raises:
        InputError: A column is no metric, or an expectation cannot be parsed; the message has its case.
    """
    known = {**BUILT_IN, **(more or {})}
    chosen: dict[str, Metric] = {}
    for item in extra:
        extra_metric = _metric_of(item, known)
        known[extra_metric.name] = chosen[extra_metric.name] = extra_metric
    for case in cases:
        for name, expectation in case.expected.items():
            if name not in known:
                hint = did_you_mean(name, known, f"there is: {', '.join(sorted(known))}")
                raise InputError(f"case {case.id!r} has a column {name!r}, and no metric has this name; {hint}")
            _check(known[name], expectation, case)
            chosen.setdefault(name, known[name])
    # An eval set without metrics of its own gets google-adk's defaults.
    if not any(name in chosen for name in (TRAJECTORY, RESPONSE_MATCH)) and not extra:
        chosen |= {
            name: BUILT_IN[name] for name in (TRAJECTORY, RESPONSE_MATCH) if any(case.reference for case in cases)
        }
    return list(chosen.values())


def _metric_of(item: Any, known: Mapping[str, Metric]) -> Metric:
    if isinstance(item, Metric):
        return item
    if isinstance(item, str):
        if item in known:
            return known[item]
        near = closest(item, known)
        raise InputError(f"there is no metric {item!r}" + (f"; did you mean {near!r}?" if near else ""))
    if callable(item):
        return metric(cast(Callable[[CaseRun], Any], item))
    raise InputError(f"a metric is a function of a run, or a name such as 'answer'; got {item!r:.60}")


def _check(chosen: Metric, expectation: Any, case: Case) -> None:
    try:
        if chosen.parse:
            chosen.parse(expectation)
    except (InputError, ValueError) as error:
        raise InputError(f"case {case.id!r}, column {chosen.name!r}: {error}") from None
