"""One turn of a chat after another: run, shown while it runs, and gone on with from a click on its cards."""

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AbstractContextManager, aclosing
from copy import copy
from functools import partial
from typing import Any, Protocol, cast

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, UserError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.attempts import on_wait
from adk_nb.notebook import changed_tools, letting_in, questions, settings
from adk_nb.notebook.changed_tools import Versions
from adk_nb.notebook.conversation import Conversation
from adk_nb.notebook.decisions import Decisions, answers_to, check, notice_of, schema_of
from adk_nb.notebook.interrupted import in_a_cell, told_in_a_script
from adk_nb.notebook.letting_in import Given
from adk_nb.notebook.one_turn import OneTurn
from adk_nb.notebook.past_turns import turns_of
from adk_nb.notebook.reply import Goes, Reply, Status, answer_in, outcome, streamed_text
from adk_nb.notebook.typed_state import typed_change
from adk_nb.notebook.view import input_words
from adk_nb.notebook.view.credential_words import way
from adk_nb.notebook.view.display import Mode, in_a_kernel, show_run
from adk_nb.notebook.view.event_words import Verdict, verdict_of
from adk_nb.notebook.view.render import to_be_answered, to_be_approved, to_be_let_in
from adk_nb.notebook.view.run_on_show import Clicks, RunOnShow
from adk_nb.notebook.waiting_cards import WaitingCards
from adk_nb.notebook.waiting_teams import WaitingTeams
from adk_nb.notebook.watching import watch
from adk_nb.notebook.what_next import take_back, what_next
from adk_nb.redaction import hidden
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, Interrupt
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.runtime.trace import Traces
from adk_nb.sync_work import stop_wanted
from adk_nb.tools.base_toolset import on_left_out

MessageAfter = Callable[[list[Event]], types.Content | None]
"""Given the session's events, what is said after them; None: nothing, the run goes on by itself."""
USUAL = OneTurn()


class Speaks(Goes, Protocol):
    """What is needed of the chat whose turns these are."""

    versions: Versions | None

    show: Mode
    on_reply: Callable[[Reply], None] | None
    magic: Callable[[], str]
    about: Callable[[], dict[str, Any]]
    traces: Traces

    async def rerun_in_a_fork(self, event_id: str) -> Reply:
        """Ask again, in a copy of the session."""
        ...


