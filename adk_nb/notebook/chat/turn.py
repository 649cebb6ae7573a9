"""Run the turns of a chat one after another, show each while it runs, and take answers from its cards."""

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, cast

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.concurrency.threads import can_wait, cannot_wait
from adk_nb.concurrency.work import stop_wanted
from adk_nb.errors import InputError, PendingError, UserError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.llm_response import on_progress, on_wait
from adk_nb.notebook import settings
from adk_nb.notebook.chat import interrupts
from adk_nb.notebook.chat.conversation import Conversation, Follower, followers_of, tell_undone, typed_change
from adk_nb.notebook.chat.desk import Desk, schema_of
from adk_nb.notebook.chat.error_hints import (
    location_suffix,
    log_failure,
    model_error_hint,
    run_to_end,
    shorten_traceback,
    undo_hint,
)
from adk_nb.notebook.chat.past import typed_text
from adk_nb.notebook.chat.reply import Answerable, Reply, view_of_reply
from adk_nb.notebook.chat.turn_options import RelayedRequest, TurnOptions, notice_of, unused_tools_note
from adk_nb.notebook.view.answers import Status, answer_in, streamed_text, turn_outcome
from adk_nb.notebook.view.cards import UNSENT
from adk_nb.notebook.view.chat_box_view import ChatBoxView
from adk_nb.notebook.view.display import Mode, in_a_kernel, show_run
from adk_nb.notebook.view.event_text import model_notes
from adk_nb.notebook.view.interrupt_text import Verdict, expected_interrupts
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.run_view import Clicks, Refused, RunView, TurnInfo, watch
from adk_nb.redaction import hidden
from adk_nb.runtime.history import SENT_BY, History
from adk_nb.runtime.interrupts import ALL, Interrupt, decisions_for_all
from adk_nb.runtime.live_request_queue import LiveRequestQueue, MarkedRequest
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.runtime.trace import Traces
from adk_nb.tools.base_toolset import on_toolset_failure
from adk_nb.wire import copy_model

_MAX_ROUNDS = 32
"""Rounds of approvals that a policy answers in one turn."""
MessageBuilder = Callable[[History], types.Content | None]
"""Returns the message to a session with that history. None: the run resumes without one."""
_NO_OPTIONS = TurnOptions()
_A_CLICK = "a click"
_INSTEAD = "the user sends another message instead"
"""The reason of a refusal."""
_FOR_TURN = "runs unasked: you allowed it until this turn ends; the next turn asks again"
_TOO_LATE = "this answer was not used: another one came first"


@dataclass(frozen=True, kw_only=True)
class _Turn:
    """A turn, from its message to its reply, which is for a pause or for the end."""

    view: RunView
    agent: BaseAgent
    message: types.Content | None
    before: list[Event]
    """The events of the session so far."""
    verdicts: Mapping[str, Verdict]
    """The answers that the message has, by the id of the interrupt."""
    first: ReplyView | None
    """The part of the turn up to its last pause."""
    invocation_id: str | None
    """Of a run that is resumed."""
    relayed: RelayedRequest | None


