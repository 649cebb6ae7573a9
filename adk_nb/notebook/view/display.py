"""What is shown of a run as it goes: a live view in a notebook, one constant line in tests, nothing in a script."""

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, Literal, get_args

from IPython.core.getipython import get_ipython
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.notebook.place import Mode, display_mode
from adk_nb.notebook.view.cell_output import CellOutput, OwnCell
from adk_nb.notebook.view.error_card import Trouble
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.lanes import Lanes
from adk_nb.notebook.view.page import views_stay
from adk_nb.notebook.view.panel import PanelRun
from adk_nb.notebook.view.reply_document import answer_for_view, waiting_for, waits_for
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.rows import RunRows, SchemaOf
from adk_nb.notebook.view.run_panels import RunPanels
from adk_nb.notebook.view.run_view import Clicks, RunView
from adk_nb.notebook.view.side_shell import side_shell
from adk_nb.notebook.view.spending import Meter
from adk_nb.notebook.view.terminal_run import TerminalRun, in_a_terminal
from adk_nb.notebook.view.widget import LiveView
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

Show = Mode | Literal[False]
"""False: `off`."""


def checked_mode(show: Show) -> Mode:
    """The mode that `show` names.

    Raises:
        InputError: There is no such mode.
    """
    mode = "off" if show is False else show
    if mode not in get_args(Mode):
        raise InputError(f"show={show!r} is no way to show a turn; write one of {', '.join(get_args(Mode))}, or False")
    return mode


def show_run(
    agent: BaseAgent, question: str | None, notice: str | None, schema_of: SchemaOf, mode: Mode = "auto"
) -> RunView:
    """A run that is shown as well as the place it runs in can show it."""
    name = agent.name
    mode = display_mode(mode)
    is_live = mode == "widget"
    if mode == "off" or not in_a_kernel():
        made = TerminalRun if is_live and in_a_terminal() else RunView
        return made(name, question, notice)
    if not is_live:
        return StaticRun(name, question, notice)
    return LiveRun(agent, question, notice, schema_of)


class StaticRun(RunView):
    """A run that leaves in the notebook what a live view leaves."""

    shows_errors = True

    def __init__(self, agent: str, question: str | None, notice: str | None) -> None:
        super().__init__(agent, question, notice)
        self._own_cell = OwnCell()
        self._is_shown = False
        self._whole: ReplyView | None = None

    def end(self, reply: ReplyView) -> None:
        if self.is_background:  # its cell may be over: what it shows would come too late for a comparison
            return
        self._whole = reply.after(self._whole) if self._whole else reply
        if self.answers_approvals and reply.pending:
            return
        with self._own_cell.gets_what_is_displayed():
            display(self._whole)
        self._is_shown = True

    def shows_the_reply(self) -> bool:
        return self._is_shown and self._own_cell.is_run_now


