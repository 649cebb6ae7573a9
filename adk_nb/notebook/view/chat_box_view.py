"""The view of a chat box: one output for all its turns, and beside it the text that is saved in the notebook."""

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.events.event import Event
from adk_nb.notebook.place import display_mode
from adk_nb.notebook.view.answers import Status
from adk_nb.notebook.view.display import LiveRun, model_of
from adk_nb.notebook.view.document import Text, document
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.lanes import Lanes
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.reply_view import ReplyView, conversation_document, waiting_label
from adk_nb.notebook.view.run_view import Clicks, OpenCards, RunView, TurnInfo
from adk_nb.notebook.view.widget import STUB, LiveView, with_view
from adk_nb.notebook.view.writers import bundle
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.rewind import surviving
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)


_MAX_DESCRIPTION = 300
_MOST_TOOLS = 3
"""Tools that first messages are suggested for."""


@dataclass(frozen=True, kw_only=True)
class BoxAsks:
    """What a page can ask of a box. Called on the thread that receives it; None: the box cannot do it."""

    send: Callable[[str, Sequence[Any]], None]
    """Send a text, with what is attached: names, and `{"name", "file"}` of files that the page has sent."""
    file: Callable[[str, str], None] | None = None
    """Take a piece of the file of that id, as base64."""
    again: Callable[[str, str | None], None] | None = None
    """Send the message of an event again in a copy of the session, or a text in its place."""
    switch: Callable[[str], None] | None = None
    """Show a session; empty: a new one."""
    attachables: Callable[[str], None] | None = None
    """List what can be attached, as the response to the request of that key."""
    most: int = 0
    """Bytes that the attachments of a message may have."""


