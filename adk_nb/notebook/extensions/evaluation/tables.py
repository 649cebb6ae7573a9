"""Evaluations as tables: a row a case, what failed, what changed since another evaluation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adk_nb.evaluation.evaluation import CaseResult, Difference, Evaluation
from adk_nb.evaluation.progress import Progress
from adk_nb.evaluation.waiting_calls import AlikeCalls
from adk_nb.notebook.view.call_arguments import arguments_line
from adk_nb.notebook.view.document import Block, Code, Fold, Frame, Line, Only, Span, Table, Text
from adk_nb.notebook.view.plain_text import abridged, exact_text, name_text, one_line
from adk_nb.notebook.view.spending import dollars

MARKS = {"passed": "✓", "failed": "✗", "flaky": "~", "pending": "?", "not evaluated": "-", "not run": "…"}
_MAX_ROWS = 200
"""Cases in a table; the frame of the evaluation has all."""
_MAX_COLUMNS = 8
"""Arguments of calls that have a column each."""
_MAX_CELL = 300
"""Characters of an argument in a table."""
_MAX_FOLDS = 20
"""Cases whose expected and actual answers are shown below the table."""


def evaluation_blocks(evaluation: Evaluation, *, has_costs: bool, label: str = "") -> list[Block]:
    """A table of the cases, and details of those that did not pass.

    Args:
        evaluation: The evaluation.
        has_costs: Show costs, and how many runs were reused. Durations are never shown: a saved table is compared.
        label: Of a stand-in or a recording that answered.
    """
    cases = evaluation.cases
    figures = [*_figures(evaluation, has_costs=has_costs), *([label] if label else [])]
    lead = Only(("text/plain", "text/markdown"), (Text(f"{evaluation.agent}: {', '.join(figures)}"),))
    blocks: list[Block] = [lead, _table(cases, has_costs=has_costs)]
    waiting = Counter(label for row in evaluation.rows for label in row.waiting_for)
    blocks += [Text(_approval_line(count, label)) for label, count in waiting.items()]
    if evaluation.progress.is_paused:
        blocks.append(Text(f"{paused_text(evaluation.progress)}; %eval rerun goes on"))
    elif evaluation.progress.not_run:
        count, total = evaluation.progress.not_run, len(evaluation.rows)
        blocks.append(Text(f"{count} of {total} runs did not start, as the budget is spent: %eval rerun goes on"))
    unpassed = [case for case in cases if case.outcome in ("failed", "flaky")]
    blocks += map(_details, unpassed[:_MAX_FOLDS])
    return [Frame(evaluation.agent, tuple(blocks), figures)]


def summary(evaluation: Evaluation, *, has_costs: bool) -> str:
    """One line: `planner: 3 of 4 cases passed, 1 flaky, score 0.83`."""
    return f"{evaluation.agent}: {', '.join(_figures(evaluation, has_costs=has_costs))}"


def _figures(evaluation: Evaluation, *, has_costs: bool) -> list[str]:
    counts = Counter(case.outcome for case in evaluation.cases)
    total = len(evaluation.cases)
    parts = [f"{counts['passed']} of {total} {'case' if total == 1 else 'cases'} passed"]
    parts += [f"{counts[outcome]} {outcome}" for outcome in MARKS if outcome != "passed" and counts[outcome]]
    if evaluation.score is not None:
        parts.append(f"score {evaluation.score:.2f}")
    if has_costs:
        parts += _spending(evaluation.progress)
    return parts


def _approval_line(count: int, tool: str, magic: str = "%eval") -> str:
    """How to answer the calls of a tool from a cell, by `magic`."""
    calls = "1 call" if count == 1 else f"{count:,} calls"
    waits = "waits" if count == 1 else "wait"
    return f"{calls} of {tool} {waits} for approval: {magic} approve {tool}, or {magic} reject {tool}"


def waiting_blocks(label: str, groups: Sequence[AlikeCalls], left_out: int, magic: str) -> list[Block]:
    """All sets of arguments of the calls of a tool that wait, with the number of calls of each.

    Args:
        label: Of the calls, see `approval_label`.
        groups: What is listed.
        left_out: Number of further sets, which are not listed yet.
        magic: Answers in a cell.
    """
    prompts = {one_line(group.calls[0].prompt) for group in groups}
    names = list(dict.fromkeys(name for group in groups for name in _arguments(group)))
    is_wide = len(names) > _MAX_COLUMNS
    head: list[Line] = ["calls", *(["arguments"] if is_wide else map(name_text, names))]
    head += ["asks"] if len(prompts) > 1 else []
    rows: list[list[Line]] = []
    for group in groups:
        args = _arguments(group)
        cells = [abridged(exact_text(args[name]), _MAX_CELL) if name in args else "" for name in names]
        values: list[Line] = [Span(cell, "code", exact=True) if cell else "" for cell in cells]
        asks: list[Line] = [one_line(group.calls[0].prompt)] if len(prompts) > 1 else []
        values = [Span(arguments_line(args), "code", exact=True)] if is_wide else values
        rows.append([f"{len(group.calls):,}", *values, *asks])
    rest = f"and {left_out:,} more kinds of calls, which are listed next" if left_out else ""
    count = sum(len(group.calls) for group in groups)
    asks_all = [Text(prompt) for prompt in prompts if prompt and len(prompts) == 1]
    return [Text(_approval_line(count, label, magic)), *asks_all, Table(head, rows, note=rest)]


def _arguments(group: AlikeCalls) -> Mapping[str, Any]:
    return group.calls[0].asked_args


def paused_text(progress: Progress) -> str:
    """One line for a batch that `confirm_above_usd` has stopped."""
    projected = dollars(progress.projected_usd or 0.0)
    return f"paused with {progress.not_run} runs left: ≈ {projected} for all is more than AdkNb.confirm_above_usd"


def _spending(progress: Progress) -> list[str]:
    reused = [f"{progress.reused} done before"] if progress.reused else []
    cost = [f"≈ {dollars(progress.cost_usd)}"] if progress.cost_usd else []
    return [*reused, *cost]


def _table(cases: Sequence[CaseResult], *, has_costs: bool) -> Table:
    """A row a case; columns that are empty in all rows are left out."""
    shown = cases[:_MAX_ROWS]
    has_repeats = any(len(case.rows) > 1 for case in cases)
    columns: dict[str, list[Line]] = {
        "": [Span(MARKS[case.outcome], "strong") for case in shown],
        "case": [case.case.id for case in shown],
        "message": [one_line(case.case.question, 60) for case in shown],
        "passed": [_share(case) if has_repeats else "" for case in shown],
        "cost": [dollars(case.cost_usd) if case.cost_usd and has_costs else "" for case in shown],
        "why not": [one_line(case.reason, 160) for case in shown],
    }
    head = [name for name, cells in columns.items() if any(cells)]
    rest = len(cases) - len(shown)
    rows = list(zip(*(columns[name] for name in head), strict=True))
    notes = [f"and {rest} more; see _eval.df"] if rest else []
    unpassed = next((case for case in cases if case.outcome != "passed"), cases[0])
    return Table(head, rows, note="; ".join([*notes, f"%eval open {unpassed.case.id} shows that run"]))


def _share(case: CaseResult) -> str:
    """`2/3 (21-94%)`: the runs that passed, and the interval of 95 %."""
    if case.interval is None:
        return ""
    low, high = case.interval
    passed = sum(row.outcome == "passed" for row in case.rows)
    # A hyphen at which no line breaks.
    return f"{passed}/{len(case.rows)} ({low * 100:.0f}\u2011{high:.0%})"


def _details(case: CaseResult) -> Fold:
    """The first run that did not pass: its scores and its answer."""
    row = next(row for row in case.rows if row.outcome != "passed")
    scores: list[Sequence[Line]] = [
        [name, score.verdict, "" if score.value is None else f"{score.value:g}", score.reason]
        for name, score in row.scores.items()
    ]
    blocks: list[Block] = [Text(f"message: {case.case.question}")]
    if scores:
        blocks.append(Table(["metric", "verdict", "value", "why"], scores))
    blocks += [Text("answer:"), Code(row.answer)] if row.answer else [Text(row.reason)]
    blocks.append(Text(f"its run: %eval open {case.case.id}", small=True))
    return Fold(f"{MARKS[case.outcome]} {case.case.id}", tuple(blocks))


def difference_blocks(difference: Difference, changes: Sequence[str]) -> list[Block]:
    """Cases that flipped between two evaluations, and what changed in the agent.

    Args:
        difference: The two evaluations.
        changes: Lines of the difference between the agent's cells; empty: none, or not known.
    """
    flips: list[Sequence[Line]] = [
        [case, f"{MARKS[before]} {before}", f"{MARKS[after]} {after}"] for case, before, after in difference.flipped
    ]
    before, after = difference.before, difference.after
    scores = " → ".join("none" if score is None else f"{score:.2f}" for score in (before.score, after.score))
    blocks: list[Block] = [Only(("text/plain", "text/markdown"), (Text(f"score {scores}"),))]
    blocks.append(Table(["case", "before", "after"], flips) if flips else Text("no case changed its outcome"))
    for label, names in (("new", difference.added), ("gone", difference.removed)):
        if names:
            blocks.append(Text(f"{label}: {', '.join(names)}"))
    if changes:
        blocks += [Text(f"{after.agent} changed between them:"), Code("\n".join(changes))]
    elif not difference.is_agent_changed:
        blocks.append(Text(f"{after.agent} and its tools are the same in both"))
    return [Frame(f"{after.agent}, before and after", tuple(blocks), [f"score {scores}"])]


def progress_text(progress: Progress) -> str:
    """One line: `12 of 40 rows, 3 running, 1 failed, at most 8 at once, ≈ $0.02 of $0.07, 20 s left`."""
    total = "" if progress.total is None else f" of {progress.total}"
    parts = [f"{progress.finished}{total} rows"]
    counts = (("running", progress.running), ("failed", progress.failed), ("waiting for approval", progress.pending))
    parts += [f"{count} {name}" for name, count in counts if count]
    if progress.at_once:
        parts.append(f"at most {progress.at_once} at once")
    if progress.cost_usd:
        projected = f" of {dollars(progress.projected_usd)}" if progress.projected_usd else ""
        parts.append(f"≈ {dollars(progress.cost_usd)}{projected}")
    if progress.waiting_seconds >= 1:
        parts.append(f"waiting {progress.waiting_seconds:.0f} s, as the service asks")
    elif progress.remaining_seconds:
        parts.append(f"{progress.remaining_seconds:.0f} s left")
    return ", ".join(parts)
