"""Views of a run: live in a notebook, the reply alone where nobody watches, text in a terminal, none in a script."""

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from typing import Any, Literal, get_args

from IPython.core.getipython import get_ipython
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.notebook.place import Mode, display_mode
from adk_nb.notebook.view.cards import UNSENT, ErrorCards, unsent_card, unsent_note
from adk_nb.notebook.view.cell_output import CellOutput, OriginCell
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.lanes import Lanes
from adk_nb.notebook.view.panels import Follower, PanelRun, RunPanels
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.reply_view import Notices, ReplyView, answer_for_view, waiting_label
from adk_nb.notebook.view.rows import RunRows, SchemaOf
from adk_nb.notebook.view.run_view import Clicks, OpenCards, Refused, RunView, TerminalRun, TurnInfo, in_a_terminal
from adk_nb.notebook.view.spending import Meter
from adk_nb.notebook.view.widget import LiveView, side_shell, views_stay
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

_MAX_MODEL = 60
"""Characters of a model's name in the head."""
Show = Mode | Literal[False]
"""False: `off`."""


def checked_mode(show: Show) -> Mode:
    """The mode that `show` names.

    Raises:
        InputError: There is no such mode.
    """
    mode = "off" if show is False else show
    if mode not in get_args(Mode):
        raise InputError(f"unknown show={show!r}; use {', '.join(map(repr, get_args(Mode)))} or False")
    return mode


def show_run(
    agent: BaseAgent, question: str | None, notice: str | None, schema_of: SchemaOf, mode: Mode = "auto"
) -> RunView:
    """The view of a run that fits `mode` and the place it runs in."""
    fitting = display_mode(mode)
    if fitting == "widget" and in_a_kernel():
        return LiveRun(agent, question, notice, schema_of)
    view_type = StaticRun if fitting != "off" and in_a_kernel() else RunView
    if fitting == "widget" and in_a_terminal():
        view_type = TerminalRun
    view = view_type(agent.name, question, notice)
    view.plain = mode == "text"
    return view


class StaticRun(RunView):
    """A run that shows only its reply, as a live view leaves it in the saved notebook."""

    shows_errors = True

    def __init__(self, agent: str, question: str | None, notice: str | None) -> None:
        super().__init__(agent, question, notice)
        self._own_cell = OriginCell()
        self._is_shown = False
        self._turn: ReplyView | None = None

    def end(self, reply: ReplyView) -> None:
        """Display the reply, joined to the part of the turn before a pause."""
        if self.turn.is_background:  # its cell may be over: its output would come too late for a comparison
            return
        self._turn = reply.appended_to(self._turn) if self._turn else reply
        if self.turn.answers_approvals and reply.pending:
            return
        with self._own_cell.displays_here():
            display(self._turn)
        self._is_shown = True

    def shows_reply(self) -> bool:
        """Return True in the cell that displayed it, while that cell runs."""
        return self._is_shown and self._own_cell.is_run_now


def model_of(agent: BaseAgent) -> str:
    """The name of the model that answers, for the head of a view; empty for a team."""
    return one_line(agent.canonical_model.model, _MAX_MODEL) if isinstance(agent, LlmAgent) else ""