class ChatBoxView(LiveRun):
    """The live view of all turns of a session.

    Args:
        agent: The agent that answers first.
        session: The name of the session, for the title.
        notice: As of `RunView`.
        schema_of: As of `RunRows`, for an interrupt of the agent.
        height: Of the log, in pixels.
        asks: What its page can ask for.
    """

    def __init__(
        self,
        agent: BaseAgent,
        session: str,
        notice: str | None,
        schema_of: Callable[[BaseAgent, Interrupt], dict[str, Any] | None],
        *,
        height: int,
        asks: BoxAsks,
    ) -> None:
        title = agent.name if asks.switch else f"{agent.name} ─ session {session}"
        box = {
            "height": height,
            "agent": agent.name,
            "description": one_line(agent.description, _MAX_DESCRIPTION),
            "models": {member.name: model for member in (agent, *agent.members) if (model := model_of(member))},
            "suggestions": suggestions(agent),
            "forks": asks.again is not None,
            "attaches": asks.attachables is not None,
            "most": asks.most,
            "elsewhere": "",
            "waiting": "",
        }
        view = LiveView(title, box, model_of(agent))
        super().__init__(agent, None, notice, lambda interrupt: schema_of(self._answering, interrupt), view)
        self.place = "in a chat box"
        self._answering, self._model = agent, model_of(agent)
        self._session = session
        self._asks = asks
        self._conversations: dict[str, list[ReplyView]] = {}
        """The turns of sessions that were shown before, by name."""
        self.elsewhere = ""
        """The cell that answers in the session now, as `cell [53]`; empty: this box, or nobody."""
        self._stop_elsewhere: Callable[[], None] | None = None
        self._notes = 0
        self._view_output: Any = None
        self._text_output: Any = None
        self._turns: list[ReplyView] = []
        self._seen_ids: set[str] = set()
        self._old_cards: dict[str, dict[str, Any]] = {}
        """Cards of earlier turns, by id."""
        self._has_begun = self._continues = self._is_catching_up = False
        self._previous_question: tuple[str | None, bool] = None, False
        """The question of the turn before, and True if the next reply continues that turn."""
        self._refusal_count = 0
        self._status = "idle", ""
        """Shown now, with its text."""

    def open(self, session: Session | None, clicks: Clicks, turn: TurnInfo, names: Sequence[str] = ()) -> None:
        """Display the box, with the session's earlier events. `names`: of the sessions to choose from."""
        self._clicks, self.turn = clicks, turn
        text = f"a chat box for {self.agent}; run this cell to talk in it"
        data: Any = bundle(document(Text(text, small=True)))
        metadata: Any = None
        if display_mode() == "widget":
            data, metadata = with_view(data, self._view.model_id, "run")
        with self._own_cell.displays_here():
            self._view_output = display(data, metadata=metadata, raw=True, display_id=True)
            self._text_output = display(STUB, raw=True, display_id=True)
        self._show_session(session, names)

    def _show_session(self, session: Session | None, names: Sequence[str]) -> None:
        if names:
            self._change_box(sessions={"current": self._session, "names": list(names)})
        with self._view.in_one_batch():
            self._open_rows({}, ())
            self._catch_up(session.events if session else [])
            self._push_notices()
        self._pause("idle", "ready")

    def move_to(
        self,
        name: str,
        session: Session | None,
        clicks: Clicks,
        turn: TurnInfo,
        names: Sequence[str],
        before: str | None = None,
    ) -> None:
        """Show another session in place of this one.

        Args:
            name: Of the session.
            session: Its events.
            clicks: The callbacks of its turns.
            turn: Of the session.
            names: Of all sessions.
            before: The session is a copy of the one that is shown, and ends before the turn of this event.
        """
        self._conversations[self._session] = turns = self._turns
        if before is None:
            self._turns = self._conversations.get(name, [])
        else:
            ends = [number for number, each in enumerate(turns) if before in {event.id for event in each.events}]
            self._turns = turns[: ends[0] if ends else len(turns)]
        self._session, self._clicks, self.turn = name, clicks, turn
        self._clear()
        self._show_session(session, names)
        self._save_text()

    def _clear(self) -> None:
        """Take all rows and cards out of the view."""
        self._view.push({"op": "clear"})
        self._seen_ids, self._old_cards, self._cards = set(), {}, set()
        self._lanes = Lanes()
        self.question, self._continues = None, False
        self._previous_question = None, False

    def _change_box(self, **fields: Any) -> None:
        self._view.push({"op": "box", "box": fields})

    def add_note(self, text: str) -> None:
        """Show a line of the notebook between the turns."""
        self._notes += 1
        row = {"id": f"note{self._notes}", "author": "notebook", "kind": "marker", "text": text}
        self._view.push({"op": "append", "row": row})

    def wait_for(self, what: str) -> None:
        """Say what the message waits for that was sent last; empty: for nothing any more."""
        self._change_box(waiting=what)

    def show_attachables(self, key: str, listed: list[dict[str, str]]) -> None:
        """Answer the page that asked for them."""
        self._view.push({"op": "panel", "name": "attachables", "id": key, "data": listed})

    # ---- turns of other cells

    def turn_begins(self, place: str, session: Session | None, stop: Callable[[], None]) -> None:
        """Follow a turn of a cell. The arguments are those of `Follower.turn_begins`."""
        words = place.removeprefix("in ")
        self.elsewhere = f"cell {words}" if words.startswith("[") else "another cell"
        self._stop_elsewhere = stop
        self._catch_up(session.events if session else [])
        self._change_box(elsewhere=self.elsewhere)
        self._set_status("running", f"answering in {self.elsewhere}")

    def turn_event(self, event: Event) -> None:
        """Show an event of that turn; its cards are in its own view."""
        if event.id in self._seen_ids:
            return
        if not event.partial:
            self._seen_ids.add(event.id)
        self._is_catching_up = True
        try:
            self._show(event)
        except Exception:  # an event that cannot be drawn does not fail the run
            logger.exception("event %s of %s cannot be shown", event.id, event.author)
        self._is_catching_up = False

    def turn_ends(self, status: Status, error: str | None) -> None:
        """Say how it has ended."""
        place, self.elsewhere, self._stop_elsewhere = self.elsewhere, "", None
        if error:
            self._refusal_count += 1
            row = {"id": f"refused{self._refusal_count}", "author": "notebook", "kind": "error", "text": error}
            self._view.push({"op": "append", "row": row})
        self._push(self._lanes.end(status))
        self._change_box(elsewhere="")
        self._pause(*_STATUS_ELSEWHERE.get(status, ("idle", "ready")))
        if status == "pending":
            self._pause("pending", f"waiting for you in {place}")

    def turns_undone(self, session: Session | None) -> None:
        """Show the session without the turns that were undone, here and in the text for the file."""
        stored, question = session.events if session else [], self.question
        with self._view.in_one_batch():
            self._catch_up(stored)
            self._pause("idle", "ready")
        self.question = question  # a card may send it again
        left = {event.id for event in surviving(stored)}
        self._turns = [turn for turn in self._turns if not turn.events or any(each.id in left for each in turn.events)]
        self._save_text()

    def set_question(self, question: str) -> None:
        """Set the question of the turn that begins next."""
        self._previous_question = self.question, self._continues
        self.question = question
        self._has_begun = self._continues = False

    def set_agent(self, agent: BaseAgent, notice: str | None) -> None:
        """Set the agent that answers the last question, and a notice on its model."""
        self.agent, self._answering = agent.name, agent
        if (model := model_of(agent)) != self._model:
            self._model = model
            self._view.push({"op": "model", "name": model})
        self.notices = self.notices.of_next_turn(notice)

    def begin(self, session: Session | None, clicks: Clicks, turn: TurnInfo) -> None:
        """Show events from outside this box, then begin the turn below them."""
        self._catch_up(session.events if session else [])
        self._has_begun = True
        super().begin(session, clicks, turn)

    def show_open_cards(self, cards: OpenCards) -> None:
        """Show the cards of earlier turns in this view."""
        self._clicks, self.turn = cards.clicks, cards.turn
        self._push({"op": "card", "card": self._old_cards[key]} for key in cards.keys if key in self._old_cards)
        open_ = [interrupt for interrupt in self.turn.open_interrupts() if interrupt.id in cards.keys]
        self._pause("pending", waiting_label(open_))

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict], *, last: bool) -> None:
        """Write the answers into the text for the file, too."""
        if self._turns:
            self._turns[-1] = self._turns[-1].answered_elsewhere(verdicts)
            self._save_text()
        super().answered_elsewhere(verdicts, last=last)

    def interrupts_undone(self, keys: Collection[str]) -> None:
        """Close the cards, and let the box take the next question."""
        super().interrupts_undone(keys)
        self._pause("idle", "ready")

    def event(self, event: Event) -> None:
        """Note the event's id, so that catching up leaves it out."""
        if not event.partial:
            self._seen_ids.add(event.id)
        super().event(event)

    def question_refused(self, reason: str, sender: str = "user") -> None:
        """Show why the question could not be sent or answered."""
        self._refusal_count += 1
        row = f"refused{self._refusal_count}"
        if not self._has_begun:
            question = {"id": f"{row}/asked", "author": sender, "kind": "user", "text": self.question or ""}
            self._view.push({"op": "append", "row": question})
            self.question, self._continues = self._previous_question
        self._view.push({"op": "append", "row": {"id": row, "author": "notebook", "kind": "error", "text": reason}})
        is_waiting = not self._has_begun and self._status[0] == "pending"  # its card is open as before
        self._pause(*(self._status if is_waiting else ("error", "" if self._has_begun else "not said")))

    def end(self, reply: ReplyView) -> None:
        """Add the reply to the conversation, or to the turn that it continues."""
        super().end(reply)
        if self._continues and self._turns:
            reply = reply.appended_to(self._turns.pop())
        self._turns.append(reply)
        self._continues = True
        self._save_text()

    def _open_cards(self) -> list[Interrupt]:
        return [] if self._is_catching_up else super()._open_cards()

    def _save_text(self) -> None:
        """Write the conversation so far to the file."""
        if self._text_output:
            self._text_output.update(bundle(conversation_document(self._turns)), raw=True)

    def close(self) -> None:
        """Keep the box open for the next turn."""

    def remove(self) -> None:
        """Take the box out of its cell; the session stays."""
        for output in (self._view_output, self._text_output):
            output.update(STUB, raw=True)
        self._text_output = None

    def missed_outputs(self, page: str) -> list[dict[str, Any]]:
        """Return the conversation as text; the box is on one page only."""
        is_current = page == self._own_cell.page or not self._turns
        return [] if is_current else [{"at": 1, "data": bundle(conversation_document(self._turns)), "metadata": {}}]

    def final_view_id(self) -> str:
        """Return nothing: a box is not the view of one reply."""
        return ""

    def for_retry(self, create: Callable[[], RunView]) -> RunView:
        """Retry in this box."""
        self.set_question(self.question or "")
        return self

    def resume_in_cell(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Resume with `work`; the box stays the view of all turns."""
        self.start_in_cell(work())

    def _catch_up(self, events: Iterable[Event]) -> None:
        """Show events from outside this box; cards only where they can be answered here."""
        stored = list(events)
        if self._seen_ids and any(each.actions.rewind_before_invocation_id for each in self._unseen(stored)):
            self._clear()  # turns that are shown were undone
            self._open_rows({}, ())
        self._is_catching_up = True
        for event in self._unseen(surviving(stored)):
            self._show(event)
        self._seen_ids.update(event.id for event in stored)
        self._push(self._lanes.end("done"))  # agents of earlier turns are done
        self._is_catching_up = False

    def _unseen(self, events: Sequence[Event]) -> list[Event]:
        return [event for event in events if event.id not in self._seen_ids]

    def _push(self, ops: Iterable[dict[str, Any]]) -> None:
        if not self._is_catching_up:
            super()._push(ops)
            return
        for op in ops:
            if op["op"] == "card":
                self._old_cards[op["card"]["id"]] = op["card"]
            else:
                self._view.push(op)

    def _set_status(self, status: str, text: str) -> None:
        self._status = status, text
        super()._set_status(status, text)

    def _fold(self, reply: ReplyView) -> None:
        """Do nothing: a conversation stays unfolded."""

    def _message_received(self, message: dict[str, Any]) -> None:
        kind, asks = message["kind"], self._asks
        if kind == "ask":
            asks.send(message["text"], message["attach"])
        elif kind == "file" and asks.file:
            asks.file(message["id"], message["data"])
        elif kind == "again" and asks.again:
            asks.again(message["event"], message["text"])
        elif kind == "session" and asks.switch:
            asks.switch(message["name"])
        elif kind == "need" and message["what"] == "attachables" and asks.attachables:
            asks.attachables(message["id"])
        elif kind == "stop" and self._stop_elsewhere:
            self._stop_elsewhere()
        elif kind not in ("again", "session", "file"):
            super()._message_received(message)


_STATUS_ELSEWHERE = {"done": ("done", "done"), "cancelled": ("cancelled", "stopped"), "error": ("error", "")}


def suggestions(agent: BaseAgent) -> list[str]:
    """First messages to an agent, by the tools that it and its members have; `…` stands for what is to be typed."""
    members = [member for member in (agent, *agent.members) if isinstance(member, LlmAgent)]
    tools = {tool.name: tool for member in members for tool in member.tools_now()}
    texts = ["What can you do?"]
    for name, tool in list(tools.items())[:_MOST_TOOLS]:
        declared = tool.function_declaration
        schema = cast(dict[str, Any] | None, declared and declared.parameters_json_schema)
        takes = bool(schema and schema.get("properties"))
        texts.append(f"Use {name} for …" if takes else f"Use {name}")
    return texts
