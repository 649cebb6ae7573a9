"""`%map`: ask an agent about each row of a table."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import sync
from adk_nb.apps.app import App
from adk_nb.errors import InputError
from adk_nb.evaluation.mapping import aagent_map
from adk_nb.evaluation.progress import Progress
from adk_nb.notebook.error_hints import shorten_interrupt
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.eval import APP, agent_named, show_model_notice, source_named
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, text
from adk_nb.notebook.view.evaluation_tables import paused_text
from adk_nb.notebook.view.progress_line import ProgressLine

MAP = Grammar(
    "map",
    "Ask an agent about each row of a table, and return the table with the answers. Rows with the same message are "
    "asked once; rows that are done are not asked again. %eval open RUN shows a run of the column _run.",
    examples=[
        'labels = %map classify --over reviews --message "Classify: {{text}}" --schema Label',
        "%map classify --over reviews --budget 2",
        "%map classify --over reviews.csv --at-once 8",
    ],
    arguments=[Argument("AGENT", "the agent to ask; left out: as for %chat", names="agent")],
    options=[
        Option("--over VAR|FILE", "a frame, a list of dicts or messages, or a CSV file", names="variable"),
        Option("--message TEXT", "the message, with {{column}}; left out: the column message"),
        Option("--schema NAME", "a pydantic model whose fields become columns", names="variable"),
        Option("--budget USD", "start no more rows after this cost in US dollars", convert=values.dollars),
        Option("--at-once N", "most rows at once (32)", convert=values.positive_integer),
        Option("--yes", "approve all calls that need approval"),
        Option("--no", "reject all calls that need approval"),
    ],
    surplus_hint='name the table and the message: %map AGENT --over reviews --message "Classify: {{text}}"',
    twin='agent_map(classify, reviews, message="Classify: {{text}}", schema=Label), from adk_nb.evaluation; '
    "Chat(classify).map(reviews, ...)",
)


def map(host: Host, line: str, cell: str | None) -> Any:
    """Answer a table. The result is in `_map`, too.

    Raises:
        UserError: The line does not fit, or the table has no such column; nothing was asked.
    """
    args, notebook = MAP.parse(line, cell), host.notebook
    if not args.over:
        raise InputError('%map needs a table: %map AGENT --over reviews --message "Classify: {{text}}"')
    if args.yes and args.no:
        raise InputError("%map: --yes and --no exclude each other; choose one")
    schema = source_named(host, args.schema) if args.schema else None
    agent = agent_named(notebook, args.agent or notebook.agent_for_text())
    show_model_notice(agent.root_agent if isinstance(agent, App) else agent)
    with ProgressLine(host.settings.display) as progress:
        work = aagent_map(
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
            on_stop=partial(notebook.variables.__setitem__, "_map"),
        )
        try:
            answered = sync.run(work)
        except KeyboardInterrupt as stop:
            shorten_interrupt(stop, list(_stopped_lines(progress.last)))
            raise
    notebook.variables["_map"] = answered
    if lines := list(_open_ends(progress.last)):
        display(text(*lines))
    return answered


def _stopped_lines(progress: Progress | None) -> Iterator[str]:
    """A line on what is done when it was stopped."""
    if progress and progress.done:
        total = "" if progress.total is None else f" of {progress.total}"
        yield f"{progress.done}{total} questions are answered, in _map: run this cell again, and it goes on"


def _open_ends(progress: Progress | None) -> Iterator[str]:
    """A line for the rows without an answer."""
    if progress is None:
        return
    if progress.failed:
        yield f"{progress.failed} of {progress.total} questions failed: see the column _error"
    if progress.pending:
        yield f"{progress.pending} of {progress.total} questions wait for approval: run this again with --yes or --no"
    if progress.is_paused:
        yield f"{paused_text(progress)}; --budget USD goes on"
    elif progress.not_run:
        yield f"{progress.not_run} of {progress.total} questions are left: run this again with a larger --budget"