class LiveRun(RunView):
    """A run in a live view; when it has ended, the reply takes the view's place."""

    is_live = shows_errors = shows_cards = True

    def __init__(
        self,
        agent: BaseAgent,
        question: str | None,
        notice: str | None,
        schema_of: SchemaOf,
        view: LiveView | None = None,
    ) -> None:
        super().__init__(agent.name, question, notice)
        self._schema_of = schema_of
        self._lanes = Lanes()
        self._meter: Meter | None = None
        self._notices: list[dict[str, Any]] = []
        """Shown now."""
        self._rows: RunRows | None = None
        self._panels = RunPanels(PanelRun(agent=None if view else agent))
        self._is_over = False
        self._queue: deque[Event] = deque()
        """Events whose rows are not made yet."""
        self._cards: set[str] = set()
        self._errors = ErrorCards(self._push)
        self._view = view or LiveView(title=agent.name, model=model_of(agent))
        self._cell = contextvars.copy_context()
        self._own_cell = OriginCell()
        self._cell.run(self._own_cell.adopt_context)
        self._kernel_loop: asyncio.AbstractEventLoop | None = None
        with suppress(RuntimeError):
            self._kernel_loop = asyncio.get_running_loop()
        self._place = CellOutput(self._view.model_id, self._own_cell)
        self._end_lock = threading.RLock()
        self._pending_label = ""
        """The status text of its last pause."""
        self._clicks: Clicks | None = None
        self._refused: Refused | None = None
        """The message of its cell that was not sent. None: there is none, or it was sent since."""
        self._view.on_answer(self._message_received)

    # ---- the run begins

    def begin(self, session: Session | None, clicks: Clicks, turn: TurnInfo) -> None:
        """Display the view at the first begin; a resumed run continues in it."""
        super().begin(session, clicks, turn)
        if shell := side_shell():
            shell.runs.add(self)
        if self._is_over or self._meter is None:  # a run that resumes after a card keeps its counts
            self._meter = Meter(session.events if session else (), self.turn.max_cost_usd)
        self._clicks, self._is_over = clicks, False
        if self._rows is None:
            self._open(session)
        self._panels.run.status = "running"
        self._lanes.begin()
        self._follow(lambda follower: follower.begin())
        self._push_notices()
        self._set_status("running", "running")

    def show_open_cards(self, cards: OpenCards) -> None:
        """Display a view with only these cards, below one of the message that was not sent because of them."""
        self._clicks, self.turn = cards.clicks, cards.turn
        self._place.file_text = cards.requests
        if (refused := cards.refused) and refused.text:
            self._refused = refused
            self._place.note = unsent_note(refused.text)
            card = unsent_card(refused.waiting, refused.text, can_refuse=refused.can_refuse)
            self._push([{"op": "card", "card": card}])
        self._open(cards.session, cards.keys)
        self._pending_label = waiting_label(
            interrupt for interrupt in self.turn.open_interrupts() if interrupt.id in cards.keys
        )
        self._pause("pending", self._pending_label)

    def _open(self, session: Session | None, keys: Collection[str] | None = None) -> None:
        """Display the view. `keys`: of its first cards; None: all that are open and in no other view."""
        self._place.open()
        if other_view := self._own_cell.view_on_another_page:
            other_view.push({"op": "panel", "name": "beside", "id": self._own_cell.page, "data": [self._output(None)]})
        self._open_rows(session.state if session else {}, history_of(session) if session else ())
        for op in self._rows.opening() if self._rows else ():
            key = op["card"]["id"] if op["op"] == "card" else None
            if key is None or (key not in self.turn.cards_elsewhere if keys is None else key in keys):
                self._push([op])

    def _open_rows(self, state: Mapping[str, Any], history: Sequence[Event] | History) -> None:
        self._rows = RunRows(
            schema_of=self._schema_of,
            state=state,
            history=history,
            magic=self.turn.magic,
            seconds_of=lambda call_id: self.trace.seconds_of(call_id),
            open_interrupts=self._open_cards,
        )
        self._panels.run.start_state, self._panels.run.trace = dict(state), self.trace
        self._push(self._panels.offers())

    def _open_cards(self) -> list[Interrupt]:
        return self.turn.open_interrupts()

    # ---- the run goes on

    def event(self, event: Event) -> None:
        """Queue the event: rows are made when the event loop is free next."""
        super().event(event)
        self._queue.append(event)  # rows are made while the run waits for the next model or tool
        asyncio.get_running_loop().call_soon(self._show_queue)

    def _show_queue(self) -> None:
        while self._queue:
            event = self._queue.popleft()
            try:
                self._errors.close_busy_card()
                self._show(event)
                if self._meter and (usage := self._meter.feed(event)):
                    self._view.push(usage)
            except Exception:  # an event that cannot be drawn does not fail the run
                logger.exception("event %s of %s cannot be shown", event.id, event.author)
                self.show_notice("an event cannot be shown here; the log says why")

    def _show(self, event: Event) -> None:
        if not self._rows:
            return
        self._push(self._lanes.feed(event))
        lane = self._lanes.lane_of(event)
        ops = self._rows.feed(event)
        self._errors.add_failures(ops, event.get_function_responses())
        if not event.partial:
            self._panels.run.feed(event, ops)
        self._push({**op, "row": {**op["row"], "lane": lane}} if op["op"] == "append" else op for op in ops)
        self._follow(lambda follower: follower.event(event))
        if not event.partial:
            self._push(self._panels.offers())

    def _follow(self, step: Callable[[Follower], Collection[dict[str, Any]]]) -> None:
        self._push(self._panels.follow(step))

    def artifact_saved(self, name: str, version: int, file: types.Part | None) -> None:
        """Tell the panels."""
        self._show_queue()
        self._follow(lambda follower: follower.saved(name, version, file))
        self._push(self._panels.offers())

    def agent_begins(self, name: str, branch: str | None, path: str) -> None:
        """Update the lanes and the panels."""
        self._show_queue()
        self._push(self._lanes.agent_begins(name, branch, path))
        self._follow(lambda follower: follower.agent_begins(name, branch, path))

    def agent_ends(self, name: str, branch: str | None, path: str) -> None:
        """Update the lanes and the panels."""
        self._show_queue()
        self._push(self._lanes.agent_ends(name, branch, path))
        self._follow(lambda follower: follower.agent_ends(name, branch, path))

    def before_blocking_tool(self) -> None:
        """Show queued events now: the loop may have no time for them later."""
        self._show_queue()

    def failed(self, error: BaseException) -> None:
        """Store the exception for the error card."""
        self._errors.failed(error)

    def tool_failed(self, call_id: str, tool: str, args: dict[str, Any], error: Exception) -> None:
        """Store the failure for the row of the tool's response."""
        self._errors.tool_failed(call_id, tool, args, error)

    def model_busy(self, model: str, error: str, seconds: float) -> None:
        """Show a card with the seconds until the next attempt."""
        self._show_queue()
        self._errors.model_busy(model, error, seconds)

    def model_starts(self, text: str) -> None:
        """Show what it does in a card, until it answers."""
        self._show_queue()
        self._errors.model_starts(text)

    def tools_left_out(self, text: str) -> None:
        """Show the notice at once."""
        super().tools_left_out(text)
        self._push_notices()

    # ---- the run ends, or pauses

    def end_lock(self) -> AbstractContextManager[Any]:
        """A lock: requests for missed outputs wait until the end is pushed completely."""
        return self._end_lock

    def end(self, reply: ReplyView) -> None:
        """Show the status, and give the output to the reply unless cards are open."""
        if shell := side_shell():
            shell.runs.discard(self)
        self._show_queue()
        self._panels.run.status = reply.status
        self._push(self._lanes.end(reply.status))
        self._follow(lambda follower: follower.end(reply.status))
        self._push_notices()
        reply.notices.add(self._place.note)
        turn = self._place.add_reply(reply)
        self._is_over = reply.status != "pending"
        if self._is_over:
            self._fold(turn)
        self._pending_label = reply.waiting_label
        self._set_status(reply.status, _STATUS_TEXTS.get(reply.status) or self._pending_label)
        self._errors.close_busy_card()
        if reply.status == "error":
            last = reply.events[-1].id if reply.events else ""
            self._errors.ended(self.agent, reply.error or "the run failed", last)
        self._view.close_run()
        asks = any(interrupt.id in self._cards for interrupt in reply.interrupts)
        if not asks:
            self._offer_to_send()
        if not (asks and reply.pending and self.turn.answers_approvals):
            self._place.show(turn, "run" if asks else "page")

    def _offer_to_send(self) -> None:
        """Nothing keeps the message of the cell back any more: let the reader send it."""
        if self._refused:
            self._push([{"op": "card", "card": {"id": UNSENT, "ways": ["send"]}}])

    def _fold(self, reply: ReplyView) -> None:
        """Show the answer of a run that is over, and fold its log below."""
        self._view.push({"op": "answer", "answer": answer_for_view(reply)})

    def for_retry(self, create: Callable[[], RunView]) -> RunView:
        """Return a new view for the same cell, on the same loop."""
        view = create()
        if isinstance(view, LiveRun):
            view._kernel_loop, view.resumed = self._kernel_loop, True
            view._own_cell = self._own_cell
            view._place = CellOutput(view._view.model_id, self._own_cell)
        return view

    def close(self) -> None:
        """Replace the view by text."""
        self._place.close()

    def missed_outputs(self, page: str) -> list[dict[str, Any]]:
        """Outputs of the cell for a page that was loaded after the cell was run.

        Returns:
            Outputs with `at`, their position relative to the view; None: after all others.
        """
        if page == self._own_cell.page:
            return []
        self._own_cell.view_on_another_page = self._view
        return [self._output(0)]

    def _output(self, index: int | None) -> dict[str, Any]:
        data, metadata = self._place.displayed
        return {"at": index, "data": data, "metadata": metadata}

    def final_view_id(self) -> str:
        """Return its model id if the front end does not save views; else nothing."""
        return self._view.model_id if self._is_over and not self._place.is_open and views_stay() else ""

    def shows_reply(self) -> bool:
        """Return True if its output has the reply and its cell runs now."""
        return self._place.shows_reply

    # ---- cards, and other actions of the reader

    def state_written(self, key: str, event: Event | None, refusal: str = "") -> None:
        """Show the new value, or the reason of the refusal beside the field."""
        self._show_queue()
        if event and self._rows:
            ops = self._rows.feed(event)
            self._panels.run.feed(event, ops)
            self._push([*ops, *self._panels.offers()])
        self._view.push({"op": "panel", "name": "refused", "id": key, "data": refusal})
        self._view.close_run()

    def show_notice(self, text: str) -> None:
        """Show it in the view's notice line."""
        self._view.push({"op": "notice", "text": text})

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict], *, last: bool) -> None:
        """Close the cards, and say where they were answered."""
        if self._rows:
            for key in self._cards.intersection(verdicts):
                self._push(self._rows.answered_elsewhere(key, verdicts[key]))
        place = next(filter(None, (verdict.place for verdict in verdicts.values())), "in another cell")
        self._place.closed_reason = f"This request was answered {place}."
        self._place.answered(verdicts, self._rows.decisions if self._rows else ())
        if last:
            self._offer_to_send()
        if last and (turn := self._place.turn):
            self._fold(turn)
        self._pause(*("done", f"answered {place}") if last else ("pending", self._pending_label))

    def interrupts_undone(self, keys: Collection[str]) -> None:
        """Close the cards as superseded."""
        verdict = Verdict("superseded", "its turn was undone")
        if self._rows:
            for key in self._cards.intersection(keys):
                self._push(self._rows.close_card(key, verdict, "its turn was undone"))
        self._place.closed_reason = "This request was undone."
        self._offer_to_send()
        self._pause("cancelled", "undone")

    def shows_card(self, key: str) -> bool:
        """Return True once it was drawn."""
        return key in self._cards

    def patch_card(self, key: str, fields: Mapping[str, Any]) -> None:
        """Push the fields, if the card is in this view."""
        if key in self._cards:
            self._view.push({"op": "card", "card": {"id": key, **fields}})

    def reopen_card(self, key: str, reason: str) -> None:
        """Open the card again, with the reason."""
        self._view.push({"op": "card", "card": {"id": key, "state": "asked", "note": reason}})

    def mark_stale(self, key: str) -> None:
        """Mark the card as answered in another kernel."""
        self._view.push({"op": "card", "card": {"id": key, "state": "stale", "note": "it is answered already"}})
        self._view.close_run()

    def resume_in_cell(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Resume with `work` in a copy of the cell's context."""
        self.resumed = True
        self.start_in_cell(work())

    def start_in_cell(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start `work` on the kernel's loop, in a copy of the cell's context."""
        self._cell.copy().run(sync.start, work, home=self._kernel_loop)

    def _push_notices(self) -> None:
        notices = list(map(asdict, [*Notices.chip(self.addressed), *self.notices.blocks()]))
        if notices != self._notices:
            self._notices = notices
            self._view.push({"op": "notices", "notices": notices})

    def _push(self, ops: Iterable[dict[str, Any]]) -> None:
        for op in ops:
            if op["op"] == "card":
                self._cards.add(op["card"]["id"])
            self._view.push(op)

    def _set_status(self, status: str, text: str) -> None:
        self._view.push({"op": "status", "status": status, "text": text})

    def _pause(self, status: str, text: str) -> None:
        self._set_status(status, text)
        self._view.close_run()

    def _message_received(self, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "need" and message["what"] == "missed":
            with self._end_lock:  # the page may learn that the run is over before the end is pushed completely
                outputs = self.missed_outputs(message["id"])
            if outputs:
                self._view.push({"op": "panel", "name": "missed", "id": message["id"], "data": outputs})
        elif kind == "need":
            self._push(filter(None, [self._panels.answer(message["what"], message["id"])]))
        elif clicks := self._clicks:
            if kind == "stop":
                clicks.stop()
            elif kind == "state":
                clicks.write(message["key"], message["text"])
            elif kind == "rerun":
                clicks.rerun(message["event"])
            elif kind == "approve":
                clicks.approved(message["ids"])
            elif message["id"] == UNSENT:
                if refused := self._refused:
                    self._place.note = ""
                    refused.send(message["decision"] == "refuse")
            elif "decision" in message:
                (clicks.retry if message["decision"] == "retry" else clicks.drop)(message["id"])
            else:
                clicks.answered(message["id"], message["value"], as_asked=message.get("as_asked", False))


_STATUS_TEXTS = {"done": "done", "cancelled": "stopped", "error": "ended with an error"}


def in_a_kernel() -> bool:
    """True in a Jupyter kernel; False in a terminal and in a script."""
    return getattr(get_ipython(), "kernel", None) is not None
