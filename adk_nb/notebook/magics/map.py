"""`%map`: ask an agent about each row of a table."""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import sync
from adk_nb.errors import InputError
from adk_nb.evaluation.mapping import TableRun
from adk_nb.evaluation.progress import Progress
from adk_nb.notebook.error_hints import shorten_interrupt
from adk_nb.notebook.evaluation_approvals import ApprovalCards, show_approvals
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.eval import APP, agent_named, check_pending, root_of, show_model_notice, source_named
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, text
from adk_nb.notebook.place import this_cell
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.view.cell_output import OriginCell
from adk_nb.notebook.view.evaluation_tables import approval_lines, paused_text
from adk_nb.notebook.view.progress_line import ProgressLine

MAP = Grammar(
    "map",
    "Ask an agent about each row of a table, and return the table with the answers. Rows with the same message are "
    "asked once; rows that are done are not asked again. %eval open RUN shows a run of the column _run.",
    examples=[
        'labels = %map classify --over reviews --message "Classify: {{text}}" --schema Label',
        "%map classify --over reviews --budget 2",
        "%map classify --over reviews.csv --at-once 8",
        "%map approve refund",
    ],
    arguments=[
        Argument(
            "WORD",
            "the agent to ask, left out: as for %chat; or, after that, approve [TOOL], reject [TOOL]",
            many=True,
            names="agent",
        )
    ],
    options=[
        Option("--over VAR|FILE", "a frame, a list of dicts or messages, or a CSV file", names="variable"),
        Option("--message TEXT", "the message, with {{column}}; left out: the column message"),
        Option("--schema NAME", "a pydantic model whose fields become columns", names="variable"),
        Option("--budget USD", "start no more rows after this cost in US dollars", convert=values.dollars),
        Option("--at-once N", "most rows at once (32)", convert=values.positive_integer),
        Option("--yes", "approve all calls that need approval"),
        Option("--no", "reject all calls that need approval"),
    ],
    twin='agent_map(classify, reviews, message="Classify: {{text}}", schema=Label), from adk_nb.evaluation; '
    "Chat(classify).map(reviews, ...)",
)


_HOW = 'name the table and the message: %map AGENT --over reviews --message "Classify: {{text}}"'
_ANSWERS = {"approve": True, "reject": False}


def map(host: Host, line: str, cell: str | None) -> Any:
    """Answer a table, or the approvals that its rows wait for. The result is in `_map`, too.

    Raises:
        UserError: The line does not fit, or the table has no such column; nothing was asked.
    """
    args, notebook = MAP.parse(line, cell), host.notebook
    first, *rest = args.word or [""]
    if first in _ANSWERS and first not in notebook.addressees:
        return _answer(host, first, rest)
    if rest:
        raise InputError(f"%map: unexpected {' '.join(rest)!r}; {_HOW}")
    if not args.over:
        raise InputError(f"%map needs a table: {_HOW}")
    if args.yes and args.no:
        raise InputError("%map: --yes and --no exclude each other; choose one")
    schema = source_named(host, args.schema) if args.schema else None
    name = first or notebook.agent_for_text()
    agent = agent_named(notebook, name)
    show_model_notice(root_of(agent))
    progress = ProgressLine(host.settings.display)
    run = TableRun(
        agent,
        source_named(host, args.over),
        message=args.message or "{{message}}",
        schema=schema,
        budget_usd=args.budget,
        confirm_above_usd=None if args.budget else host.settings.confirm_above_usd,
        max_concurrency=args.at_once or 32,
        confirm="yes" if args.yes else "no" if args.no else "ask",
        session_service=notebook.sessions.for_batches,
        app_name=APP,
        scheduler=host.settings.scheduler or None,
        on_progress=progress.show,
    )
    table = _tables[notebook] = _Table(name, run, progress)
    return _worked(host, table, run.ask)


@dataclass(frozen=True)
class _Table:
    """A table that is asked about."""

    agent: str
    run: TableRun
    progress: ProgressLine
    cards: list[ApprovalCards] = field(default_factory=list[ApprovalCards])
    """Of what waits, of each cell that showed some."""


_tables: "WeakKeyDictionary[Notebook, _Table]" = WeakKeyDictionary()
"""The last one of each notebook."""


def _answer(host: Host, action: str, rest: list[str]) -> Any:
    """Approve or reject what the last table waits for."""
    table, tool = _tables.get(host.notebook), rest[0] if rest else None
    if table is None:
        raise InputError(f"there is no table yet; {_HOW}")
    check_pending(table.run.pending_calls, tool)
    is_approved = _ANSWERS[action]

    async def answer(*, on_stop: Callable[[Any], None]) -> None:
        await table.run.answer(is_approved, tool=tool, on_stop=on_stop)
        for cards in table.cards:
            cards.answered(is_approved, tool, this_cell())

    return _worked(host, table, answer)


def _worked(host: Host, table: _Table, work: Callable[..., Coroutine[Any, Any, None]]) -> Any:
    """The table after `work`, with a line for each kind of row without an answer, and the cards of what waits."""
    variables = host.notebook.variables
    with table.progress:
        try:
            sync.run(work(on_stop=partial(variables.__setitem__, "_map")))
        except KeyboardInterrupt as stop:
            shorten_interrupt(stop, list(_stopped_lines(table.progress.last)))
            raise
    answered = variables["_map"] = table.run.table
    if lines := list(_open_ends(table)):
        display(text(*lines))
    if table.run.pending_calls:
        _show_cards(host, table)
    return answered


def _show_cards(host: Host, table: _Table) -> None:
    """Show the cards of what waits; a click displays the table below them, as far as it is then."""
    cell, shown, run = OriginCell(), list[Any](), table.run

    async def decide(tool: str, is_approved: bool) -> None:
        await run.answer(is_approved, tool=tool)
        for cards in table.cards:
            cards.answered(is_approved, tool)
        host.notebook.variables["_map"] = run.table
        with cell.displays_here():
            if shown:
                shown[0].update(run.table)
            else:
                shown.append(display(run.table, display_id=True))

    agent, mode = root_of(agent_named(host.notebook, table.agent)), host.settings.display
    cards = sync.run(show_approvals(run.pending_calls, run.pending_events(), agent, mode, decide, "%map"))
    table.cards.extend([cards] if cards else [])


def _stopped_lines(progress: Progress | None) -> Iterator[str]:
    """A line on what is done when it was stopped."""
    if progress and progress.done:
        total = "" if progress.total is None else f" of {progress.total}"
        yield f"{progress.done}{total} questions are answered, in _map: run this cell again, and it goes on"


def _open_ends(table: _Table) -> Iterator[str]:
    """A line for the rows without an answer."""
    yield from approval_lines(table.run.pending_calls, "%map")
    progress = table.progress.last
    if progress is None:
        return
    if progress.failed:
        yield f"{progress.failed} of {progress.total} questions failed: see the column _error"
    if progress.is_paused:
        yield f"{paused_text(progress)}; --budget USD goes on"
    elif progress.not_run:
        yield f"{progress.not_run} of {progress.total} questions are left: run this again with a larger --budget"
