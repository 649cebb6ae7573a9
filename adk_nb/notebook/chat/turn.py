"""Run the turns of a chat one after another, show each while it runs, and take answers from its cards."""

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from copy import copy
from functools import partial
from typing import Any, cast

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.concurrency.work import stop_wanted
from adk_nb.errors import InputError, PendingError, UserError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.models.llm_response import on_progress, on_wait
from adk_nb.notebook import settings
from adk_nb.notebook.chat import interrupts
from adk_nb.notebook.chat.chat_box import ChatBox
from adk_nb.notebook.chat.conversation import Conversation
from adk_nb.notebook.chat.error_hints import (
    location_suffix,
    log_failure,
    model_error_hint,
    run_to_end,
    shorten_traceback,
    undo_hint,
)
from adk_nb.notebook.chat.interrupts import AnswerCheck, Answers
from adk_nb.notebook.chat.open_cards import OpenCards
from adk_nb.notebook.chat.past_turns import typed_text
from adk_nb.notebook.chat.paused_agents import PausedAgents, Versions, is_redefined, schema_of
from adk_nb.notebook.chat.reply import Answerable, Reply, view_of_reply
from adk_nb.notebook.chat.session_state import typed_change
from adk_nb.notebook.chat.turn_options import RelayedRequest, TurnOptions, notice_of, unused_tools_note
from adk_nb.notebook.chat.watching import watch
from adk_nb.notebook.view.answers import Status, answer_in, streamed_text, turn_outcome
from adk_nb.notebook.view.chat_box_view import ChatBoxView
from adk_nb.notebook.view.display import Mode, in_a_kernel, show_run
from adk_nb.notebook.view.document import document
from adk_nb.notebook.view.event_text import model_notes
from adk_nb.notebook.view.interrupt_text import Verdict, commands, expected_interrupts, list_blocks
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.run_view import Clicks, RunView
from adk_nb.notebook.view.writers import bundle
from adk_nb.redaction import hidden
from adk_nb.runtime.history import SENT_BY, History
from adk_nb.runtime.interrupts import ALL, Interrupt, decisions_for_all
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.runtime.trace import Traces
from adk_nb.tools.base_toolset import on_toolset_failure

_MAX_ROUNDS = 32
"""Rounds of approvals that a policy answers in one turn."""
MessageBuilder = Callable[[History], types.Content | None]
"""Returns the message to a session with that history. None: the run resumes without one."""
_NO_OPTIONS = TurnOptions()
_A_CLICK = "a click"
_CHANGED = "changed since this was requested"
_AS_ASKED = "as it was asked"
_TOO_LATE = "this answer was not used: another one came first"