class TurnRunner:
    """Runs the turns of one chat. Magics, cells and chat boxes steer a chat through it.

    Args:
        chat: The chat of the replies.
        conversation: Its session and its agent.
        show: The display mode of turns that set none.
        rerun_in_fork: Asks again, in a copy of the session that ends before an event, by the event's id.
    """

    def __init__(
        self,
        chat: Answerable,
        conversation: Conversation,
        show: Mode,
        rerun_in_fork: Callable[[str], Coroutine[Any, Any, Reply]],
    ) -> None:
        self.chat = chat
        self.conversation = conversation
        self.show: Mode = show
        self.rerun_in_fork = rerun_in_fork
        self.desk = Desk(conversation)
        self.traces = Traces()
        self.listeners: set[Callable[[Event | None], None]] = set()
        """Get each event of every turn, whoever began it, and None at its end."""
        self._followers: list[Follower] = []
        """Those of the turn under way."""
        self.max_cost: float | None = None
        """Limit of the newest turn, also when it resumes after an answer. None: as `settings` has it."""
        self._relays = asyncio.Lock()
        """Requests from outside wait for each other."""
        self._task: asyncio.Task[Any] | None = None
        self._live: LiveRequestQueue | None = None
        """The input of the live conversation that the turn under way is, which takes answers of cards. None: it is
        none."""
        self._stop = threading.Event()
        """Set by `stop()`, for the turn under way."""
        self._is_closed = False

    def view_of(self, question: str | None, turn: TurnOptions = _NO_OPTIONS) -> RunView:
        """A view for a turn that begins."""
        agent = turn.on(self.conversation.agent)

        def schema(interrupt: Interrupt) -> dict[str, Any] | None:
            if not self.desk.is_own(interrupt):
                return self.desk.schema_of_card(interrupt)
            return schema_of(turn.on(self.conversation.agent), interrupt)

        return show_run(agent, question, notice_of(agent), schema, turn.show or self.show)

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
        self.desk.close()
        self.traces = Traces()

    async def _until_idle(self) -> None:
        while (turn := self._task) and not turn.done():  # two cards clicked one after the other
            await asyncio.wait([turn])

    async def is_waiting(self) -> bool:
        """True while a turn is under way, or an interrupt is open that is answered in the notebook alone."""
        if self._task is not None:
            return True
        async with self.conversation.newest_history() as history:
            return bool(history.interrupts(kinds=interrupts.DECIDED_HERE))

    # ---- messages and answers

    def ask(self, text: str, turn: TurnOptions) -> Reply:
        """Send `text`, and wait for the reply; approvals are answered as `turn` says. Raises as `Chat.ask`."""
        if not can_wait():
            is_magic, agent = bool(self.conversation.notebook.magic()), self.conversation.agent.name
            chat = f"from adk_nb import Chat; reply = await Chat({agent})" if is_magic else "reply = await chat"
            raise cannot_wait(f"{chat}.aask({text!r})")
        try:
            return run_to_end(self.send(text, turn, self.view_of(text, turn)))
        except PendingError as error:  # running a cell again clears its output, and the cards in it
            error.is_on_card = sync.run(self._draw_refused(text, turn, self.view_of(None), error))
            raise

    async def _draw_refused(self, text: str, turn: TurnOptions, view: RunView, error: PendingError) -> bool:
        """Draw the cards that keep a message back, and one of the message; returns True if they are drawn."""
        async with self.conversation.newest_history() as history:
            blocking = [one for one in history.interrupts() if one.kind in interrupts.BLOCKING]
            messages = [typed_text(past.message) for past in history.turns if not past.undone]
        keys = [one.id for one in blocking if self.desk.is_on_card(one)]
        if not keys:
            return False
        is_same = text.strip() == messages[-1].strip() and not turn.parts
        refused = Refused(
            error=f"{type(error).__name__}: {error}",
            text="" if is_same else text,
            waiting=messages[-1],
            send=lambda refuses: view.resume_in_cell(lambda: self._send_after_all(text, turn, view, refuses=refuses)),
            can_refuse=len(keys) == len(blocking) and not any(one.in_doubt for one in blocking),
        )
        return await self.desk.draw(keys, view, self.clicks_on(view), refused)

    async def _send_after_all(self, text: str, turn: TurnOptions, view: RunView, *, refuses: bool) -> None:
        """Send a message that was kept back, in the cell of `view`; `refuses`: what is open is refused before."""
        try:
            await self._until_idle()
            async with self.conversation.newest_history() as history:
                open_ = [one for one in history.interrupts() if one.kind in interrupts.BLOCKING] if refuses else []
            refusal = ToolConfirmation(confirmed=False, reason=_INSTEAD)
            answers = {one.id: refusal if one.is_approval else None for one in open_}
            for runner, of_runner in (await self._by_runner(answers)).items():
                reply = await runner._answer(of_runner, view, TurnInfo(), by=_A_CLICK)
                if reply.status in ("cancelled", "error"):
                    raise InputError(f"not sent: the agent was told of it, and that turn ended with {reply.status}")
            await self.send(text, turn, view.for_retry(lambda: self.view_of(text, turn)))
        except UserError as error:
            view.reopen_card(UNSENT, str(error))

    async def send(
        self, text: str, turn: TurnOptions, view: RunView | None = None, *, is_background: bool = False
    ) -> Reply:
        """As `ask`, without the wait.

        Args:
            text: The message.
            turn: Its options.
            view: Where it is shown. None: in a new view.
            is_background: The cell does not wait for it.
        """
        view = view or self.view_of(text, turn)
        view.addressed = turn.addressed
        info = TurnInfo(answers_approvals=turn.confirm != "ask", is_background=is_background)
        await self.conversation.refuse_interrupted_run()

        def message(history: History) -> types.Content:
            agent, magic = self.desk.agent_for_text(history), self.conversation.notebook.magic()
            return interrupts.text_message(text, history, agent, magic, turn.parts)

        reply = await self._run_turn(message, view, info, options=turn)
        for _ in range(_MAX_ROUNDS):
            # Whether to repeat a call that may have taken effect is decided by a person alone.
            approvals = [approval for approval in view_of_reply(reply).pending if not approval.in_doubt]
            if turn.confirm == "ask" or reply.status != "pending" or not approvals:
                break
            decisions = decisions_for_all(approvals, confirmed=turn.confirm == "yes", by=turn.confirm_by)
            reply = await self._answer(decisions, view, info, first=view_of_reply(reply))
        return reply

    def answer_now(self, values: Mapping[str, Any], *, by: str = "", as_asked: bool = False) -> Reply:
        """Check answers to open interrupts, give them together, and wait for the reply.

        Args:
            values: Id -> answer, as `Chat.answer` takes it.
            by: How they were given, for the log.
            as_asked: The tools run as they were when they were asked for.
        """
        self.refuse_while_busy()
        session = sync.run(self.conversation.loaded())
        with (
            self.conversation.history(session.events if session else ()) as history,
            self.desk.tools_as_asked(values, history) if as_asked else nullcontext(),
        ):
            answers = self.desk.read(values, history, by, as_asked=as_asked)
        return run_to_end(self._answer(answers, self.view_of(None), TurnInfo(), as_asked=as_asked))

    async def _answer(
        self,
        values: Mapping[str, Any],
        view: RunView,
        info: TurnInfo,
        *,
        by: str = "",
        as_asked: bool = False,
        first: ReplyView | None = None,
    ) -> Reply:
        def message(history: History) -> types.Content:
            return interrupts.message_of(self.desk.read(values, history, by, as_asked=as_asked), history)

        tools: AbstractContextManager[None] = nullcontext()
        if as_asked:
            async with self.conversation.newest_history() as history:
                tools = self.desk.tools_as_asked(values, history)
        with tools:
            return await self._run_turn(message, view, info, is_click=by == _A_CLICK, first=first)

    async def _answer_live(self, values: Mapping[str, Any], view: RunView) -> None:
        """Give answers to the live conversation under way, which runs the calls and goes on."""
        assert self._live
        async with self.conversation.newest_history() as history:
            message = interrupts.message_of(self.desk.read(values, history, _A_CLICK, as_asked=False), history)
            place = f"by {_A_CLICK} {view.place}".rstrip()
            decided = interrupts.verdicts(message, history, place, is_click=True)
        self._live.send(MarkedRequest(content=message, custom_metadata={SENT_BY: ""}))  # not the client of the run
        self.desk.close_answered(self.desk.answered(decided, view))

    def resume(self, *, edited: bool = False) -> Reply:
        """As `Chat.resume`."""
        self.refuse_while_busy()
        run, _ = sync.run(self.conversation.last_interrupted_run(edited=edited))
        return run_to_end(self._run_turn(lambda _: None, self.view_of(None), TurnInfo(), invocation_id=run.id))

    def repeat(self, message: types.Content) -> Reply:
        """Send an earlier message as it was, and wait for the reply."""
        return run_to_end(self.send_again(message, self.view_of(typed_text(message) or None)))

    async def send_again(self, message: types.Content, view: RunView, *, resumed: bool = False) -> Reply:
        """As `repeat`, in that view and without the wait. `resumed`: the cell of the view had ended."""
        return await self._run_turn(lambda _: message, view, TurnInfo(resumed=resumed))

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
                agent, magic = self.desk.agent_for_text(history), self.conversation.notebook.magic()
                return interrupts.relayed_message(request.message, history, agent, magic)

            if request.invocation_id is None:
                await self.conversation.refuse_interrupted_run()
            info = TurnInfo(is_background=True)
            return await self._run_turn(
                message, view, info, request.invocation_id, options=_NO_OPTIONS, relayed=request
            )

    # ---- a turn

    async def _run_turn(
        self,
        build_message: MessageBuilder,
        view: RunView,
        info: TurnInfo,
        invocation_id: str | None = None,
        *,
        options: TurnOptions | None = None,
        relayed: RelayedRequest | None = None,
        is_click: bool = False,
        first: ReplyView | None = None,
    ) -> Reply:
        """Run a turn from its message to its reply.

        Args:
            build_message: Returns the message.
            view: Where the turn is shown.
            info: What the view is told of it; the rest is added here.
            invocation_id: Of a run that is resumed.
            options: Of a turn that begins. None: a turn resumes, and keeps its cost limit.
            relayed: The request that the turn answers.
            is_click: The message is an answer given by a click in `view`.
            first: The part of the turn up to its pause.
        """
        desk, conversation = self.desk, self.conversation
        session = await conversation.loaded()
        before = list(session.events) if session else []
        with conversation.history(before) as history:
            message = build_message(history)
            base = desk.agent_for(message, history)
            place = f"by {_A_CLICK} {view.place}".rstrip() if is_click else view.place
            turn = _Turn(
                view=view,
                agent=(options or _NO_OPTIONS).on(base),
                message=message,
                before=before,
                verdicts=interrupts.verdicts(message, history, place, is_click=is_click),
                first=first,
                invocation_id=invocation_id,
                relayed=relayed,
            )
        self.refuse_while_busy()
        self.max_cost = options.max_cost if options else self.max_cost
        self._task = task = cast(asyncio.Task[Any], asyncio.current_task())
        self._stop = threading.Event()
        if any(verdict.for_turn for verdict in turn.verdicts.values()):
            view.notices.add(_FOR_TURN, is_chip=True)
        token = stop_wanted.set(self._stop)
        info = replace(
            info,
            magic=conversation.notebook.magic(),
            max_cost_usd=self.max_cost or settings.now.max_cost_usd,
            open_interrupts=lambda: conversation.open_after([*before, *view.events]),
            cards_elsewhere=desk.elsewhere(view) & turn.verdicts.keys(),
        )
        view.begin(session, self.clicks_on(view), info)
        self._followers = followers_of(conversation, view)
        for follower in self._followers:
            follower.turn_begins(view.place, session, self.stop)
        decided_views: list[RunView] = []
        try:
            await self._run_agent(turn, decided_views)
        except asyncio.CancelledError:
            reply = self._finish(turn, "cancelled")
            if not self._stop.is_set():
                raise
            task.uncancel()  # `stop()` cancelled the turn alone, not the code that awaits it
            return reply
        except UserError as error:
            view.failed(error)
            if hint := view_of_reply(self._finish(turn, "error", str(error))).undo_hint:
                error.add_note(hint)
            if view.shows_errors and not info.is_background:
                shorten_traceback(error)
            raise
        except Exception as error:
            view.failed(error)
            hints = f"{location_suffix(error)}{model_error_hint(error, info.magic)}"
            return log_failure(self._finish(turn, "error", f"{type(error).__name__}: {error}{hints}"))
        finally:
            stop_wanted.reset(token)
            self._task = self._live = None
            self._notify(None)
            desk.close_answered(decided_views)
            desk.turn_ended(turn.agent, base, [*before, *view.events])
        return log_failure(self._finish(turn, "done"))

    async def _run_agent(self, turn: _Turn, decided_views: list[RunView]) -> None:
        """Run to the end. `decided_views`: gets the views whose cards the message answers, once it is stored."""
        view, relayed, conversation = turn.view, turn.relayed, self.conversation
        watch(conversation.plugins, view)
        if view.is_live or in_a_kernel():  # elsewhere the log has these
            on_toolset_failure.set(view.tools_left_out)
            on_wait.set(lambda wait: view.model_busy(wait.model, wait.error, wait.waited))
            on_progress.set(view.model_starts)
        streams = view.is_live or (relayed is not None and relayed.streams)
        live = self._live = relayed.live_requests if relayed else None
        config = copy_model(
            relayed.run_config if relayed else RunConfig(),
            streaming_mode=StreamingMode.SSE if streams else StreamingMode.NONE,
            custom_metadata=self.desk.metadata_of(turn.agent)
            | ({SENT_BY: relayed.sender} if relayed and relayed.sender else {})
            or None,
            timeout=None if live else settings.now.timeout,  # people speak as long as they like
            max_cost_usd=view.turn.max_cost_usd,
        )
        state_delta = relayed.state_delta if relayed else None
        run = conversation.run(turn.agent, turn.message, config, turn.invocation_id, state_delta, live)
        with view.trace.active(), conversation.answering():
            async with aclosing(run) as events:
                async for event in events:
                    if not view.events:
                        decided_views += self.desk.answered(turn.verdicts, view)
                    if relayed:
                        relayed.on_event(event)
                    view.event(event)
                    self._notify(event)
                    if versions := conversation.notebook.versions:
                        for response in event.get_function_responses():
                            versions.answered(response.id or "")
                    for name, version in event.actions.artifact_delta.items() if view.is_live else ():
                        view.artifact_saved(name, version, await conversation.artifact(name, version))

    def _notify(self, event: Event | None) -> None:
        for listen in tuple(self.listeners):
            listen(event)
        for follower in self._followers:
            if event:
                follower.turn_event(event)

    def _finish(self, turn: _Turn, status: Status, error: str | None = None) -> Reply:
        """The reply of a turn; its view stays open while a card can be answered."""
        view, desk, first = turn.view, self.desk, turn.first
        events, notebook = view.events, self.conversation.notebook
        magic = notebook.magic()
        if events:
            self.traces.add(events[0].invocation_id, view.trace)
        with self.conversation.history([*turn.before, *events]) as history:
            to_undo = undo_hint(history, magic) if error and events else ""
            open_ = history.interrupts(kinds=ALL)
            unused_tools = unused_tools_note(turn.agent, history.turns)
        status, error = turn_outcome(events, status, error)
        # No run followed answers to approvals or credential requests: other answers were stored first.
        decided = [verdict for verdict in turn.verdicts.values() if verdict.state != "answered"]
        if status == "done" and decided and all(event.author == "user" for event in events):
            view.tools_left_out(_TOO_LATE)
            events, open_ = [], [interrupt for interrupt in open_ if interrupt.id not in turn.verdicts]
        for note in (view.limit_warning(), *model_notes(events), unused_tools):
            view.notices.add(note)
        streamed = streamed_text(view.streaming.values()) if status == "cancelled" else None
        text, answered_by = streamed or answer_in(events)
        has_earlier_calls = view.resumed or first or not events or events[0].get_function_responses()
        reply_view = ReplyView(
            question=view.question,
            shows_question=view.shows_question,
            agent=view.agent,
            addressed=view.addressed,
            events=events,
            history=turn.before if has_earlier_calls else [],
            text=text,
            answered_by=answered_by,
            team=turn.agent,
            status="pending" if expected_interrupts(open_, text) and status == "done" else status,
            interrupts=open_,
            schemas=desk.schemas(open_),
            magic=magic,
            redefined=desk.redefined(open_),
            find_redefined=desk.redefined,
            trace=view.trace,
            error=hidden(error) if error else None,
            undo_hint=to_undo,
            notices=view.notices,
            plain=view.plain,
            live=view.final_view_id,
            is_displayed=view.shows_reply,
        )
        reply = Reply(reply_view.appended_to(first) if first else reply_view, self.chat)
        desk.wait_in(view, open_)
        if notebook.on_reply and not turn.relayed:
            notebook.on_reply(reply)
        with view.end_lock():
            view.end(reply_view)
            desk.close_answered([view])
        followers, self._followers = self._followers, []
        for follower in followers:
            follower.turn_ends(reply_view.status, reply_view.error)
        return reply

    # ---- cards and boxes

    def draw_cards(self, ids: Collection[str] | None = None) -> bool:
        """Draw the cards of open interrupts in this cell too; one answer counts for all views.

        Args:
            ids: Of the interrupts. None: of all that are open.

        Returns:
            True if cards are drawn; False where no page can show one.
        """
        open_ = [interrupt.id for interrupt in sync.run(self.desk.interrupts()) if interrupt.has_card]
        keys = [key for key in open_ if ids is None or key in ids]
        if not keys:
            return False
        view = self.view_of(None)
        return sync.run(self.desk.draw(keys, view, self.clicks_on(view)))

    async def send_in_box(self, text: str, box: ChatBoxView, turn: TurnOptions) -> Reply:
        """Send what was typed into a chat box."""
        box.set_agent(self.conversation.agent, notice_of(self.conversation.agent))
        return await self.send(text, turn, box)

    # ---- clicks

    def clicks_on(self, view: RunView) -> Clicks:
        """The callbacks of a view. Their work runs on the loop of all runs, in the context of the cell of the view."""
        return Clicks(
            stop=self.stop,
            answered=lambda key, value, *, as_asked=False: view.resume_in_cell(
                lambda: self._answer_from_click(key, value, view, as_asked=as_asked)
            ),
            approved=lambda keys: view.resume_in_cell(lambda: self._approve_from_click(keys, view)),
            write=lambda key, text: cast(None, sync.start(self._write(key, text, view))),
            retry=lambda key: view.resume_in_cell(lambda: self._take_back(key, view, is_retry=True)),
            drop=lambda key: view.resume_in_cell(lambda: self._take_back(key, view, is_retry=False)),
            rerun=lambda event_id: view.start_in_cell(self._rerun(event_id, view)),
        )

    async def _answer_from_click(self, key: str, value: Any, view: RunView, *, as_asked: bool) -> None:
        for runner, values in (await self._by_runner({key: value})).items():
            await runner._answer_clicked(values, view, as_asked=as_asked)

    async def _approve_from_click(self, keys: Collection[str], view: RunView) -> None:
        """Approve calls together: those of an agent resume its run once."""
        for runner, values in (await self._by_runner(dict.fromkeys(keys, True))).items():
            await runner._answer_clicked(values, view, as_asked=False)

    async def _by_runner(self, answers: Mapping[str, Any]) -> "dict[TurnRunner, dict[str, Any]]":
        """Answers, by the id of the interrupt, for each chat of this session whose agents get them."""
        by_id = {interrupt.id: interrupt for interrupt in await self.desk.interrupts()}
        found: dict[TurnRunner, dict[str, Any]] = {}
        for key, answer in answers.items():
            interrupt = by_id.get(key)
            runner = (interrupt and self.conversation.notebook.runner_of(interrupt)) or self
            found.setdefault(runner, {})[key] = answer
        return found

    async def _answer_clicked(self, values: Mapping[str, Any], view: RunView, *, as_asked: bool) -> None:
        try:
            if self._live:
                await self._answer_live(values, view)
                return
            await self._until_idle()
            await self._answer(values, view, TurnInfo(), by=_A_CLICK, as_asked=as_asked)
        except InputError as error:
            open_ = await self.desk.interrupts()
            still_open = {interrupt.id for interrupt in open_}
            for key in values:
                if key in still_open:
                    view.reopen_card(key, str(error))
                else:  # another view or kernel has answered it
                    view.mark_stale(key)
            self.desk.mark_changed(open_)  # a file of a skill changes without a cell

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
        self.desk.undone(rewound.closed)
        await tell_undone(self.conversation.service, self.conversation.key)
        if is_retry:
            await self.send_again(rewound.message, failed.for_retry(lambda: self.view_of(failed.question)))

    async def _write(self, key: str, text: str | None, view: RunView) -> None:
        """Write a key of the state as it was typed into a view."""
        try:
            self.refuse_while_busy()
            event = await self.conversation.append(typed_change(key, text))
        except UserError as error:
            view.state_written(key, None, str(error))
        else:
            view.state_written(key, event)

    async def _rerun(self, event_id: str, view: RunView) -> None:
        try:
            await self.rerun_in_fork(event_id)
        except UserError as error:
            view.show_notice(str(error))