class Talk:
    """The turns of one chat."""

    def __init__(self, chat: Speaks, conversation: Conversation) -> None:
        self._chat = chat
        self._of = conversation
        self._task: asyncio.Task[Any] | None = None
        self._stop = threading.Event()
        """The turn under way was stopped by `stop()`."""
        self.cards = WaitingCards()
        self.teams = WaitingTeams()
        self.max_cost: float | None = None
        """Of the turn that was begun last, also when it goes on after an answer; None: as `settings` has it."""

    def on_show(self, question: str | None, turn: OneTurn = USUAL) -> RunOnShow:
        """What a turn that begins is shown in."""
        agent = turn.on(self._of.agent)
        mode = turn.show or self._chat.show
        shown = show_run(
            agent, question, notice_of(agent), lambda asked: schema_of(turn.on(self._of.agent), asked), mode
        )
        shown.magic, shown.plain = self._chat.magic(), mode == "text"
        return shown

    def refuse_while_busy(self) -> None:
        """Raise an InputError while a turn is under way."""
        if self._task and not self._task.done():
            name = self._of.session_id
            raise InputError(f"session {name!r} is still answering; wait for it, or stop it: chat.stop()")

    def stop(self) -> None:
        """As `Chat.stop`."""
        if (task := self._task) and not self._stop.is_set():  # a second cancellation would cut off the first's clean-up
            self._stop.set()
            task.get_loop().call_soon_threadsafe(task.cancel)

    # -- what is said

    def words(self, text: str, turn: OneTurn, shown: RunOnShow | None = None) -> Coroutine[Any, Any, Reply]:
        """The user's words, for whoever waits for them, or for the agent. `shown`: where; None: in a new view."""
        return self._words(text, turn, shown or self.on_show(text, turn))

    async def _words(self, text: str, turn: OneTurn, shown: RunOnShow) -> Reply:
        await self._of.look_for_cut_runs(self._chat.magic())

        def message(events: list[Event]) -> types.Content:
            agent = self.teams.of_words(events) or self._of.agent
            return questions.message(text, events, agent, self._chat.magic(), turn.parts)

        return await self._say(message, shown, turn=turn)

    async def answer(self, value: Any, which: str | int | None, shown: RunOnShow) -> Reply:
        """As `Chat.answer`."""
        return await self._say(lambda events: questions.answer(value, events, which, self._of.session_id), shown)

    async def decide(self, decisions: Decisions, shown: RunOnShow, *, as_asked: bool = False) -> Reply:
        """As `Chat.decide`."""

        def answers(events: list[Event]) -> types.Content:
            self._check(decisions, events)
            return types.Content(role="user", parts=answers_to(open_interrupts(events, APPROVALS), decisions))

        session = await self._of.loaded()
        with self._as_asked(decisions if as_asked else {}, session.events if session else ()):
            return await self._say(answers, shown)

    def check(self, decisions: Decisions, events: Sequence[Event], *, as_asked: bool) -> None:
        """Refuse what `Chat.decide` cannot carry out in a session with `events`."""
        with self._as_asked(decisions if as_asked else {}, events):
            self._check(decisions, events)

    def _check(self, decisions: Decisions, events: Sequence[Event]) -> None:
        label, agent = changed_tools.label_of(self._chat.versions), self._who_hears(decisions)
        check(decisions, open_interrupts(events, APPROVALS), agent, self._chat.magic(), events, label)

    def _as_asked(self, decisions: Decisions, events: Sequence[Event]) -> AbstractContextManager[None]:
        agent = self._who_hears(decisions)
        return changed_tools.as_asked(self._chat.versions, decisions, agent, events, self._chat.magic())

    async def let_in(self, key: str, given: Given, shown: RunOnShow) -> Reply:
        """Answer the credential request of that id."""
        return await self._say(lambda events: letting_in.message(key, given, events, self._of.session_id), shown)

    async def resume(self, run_id: str, shown: RunOnShow) -> Reply:
        """Let a run go on that was cut."""
        return await self._say(lambda _: None, shown, run_id)

    async def again(self, message: types.Content, shown: RunOnShow) -> Reply:
        """Say what was said before, as it was."""
        return await self._say(lambda _: message, shown)

    async def _say(
        self,
        message_after: MessageAfter,
        shown: RunOnShow,
        invocation_id: str | None = None,
        turn: OneTurn | None = None,
    ) -> Reply:
        """`turn`: of one that begins; None: it goes on, and may cost what it might before."""
        session = await self._of.loaded()
        before = list(session.events) if session else []
        message = message_after(before)
        agent = (turn or USUAL).on((message and self.teams.of_message(message, before)) or self._of.agent)
        self.refuse_while_busy()
        self.max_cost = turn.max_cost if turn else self.max_cost
        self._task = task = cast(asyncio.Task[Any], asyncio.current_task())
        self._stop = threading.Event()
        watched = stop_wanted.set(self._stop)
        ended = partial(self._ended, agent, shown, before)
        shown.max_cost_usd = self.max_cost or settings.now.max_cost_usd
        shown.asked_elsewhere = self.cards.elsewhere(shown)
        others = self._mark_answered(message, before, shown)
        shown.begin(session, self.clicks_on(shown))
        try:
            await self._walk(agent, message, shown, invocation_id)
        except asyncio.CancelledError:
            reply = ended("cancelled")
            if not self._stop.is_set():
                raise
            task.uncancel()  # whoever awaits this turn goes on
            return reply
        except UserError as wrong:
            shown.failed(wrong)
            if hint := ended("error", str(wrong)).take_back_with:
                wrong.add_note(hint)
            raise
        except Exception as wrong:
            shown.failed(wrong)
            why = f"{type(wrong).__name__}: {wrong}{in_a_cell(wrong)}{what_next(wrong, self._chat.magic())}"
            return told_in_a_script(ended("error", why))
        finally:
            stop_wanted.reset(watched)
            self._task = None
            self.cards.close_answered(*others)
            self.teams.note(agent, [*before, *shown.events], self._about(agent))
        return told_in_a_script(ended("done"))

    def _mark_answered(
        self, message: types.Content | None, events: Sequence[Event], shown: RunOnShow
    ) -> list[RunOnShow]:
        """Mark the questions that `message` answers in all views but `shown`, and return those views."""
        verdicts = questions.verdicts(message, events, "by a click in another view" if shown.resumed else shown.where)
        views = [view for key in verdicts for view in self.cards.asking(key) if view is not shown]
        return self.cards.answered(verdicts, views)

    async def _walk(
        self, agent: BaseAgent, message: types.Content | None, shown: RunOnShow, invocation_id: str | None
    ) -> None:
        runner = self._of.runner
        if agent is not self._of.agent:
            runner = copy(runner)
            self._of.put(runner, agent)
        watch(runner.plugin_manager, shown)
        if shown.is_live or in_a_kernel():  # elsewhere the log tells of it
            on_left_out.set(shown.left_out)
        streaming = StreamingMode.SSE if shown.is_live else StreamingMode.NONE
        turn = runner.run_async(
            user_id=self._of.user_id,
            session_id=self._of.session_id,
            new_message=message,
            invocation_id=invocation_id,
            run_config=RunConfig(
                streaming_mode=streaming,
                custom_metadata=self._about(agent) or None,
                timeout=settings.now.timeout,
                max_cost_usd=shown.max_cost_usd,
            ),
            yield_user_message=True,
        )
        if shown.is_live or in_a_kernel():  # elsewhere the log tells of waits
            on_wait.set(lambda one: shown.waits(one.model, one.error, one.waited))
        with shown.trace.listening(), self._of.at_work():
            async with aclosing(turn) as events:
                async for event in events:
                    shown.event(event)
                    self._note_results(event)
                    if event.actions.artifact_delta and shown.is_live:
                        await self._show_files(event, shown)

    def _note_results(self, event: Event) -> None:
        if versions := self._chat.versions:
            for response in event.get_function_responses():
                versions.answered(response.id or "")

    async def _show_files(self, event: Event, shown: RunOnShow) -> None:
        for name, version in event.actions.artifact_delta.items():
            shown.saved(name, version, await self._of.file(name, version))

    def _about(self, agent: BaseAgent) -> dict[str, Any]:
        """What is noted on the events of a run of `agent`, which may be as it was when it had to wait."""
        return self.teams.about(agent) or self._chat.about()

    # -- what comes of it

    def _ended(
        self, agent: BaseAgent, shown: RunOnShow, before: list[Event], status: Status, error: str | None = None
    ) -> Reply:
        """What `agent` came to in a turn that followed `before`; its view stays while a card of it can be answered."""
        events, magic = shown.events, self._chat.magic()
        if events:
            self._chat.traces.keep(events[0].invocation_id, shown.trace)
        way_back = take_back([*before, *events], magic) if error and events else ""
        status, error = outcome(events, status, error)
        waiting, asked = (
            open_interrupts([*before, *events], APPROVALS),
            open_interrupts([*before, *events], CREDENTIALS),
        )
        streamed = streamed_text(shown.streaming.values()) if status == "cancelled" else None
        text, answered_by = streamed or answer_in(events)
        inputs = questions.shown([*before, *events], text)
        reply = Reply(
            question=shown.question,
            agent=shown.agent,
            events=events,
            history=before if shown.resumed or not events or events[0].get_function_responses() else [],
            text=text,
            answered_by=answered_by,
            team=agent,
            status="pending" if (waiting or asked or inputs) and status == "done" else status,
            pending=waiting,
            schemas={one.id: schema_of(self._who_hears([one.id]), one) for one in waiting},
            credentials=asked,
            credential_with=way(magic),
            inputs=inputs,
            input_with=input_words.ways(magic),
            chat=self._chat,
            trace=shown.trace,
            answer_with=self.ways(waiting, [*before, *events]),
            error=hidden(error) if error else None,
            take_back_with=way_back,
            notice="; ".join(filter(None, (shown.notice, shown.unlimited()))) or None,
            plain=shown.plain,
            live=shown.stays_as,
            is_shown=shown.shows_the_reply,
        )
        asked_words = questions.open_questions([*before, *events])
        self.cards.wait_after(shown, (one.id for one in (*waiting, *asked, *asked_words)))
        if self._chat.on_reply:
            self._chat.on_reply(reply)
        with shown.ending():
            shown.end(reply)
            self.cards.close_answered(shown)
        return reply

    def ways(self, waiting: Sequence[Interrupt], events: Sequence[Event]) -> tuple[str, str]:
        """As `Reply.answer_with`."""
        return changed_tools.ways(waiting, events, self._chat.magic(), lambda one: self._who_hears([one.id]))

    def hears(self, one: Interrupt) -> bool:
        """Whether an approval was asked by the agent of this chat, or by one that it leads."""
        return self._who_hears([one.id]).find_agent(one.recipient) is not None

    def _who_hears(self, answered: Collection[str]) -> BaseAgent:
        return self.teams.of(answered) or self._of.agent

    # -- the cards

    async def ask_again(self, keys: Collection[str], shown: RunOnShow) -> bool:
        """Draw the cards of the interrupts `keys`, which another view or an earlier kernel has drawn before.

        Returns:
            Whether `shown` can draw them.
        """
        session = await self._of.loaded()
        if not session or not shown.is_live:
            return False
        shown.ask_again_of(keys, session, self.clicks_on(shown), self._open_requests(keys, session.events))
        self.cards.also_in(shown, keys)
        return True

    def _open_requests(self, keys: Collection[str], events: Sequence[Event]) -> dict[str, str]:
        """The requests `keys` by media type, for the notebook file."""
        waiting = [one for one in open_interrupts(events, APPROVALS) if one.id in keys]
        asked = [one for one in open_interrupts(events, CREDENTIALS) if one.id in keys]
        schemas = {one.id: schema_of(self._who_hears([one.id]), one) for one in waiting}
        shown = to_be_approved(waiting, schemas) if waiting else None
        shown = to_be_let_in(asked, way(self._chat.magic()), below=shown) if asked else shown
        left = [one for one in questions.open_questions(events) if one.id in keys]
        return (to_be_answered(left, input_words.ways(self._chat.magic()), below=shown) if left else shown) or {}

    def tools_changed(self) -> None:
        """As `Chat.tools_changed`."""
        if not self.cards:
            return
        session = sync.run(self._of.loaded())
        events, magic = session.events if session else [], self._chat.magic()
        for one in open_interrupts(events, APPROVALS):
            for shown in self.cards.asking(one.id):
                told = changed_tools.told(one, self._who_hears([one.id]), events, self._chat.versions, magic)
                shown.tool_changed(one.id, told)

    def clicks_on(self, shown: RunOnShow) -> Clicks:
        """What a card's button does: it goes on, on the loop of all runs, in the context of the cell that asked."""

        def decided(key: str, decision: ToolConfirmation, *, as_asked: bool = False) -> None:
            go_on = partial(self.decide, {key: decision}, shown, as_asked=as_asked)
            shown.in_its_cell(lambda: self._go_on_from_click(key, verdict_of(decision), go_on, shown))

        def let_in(key: str, given: str | None) -> None:
            go_on = partial(self.let_in, key, given, shown)
            shown.in_its_cell(lambda: self._go_on_from_click(key, letting_in.verdict_of(given), go_on, shown))

        def answered(key: str, value: Any) -> None:
            shown.in_its_cell(lambda: self._answer_from_click(key, value, shown))

        def write(key: str, text: str | None) -> None:
            sync.start(self._write(key, text, shown))

        def retry(key: str) -> None:
            shown.in_its_cell(lambda: self._after_an_error(key, shown, says_again=True))

        def drop(key: str) -> None:
            shown.in_its_cell(lambda: self._after_an_error(key, shown, says_again=False))

        def rerun(event_id: str) -> None:
            shown.start_in_its_cell(self._rerun(event_id, shown))

        return Clicks(
            stop=self.stop,
            decided=decided,
            as_asked=partial(decided, as_asked=True),
            let_in=let_in,
            answered=answered,
            write=write,
            retry=retry,
            drop=drop,
            rerun=rerun,
        )

    async def _rerun(self, event_id: str, shown: RunOnShow) -> None:
        try:
            await self._chat.rerun_in_a_fork(event_id)
        except UserError as wrong:
            shown.say(str(wrong))

    async def _after_an_error(self, key: str, failed: RunOnShow, *, says_again: bool) -> None:
        """Take back the turn that failed, if nothing was said since, and say the same again if that is asked."""
        session = await self._of.loaded()
        turns = [one for one in turns_of(session.events if session else []) if not one.undone]
        last = {event.id for event in turns[-1].events} if turns else set[str]()
        if last.isdisjoint(event.id for event in failed.events):
            failed.say_stale(key)
            return
        try:
            told = await self._of.rewind(1, dry_run=False)
        except UserError as wrong:  # another kernel is at work there
            failed.ask_again(key, str(wrong))
            return
        self.cards.undone(told.closed)
        if says_again:
            await self.again(told.message, failed.anew(lambda: self.on_show(failed.question)))

    async def _write(self, key: str, text: str | None, shown: RunOnShow) -> None:
        """Write a key of the state as it was typed into a view, which is told of it."""
        try:
            self.refuse_while_busy()
            event = Event(author="user", actions=EventActions(state_delta=typed_change(key, text)))
            await self._of.append(event)
        except UserError as wrong:
            shown.wrote(key, None, str(wrong))
        else:
            shown.wrote(key, event)

    async def _go_on_from_click(
        self, key: str, verdict: Verdict, go_on: Callable[[], Coroutine[Any, Any, Reply]], shown: RunOnShow
    ) -> None:
        await self._until_idle()
        others = [one for one in self.cards.asking(key) if one is not shown]
        try:
            await go_on()
        except InputError as wrong:
            await self._refuse_click(key, wrong, shown)
        else:
            clicked = verdict._replace(where="by a click in another view")
            self.cards.close_answered(*self.cards.answered({key: clicked}, others))

    async def _answer_from_click(self, key: str, value: Any, shown: RunOnShow) -> None:
        await self._until_idle()
        try:
            await self.answer(value, key, shown)
        except InputError as wrong:
            await self._refuse_click(key, wrong, shown)

    async def _until_idle(self) -> None:
        while (turn := self._task) and not turn.done():  # two cards clicked one after the other
            await asyncio.wait([turn])

    async def _refuse_click(self, key: str, wrong: InputError, shown: RunOnShow) -> None:
        session = await self._of.loaded()
        if key in questions.open_requests(session.events if session else ()):
            shown.ask_again(key, str(wrong))
        else:  # another kernel has taken the answer
            shown.say_stale(key)