class LiveRun(RunView):
    """A run in a live view; when it has ended, the reply takes the view's place."""

    is_live = True
    shows_errors = True

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
        self._rows: RunRows | None = None
        self._panels = RunPanels(PanelRun(agent=None if view else agent))
        self._over = False
        self._unshown: deque[Event] = deque()
        self._cards: set[str] = set()
        self._trouble = Trouble(self._push)
        self._view = view or LiveView(title=agent.name)
        self._cell = contextvars.copy_context()
        self._own_cell = OwnCell()
        self._cell.run(self._own_cell.is_of_this_context)
        self._kernel_loop = asyncio.get_running_loop() if _a_loop_runs() else None
        self._place = CellOutput(self._view.model_id, self._own_cell)
        self._ending = threading.RLock()
        self._waits_for = ""
        """What it waited for when it last paused, in words."""
        self._clicks: Clicks | None = None
        self._view.on_answer(self._clicked)

    def begin(self, session: Session | None, clicks: Clicks) -> None:
        super().begin(session, clicks)
        if shell := side_shell():
            shell.runs.add(self)
        if self._over or self._meter is None:  # what goes on from a card adds to what was counted
            self._meter = Meter(session.events if session else (), self.max_cost_usd)
        self._clicks, self._over = clicks, False
        if self._rows is None:
            self._open(session)
        self._lanes.begin()
        self._push(self._panels.follow(lambda follower: follower.begin()))
        self._push_notices()
        self._view.push({"op": "status", "status": "running", "text": "running"})

    def ask_again_of(self, keys: Collection[str], session: Session, clicks: Clicks, requests: dict[str, str]) -> None:
        self._clicks = clicks
        self._place.file_text = requests
        self._open(session, keys)
        self._waits_for = waiting_for(interrupt for interrupt in self.open_interrupts() if interrupt.id in keys)
        self._view.push({"op": "status", "status": "pending", "text": self._waits_for})
        self._view.close_run()

    def _open(self, session: Session | None, keys: Collection[str] | None = None) -> None:
        """Display the view. `keys`: of the cards that it begins with; None: all that are open and in no other view."""
        self._place.open()
        if before := self._own_cell.view_on_another_page:
            output = _output(None, *self._place.stands)
            before.push({"op": "panel", "name": "beside", "id": self._own_cell.page, "data": [output]})
        state, history = (session.state, history_of(session)) if session else ({}, ())
        self._rows = RunRows(
            schema_of=self._schema_of,
            state=state,
            history=history,
            magic=self.magic,
            seconds_of=self._seconds_of,
            waiting=self._waiting,
        )
        self._open_panels(state)
        for op in self._rows.opening():
            key = op["card"]["id"] if op["op"] == "card" else None
            if key is None or (key not in self.asked_elsewhere if keys is None else key in keys):
                self._push([op])

    def _open_panels(self, state: Mapping[str, Any]) -> None:
        self._panels.run.state, self._panels.run.trace = dict(state), self.trace
        self._push(self._panels.offers())

    def _waiting(self) -> list[Interrupt]:
        return self.open_interrupts()

    def _seconds_of(self, call_id: str) -> float | None:
        return self.trace.seconds_of(call_id)

    def event(self, event: Event) -> None:
        super().event(event)
        self._unshown.append(event)  # a model or a tool is waited for next, and then there is time to make its rows
        asyncio.get_running_loop().call_soon(self._show_what_came)

    def _show_what_came(self) -> None:
        while self._unshown:
            event = self._unshown.popleft()
            try:
                self._trouble.goes_on()
                self._show(event)
                if self._meter and (told := self._meter.feed(event)):
                    self._view.push(told)
            except Exception:  # what cannot be drawn is no fault of the run
                logger.exception("event %s of %s cannot be shown", event.id, event.author)
                self._view.push({"op": "notice", "text": "an event cannot be shown here; the log says why"})

    def _show(self, event: Event) -> None:
        if self._rows:
            self._push(self._lanes.feed(event))
            lane = self._lanes.of(event)
            ops = self._rows.feed(event)
            self._trouble.put_in(ops, event.get_function_responses())
            if not event.partial:
                self._panels.run.feed(event, ops)
            self._push({**op, "row": {**op["row"], "lane": lane}} if op["op"] == "append" else op for op in ops)
            self._push(self._panels.follow(lambda follower: follower.event(event)))
            if not event.partial:
                self._push(self._panels.offers())

    def saved(self, name: str, version: int, file: types.Part | None) -> None:
        self._show_what_came()
        self._push(self._panels.follow(lambda follower: follower.saved(name, version, file)))
        self._push(self._panels.offers())

    def agent_begins(self, name: str, branch: str | None, path: str) -> None:
        self._show_what_came()
        self._push(self._lanes.agent_begins(name, branch, path))
        self._push(self._panels.follow(lambda follower: follower.agent_begins(name, branch, path)))

    def agent_ends(self, name: str, branch: str | None, path: str) -> None:
        self._show_what_came()
        self._push(self._lanes.agent_ends(name, branch, path))
        self._push(self._panels.follow(lambda follower: follower.agent_ends(name, branch, path)))

    def ending(self) -> AbstractContextManager[Any]:
        return self._ending

    def end(self, reply: ReplyView) -> None:
        if shell := side_shell():
            shell.runs.discard(self)
        self._show_what_came()
        self._push(self._lanes.end(reply.status))
        self._push(self._panels.follow(lambda follower: follower.end(reply.status)))
        whole = self._place.whole(reply)
        self._over = reply.status != "pending"
        if self._over:
            self._fold(whole)
        self._waits_for = waits_for(reply)
        self._view.push({"op": "status", "status": reply.status, "text": _in_words(reply)})
        self._trouble.goes_on()
        if reply.status == "error":
            last = reply.events[-1].id if reply.events else ""
            self._trouble.ended(self.agent, reply.error or "the run failed", last)
        self._view.close_run()
        asks = any(interrupt.id in self._cards for interrupt in reply.interrupts)
        if not (asks and reply.pending and self.answers_approvals):
            self._place.show(whole, "run" if asks else "page")

    def _fold(self, reply: ReplyView) -> None:
        """The run is over: what a reader looks for is the answer."""
        self._view.push({"op": "answer", "answer": answer_for_view(reply)})

    def failed(self, wrong: BaseException) -> None:
        self._trouble.failed(wrong)

    def blocks(self) -> None:
        self._show_what_came()

    def tool_failed(self, call_id: str, tool: str, args: dict[str, Any], wrong: Exception) -> None:
        self._trouble.tool_failed(call_id, tool, args, wrong)

    def waits(self, model: str, error: str, seconds: float) -> None:
        self._show_what_came()
        self._trouble.waits(model, error, seconds)

    def left_out(self, words: str) -> None:
        super().left_out(words)
        self._push_notices()

    def anew(self, made: Callable[[], RunView]) -> RunView:
        shown = made()
        if isinstance(shown, LiveRun):
            shown._kernel_loop, shown.resumed, shown.max_cost_usd = self._kernel_loop, True, self.max_cost_usd
            shown._own_cell = self._own_cell
            shown._place = CellOutput(shown._view.model_id, self._own_cell)
        return shown

    def close(self) -> None:
        self._place.close()

    def missed(self, page: str) -> list[dict[str, Any]]:
        """What a page that was loaded after the cell was run has not heard of its outputs, now that nothing runs.

        Returns:
            Outputs with `at`: in which place, counted from the view's, it stands; None: it is one more.
        """
        if page == self._own_cell.page:
            return []
        self._own_cell.view_on_another_page = self._view
        return [_output(0, *self._place.stands)]

    def stays_as(self) -> str:
        return self._view.model_id if self._over and not self._place.is_open and views_stay() else ""

    def shows_the_reply(self) -> bool:
        return self._place.shows_the_reply

    def wrote(self, key: str, event: Event | None, why_not: str = "") -> None:
        self._show_what_came()
        if event and self._rows:
            ops = self._rows.feed(event)
            self._panels.run.feed(event, ops)
            self._push([*ops, *self._panels.offers()])
        self._view.push({"op": "panel", "name": "refused", "id": key, "data": why_not})
        self._view.close_run()

    def say(self, words: str) -> None:
        self._view.push({"op": "notice", "text": words})

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict], *, last: bool) -> None:
        if self._rows:
            for key in self._cards.intersection(verdicts):
                self._push(self._rows.answered_elsewhere(key, verdicts[key]))
        where = next(filter(None, (one.where for one in verdicts.values())), "in another cell")
        self._place.why_not = f"What waited here was answered {where}."
        self._place.answered(verdicts, self._rows.decisions if self._rows else ())
        if last and (turn := self._place.turn):
            self._fold(turn)
        status, text = ("done", f"answered {where}") if last else ("pending", self._waits_for)
        self._view.push({"op": "status", "status": status, "text": text})
        self._view.close_run()

    def undone(self, keys: Collection[str]) -> None:
        if self._rows:
            for key in self._cards.intersection(keys):
                self._push(self._rows.closed(key, Verdict("superseded", "its turn was undone"), "its turn was undone"))
        self._place.why_not = "What waited here was undone."
        self._view.push({"op": "status", "status": "cancelled", "text": "undone"})
        self._view.close_run()

    def patch_card(self, key: str, fields: Mapping[str, Any]) -> None:
        if key in self._cards:
            self._view.push({"op": "card", "card": {"id": key, **fields}})

    def ask_again(self, key: str, why: str) -> None:
        self._view.push({"op": "card", "card": {"id": key, "state": "asked", "note": why}})

    def say_stale(self, key: str) -> None:
        self._view.push({"op": "card", "card": {"id": key, "state": "stale", "note": "it is answered already"}})
        self._view.close_run()

    def in_its_cell(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.resumed = True
        self.start_in_its_cell(work())

    def start_in_its_cell(self, work: Coroutine[Any, Any, Any]) -> None:
        self._cell.copy().run(sync.start, work, home=self._kernel_loop)

    def _push_notices(self) -> None:
        if notices := self.notices.blocks():
            self._view.push({"op": "notices", "notices": list(map(asdict, notices))})

    def _push(self, ops: Iterable[dict[str, Any]]) -> None:
        for op in ops:
            if op["op"] == "card":
                self._cards.add(op["card"]["id"])
            self._view.push(op)

    def _clicked(self, said: dict[str, Any]) -> None:
        if said["kind"] == "need" and said["what"] == "missed":
            with self._ending:  # a page hears that the run is over before all of the end is told
                outputs = self.missed(said["id"])
            if outputs:
                self._view.push({"op": "panel", "name": "missed", "id": said["id"], "data": outputs})
        elif said["kind"] == "need":
            if told := self._panels.answer(said["what"], said["id"]):
                self._view.push(told)
        elif self._clicks:
            self._act(self._clicks, said)

    def _act(self, clicks: Clicks, said: dict[str, Any]) -> None:
        if said["kind"] == "stop":
            clicks.stop()
        elif said["kind"] == "state":
            clicks.write(said["key"], said["text"])
        elif said["kind"] == "rerun":
            clicks.rerun(said["event"])
        elif "decision" in said:
            (clicks.retry if said["decision"] == "retry" else clicks.drop)(said["id"])
        else:
            clicks.answered(said["id"], said["value"], as_asked=said.get("as_asked", False))


_WORDS = {"done": "done", "cancelled": "stopped", "error": "ended with an error"}


def _output(at: int | None, data: Any, metadata: Any) -> dict[str, Any]:
    return {"at": at, "data": data, "metadata": metadata}


def _in_words(reply: ReplyView) -> str:
    return _WORDS.get(reply.status) or waits_for(reply)


def in_a_kernel() -> bool:
    """False in a terminal, and in a script."""
    return getattr(get_ipython(), "kernel", None) is not None


def _a_loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
