"""Evaluate an agent: run its cases, score the runs, and compare evaluations."""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

from adk_nb import sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import InputError, did_you_mean
from adk_nb.evaluation.batch import Batch, BatchOptions, lists_options
from adk_nb.evaluation.case_run import CaseRun
from adk_nb.evaluation.cases import Case, check_ids, iter_cases
from adk_nb.evaluation.cluster import run_on_cluster
from adk_nb.evaluation.frames import frame_of
from adk_nb.evaluation.judges import judge
from adk_nb.evaluation.metrics import Metric, Score, metrics_of
from adk_nb.evaluation.progress import Progress
from adk_nb.evaluation.row_runs import Job, Row, waiting_calls
from adk_nb.evaluation.temporary_rows import default_service
from adk_nb.evaluation.waiting_calls import approval_label, call_key, chosen_calls
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.flow.budget import Spending
from adk_nb.models.base_llm import BaseLlm
from adk_nb.runtime import observer
from adk_nb.runtime.interrupts import Interrupt

Outcome = Literal["passed", "failed", "error", "pending", "not evaluated", "not run"]
CaseOutcome = Literal["passed", "flaky", "failed", "pending", "not evaluated", "not run"]


@dataclass(kw_only=True, slots=True, repr=False)
class ScoredRow:
    """One run of a case with its scores."""

    case: Case
    repeat: int
    session_id: str
    """Session of the run."""
    outcome: Outcome
    answer: str = ""
    scores: dict[str, Score] = field(default_factory=dict[str, Score])
    error: str = ""
    seconds: float = 0.0
    cost_usd: float | None = None
    is_reused: bool = False
    """True: it ran before, and cost nothing now."""
    waiting_calls: tuple[Interrupt, ...] = ()
    """The open approvals."""

    def __repr__(self) -> str:
        return f"ScoredRow({self.case.id!r}, repeat={self.repeat}, {self.outcome}, answer={self.answer!r:.60})"

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Labels of the calls that wait for approval, see `approval_label`: names of tools, mostly."""
        return tuple(map(approval_label, self.waiting_calls))

    @property
    def reason(self) -> str:
        """Why it did not pass, in a line; empty if it passed."""
        if self.error:
            return self.error
        if self.outcome == "pending":
            return "an approval is open"
        if self.outcome == "not evaluated" and not self.scores:
            return "no column has an expectation for it"
        for verdict in ("failed", "not evaluated"):  # a failure says more than a metric that could not measure
            for name, score in self.scores.items():
                if score.verdict == verdict and score.reason:
                    return score.reason if verdict == "failed" else f"{name}: {score.reason}"
        return ""


@dataclass(kw_only=True, repr=False)
class CaseResult:
    """All runs of a case."""

    case: Case
    rows: list[ScoredRow]

    def __repr__(self) -> str:
        return f"CaseResult({self.case.id!r}, {self.outcome}{f', {self.reason!r:.100}' if self.reason else ''})"

    @property
    def outcome(self) -> CaseOutcome:
        """`flaky`: some runs passed and some did not."""
        outcomes = Counter(row.outcome for row in self.rows)
        unpassed = outcomes["failed"] + outcomes["error"]
        if outcomes["passed"]:
            return "flaky" if unpassed else "passed"
        for outcome in ("pending", "not evaluated", "not run"):
            if not unpassed and outcomes[outcome]:
                return outcome
        return "failed"

    @property
    def score(self) -> float | None:
        """Share of the evaluated runs that passed. None: no run was evaluated."""
        evaluated = [row for row in self.rows if row.outcome in ("passed", "failed", "error")]
        return sum(row.outcome == "passed" for row in evaluated) / len(evaluated) if evaluated else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `score` (Wilson). None: no run was evaluated."""
        count = sum(row.outcome in ("passed", "failed", "error") for row in self.rows)
        return wilson_interval(sum(row.outcome == "passed" for row in self.rows), count) if count else None

    @property
    def reason(self) -> str:
        """The first reason of a run that did not pass."""
        return next((row.reason for row in self.rows if row.outcome != "passed" and row.reason), "")

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all runs. None: unknown."""
        costs = [row.cost_usd for row in self.rows if row.outcome != "not run"]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def seconds(self) -> float:
        """Mean duration of a run."""
        ran = [row.seconds for row in self.rows if row.outcome != "not run"]
        return sum(ran) / len(ran) if ran else 0.0


class Evaluation:
    """The result of an evaluation."""

    def __init__(
        self, rows: Iterable[ScoredRow], *, batch: Batch, metrics: Sequence[Metric], progress: Progress
    ) -> None:
        self.rows = sorted(rows, key=lambda row: row.repeat)
        """One for each case and repeat."""
        self.metrics = list(metrics)
        self.progress = progress
        """Counts, cost and time of this evaluation, without what it reused."""
        self.agent = batch.agent.name
        self.version = batch.rows.version
        """Hash of the agent and its tools."""
        self._batch = batch

    def __repr__(self) -> str:
        counts = Counter(case.outcome for case in self.cases)
        text = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        score = "none" if self.score is None else f"{self.score:.2f}"
        return f"Evaluation(agent={self.agent!r}, score={score}, {text})"

    @property
    def cases(self) -> list[CaseResult]:
        """The results by case, in the order of the cases."""
        by_id: dict[str, CaseResult] = {}
        for row in self.rows:
            by_id.setdefault(row.case.id, CaseResult(case=row.case, rows=[])).rows.append(row)
        return list(by_id.values())

    @property
    def score(self) -> float | None:
        """Mean of the cases' scores, from 0 to 1. None: no case was evaluated."""
        scores = [case.score for case in self.cases if case.score is not None]
        return sum(scores) / len(scores) if scores else None

    @property
    def without_value(self) -> dict[str, str]:
        """The cases with a run of which nobody knows whether it passes, and why: a metric that is due has no value (it
        raised, or its judge gave no verdict), the run waits for approval, or it did not run.
        """
        informational = {metric.name for metric in self.metrics if metric.threshold is None}
        due = [metric for metric in self.metrics if metric.name not in informational]
        reasons: dict[str, str] = {}
        for row in self.rows:
            if row.outcome in ("pending", "not run") and any(metric.applies_to(row.case) for metric in due):
                reasons.setdefault(row.case.id, row.reason or row.outcome)
            for name, score in row.scores.items():
                if score.verdict == "not evaluated" and name not in informational:
                    reasons.setdefault(row.case.id, f"{name}: {score.reason or 'no value'}")
        return reasons

    @property
    def failed(self) -> list[CaseResult]:
        """The cases that did not pass in every run, the flaky included."""
        return [case for case in self.cases if case.outcome in ("failed", "flaky")]

    @property
    def df(self) -> Any:
        """A frame with a row for each run: of pandas, or of polars where pandas is not installed.

        Raises:
            MissingExtraError: Neither is installed.
        """
        return frame_of(map(_flat, self.rows))

    def run(self, case_id: str, repeat: int | None = None) -> CaseRun:
        """A run of a case, loaded from its session. `repeat`: 0, 1, ...; None: the first that did not pass, or else 0.

        Raises:
            InputError: There is no such run.
        """
        return sync.run(_load(self._batch, self._row(case_id, repeat)))

    async def arun(self, case_id: str, repeat: int | None = None) -> CaseRun:
        """`run` for code that awaits."""
        return await _load(self._batch, self._row(case_id, repeat))

    def _row(self, case_id: str, repeat: int | None) -> ScoredRow:
        rows = [row for row in self.rows if row.case.id == case_id]
        if not rows:
            ids = ", ".join(repr(case.case.id) for case in self.cases[:10])
            hint = did_you_mean(case_id, [case.case.id for case in self.cases], f"the cases are: {ids}")
            raise InputError(f"there is no case {case_id!r}; {hint}")
        if repeat is None:
            return next((row for row in rows if row.outcome != "passed"), rows[0])
        if repeat not in range(len(rows)):
            raise InputError(f"case {case_id!r} has {len(rows)} runs, numbered from 0, and no run {repeat}")
        return rows[repeat]

    def rescore(self, *metrics: Any) -> "Evaluation":
        """Score the same runs with other metrics; no agent is asked."""
        return sync.run(self.arescore(*metrics))

    async def arescore(self, *metrics: Any) -> "Evaluation":
        """`rescore` for code that awaits."""
        chosen = metrics_of([result.case for result in self.cases], metrics)
        rows = [await _score(await _load(self._batch, row), row, chosen) for row in self.rows]
        return Evaluation(rows, batch=self._batch, metrics=chosen, progress=self.progress)

    def rerun(self, *, failed: bool = False) -> "Evaluation":
        """Run again what ended with an error, is pending or did not run; what is done is kept.

        Args:
            failed: Also what failed, and from its beginning: its sessions are deleted.
        """
        return sync.run(self.arerun(failed=failed))

    async def arerun(
        self, *, failed: bool = False, on_stop: Callable[["Evaluation"], None] | None = None
    ) -> "Evaluation":
        """`rerun` for code that awaits. `on_stop`: as for `aevaluate`."""
        # A row that is done counts as such while its session is there.
        for row in self.rows if failed else ():
            if row.outcome in ("failed", "error"):
                await self._batch.rows.forget(row.case, row.repeat)
        repeats = 1 + max((row.repeat for row in self.rows), default=0)
        cases = [result.case for result in self.cases]
        return await _evaluate(self._batch, cases, self.metrics, repeats=repeats, is_retry=True, on_stop=on_stop)

    @property
    def waiting_calls(self) -> list[Interrupt]:
        """The open approvals of all runs."""
        return [call for row in self.rows for call in row.waiting_calls]

    def answer(
        self, is_approved: bool, *, tool: str | None = None, calls: Collection[Interrupt] | None = None
    ) -> "Evaluation":
        """Approve or reject open approvals of this evaluation, and let their runs run on.

        What a run asks for afterwards waits for an answer of its own, also a call of the same tool.

        Args:
            is_approved: The answer.
            tool: Only the calls of this tool, as in `waiting_for`. None: all but those that may have taken effect
                already, which are answered one by one.
            calls: Only these, of `waiting_calls`; `tool` has no effect.
        """
        return sync.run(self.aanswer(is_approved, tool=tool, calls=calls))

    async def aanswer(
        self,
        is_approved: bool | ToolConfirmation,
        *,
        tool: str | None = None,
        calls: Collection[Interrupt] | None = None,
        on_stop: Callable[["Evaluation"], None] | None = None,
    ) -> "Evaluation":
        """`answer` for code that awaits; it also takes the whole decision. `on_stop`: as for `aevaluate`."""
        decision = is_approved
        if not isinstance(decision, ToolConfirmation):
            decision = ToolConfirmation(confirmed=decision, by="evaluation.answer()")
        chosen = chosen_calls(self.waiting_calls, tool) if calls is None else set(map(call_key, calls))
        waiting = [row for row in self.rows if any(call_key(call) in chosen for call in row.waiting_calls)]
        running = self._batch.answer([(row.case, row.repeat) for row in waiting], decision, chosen)
        rows = {(row.case.id, row.repeat): row for row in self.rows}
        order = [(row.case, row.repeat) for row in self.rows]
        return await _collected(running, self._batch, rows, order, self.metrics, on_stop)

    async def events_of(self, approval: Interrupt) -> Sequence[Event]:
        """The events of the run that waits for an approval."""
        row = next(row for row in self.rows if approval in row.waiting_calls)
        return (await self.arun(row.case.id, row.repeat)).events

    def diff(self, before: "Evaluation") -> "Difference":
        """The changes since an earlier evaluation."""
        return Difference(before=before, after=self)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Two evaluations side by side."""

    before: Evaluation
    after: Evaluation

    @property
    def flipped(self) -> list[tuple[str, CaseOutcome, CaseOutcome]]:
        """Id, earlier and later outcome of the cases whose outcome changed."""
        earlier: dict[str, CaseOutcome] = {case.case.id: case.outcome for case in self.before.cases}
        return [
            (case.case.id, earlier[case.case.id], case.outcome)
            for case in self.after.cases
            if case.case.id in earlier and earlier[case.case.id] != case.outcome
        ]

    @property
    def added(self) -> list[str]:
        """Ids of the cases that the earlier evaluation did not have."""
        return sorted({case.case.id for case in self.after.cases} - {case.case.id for case in self.before.cases})

    @property
    def removed(self) -> list[str]:
        """Ids of the cases that the later evaluation does not have."""
        return sorted({case.case.id for case in self.before.cases} - {case.case.id for case in self.after.cases})

    @property
    def is_agent_changed(self) -> bool:
        """True: the agent or one of its tools was edited between them."""
        return self.before.version != self.after.version

    def __repr__(self) -> str:
        flips = ", ".join(f"{case}: {before} -> {after}" for case, before, after in self.flipped)
        return f"Difference({flips or 'no case changed'})"


@lists_options
async def aevaluate(
    agent: BaseAgent | App,
    cases: Any,
    *,
    metrics: Sequence[Any] = (),
    repeats: int = 1,
    judge_model: str | BaseLlm = "",
    on_stop: Callable[["Evaluation"], None] | None = None,
    **options: Unpack[BatchOptions],
) -> Evaluation:
    """Run an agent on cases, and score the runs.

    Args:
        agent: An agent or an app.
        cases: A markdown table or YAML as text; the path of a CSV, YAML, JSON or evalset file; a frame; an EvalSet; a
            list of dicts or of `Case`. Columns: `message` (or `conversation`), `id`, `initial_state` and `files`; every
            other column is the name of a metric with what it expects.
        metrics: Beside those of the columns: functions of a `CaseRun`, metrics such as `judge("is polite")`, or names.
        repeats: Runs of each case.
        judge_model: The model of the column `judge`. Empty: the default model.
        on_stop: Called with what is done if this is cancelled, by Ctrl-C for instance.
        **options: Of the batch: `budget_usd`, `confirm_above_usd`, `max_concurrency`, `confirm` ("ask", "yes", "no", or
            a list of tools), `session_service` (what is done there is not run again), `app_name`, `run_config`,
            `scheduler`, `on_progress`; see `BatchOptions`.

    Raises:
        InputError: There is no case, a column is no metric, an expectation cannot be parsed, or an option is wrong;
            nothing ran.
    """
    read = check_ids(iter_cases(cases))
    if repeats < 1:
        raise InputError(f"repeats is 1 or more, got {repeats}")
    # Before anything runs: a wrong column costs no model call.
    chosen = metrics_of(read, metrics, {"judge": judge(model=judge_model)})
    options["session_service"] = options.get("session_service") or default_service(len(read) * repeats)
    batch = Batch(agent, **options)
    return await _evaluate(batch, read, chosen, repeats=repeats, on_stop=on_stop)


evaluate = sync.twin(aevaluate, "evaluate")
"""`aevaluate` for code that does not await; works in a notebook cell."""


async def _evaluate(
    batch: Batch,
    cases: Sequence[Case],
    metrics: Sequence[Metric],
    *,
    repeats: int,
    is_retry: bool = False,
    on_stop: Callable[[Evaluation], None] | None = None,
) -> Evaluation:
    options: dict[str, Any] = {"repeats": repeats, "is_retry": is_retry}
    running = run_on_cluster(batch, cases, **options) if batch.scheduler else batch.run(cases, **options)
    order = [(case, repeat) for case in cases for repeat in range(repeats)]
    return await _collected(running, batch, {}, order, metrics, on_stop)


async def _collected(
    running: AsyncGenerator[Row, None],
    batch: Batch,
    rows: dict[tuple[str, int], ScoredRow],
    order: Iterable[Job],
    metrics: Sequence[Metric],
    on_stop: Callable[[Evaluation], None] | None,
) -> Evaluation:
    """The evaluation of `rows`, to which those that `running` yields are added."""

    def evaluation() -> Evaluation:
        scored: list[ScoredRow] = []
        for case, repeat in order:
            row = rows.get((case.id, repeat))
            if row is None:
                id = batch.rows.session_id(case, repeat)
                row = ScoredRow(case=case, repeat=repeat, session_id=id, outcome="not run")
            scored.append(row)
        return Evaluation(scored, batch=batch, metrics=metrics, progress=batch.progress)

    try:
        async with aclosing(running):
            async for row in running:
                run = await batch.rows.run_of(row)
                with Spending() as spent:
                    rows[row.case.id, row.repeat] = await _score(run, row, metrics)
                batch.count_scoring(row, spent)
    except asyncio.CancelledError:
        if on_stop:
            on_stop(evaluation())
        raise
    return evaluation()


async def _load(batch: Batch, row: ScoredRow) -> CaseRun:
    session = await batch.rows.load(row.case, row.repeat)
    events, state = (session.events, session.state) if session else ([], dict[str, Any]())
    return CaseRun(row.case, events, state, seconds=row.seconds, error=row.error)


async def _score(run: CaseRun, row: Row | ScoredRow, metrics: Sequence[Metric]) -> ScoredRow:
    status = row.status if isinstance(row, Row) else _status(row)

    async def measured() -> dict[str, Score]:
        return {metric.name: await metric.score(run) for metric in metrics if metric.applies_to(run.case)}

    scores: dict[str, Score] = {}
    if status == "done":  # one that failed or is pending has only a part of its answer, whose score means nothing
        seen_by = observer.registered
        scores = await (seen_by.evaluation(run.case.id, run.events, measured()) if seen_by else measured())
    waiting = row.waiting_calls if isinstance(row, ScoredRow) else tuple(waiting_calls(row))
    return ScoredRow(
        case=row.case,
        repeat=row.repeat,
        session_id=row.session_id,
        outcome=_outcome(status, scores),
        answer=run.answer,
        scores=scores,
        error=row.error,
        seconds=row.seconds,
        cost_usd=row.cost_usd,
        is_reused=row.is_reused,
        waiting_calls=waiting if status == "pending" else (),
    )


def _status(row: ScoredRow) -> str:
    return row.outcome if row.outcome in ("error", "pending", "not run") else "done"


def _outcome(status: str, scores: Mapping[str, Score]) -> Outcome:
    if status != "done":
        return status  # pyright: ignore[reportReturnType]
    verdicts = [score.verdict for score in scores.values() if score.verdict != "informational"]
    if "failed" in verdicts:
        return "failed"
    return "passed" if verdicts and all(verdict == "passed" for verdict in verdicts) else "not evaluated"


def _flat(row: ScoredRow) -> Mapping[str, Any]:
    flat: dict[str, Any] = {
        "id": row.case.id,
        "repeat": row.repeat,
        "message": row.case.question,
        "answer": row.answer,
        "outcome": row.outcome,
        "reason": row.reason,
        "seconds": row.seconds,
        "cost": row.cost_usd,
        "run": row.session_id,
    }
    return flat | {f"{name.removesuffix('_score')}_score": score.value for name, score in row.scores.items()}


def wilson_interval(passed: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share, 95 % by default, that also holds for few runs. Source: E. B. Wilson, 1927."""
    share = passed / count
    center = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (center - spread) / scale), min(1.0, (center + spread) / scale)
