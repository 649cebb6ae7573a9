"""A run as whoever watches it is told of it; this one is watched by nobody and only keeps the events."""

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
"""Characters of why a toolset is left out."""


class Answered(Protocol):
    """What is called with an answer on a card."""

    def __call__(self, key: str, value: Any, /, *, as_asked: bool = False) -> None:
        """Answer the interrupt of id `key` with `value`, as `Chat.answer` takes it.

        `as_asked`: a call is to be made with the tool as it was when it was asked for.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Clicks:
    """What to call for each thing that a reader may do to a run."""

    stop: Callable[[], None]
    answered: "Answered"
    write: Callable[[str, str | None], None] = lambda key, text: None
    """Is told a key of the state and what was typed as its value, JSON or else text; None: the key goes away."""
    rerun: Callable[[str], None] = lambda event_id: None
    """Is told the event whose turn is to be asked again, in a copy of the session as it was before."""
    retry: Callable[[str], None] = lambda key: None
    """Is told the id of a card of an error: what was said before it is to be said again."""
    drop: Callable[[str], None] = lambda key: None
    """Is told the id of a card of an error: the turn is to be taken back."""


class RunView:
    """One run; after a pause for approval it may go on."""

    plain = False
    """Its reply is to be shown in plain text."""
    is_live = False
    """True: somebody sees pieces as they come, so the model is asked to stream."""

    shows_errors = False
    """It shows why a turn failed, also one whose error is raised."""

    def __init__(self, agent: str, question: str | None, notice: str | None) -> None:
        self.agent = agent
        self.question = question
        self.shows_question = isinstance(question, str) and is_in_this_cell(question)
        """Its cell says the question already."""
        self.notices = Notices(notice)
        self.magic = ""
        """The `%confirm` that answers what it asks; empty: only Python has its chat."""
        self.where = this_cell()
        """Where an answer is typed that goes on in this view, as `in [8]`."""
        self.trace = Trace()
        """What it asks its models and tools, also after a pause."""
        self.max_cost_usd: float | None = None
        """What it may cost, also when it goes on after a click. None: anything."""
        self.asked_elsewhere: Collection[str] = ()
        """Ids of what waits in other views: this one need not ask for it too."""
        self.events: list[Event] = []
        """Whole ones since the run began or last went on, oldest first."""
        self.answers_approvals = False
        """A policy answers its approvals at once, and it goes on."""
        self.is_background = False
        """Its cell does not wait for it."""
        self.open_interrupts: Callable[[], list[Interrupt]] = list
        """Returns what is open in the session now."""
        self.streaming: dict[str, list[Event]] = {}
        """The partial events of answers that have no whole event yet, by event id."""
        self.resumed = False
        """It went on after a click, when its cell had a result already."""

    def begin(self, session: Session | None, clicks: Clicks) -> None:
        """The run starts, or goes on, in `session` as it is before."""
        self.events, self.streaming = [], {}

    def ask_again_of(self, keys: Collection[str], session: Session, clicks: Clicks, requests: dict[str, str]) -> None:
        """Draw the cards of the interrupts `keys` of `session`, and start no run. `requests`: they by media type."""

    def event(self, event: Event) -> None:
        """One more event, partial or whole."""
        if event.partial:
            self.streaming.setdefault(event.id, []).append(event)
            return
        self.streaming.pop(event.id, None)
        self.events.append(event)

    def failed(self, wrong: BaseException) -> None:
        """What is raised ends it; `end` follows."""

    def blocks(self) -> None:
        """What works next may keep the loop from all else until it ends."""

    def tool_failed(self, call_id: str, tool: str, args: dict[str, Any], wrong: Exception) -> None:
        """A tool raised; its result, which tells the model, follows."""

    def waits(self, model: str, error: str, seconds: float) -> None:
        """A model is busy (`error`: with what it said so), and is asked again after so long."""

    def left_out(self, words: str) -> None:
        """An agent goes on without tools that could not be listed; every form of the reply says so."""
        self.notices.add(one_line(words, _LEFT_OUT))

    def anew(self, made: "Callable[[], RunView]") -> "RunView":
        """Where the next try of a run that failed is shown: in its cell. `made`: makes a new one."""
        return made()

    def saved(self, name: str, version: int, file: types.Part | None) -> None:
        """The last event has saved a file, which is there."""

    def unlimited(self) -> str:
        """That `max_cost_usd` does not hold, since no price is known, in words; empty if it does."""
        if self.max_cost_usd is None:
            return ""
        return unlimited(cost_of(self.events), self.max_cost_usd)

    def agent_begins(self, name: str, branch: str | None, path: str) -> None:
        """An agent begins to work; `path`: of the graph's node for which it does, empty if for none."""

    def agent_ends(self, name: str, branch: str | None, path: str) -> None:
        """An agent has ended, or stops to wait."""

    def ending(self) -> AbstractContextManager[Any]:
        """Within this `end` and `close` are told; a page that asks for what came of it waits until they are."""
        return nullcontext()

    def end(self, reply: ReplyView) -> None:
        """The run has come to an end, or to a pause; if nothing of it waits, `close` follows."""

    def close(self) -> None:
        """Nothing of it waits for an answer any more."""

    def stays_as(self) -> str:
        """The widget that shows it on, in the place of its reply; empty: none does."""
        return ""

    def shows_the_reply(self) -> bool:
        """Whether the cell that is run now shows the reply already, also if it is not its last expression."""
        return False

    def wrote(self, key: str, event: Event | None, why_not: str = "") -> None:
        """What was typed as the value of a key of the state was written by `event`, or was refused."""

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict], *, last: bool) -> None:
        """Cards got an answer in another cell.

        Args:
            verdicts: By card id.
            last: No other card of this run can be answered.
        """

    def undone(self, keys: Collection[str]) -> None:
        """What waited under these ids was undone, and does so no more."""

    def patch_card(self, key: str, fields: Mapping[str, Any]) -> None:
        """Lay these fields over those of the card of the interrupt `key`."""

    def ask_again(self, key: str, why: str) -> None:
        """An answer by click could not be taken."""

    def say_stale(self, key: str) -> None:
        """An answer by click came too late: what was asked is answered, by another kernel."""

    def in_its_cell(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Start `work` so that what it prints lands in the cell that began this run."""
        sync.start(work())

    def start_in_its_cell(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start `work` beside all others; what it shows lands in the cell that displayed this."""
        sync.start(work)

    def say(self, words: str) -> None:
        """Tell the reader why a click came to nothing."""