class TurnRunner:
    """Runs the turns of one chat. Magics, cells and chat boxes steer a chat through it.

    Args:
        chat: The chat of the replies.
        conversation: Its session and its agent.
        show: The display mode of turns that set none.
    """

    rerun_in_fork: Callable[[str], Coroutine[Any, Any, Reply]]
    """Ask again, in a copy of the session that ends before this event."""

    def __init__(self, chat: Answerable, conversation: Conversation, show: Mode) -> None:
        self.chat = chat
        self.conversation = conversation
        self.show: Mode = show
        self.on_reply: Callable[[Reply], None] | None = None
        """Called with the reply of each turn, also of one that a click on a card resumed."""
        self.magic: Callable[[], str] = str
        """Returns the `%confirm` that reaches this session; empty: only Python has the chat."""
        self.metadata: Callable[[], dict[str, Any]] = dict
        """Returns the metadata of the events of a turn that begins."""
        self.versions: Versions | None = None
        """Keeps tools as they were before they were redefined."""
        self.newest: Callable[[], Any] = lambda: None
        """Returns the agent as it is defined now. Anything else than an agent: it is the one of the conversation."""
        self.traces = Traces()
        self.listeners: set[Callable[[Event | None], None]] = set()
        """Get each event of every turn, whoever began it, and None at its end."""
        self.max_cost: float | None = None
        """Limit of the newest turn, also when it resumes after an answer. None: as `settings` has it."""
        self.cards = OpenCards()
        self._paused = PausedAgents()
        self._relays = asyncio.Lock()
        """Requests from outside wait for each other."""
        self._task: asyncio.Task[Any] | None = None
        self._stop = threading.Event()
        """Set by `stop()`, for the turn under way."""
        self._is_closed = False

    def for_session(self, chat: Answerable, session_id: str) -> "TurnRunner":
        """A runner for another session of the user, with the same settings."""
        runner = copy(self)
        runner.chat, runner.conversation, runner.magic = chat, self.conversation.in_session(session_id), str
        runner.cards, runner._paused, runner._task, runner._stop = OpenCards(), PausedAgents(), None, threading.Event()
        runner._relays, runner.listeners = asyncio.Lock(), set()
        return runner

    def view_of(self, question: str | None, turn: TurnOptions = _NO_OPTIONS) -> RunView:
        """A view for a turn that begins."""
        agent, mode = turn.on(self.conversation.agent), turn.show or self.show

        def schema(interrupt: Interrupt) -> dict[str, Any] | None:
            return schema_of(turn.on(self.conversation.agent), interrupt)

        view = show_run(agent, question, notice_of(agent), schema, mode)
        view.magic, view.plain = self.magic(), mode == "text"
        return view

    def refuse_while_busy(self) -> None:
        """Raise an InputError while a turn is under way, and once the chat is closed."""
        name = self.conversation.session_id
        if self._is_closed:
            raise InputError(f"the chat of session {name!r} is closed; make another one: Chat(agent)")
        if self._task and not self._task.done():
            raise InputError(f"session {name!r} is still answering; wait for it, or interrupt it")

    def stop(self) -> None:
        """Stop the turn under way, if there is one; its reply has the status `cancelled`."""
        if (task := self._task) and not self._stop.is_set():  # a second cancellation would cut off the first's clean-up
            self._stop.set()
            task.get_loop().call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """Stop the turn under way, close the cards, and refuse all that follows."""
        self.stop()
        if not sync.on_a_loop_thread():
            sync.run(self._until_idle())
        self._is_closed = True
        self.cards.close_all()
        self._paused, self.traces = PausedAgents(), Traces()

    # ---- messages

    def ask(self, text: str, turn: TurnOptions) -> Reply:
        """Send `text`, and wait for the reply; approvals are answered as `turn` says. Raises as `Chat.ask`."""
        try:
            return run_to_end(self.send(text, turn, self.view_of(text, turn)))
        except PendingError:  # running a cell again clears its output, and the cards in it
            self.draw_cards([interrupt.id for interrupt in self._on_cards() if not interrupt.is_question])
            raise

    async def send(self, text: str, turn: TurnOptions, view: RunView | None = None) -> Reply:
        """As `ask`, without the wait. `view`: where it is shown; None: in a new one."""
        view = view or self.view_of(text, turn)
        view.answers_approvals = turn.confirm != "ask"
        await self.conversation.refuse_interrupted_run(self.magic())

        def message(history: History) -> types.Content:
            agent = self._paused.of_text(history) or self.conversation.agent
            return interrupts.text_message(text, history, agent, self.magic(), turn.parts)

        reply = await self._run_turn(message, view, turn=turn)
        for _ in range(_MAX_ROUNDS):
            # Whether to repeat a call that may have taken effect is decided by a person alone.
            approvals = [approval for approval in view_of_reply(reply).pending if not approval.in_doubt]
            if turn.confirm == "ask" or reply.status != "pending" or not approvals:
                break
            decisions = decisions_for_all(approvals, confirmed=turn.confirm == "yes", by=turn.confirm_by)
            reply = await self.answer(decisions, view, first=view_of_reply(reply))
        return reply

    async def answer(
        self,
        values: Mapping[str, Any],
        view: RunView,
        *,
        by: str = "",
        as_asked: bool = False,
        first: ReplyView | None = None,
    ) -> Reply:
        """Answer open interrupts together.

        Args:
            values: Id -> answer, as `Chat.answer` takes it.
            view: Where the turn is shown.
            by: How they were given, for the log.
            as_asked: The tools run as they were when they were asked for.
            first: The part of the turn up to the pause; the reply is of both.
        """

        def message(history: History) -> types.Content:
            return interrupts.message_of(self._checked(values, history, by, as_asked=as_asked), history)

        session = await self.conversation.loaded()
        with self._tools_as_asked(values if as_asked else {}, session.events if session else ()):
            return await self._run_turn(message, view, is_click=by == _A_CLICK, first=first)

    def answer_now(self, values: Mapping[str, Any], *, by: str = "", as_asked: bool = False) -> Reply:
        """Check answers, give them, and wait for the reply. The arguments are those of `answer`."""
        self.refuse_while_busy()
        session = sync.run(self.conversation.loaded())
        events = session.events if session else ()
        with self._tools_as_asked(values if as_asked else {}, events), self.conversation.history(events) as history:
            answers = self._checked(values, history, by, as_asked=as_asked)
        return run_to_end(self.answer(answers, self.view_of(None), as_asked=as_asked))

    def _checked(self, values: Mapping[str, Any], history: History, by: str, *, as_asked: bool) -> Answers:
        by_id = {interrupt.id: interrupt for interrupt in history.interrupts(kinds=ALL)}
        answers = {key: interrupts.read_answer(by_id[key], value, by) for key, value in values.items() if key in by_id}
        self._check_of(history, as_asked=as_asked).check({**values, **answers})
        return answers

    def _tools_as_asked(self, values: Mapping[str, Any], events: Sequence[Event]) -> AbstractContextManager[None]:
        if not values:
            return nullcontext()
        with self.conversation.history(events) as history:
            return self._check_of(history).tools_as_asked(values)

    def _check_of(self, history: History, *, as_asked: bool = False) -> AnswerCheck:
        newest = self.newest()
        return AnswerCheck(
            history=history,
            agent_of=self._answering_agent,
            magic=self.magic(),
            versions=self.versions,
            newest=newest if isinstance(newest, BaseAgent) else self.conversation.agent,
            lent_for=self.lent_for,
            as_asked=as_asked,
        )

    def lent_for(self, key: str) -> frozenset[str]:
        """The names of the tools lent for the turn that the interrupt `key` paused."""
        return self._paused.lent_to(self._answering_agent(key))

    def resume(self, *, edited: bool = False) -> Reply:
        """As `Chat.resume`."""
        self.refuse_while_busy()
        run, _ = sync.run(self.conversation.last_interrupted_run(edited=edited, magic=self.magic()))
        return run_to_end(self._run_turn(lambda _: None, self.view_of(None), run.id))

    def repeat(self, message: types.Content) -> Reply:
        """Send an earlier message as it was, and wait for the reply."""
        return run_to_end(self.send_again(message, self.view_of(typed_text(message) or None)))

    async def relay(self, request: RelayedRequest, view: RunView) -> Reply:
        """Answer a request from outside of the notebook, after the turns before it.

        Raises:
            InputError: The message is not valid; nothing was stored.
            PendingError: An approval or a credential request is open, which is answered in the notebook.
        """
        async with self._relays:
            await self._until_idle()
            request.has_begun = True

            def message(history: History) -> types.Content | None:
                agent = self._paused.of_text(history) or self.conversation.agent
                return interrupts.relayed_message(request.message, history, agent, self.magic())

            if request.invocation_id is None:
                await self.conversation.refuse_interrupted_run(self.magic())
            return await self._run_turn(message, view, request.invocation_id, request.state_delta, turn=_NO_OPTIONS)

    async def send_again(self, message: types.Content, view: RunView) -> Reply:
        """As `repeat`, in that view and without the wait."""
        return await self._run_turn(lambda _: message, view)

    # ---- a turn

    async def _run_turn(
        self,
        build_message: MessageBuilder,
        view: RunView,
        invocation_id: str | None = None,
        state_delta: Mapping[str, Any] | None = None,
        turn: TurnOptions | None = None,
        *,
        is_click: bool = False,
        first: ReplyView | None = None,
    ) -> Reply:
        """Run a turn.

        Args:
            build_message: Returns the message.
            view: Where the turn is shown.
            invocation_id: Of a run that is resumed.
            state_delta: Changes of the state, stored with the message, or refused with it.
            turn: The options of a turn that begins. None: a turn resumes, and keeps its cost limit.
            is_click: The message is an answer given by a click in `view`.
            first: The part of the turn up to its pause.
        """
        session = await self.conversation.loaded()
        before = list(session.events) if session else []
        with self.conversation.history(before) as history:
            message = build_message(history)
            paused = message and self._paused.of_message(message, history)
            base = paused or self.conversation.agent
            agent = (turn or _NO_OPTIONS).on(base)
            place = f"by {_A_CLICK} {view.place}".rstrip() if is_click else view.place
            verdicts = interrupts.verdicts(message, history, place, is_click=is_click)
        self.refuse_while_busy()
        self.max_cost = turn.max_cost if turn else self.max_cost
        self._task = task = cast(asyncio.Task[Any], asyncio.current_task())
        self._stop = threading.Event()
        token = stop_wanted.set(self._stop)
        finish = partial(self._finish, agent, view, before, verdicts, first)
        view.max_cost_usd = self.max_cost or settings.now.max_cost_usd
        view.cards_elsewhere = self.cards.elsewhere(view)
        view.open_interrupts = partial(self._open_after, before, view)
        decided_views: list[RunView] = []
        view.begin(session, self._clicks_on(view))

        def on_stored() -> None:
            decided_views.extend(self._mark_answered(verdicts, view))

        try:
            await self._run_agent(agent, message, view, invocation_id, state_delta, on_stored)
        except asyncio.CancelledError:
            reply = finish("cancelled")
            if not self._stop.is_set():
                raise
            task.uncancel()  # `stop()` cancelled the turn alone, not the code that awaits it
            return reply
        except UserError as error:
            view.failed(error)
            if hint := view_of_reply(finish("error", str(error))).undo_hint:
                error.add_note(hint)
            if view.shows_errors and not view.is_background:
                shorten_traceback(error)
            raise
        except Exception as error:
            view.failed(error)
            message_text = (
                f"{type(error).__name__}: {error}{location_suffix(error)}{model_error_hint(error, self.magic())}"
            )
            return log_failure(finish("error", message_text))
        finally:
            stop_wanted.reset(token)
            self._task = None
            self._notify(None)
            self.cards.close_answered(*decided_views)
            with self.conversation.history([*before, *view.events]) as history:
                self._paused.note(agent, history, self._metadata_of(agent), base=base)
        return log_failure(finish("done"))

    async def _run_agent(
        self,
        agent: BaseAgent,
        message: types.Content | None,
        view: RunView,
        invocation_id: str | None,
        state_delta: Mapping[str, Any] | None,
        on_stored: Callable[[], None],
    ) -> None:
        """Run to the end. `on_stored` is called once the session has the message."""
        watch(self.conversation.plugins, view)
        if view.is_live or in_a_kernel():  # elsewhere the log has these
            on_toolset_failure.set(view.tools_left_out)
            on_wait.set(lambda wait: view.model_busy(wait.model, wait.error, wait.waited))
            on_progress.set(view.model_starts)
        config = RunConfig(
            streaming_mode=StreamingMode.SSE if view.is_live or view.streams else StreamingMode.NONE,
            custom_metadata=self._metadata_of(agent) | ({SENT_BY: view.sent_by} if view.sent_by else {}) or None,
            timeout=settings.now.timeout,
            max_cost_usd=view.max_cost_usd,
        )
        run = self.conversation.run(agent, message, config, invocation_id, state_delta)
        with view.trace.active(), self.conversation.answering():
            async with aclosing(run) as events:
                async for event in events:
                    if not view.events:
                        on_stored()
                    view.event(event)
                    self._notify(event)
                    if self.versions:
                        for response in event.get_function_responses():
                            self.versions.answered(response.id or "")
                    for name, version in event.actions.artifact_delta.items() if view.is_live else ():
                        view.artifact_saved(name, version, await self.conversation.artifact(name, version))

    def _notify(self, event: Event | None) -> None:
        for listen in tuple(self.listeners):
            listen(event)

    def _metadata_of(self, agent: BaseAgent) -> dict[str, Any]:
        """Metadata of the events of a run of `agent`, which may be paused in an earlier version."""
        return self._paused.metadata_of(agent) or self.metadata()

    def _open_after(self, before: list[Event], view: RunView) -> list[Interrupt]:
        with self.conversation.history([*before, *view.events]) as history:
            return history.interrupts()

    def _mark_answered(self, verdicts: Mapping[str, Verdict], view: RunView) -> list[RunView]:
        """Mark the cards of answered interrupts in all views but `view`, and return those views."""
        views = [asking for key in verdicts for asking in self.cards.asking(key) if asking is not view]
        return self.cards.answered(verdicts, views)

    def _finish(
        self,
        agent: BaseAgent,
        view: RunView,
        before: list[Event],
        verdicts: Mapping[str, Verdict],
        first: ReplyView | None,
        status: Status,
        error: str | None = None,
    ) -> Reply:
        """The reply of a turn of `agent` that followed `before`; its view stays open while a card can be answered."""
        events, magic = view.events, self.magic()
        if events:
            self.traces.add(events[0].invocation_id, view.trace)
        with self.conversation.history([*before, *events]) as history:
            to_undo = undo_hint(history, magic) if error and events else ""
            open_ = history.interrupts(kinds=ALL)
            unused_tools = unused_tools_note(agent, history.turns)
        status, error = turn_outcome(events, status, error)
        if status == "done" and _is_too_late(verdicts, events):
            view.tools_left_out(_TOO_LATE)
            events, open_ = [], [interrupt for interrupt in open_ if interrupt.id not in verdicts]
        for note in (view.limit_warning(), *model_notes(events), unused_tools):
            view.notices.add(note)
        streamed = streamed_text(view.streaming.values()) if status == "cancelled" else None
        text, answered_by = streamed or answer_in(events)
        reply_view = ReplyView(
            question=view.question,
            shows_question=view.shows_question,
            agent=view.agent,
            events=events,
            history=before if view.resumed or first or not events or events[0].get_function_responses() else [],
            text=text,
            answered_by=answered_by,
            team=agent,
            status="pending" if expected_interrupts(open_, text) and status == "done" else status,
            interrupts=open_,
            schemas=self._schemas(open_),
            magic=magic,
            redefined=self.redefined(open_),
            find_redefined=self.redefined,
            trace=view.trace,
            error=hidden(error) if error else None,
            undo_hint=to_undo,
            notices=view.notices,
            plain=view.plain,
            live=view.final_view_id,
            is_displayed=view.shows_reply,
        )
        reply = Reply(reply_view.appended_to(first) if first else reply_view, self.chat)
        self.cards.wait_after(view, (interrupt.id for interrupt in open_ if interrupt.has_card))
        if self.on_reply and not view.on_event:
            self.on_reply(reply)
        with view.end_lock():
            view.end(reply_view)
            self.cards.close_answered(view)
        return reply

    # ---- interrupts

    def interrupts(self) -> list[Interrupt]:
        """As `Chat.interrupts`."""
        return sync.run(self._interrupts())

    async def _interrupts(self) -> list[Interrupt]:
        async with self.conversation.newest_history() as history:
            return history.interrupts(kinds=ALL)

    async def is_waiting(self) -> bool:
        """True while a turn is under way, or an interrupt is open that is answered in the notebook alone."""
        decided_here = ("approval", "node_approval", "credential")
        return self._task is not None or any(open_.kind in decided_here for open_ in await self._interrupts())

    def redefined(self, open_: Sequence[Interrupt]) -> set[str]:
        """Ids of the approvals whose tools were redefined since."""
        with self.conversation.history() as history:
            approvals = [interrupt for interrupt in open_ if interrupt.kind == "approval"]
            agents = {approval.id: self._answering_agent(approval.id) for approval in approvals}
            return {approval.id for approval in approvals if is_redefined(approval, agents[approval.id], history)}

    def is_paused_at(self, key: str) -> bool:
        """True if an agent of this chat is paused at the interrupt, and resumes here in the version that raised it."""
        return self._paused.of([key]) is not None

    def _schemas(self, open_: Sequence[Interrupt]) -> dict[str, dict[str, Any] | None]:
        approvals = [interrupt for interrupt in open_ if interrupt.kind == "approval"]
        return {interrupt.id: schema_of(self._answering_agent(interrupt.id), interrupt) for interrupt in approvals}

    def _answering_agent(self, key: str) -> BaseAgent:
        return self._paused.of([key]) or self.conversation.agent

    # ---- cards

    def draw_cards(self, ids: Collection[str] = ()) -> bool:
        """Draw the cards of open interrupts in this cell too; one answer counts for all views.

        Args:
            ids: Of the interrupts. Empty: of all that are open.

        Returns:
            True if cards are drawn; False where no page can show one.
        """
        open_ = [interrupt.id for interrupt in self.interrupts() if interrupt.has_card]
        keys = [key for key in open_ if key in ids or not ids]
        return bool(keys) and sync.run(self._draw(keys, self.view_of(None)))

    def open_box(self, box: ChatBox) -> None:
        """Open a chat box for this session, with the cards of what is open in this chat."""
        self.refuse_while_busy()
        sync.run(self.show_box(box))

    async def show_box(self, box: ChatBox) -> None:
        """As `open_box`, without the wait, and also while a turn is under way."""
        box.open(await self.conversation.loaded(), self._clicks_on(box.shown))
        open_ = await self._interrupts()
        if keys := [interrupt.id for interrupt in open_ if self._is_on_card(interrupt)]:
            await self._draw(keys, box.shown)

    async def send_in_box(self, text: str, box: ChatBoxView, turn: TurnOptions) -> Reply:
        """Send what was typed into a chat box."""
        box.set_agent(self.conversation.agent, notice_of(self.conversation.agent))
        return await self.send(text, turn, box)

    def tools_changed(self) -> None:
        """Mark the cards of open approvals whose tools changed since they were requested, and unmark the others."""
        if self.cards:
            self._mark_changed(self.interrupts())

    def _mark_changed(self, interrupts: Sequence[Interrupt]) -> None:
        open_, magic = [interrupt for interrupt in interrupts if interrupt.kind != "task"], self.magic()
        changed = self.redefined(open_)
        for interrupt in open_:
            if interrupt.kind == "approval" and self._mark_gone(interrupt):
                continue
            is_changed = interrupt.id in changed
            version = self.versions.label(interrupt) if self.versions and is_changed else ""
            typed = commands(interrupt, magic, open_, redefined=is_changed)[0]
            subject = "a file of the skill was" if interrupt.documents else "the tool"
            fields: dict[str, Any] = {"changed": f"{subject} {_CHANGED}" if is_changed else "", "gone": False}
            fields |= {"version": version, "how": typed}
            fields |= {"note": ""} if is_changed else {}  # the note of a card drawn later says "changed", too
            for view in self.cards.asking(interrupt.id) if interrupt.kind == "approval" else ():
                view.patch_card(interrupt.id, fields)

    def _mark_gone(self, interrupt: Interrupt) -> bool:
        """Mark the cards of an approval whose tool its agent no longer has; returns False if it has it."""
        with self.conversation.history() as history:
            check = self._check_of(history)
            is_gone, can_run = check.lacks_tool(interrupt), check.runs_without_its_tool(interrupt)
            how = commands(interrupt, self.magic(), history.interrupts())[1]
        changed = f"{interrupt.agent} has no tool {interrupt.call.name} any more; give it back, or reject the call"
        fields = {"changed": changed, "gone": True, "version": _AS_ASKED if can_run else "", "how": how, "note": ""}
        for view in self.cards.asking(interrupt.id) if is_gone else ():
            view.patch_card(interrupt.id, fields)
        return is_gone

    def _on_cards(self) -> list[Interrupt]:
        """The open interrupts that are answered on cards in this chat."""
        return [interrupt for interrupt in self.interrupts() if self._is_on_card(interrupt)]

    def _is_on_card(self, interrupt: Interrupt) -> bool:
        """True: it is answered on a card in this chat; of approvals, those of its own agents alone."""
        if interrupt.kind != "approval":
            return interrupt.has_card
        return self._answering_agent(interrupt.id).find_agent(interrupt.recipient) is not None

    async def _draw(self, keys: Collection[str], view: RunView) -> bool:
        """Draw in `view` the cards of interrupts that are open already; returns False if `view` cannot show cards."""
        session = await self.conversation.loaded()
        if not session or not view.is_live:
            return False
        with self.conversation.history(session.events) as history:
            open_ = history.interrupts()
        listed = [interrupt for interrupt in open_ if interrupt.id in keys]
        requests = bundle(
            document(*list_blocks(listed, self.magic(), self._schemas(listed), open_, self.redefined(listed)))
        )
        view.open_interrupts = lambda: open_
        view.show_open_cards(keys, session, self._clicks_on(view), requests)
        self.cards.also_in(view, keys)
        self._mark_changed(listed)
        return True

    # ---- clicks

    def _clicks_on(self, view: RunView) -> Clicks:
        """Work of clicks runs on the loop of all runs, in the context of the cell that drew the card."""
        return Clicks(
            stop=self.stop,
            answered=lambda key, value, *, as_asked=False: view.resume_in_cell(
                lambda: self._answer_from_click(key, value, view, as_asked=as_asked)
            ),
            write=lambda key, text: cast(None, sync.start(self._write(key, text, view))),
            retry=lambda key: view.resume_in_cell(lambda: self._take_back(key, view, is_retry=True)),
            drop=lambda key: view.resume_in_cell(lambda: self._take_back(key, view, is_retry=False)),
            rerun=lambda event_id: view.start_in_cell(self._rerun(event_id, view)),
        )

    async def _rerun(self, event_id: str, view: RunView) -> None:
        try:
            await self.rerun_in_fork(event_id)
        except UserError as error:
            view.show_notice(str(error))

    async def _take_back(self, key: str, failed: RunView, *, is_retry: bool) -> None:
        """Undo the turn that failed, unless there is a newer one, and send its message again on a retry."""
        async with self.conversation.newest_history() as history:
            turns = [turn for turn in history.turns if not turn.undone]
            newest = {event.id for event in turns[-1].events} if turns else set[str]()
        if newest.isdisjoint(event.id for event in failed.events):
            failed.mark_stale(key)
            return
        try:
            rewound = await self.conversation.rewind(1, dry_run=False)
        except UserError as error:  # another kernel runs a turn in this session
            failed.reopen_card(key, str(error))
            return
        self.cards.interrupts_undone(rewound.closed)
        if is_retry:
            await self.send_again(rewound.message, failed.for_retry(lambda: self.view_of(failed.question)))

    async def _write(self, key: str, text: str | None, view: RunView) -> None:
        """Write a key of the state as it was typed into a view."""
        try:
            self.refuse_while_busy()
            event = Event(author="user", actions=EventActions(state_delta=typed_change(key, text)))
            await self.conversation.append(event)
        except UserError as error:
            view.state_written(key, None, str(error))
        else:
            view.state_written(key, event)

    async def _answer_from_click(self, key: str, value: Any, view: RunView, *, as_asked: bool) -> None:
        await self._until_idle()
        try:
            await self.answer({key: value}, view, by=_A_CLICK, as_asked=as_asked)
        except InputError as error:
            open_ = await self._interrupts()
            if any(interrupt.id == key for interrupt in open_):
                view.reopen_card(key, str(error))
                self._mark_changed(open_)  # a file of a skill changes without a cell
            else:  # another view or kernel has answered it
                view.mark_stale(key)

    async def _until_idle(self) -> None:
        while (turn := self._task) and not turn.done():  # two cards clicked one after the other
            await asyncio.wait([turn])


def _is_too_late(verdicts: Mapping[str, Verdict], events: Sequence[Event]) -> bool:
    """True if no run followed answers to approvals or credential requests: other answers were stored first."""
    decided = [verdict for verdict in verdicts.values() if verdict.state != "answered"]
    return bool(decided) and all(event.author == "user" for event in events)
