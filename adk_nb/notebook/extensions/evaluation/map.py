"""`%map`: ask an agent about each row of a table."""

from collections.abc import Callable, Collection, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import sync
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError
from adk_nb.evaluation.mapping import TableRun
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.offline_llm import OfflineLlm
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.chat.error_hints import shorten_interrupt
from adk_nb.notebook.extensions.evaluation.approvals import WaitingList
from adk_nb.notebook.extensions.evaluation.eval import APP, agent_named, root_of, show_model_notice, source_named
from adk_nb.notebook.extensions.evaluation.kept import service_for_rows
from adk_nb.notebook.extensions.evaluation.progress_line import ProgressLine
from adk_nb.notebook.extensions.evaluation.tables import paused_text
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, text
from adk_nb.notebook.view.plain_text import one_line

MAP = Grammar(
    "map",
    "Ask an agent about each row of a table, and return the table with the answers. Rows with the same message are "
    "asked once; rows that are done are not asked again. %eval open RUN shows a run of the column _run.",
    examples=[
        'labels = %map classify --over reviews --message "Classify: {{text}}" --schema Label',
        "%map classify --over reviews --budget 2",
        "%map classify --over reviews.csv --max-concurrency 8",
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
        Option("--max-concurrency N", "most rows at once (32)", convert=values.positive_integer),
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
    name = first or notebook.agent_for_text()[0]
    agent = agent_named(notebook, name)
    if schema is not None and isinstance(root := root_of(agent), LlmAgent):
        _refuse_stand_in(root)
    show_model_notice(root_of(agent))
    progress = ProgressLine(host.settings.display)
    run = TableRun(
        agent,
        source_named(host, args.over),
        message=args.message or "{{message}}",
        schema=schema,
        budget_usd=args.budget,
        confirm_above_usd=None if args.budget else host.settings.confirm_above_usd,
        max_concurrency=args.max_concurrency or 32,
        confirm="yes" if args.yes else "no" if args.no else "ask",
        session_service=service_for_rows(notebook),
        app_name=APP,
        scheduler=host.settings.scheduler or None,
        on_progress=progress.show,
    )
    table = _tables[notebook] = _table(host, name, run, progress)
    return _worked(host, table, run.ask)


def _refuse_stand_in(agent: LlmAgent) -> None:
    """Raise an InputError if the model of an agent fills in no schema, before each row would say so."""
    model = agent.canonical_model
    if isinstance(model, OfflineLlm):
        raise InputError(
            f"%map --schema: {model.model!r}, the model of {agent.name!r}, is a stand-in that fills in no schema; type "
            "%key gemini (or openai, anthropic), or name a model in the cell of the agent; nothing was asked"
        )


@dataclass(frozen=True)
class _Table:
    """A table that is asked about."""

    run: TableRun
    progress: ProgressLine
    waiting: WaitingList


_tables: "WeakKeyDictionary[Notebook, _Table]" = WeakKeyDictionary()
"""The last one of each notebook."""


def _table(host: Host, agent: str, run: TableRun, progress: ProgressLine) -> _Table:
    """A table with the list of what its rows wait for."""

    async def answer(keys: Collection[str], decision: ToolConfirmation) -> None:
        await run.answer(decision, keys)
        host.notebook.variables["_map"] = run.table

    waiting = WaitingList(
        "%map",
        root_of(agent_named(host.notebook, agent)),
        host.settings.display,
        newest=lambda: root_of(agent_named(host.notebook, agent)),
        waiting=lambda: run.waiting_calls,
        events_of=run.events_of,
        answer=answer,
        result=lambda: run.table,
    )
    return _Table(run, progress, waiting)


def _answer(host: Host, action: str, rest: list[str]) -> Any:
    """Approve or reject what the last table has listed of the calls that wait."""
    table, tool = _tables.get(host.notebook), rest[0] if rest else None
    if table is None:
        raise InputError(f"there is no table yet; {_HOW}")
    keys = sync.run(table.waiting.chosen(action, tool))
    if keys is None:
        return table.run.table
    decision = ToolConfirmation(confirmed=_ANSWERS[action], by=f"%map {action}")

    async def answer(*, on_stop: Callable[[Any], None]) -> None:
        await table.waiting.check(keys, decision)
        await table.run.answer(decision, keys, on_stop=on_stop)
        table.waiting.answered(keys, decision)

    return _worked(host, table, answer)


def _worked(host: Host, table: _Table, work: Callable[..., Coroutine[Any, Any, None]]) -> Any:
    """The table after `work`, with a line for each kind of row without an answer, and the list of what waits."""
    variables = host.notebook.variables
    with table.progress:
        try:
            sync.run(work(on_stop=partial(variables.__setitem__, "_map")))
        except KeyboardInterrupt as stop:
            lines, progress = list[str](), table.progress.last
            if progress and progress.done:
                total = "" if progress.total is None else f" of {progress.total}"
                lines = [f"{progress.done}{total} questions are answered, in _map: run this cell again, and it goes on"]
            shorten_interrupt(stop, lines)
            raise
    answered = variables["_map"] = table.run.table
    if lines := list(_open_ends(table)):
        display(text(*lines))
    sync.run(table.waiting.show())
    return answered


def _open_ends(table: _Table) -> Iterator[str]:
    """A line for the rows without an answer."""
    progress = table.progress.last
    if progress is None:
        return
    if progress.failed:
        causes = table.run.errors
        why = one_line(causes[0], 300) if len(causes) == 1 else "see the column _error"
        yield f"{progress.failed} of {progress.total} questions failed: {why}"
    if progress.is_paused:
        yield f"{paused_text(progress)}; --budget USD goes on"
    elif progress.not_run:
        yield f"{progress.not_run} of {progress.total} questions are left: run this again with a larger --budget"
