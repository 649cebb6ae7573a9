"""The view of a run: the base class, which displays nothing, and the view in a terminal."""

import inspect
import sys
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from IPython.core.getipython import get_ipython

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import UserError
from adk_nb.events.event import Event
from adk_nb.notebook.place import is_in_this_cell, this_cell
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.reply_view import Notices, ReplyView
from adk_nb.notebook.view.rows import RunRows, row_text
from adk_nb.notebook.view.spending import cost_of, limit_warning
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.runtime.context import CallbackContext, ToolContext
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.trace import Trace
from adk_nb.sessions.session import Session
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool

_LEFT_OUT = 300
"""Characters of the reason why a toolset is left out."""
_LIVE_VIEW = "adk_nb_live_view"
"""Name of the plugin that reports to a live view."""


class AnswerHandler(Protocol):
    """Takes an answer on a card."""

    def __call__(self, key: str, value: Any, /, *, as_asked: bool = False) -> None:
        """Answer the interrupt with id `key`; `value` is as for `Chat.answer`.

        `as_asked`: run the version of the tool that the approval was requested for.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Clicks:
    """The callbacks for a reader's clicks on a run."""

    stop: Callable[[], None]
    answered: "AnswerHandler"
    approved: Callable[[Collection[str]], None] = lambda keys: None
    """Approve the calls of these cards together, as they were asked for."""
    write: Callable[[str, str | None], None] = lambda key, text: None
    """Set a key of the state to a typed value, JSON or else text; None deletes the key."""
    rerun: Callable[[str], None] = lambda event_id: None
    """Repeat the turn of an event, in a copy of the session before that turn."""
    retry: Callable[[str], None] = lambda key: None
    """Undo the turn of the error card with that id, and send its message again."""
    drop: Callable[[str], None] = lambda key: None
    """Undo the turn of the error card with that id."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A cell whose message was not sent, since an approval or a credential request was open."""

    error: str
    """The error that the cell ended with."""
    text: str = ""
    """The message; empty if it is the one that waits, as when a cell is run again."""
    waiting: str = ""
    """The message that waits for the answer."""
    send: Callable[[bool], None] = lambda refuses: None
    """Send the message after all; True: what is open is refused before."""
    can_refuse: bool = False
    """True: all that is open can be refused together."""


@dataclass(frozen=True, kw_only=True)
class TurnInfo:
    """What a view is told of a turn when it begins or resumes."""

    magic: str = ""
    """The `%confirm` line of the session; empty for a chat that only Python code reaches."""
    max_cost_usd: float | None = None
    """Limit of the cost of the turn. None: no limit."""
    open_interrupts: Callable[[], list[Interrupt]] = list
    """Returns the open interrupts of the session."""
    cards_elsewhere: Collection[str] = ()
    """Ids of the interrupts that the turn answers, and whose cards are in other views."""
    answers_approvals: bool = False
    """True: a policy answers approvals, so the run resumes at once."""
    is_background: bool = False
    """True: the cell does not wait for the run."""
    resumed: bool = False
    """True: the run begins after a click, when the cell of the view had ended."""


@dataclass(frozen=True, kw_only=True)
class OpenCards:
    """Cards of open interrupts for a view that no run is shown in."""

    keys: Collection[str]
    """The ids of the interrupts."""
    session: Session
    clicks: Clicks
    turn: TurnInfo
    requests: dict[str, str]
    """The interrupts for the saved notebook, by media type."""
    refused: Refused | None = None
    """The cell of the view, if its message was not sent because of them."""


