"""The view of a run: the calls that a runner makes to it. This one shows nothing and only keeps the events."""

from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from adk_nb import sync, types
from adk_nb.events.event import Event
from adk_nb.notebook.place import is_in_this_cell, this_cell
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.notices import Notices
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.spending import cost_of, unlimited
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.trace import Trace
from adk_nb.sessions.session import Session

_LEFT_OUT = 300
"""Characters of the reason why a toolset is left out."""


class Answered(Protocol):
    """Takes an answer on a card."""

    def __call__(self, key: str, value: Any, /, *, as_asked: bool = False) -> None:
        """Answer the interrupt of id `key` with `value`, as `Chat.answer` takes it.

        `as_asked`: run the call with the tool as it was at the request.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Clicks:
    """The callbacks for a reader's clicks on a run."""

    stop: Callable[[], None]
    answered: "Answered"
    write: Callable[[str, str | None], None] = lambda key, text: None
    """Takes a key of the state and its typed value, JSON or else text; None: remove the key."""
    rerun: Callable[[str], None] = lambda event_id: None
    """Takes an event whose turn to repeat, in a copy of the session before it."""
    retry: Callable[[str], None] = lambda key: None
    """Takes the id of an error card: repeat the message before it."""
    drop: Callable[[str], None] = lambda key: None
    """Takes the id of an error card: take the turn back."""


class RunView:
    """One run; it may resume after a pause."""

    plain = False
    """Show its reply in plain text."""
    is_live = False
    """It shows pieces as they come, so the model streams."""
    shows_errors = False
    """It shows the error of a turn, also one that is raised."""

    def __init__(self, agent: str, question: str | None, notice: str | None) -> None:
        self.agent = agent
        self.question = question
        self.shows_question = isinstance(question, str) and is_in_this_cell(question)
        """Its cell says the question already."""
        self.notices = Notices(notice)
        self.magic = ""
        """The `%confirm` that answers its interrupts; empty: only Python has its chat."""
        self.where = this_cell()
        """The place of an answer that resumes it, as `in [8]`."""
        self.trace = Trace()
        """Requests to models and calls of tools, also after a pause."""
        self.max_cost_usd: float | None = None
        """Limit, also after a click. None: there is none."""
        self.asked_elsewhere: Collection[str] = ()
        """Ids of interrupts with cards in other views."""
        self.events: list[Event] = []
        """Whole ones since the run began or last resumed, oldest first."""
        self.answers_approvals = False
        """A policy answers its approvals at once, and it resumes."""
        self.is_background = False
        """Its cell does not wait for it."""
        self.open_interrupts: Callable[[], list[Interrupt]] = list
        """Returns what is open in the session now."""
        self.streaming: dict[str, list[Event]] = {}
        """The partial events of answers that have no whole event yet, by event id."""
        self.resumed = False
        """It resumed after a click, when its cell had a result already."""

    def begin(self, session: Session | None, clicks: Clicks) -> None:
        """The run begins, or resumes. `session`: as it is before."""
        self.events, self.streaming = [], {}

    def ask_again_of(self, keys: Collection[str], session: Session, clicks: Clicks, requests: dict[str, str]) -> None:
        """Draw the cards of the interrupts `keys`, and start no run. `requests`: they by media type."""

    def event(self, event: Event) -> None:
        """One more event, partial or whole."""
        if event.partial:
            self.streaming.setdefault(event.id, []).append(event)
            return
        self.streaming.pop(event.id, None)
        self.events.append(event)

    def failed(self, wrong: BaseException) -> None:
        """An exception ends it; `end` follows."""

    def blocks(self) -> None:
        """The next tool may block the event loop."""

    def tool_failed(self, call_id: str, tool: str, args: dict[str, Any], wrong: Exception) -> None:
        """A tool raised; its result for the model follows."""

    def waits(self, model: str, error: str, seconds: float) -> None:
        """A model is busy (`error`: its answer), and is called again after `seconds`."""

    def left_out(self, text: str) -> None:
        """An agent runs without tools that could not be listed; every form of the reply says so."""
        self.notices.add(one_line(text, _LEFT_OUT))

    def anew(self, create: "Callable[[], RunView]") -> "RunView":
        """The view of the next try of a failed run, in its cell. `create`: makes a new one."""
        return create()

    def saved(self, name: str, version: int, file: types.Part | None) -> None:
        """The last event has saved an artifact."""

    def unlimited(self) -> str:
        """A warning if `max_cost_usd` has no effect since no price is known; else empty."""
        if self.max_cost_usd is None:
            return ""
        return unlimited(cost_of(self.events), self.max_cost_usd)

    def agent_begins(self, name: str, branch: str | None, path: str) -> None:
        """An agent begins. `path`: of the graph's node that runs it; empty if there is none."""

    def agent_ends(self, name: str, branch: str | None, path: str) -> None:
        """An agent has ended, or pauses."""

    def ending(self) -> AbstractContextManager[Any]:
        """Context of `end` and `close`: requests for the outputs of the run wait until it is left."""
        return nullcontext()

    def end(self, reply: ReplyView) -> None:
        """The run has ended, or pauses; if it has no open interrupt, `close` follows."""

    def close(self) -> None:
        """The run has no open interrupt any more."""

    def stays_as(self) -> str:
        """Id of the widget that stays in the place of its reply; empty: none."""
        return ""

    def shows_the_reply(self) -> bool:
        """True if the cell that runs now shows the reply already, also if it is not its last expression."""
        return False

    def wrote(self, key: str, event: Event | None, why_not: str = "") -> None:
        """A typed value of a key of the state was written by `event`, or refused."""

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict], *, last: bool) -> None:
        """Cards got an answer in another cell.

        Args:
            verdicts: By card id.
            last: No other card of this run can be answered.
        """

    def undone(self, keys: Collection[str]) -> None:
        """The interrupts of these ids were undone."""

    def patch_card(self, key: str, fields: Mapping[str, Any]) -> None:
        """Change fields of the card of the interrupt `key`."""

    def ask_again(self, key: str, reason: str) -> None:
        """A click's answer was refused."""

    def say_stale(self, key: str) -> None:
        """A click came too late: another kernel has answered."""

    def in_its_cell(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Resume with `work`; it prints in the cell that began this run."""
        sync.start(work())

    def start_in_its_cell(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start `work` beside other runs; it displays in the cell of this view."""
        sync.start(work)

    def say(self, text: str) -> None:
        """Show a notice, as the reason why a click had no effect."""
