"""The view of a chat box: one output for turn after turn, and beside it the text for the saved notebook."""

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.notebook.place import display_mode
from adk_nb.notebook.view.display import LiveRun
from adk_nb.notebook.view.document import Text, document
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.page import with_view
from adk_nb.notebook.view.reply_view import ReplyView, conversation_document, waiting_label
from adk_nb.notebook.view.run_view import Clicks, RunView
from adk_nb.notebook.view.widget import STUB, LiveView
from adk_nb.notebook.view.writers import bundle
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.sessions.session import Session


class ChatBoxView(LiveRun):
    """One view for turn after turn of a session.

    Args:
        agent: Who is asked first.
        session: The name of the session, for the head.
        notice: As of `RunView`.
        schema_of: As of `RunRows`, of what an agent asks.
        height: Of the log, in pixels.
        on_ask: Is called with what was typed, on the thread that the message comes in on.
    """

    def __init__(
        self,
        agent: BaseAgent,
        session: str,
        notice: str | None,
        schema_of: Callable[[BaseAgent, Interrupt], dict[str, Any] | None],
        *,
        height: int,
        on_ask: Callable[[str], None],
    ) -> None:
        view = LiveView(f"{agent.name} ─ session {session}", {"height": height})
        super().__init__(agent, None, notice, lambda interrupt: schema_of(self._answering, interrupt), view)
        self.where = "in a chat box"
        self._answering = agent
        self._on_ask = on_ask
        self._twin: Any = None
        self._turns: list[ReplyView] = []
        self._seen: set[str] = set()
        self._old_cards: dict[str, dict[str, Any]] = {}
        """Cards of earlier turns, by id."""
        self._begun = self._goes_on = self._catches_up = False
        self._before: tuple[str | None, bool] = None, False
        """The question of the turn before, and whether the next reply is a part of it."""
        self._refused = 0

    def open(self, session: Session | None, clicks: Clicks) -> None:
        """Display it, with what was said in the session before."""
        self._clicks = clicks
        text = f"a chat box for {self.agent}; run this cell to talk in it"
        data: Any = bundle(document(Text(text, small=True)))
        metadata: Any = None
        if display_mode() == "widget":
            data, metadata = with_view(data, self._view.model_id, "run")
        display(data, metadata=metadata, raw=True)
        self._twin = display(STUB, raw=True, display_id=True)
        self._open_rows({}, ())
        self._catch_up(session.events if session else [])
        self._push_notices()
        self._pause("idle", "ready")

    def asks(self, question: str) -> None:
        """The turn that begins next answers `question`."""
        self._before = self.question, self._goes_on
        self.question = question
        self._begun = self._goes_on = False

    def answered_by(self, agent: BaseAgent, notice: str | None) -> None:
        """The agent that answers the last question, and a notice on its model."""
        self.agent, self._answering = agent.name, agent
        self.notices = self.notices.of_next_turn(notice)

    def begin(self, session: Session | None, clicks: Clicks) -> None:
        self._catch_up(session.events if session else [])
        self._begun = True
        super().begin(session, clicks)

    def ask_again_of(self, keys: Collection[str], session: Session, clicks: Clicks, requests: dict[str, str]) -> None:
        self._clicks = clicks
        self._push({"op": "card", "card": self._old_cards[key]} for key in keys if key in self._old_cards)
        self._pause("pending", waiting_label(interrupt for interrupt in self.open_interrupts() if interrupt.id in keys))

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict], *, last: bool) -> None:
        if self._turns:
            self._turns[-1] = self._turns[-1].answered_elsewhere(verdicts)
            self._keep()
        super().answered_elsewhere(verdicts, last=last)

    def undone(self, keys: Collection[str]) -> None:
        super().undone(keys)
        self._pause("idle", "ready")

    def event(self, event: Event) -> None:
        if not event.partial:
            self._seen.add(event.id)
        super().event(event)

    def refused(self, reason: str) -> None:
        """The question could not be answered, and the reader has to mend it."""
        self._refused += 1
        row = f"refused{self._refused}"
        if not self._begun:
            question = {"id": f"{row}/asked", "author": "user", "kind": "user", "text": self.question or ""}
            self._view.push({"op": "append", "row": question})
            self.question, self._goes_on = self._before
        self._view.push({"op": "append", "row": {"id": row, "author": "notebook", "kind": "error", "text": reason}})
        self._pause("error", "not said" if not self._begun else "")

    def end(self, reply: ReplyView) -> None:
        super().end(reply)
        if self._goes_on and self._turns:
            reply = reply.after(self._turns.pop())
        self._turns.append(reply)
        self._goes_on = True
        self._keep()

    def _open_cards(self) -> list[Interrupt]:
        return [] if self._catches_up else super()._open_cards()

    def _keep(self) -> None:
        """Write the conversation so far to the file."""
        if self._twin:
            self._twin.update(bundle(conversation_document(self._turns)), raw=True)

    def close(self) -> None:
        """It stays: the next turn is shown in it."""

    def missed(self, page: str) -> list[dict[str, Any]]:
        is_current = page == self._own_cell.page or not self._turns
        return [] if is_current else [{"at": 1, "data": bundle(conversation_document(self._turns)), "metadata": {}}]

    def stays_as(self) -> str:
        return ""  # it is not the view of one reply

    def anew(self, create: Callable[[], RunView]) -> RunView:
        self.asks(self.question or "")
        return self

    def in_its_cell(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.start_in_its_cell(work())

    def _catch_up(self, events: Iterable[Event]) -> None:
        """Show events from outside this box; cards only where they can be answered here."""
        self._catches_up = True
        for event in events:
            if event.id not in self._seen:
                self._seen.add(event.id)
                self._show(event)
        self._push(self._lanes.end("done"))  # nobody of an earlier turn works any more
        self._catches_up = False

    def _push(self, ops: Iterable[dict[str, Any]]) -> None:
        if not self._catches_up:
            super()._push(ops)
            return
        for op in ops:
            if op["op"] == "card":
                self._old_cards[op["card"]["id"]] = op["card"]
            else:
                self._view.push(op)

    def _fold(self, reply: ReplyView) -> None:
        """A conversation stays unfolded."""

    def _clicked(self, message: dict[str, Any]) -> None:
        if message["kind"] == "ask":
            self._on_ask(message["text"])
        else:
            super()._clicked(message)