class RunView:
    """The view of a run, which may resume after a pause. This one displays nothing.

    A view overrides the methods whose events it displays.
    """

    is_live = False
    """Shows partial text, so the model streams."""
    shows_errors = False
    """Shows the error of a turn even if it is raised."""
    shows_cards = False
    """Shows cards that a reader can click."""

    def __init__(self, agent: str, question: str | None, notice: str | None) -> None:
        self.agent = agent
        self.question = question
        self.shows_question = isinstance(question, str) and is_in_this_cell(question)
        """The source of its cell has the question."""
        self.notices = Notices(notice)
        self.addressed = ""
        """Who gets the question and why, if it names nobody."""
        self.turn = TurnInfo()
        """The turn that is shown now."""
        self.plain = False
        """True: show the reply as plain text."""
        self.place = this_cell()
        """The place of an answer that resumes it, as `in [8]`."""
        self.trace = Trace()
        """Requests to models and calls of tools, also after a pause."""
        self.events: list[Event] = []
        """Complete events since the run began or last resumed, oldest first."""
        self.streaming: dict[str, list[Event]] = {}
        """The partial events of answers that are not complete yet, by event id."""
        self.resumed = False
        """True: the run resumed after a click, when its cell had ended."""

    def begin(self, session: Session | None, clicks: Clicks, turn: TurnInfo) -> None:
        """The run begins, or resumes. `session`: before the run."""
        self.turn, self.events, self.streaming = turn, [], {}
        self.resumed |= turn.resumed

    def show_open_cards(self, cards: OpenCards) -> None:
        """Draw the cards of open interrupts without a run."""

    def event(self, event: Event) -> None:
        """Take in an event, partial or complete."""
        if event.partial:
            self.streaming.setdefault(event.id, []).append(event)
            return
        self.streaming.pop(event.id, None)
        self.events.append(event)

    def failed(self, error: BaseException) -> None:
        """An exception ended the run; `end` follows."""

    def before_blocking_tool(self) -> None:
        """The next tool may block the event loop."""

    def tool_failed(self, call_id: str, tool: str, args: dict[str, Any], error: Exception) -> None:
        """A tool raised; its result for the model follows."""

    def model_busy(self, model: str, error: str, seconds: float) -> None:
        """A model refused with `error`, since it is busy, and is called again after `seconds`."""

    def model_starts(self, text: str) -> None:
        """A model does something before it can answer, as `text` says."""

    def tools_left_out(self, text: str) -> None:
        """Add a notice to the reply, such as that tools of an agent could not be listed."""
        self.notices.add(one_line(text, _LEFT_OUT))

    def for_retry(self, create: "Callable[[], RunView]") -> "RunView":
        """The view of a retry of a failed run, in the same cell. `create`: makes a new view."""
        return create()

    def artifact_saved(self, name: str, version: int, file: types.Part | None) -> None:
        """The last event has saved an artifact."""

    def limit_warning(self) -> str:
        """A warning if the turn's cost limit has no effect since no price is known; else empty."""
        limit = self.turn.max_cost_usd
        return "" if limit is None else limit_warning(cost_of(self.events), limit)

    def agent_begins(self, name: str, branch: str | None, path: str) -> None:
        """An agent begins. `path`: of the graph's node that runs it; empty if there is none."""

    def agent_ends(self, name: str, branch: str | None, path: str) -> None:
        """An agent has ended, or pauses."""

    def end_lock(self) -> AbstractContextManager[Any]:
        """The context of `end` and `close`: requests for outputs of the run wait until it is left."""
        return nullcontext()

    def end(self, reply: ReplyView) -> None:
        """The run has ended, or pauses; `close` follows if it has no open interrupt."""

    def close(self) -> None:
        """The run has no open interrupt any more."""

    def final_view_id(self) -> str:
        """Id of the widget that stays in the place of the reply; empty: none."""
        return ""

    def shows_reply(self) -> bool:
        """True if the running cell shows the reply already, even without displaying its value."""
        return False

    def state_written(self, key: str, event: Event | None, refusal: str = "") -> None:
        """A typed value of a state key was written by `event`; None: it was refused, for the reason `refusal`."""

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict], *, last: bool) -> None:
        """Interrupts with cards in this view were answered in another cell.

        Args:
            verdicts: By interrupt id.
            last: No other card of this view is open.
        """

    def interrupts_undone(self, keys: Collection[str]) -> None:
        """The interrupts of these ids were undone."""

    def shows_card(self, key: str) -> bool:
        """True if the card of the interrupt `key` is in this view."""
        return False

    def patch_card(self, key: str, fields: Mapping[str, Any]) -> None:
        """Change fields of the card of the interrupt `key`."""

    def reopen_card(self, key: str, reason: str) -> None:
        """The answer of a click was refused for `reason`."""

    def mark_stale(self, key: str) -> None:
        """A click came too late: the interrupt was answered in another kernel."""

    def resume_in_cell(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Resume the run with `work`, whose outputs go to the cell of this view."""
        sync.start(work())

    def start_in_cell(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start `work`, whose outputs go to the cell of this view."""
        sync.start(work)

    def show_notice(self, text: str) -> None:
        """Show a notice, such as the reason why a click had no effect."""


def in_a_terminal() -> bool:
    """True in IPython's shell in a terminal."""
    return hasattr(get_ipython(), "mainloop")


class TerminalRun(RunView):
    """Print a run as it streams."""

    is_live = True

    def __init__(self, agent: str, question: str | None, notice: str | None) -> None:
        super().__init__(agent, question, notice)
        self._cell = _cell_number()
        self._rows = RunRows(live=False)
        self._view = ViewState()
        self._streaming_row = ""
        """Id of the row whose text is streaming; empty: none."""
        self._answer = ""
        """The answer on the line of the cursor; empty: the cursor is at the beginning of a line."""
        self._printed: set[str] = set()
        self._waiting_lines: list[tuple[str, str]] = []
        """Lines to print after the streaming answer, as arguments of `_print_line`."""
        self._error = ""
        self._ends_with_exception = self._is_shown = False

    def begin(self, session: Session | None, clicks: Clicks, turn: TurnInfo) -> None:
        """Begin with the session's history, which has the calls of earlier turns."""
        super().begin(session, clicks, turn)
        self._rows = RunRows(live=False, history=history_of(session) if session else ())

    def event(self, event: Event) -> None:
        """Print the text as it streams, and each finished row."""
        super().event(event)
        if self.turn.is_background:  # the user is at the next prompt
            return
        for op in self._rows.feed(event):
            self._view.apply(op)
            if op["op"] == "text":
                self._print_piece(op["id"], op["s"])
            elif op["op"] in ("append", "patch"):
                self._print_row(op["row"]["id"] if op["op"] == "append" else op["id"])
        if event.parts and not event.partial and not event.is_final_response():
            self._end_line()

    def _print_piece(self, key: str, text: str) -> None:
        row = self._view.rows[key]
        if row["kind"] != "text" or self._streaming_row not in ("", key) or not row["text"].strip():
            return
        if not self._streaming_row:
            self._begin_line()
            self._streaming_row, text = key, row["text"].lstrip()
            sys.stdout.write(f"{row['author']} > ")
        self._answer += text
        sys.stdout.write(text)
        sys.stdout.flush()

    def _print_row(self, key: str) -> None:
        row = self._view.rows[key]
        is_open = row["streaming"] or (row["kind"] == "call" and row["result"] is None)
        if is_open or row["kind"] in ("user", "question") or key in self._printed:  # the reply has the question
            return
        self._printed.add(key)
        if key == self._streaming_row:
            self._end_answer()
        elif row["kind"] == "text":
            self._print_line(f"{row['author']} > ", row["text"].strip())
        elif row["kind"] == "error":
            self._error = f"{row['author']}: {row_text(row)}"
        else:
            self._print_line(f"{row['author']}: {row_text(row)}")

    def _print_line(self, line: str, answer: str = "") -> None:
        """Print a line; after an `answer` the line stays open, since the rest of the reply may follow."""
        if self._streaming_row:
            self._waiting_lines.append((line, answer))
            return
        self._begin_line()
        sys.stdout.write(line + (answer or "\n"))
        self._answer = answer

    def _end_answer(self) -> None:
        self._streaming_row, lines, self._waiting_lines = "", self._waiting_lines, []
        for line, answer in lines:
            self._print_line(line, answer)

    def _end_line(self) -> None:
        """Go to the beginning of a line, unless an answer streams."""
        if self._streaming_row:
            return
        if self._answer:
            sys.stdout.write("\n")
        self._answer = ""

    def _begin_line(self) -> None:
        self._end_line()
        if self._error:
            sys.stdout.write(f"{self._error}\n")
        self._error = ""

    def before_blocking_tool(self) -> None:
        """End the line: the tool may print."""
        self._end_line()

    def agent_begins(self, name: str, branch: str | None, path: str) -> None:
        """End the line of the agent before."""
        self._end_line()

    def model_busy(self, model: str, error: str, seconds: float) -> None:
        """Print the model, its error and the seconds until the next attempt."""
        busy = f"{one_line(model, 100)} is busy, {one_line(error, 100)}"
        self._print_line(f"{busy}; the next attempt is in {seconds:.0f} s")

    def model_starts(self, text: str) -> None:
        """Print what it does."""
        self._print_line(one_line(text, _LEFT_OUT))

    def failed(self, error: BaseException) -> None:
        """Note an exception that the shell will print."""
        self._ends_with_exception = isinstance(error, UserError)

    def end(self, reply: ReplyView) -> None:
        """Print the rest of the reply after its streamed part."""
        if self.turn.is_background:
            return
        self._is_shown = True
        self._end_answer()
        if reply.status == "error":
            self._error = ""  # the reply, or the exception, has it
        if self._ends_with_exception:
            self._end_line()
            return
        whole, printed = str(reply), f"{reply.heading} > {self._answer.strip()}"
        if self._answer and whole.startswith(printed):
            sys.stdout.write(whole.removeprefix(printed) + "\n")
            self._answer = ""
        else:
            self._begin_line()
            sys.stdout.write(f"{whole}\n")

    def shows_reply(self) -> bool:
        """Return True in the cell that printed it."""
        return self._is_shown and self._cell == _cell_number()


def _cell_number() -> int:
    shell: Any = get_ipython()
    return len(shell.history_manager.input_hist_parsed)


# ---- which agents and tools are at work


class _Watching(BasePlugin):
    """Registered only for live views, so that other runs have no callbacks."""

    def __init__(self, view: RunView) -> None:
        super().__init__(_LIVE_VIEW)
        self.view = view

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        self.view.agent_begins(*_place_of(agent, callback_context))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        # sync tools do not run on the event loop
        if isinstance(tool, FunctionTool) and inspect.iscoroutinefunction(tool.func):
            self.view.before_blocking_tool()

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self.view.tool_failed(tool_context.function_call_id or "", tool.name, tool_args, error)

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        self.view.agent_ends(*_place_of(agent, callback_context))


def watch(plugins: PluginManager, view: RunView) -> None:
    """Report to `view` from now on, instead of the view of an earlier run."""
    watching = plugins.get_plugin(_LIVE_VIEW)
    if isinstance(watching, _Watching):
        watching.view = view
    elif view.is_live:
        plugins.register_plugin(_Watching(view))


def _place_of(agent: BaseAgent, context: CallbackContext) -> tuple[str, str | None, str]:
    """The name (of the graph's node, if the agent is that node's own), the branch and the node's path."""
    invocation = context.get_invocation_context()
    path = invocation.node.path if invocation.node else ""
    is_node = invocation.node is not None and invocation.node.agent is agent
    return path.rpartition("/")[2].partition("@")[0] if is_node else agent.name, invocation.branch, path
