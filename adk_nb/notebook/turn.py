"""One turn of a chat after another: run, shown while it runs, and gone on with from a click on its cards."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from functools import partial
from typing import Any, Protocol, cast

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, UserError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.attempts import on_wait
from adk_nb.notebook import interrupts, settings
from adk_nb.notebook.conversation import Conversation
from adk_nb.notebook.error_hints import in_a_cell, take_back, told_in_a_script, told_in_short, what_next
from adk_nb.notebook.interrupts import AnswerCheck, Answers
from adk_nb.notebook.open_cards import OpenCards
from adk_nb.notebook.paused_agents import PausedAgents, Versions, is_redefined, schema_of
from adk_nb.notebook.reply import Answerable, Reply
from adk_nb.notebook.session_state import typed_change
from adk_nb.notebook.turn_options import Confirm, TurnOptions, notice_of
from adk_nb.notebook.view.display import Mode, in_a_kernel, show_run
from adk_nb.notebook.view.document import document
from adk_nb.notebook.view.interrupt_text import Verdict, awaited, in_list, ways
from adk_nb.notebook.view.reply_view import ReplyView, Status
from adk_nb.notebook.view.run_view import Clicks, RunView
from adk_nb.notebook.view.turn_answer import answer_in, outcome, streamed_text
from adk_nb.notebook.view.writers import bundle
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.redaction import hidden
from adk_nb.runtime.context import CallbackContext, ToolContext
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import ALL, Interrupt
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.runtime.trace import Traces
from adk_nb.sync_work import stop_wanted
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import on_toolset_failure
from adk_nb.tools.function_tool import FunctionTool

Decisions = dict[str, ToolConfirmation]
"""By the id of the approval."""
MOST_ROUNDS = 32
"""Of approvals that are answered by themselves in one turn."""
MessageAfter = Callable[[History], types.Content | None]
"""The message to a session with that history; None: none, the run resumes by itself."""
USUAL = TurnOptions()
A_CLICK = "a click"
_CHANGED = "the tool changed since this was asked"


class Speaks(Answerable, Protocol):
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


class TurnRunner:
    """The turns of one chat."""

    def __init__(self, chat: Speaks, conversation: Conversation) -> None:
        self._chat = chat
        self._of = conversation
        self._task: asyncio.Task[Any] | None = None
        self._stop = threading.Event()
        """The turn under way was stopped by `stop()`."""
        self.cards = OpenCards()
        self.teams = PausedAgents()
        self.max_cost: float | None = None
        """Of the turn that was begun last, also when it goes on after an answer; None: as `settings` has it."""

    def on_show(self, question: str | None, turn: TurnOptions = USUAL) -> RunView:
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

    def words(self, text: str, turn: TurnOptions, shown: RunView | None = None) -> Coroutine[Any, Any, Reply]:
        """The user's words, for whoever waits for them, or for the agent. `shown`: where; None: in a new view."""
        return self._words(text, turn, shown or self.on_show(text, turn))

    async def _words(self, text: str, turn: TurnOptions, shown: RunView) -> Reply:
        await self._of.refuse_interrupted_run(self._chat.magic())

        def message(history: History) -> types.Content:
            agent = self.teams.of_text(history) or self._of.agent
            return interrupts.text_message(text, history, agent, self._chat.magic(), turn.parts)

        return await self._say(message, shown, turn=turn)

    async def answer(self, values: Mapping[str, Any], shown: RunView, *, by: str = "", as_asked: bool = False) -> Reply:
        """Answer open interrupts together.

        Args:
            values: Id -> its answer, as `Chat.answer` takes it.
            shown: Where it is shown.
            by: How they were given, for the log.
            as_asked: The tools run as they were when they were asked for.
        """

        def message(history: History) -> types.Content:
            return interrupts.message_of(self._checked(values, history, by), history)

        session = await self._of.loaded()
        with self._tools_as_asked(values if as_asked else {}, session.events if session else ()):
            return await self._say(message, shown, is_click=by == A_CLICK)

    def check(self, values: Mapping[str, Any], *, by: str = "", as_asked: bool = False) -> Answers:
        """Read answers, and refuse those that cannot be carried out; the rest as in `answer`."""
        session = sync.run(self._of.loaded())
        events = session.events if session else ()
        with self._tools_as_asked(values if as_asked else {}, events), self._of.history(events) as history:
            return self._checked(values, history, by)

    def _checked(self, values: Mapping[str, Any], history: History, by: str) -> Answers:
        by_id = {interrupt.id: interrupt for interrupt in history.interrupts(kinds=ALL)}
        answers = {key: interrupts.read_answer(by_id[key], value, by) for key, value in values.items() if key in by_id}
        self._check_of(history).check({**values, **answers})
        return answers

    def _tools_as_asked(self, values: Mapping[str, Any], events: Sequence[Event]) -> AbstractContextManager[None]:
        if not values:
            return nullcontext()
        with self._of.history(events) as history:
            return self._check_of(history).tools_as_asked(values)

    def _check_of(self, history: History) -> AnswerCheck:
        chat = self._chat
        return AnswerCheck(history=history, agent_of=self._answering_agent, magic=chat.magic(), versions=chat.versions)

    async def resume(self, run_id: str, shown: RunView) -> Reply:
        """Let a run go on that was cut."""
        return await self._say(lambda _: None, shown, run_id)

    async def again(self, message: types.Content, shown: RunView) -> Reply:
        """Say what was said before, as it was."""
        return await self._say(lambda _: message, shown)

    async def _say(
        self,
        message_after: MessageAfter,
        shown: RunView,
        invocation_id: str | None = None,
        turn: TurnOptions | None = None,
        *,
        is_click: bool = False,
    ) -> Reply:
        """Run a turn.

        Args:
            message_after: Returns the message.
            shown: The view of the turn.
            invocation_id: Of a run that is resumed.
            turn: Its options, if it begins; None: it goes on, and may cost what it might before.
            is_click: An answer was given by a click in `shown`.
        """
        session = await self._of.loaded()
        before = list(session.events) if session else []
        with self._of.history(before) as history:
            message = message_after(history)
            agent = (turn or USUAL).on((message and self.teams.of_message(message, history)) or self._of.agent)
            where = f"by {A_CLICK} {shown.where}".rstrip() if is_click else shown.where
            verdicts = interrupts.verdicts(message, history, where, is_click=is_click)
        self.refuse_while_busy()
        self.max_cost = turn.max_cost if turn else self.max_cost
        self._task = task = cast(asyncio.Task[Any], asyncio.current_task())
        self._stop = threading.Event()
        watched = stop_wanted.set(self._stop)
        ended = partial(self._ended, agent, shown, before, verdicts)
        shown.max_cost_usd = self.max_cost or settings.now.max_cost_usd
        shown.asked_elsewhere = self.cards.elsewhere(shown)
        shown.open_interrupts = partial(self._open_after, before, shown)
        others: list[RunView] = []
        shown.begin(session, self.clicks_on(shown))
        try:
            await self._walk(
                agent, message, shown, invocation_id, lambda: others.extend(self._mark_answered(verdicts, shown))
            )
        except asyncio.CancelledError:
            reply = ended("cancelled")
            if not self._stop.is_set():
                raise
            task.uncancel()  # whoever awaits this turn goes on
            return reply
        except UserError as wrong:
            shown.failed(wrong)
            if hint := ended("error", str(wrong)).view.take_back_with:
                wrong.add_note(hint)
            if shown.shows_errors and not shown.is_background:
                told_in_short(wrong)
            raise
        except Exception as wrong:
            shown.failed(wrong)
            why = f"{type(wrong).__name__}: {wrong}{in_a_cell(wrong)}{what_next(wrong, self._chat.magic())}"
            return told_in_a_script(ended("error", why))
        finally:
            stop_wanted.reset(watched)
            self._task = None
            self.cards.close_answered(*others)
            with self._of.history([*before, *shown.events]) as history:
                self.teams.note(agent, history, self._about(agent))
        return told_in_a_script(ended("done"))

    def _open_after(self, before: list[Event], shown: RunView) -> list[Interrupt]:
        with self._of.history([*before, *shown.events]) as history:
            return history.interrupts()

    def _mark_answered(self, verdicts: Mapping[str, Verdict], shown: RunView) -> list[RunView]:
        """Mark the cards of answered interrupts in all views but `shown`, and return those views."""
        views = [view for key in verdicts for view in self.cards.asking(key) if view is not shown]
        return self.cards.answered(verdicts, views)

    async def _walk(
        self,
        agent: BaseAgent,
        message: types.Content | None,
        shown: RunView,
        invocation_id: str | None,
        is_taken: Callable[[], None],
    ) -> None:
        """Run to the end. `is_taken` is called once the session has the message."""
        watch(self._of.plugins, shown)
        if shown.is_live or in_a_kernel():  # elsewhere the log tells of it
            on_toolset_failure.set(shown.left_out)
        streaming = StreamingMode.SSE if shown.is_live else StreamingMode.NONE
        config = RunConfig(
            streaming_mode=streaming,
            custom_metadata=self._about(agent) or None,
            timeout=settings.now.timeout,
            max_cost_usd=shown.max_cost_usd,
        )
        turn = self._of.run(agent, message, config, invocation_id)
        if shown.is_live or in_a_kernel():  # elsewhere the log tells of waits
            on_wait.set(lambda one: shown.waits(one.model, one.error, one.waited))
        with shown.trace.listening(), self._of.at_work():
            async with aclosing(turn) as events:
                async for event in events:
                    if not shown.events:
                        is_taken()
                    shown.event(event)
                    self._note_results(event)
                    if event.actions.artifact_delta and shown.is_live:
                        await self._show_files(event, shown)

    def _note_results(self, event: Event) -> None:
        if versions := self._chat.versions:
            for response in event.get_function_responses():
                versions.answered(response.id or "")

    async def _show_files(self, event: Event, shown: RunView) -> None:
        for name, version in event.actions.artifact_delta.items():
            shown.saved(name, version, await self._of.file(name, version))

    def _about(self, agent: BaseAgent) -> dict[str, Any]:
        """What is noted on the events of a run of `agent`, which may be as it was when it had to wait."""
        return self.teams.about(agent) or self._chat.about()

    # -- what comes of it

    def _ended(
        self,
        agent: BaseAgent,
        shown: RunView,
        before: list[Event],
        verdicts: Mapping[str, Verdict],
        status: Status,
        error: str | None = None,
    ) -> Reply:
        """What `agent` came to in a turn that followed `before`; its view stays while a card of it can be answered.

        `verdicts`: the answers with which the turn began.
        """
        events, magic = shown.events, self._chat.magic()
        if events:
            self._chat.traces.keep(events[0].invocation_id, shown.trace)
        with self._of.history([*before, *events]) as history:
            way_back = take_back(history, magic) if error and events else ""
            open_ = history.interrupts(kinds=ALL)
        status, error = outcome(events, status, error)
        if status == "done" and _is_too_late(verdicts, events):
            shown.left_out(_TOO_LATE)
            events, open_ = [], [interrupt for interrupt in open_ if interrupt.id not in verdicts]
        shown.notices.add(shown.unlimited())
        streamed = streamed_text(shown.streaming.values()) if status == "cancelled" else None
        text, answered_by = streamed or answer_in(events)
        view = ReplyView(
            question=shown.question,
            shows_question=shown.shows_question,
            agent=shown.agent,
            events=events,
            history=before if shown.resumed or not events or events[0].get_function_responses() else [],
            text=text,
            answered_by=answered_by,
            team=agent,
            status="pending" if awaited(open_, text) and status == "done" else status,
            interrupts=open_,
            schemas=self._schemas(open_),
            magic=magic,
            redefined=self.redefined(open_),
            redefined_now=self.redefined,
            trace=shown.trace,
            error=hidden(error) if error else None,
            take_back_with=way_back,
            notices=shown.notices,
            plain=shown.plain,
            live=shown.stays_as,
            is_shown=shown.shows_the_reply,
        )
        reply = Reply(view, self._chat)
        self.cards.wait_after(shown, (interrupt.id for interrupt in open_ if interrupt.has_card))
        if self._chat.on_reply:
            self._chat.on_reply(reply)
        with shown.ending():
            shown.end(view)
            self.cards.close_answered(shown)
        return reply

    def redefined(self, waiting: Sequence[Interrupt]) -> set[str]:
        """Ids of the approvals whose tools were redefined since they were asked for."""
        with self._of.history() as history:
            approvals = [interrupt for interrupt in waiting if interrupt.kind == "approval"]
            agents = {approval.id: self._answering_agent(approval.id) for approval in approvals}
            return {approval.id for approval in approvals if is_redefined(approval, agents[approval.id], history)}

    def _schemas(self, open_: Sequence[Interrupt]) -> dict[str, dict[str, Any] | None]:
        approvals = [interrupt for interrupt in open_ if interrupt.kind == "approval"]
        return {interrupt.id: schema_of(self._answering_agent(interrupt.id), interrupt) for interrupt in approvals}

    def can_answer(self, interrupt: Interrupt) -> bool:
        """True if an approval was asked for by the agent of this chat, or by an agent under it."""
        return self._answering_agent(interrupt.id).find_agent(interrupt.recipient) is not None

    def _answering_agent(self, key: str) -> BaseAgent:
        return self.teams.of([key]) or self._of.agent

    # -- the cards

    async def ask_again(self, keys: Collection[str], shown: RunView) -> bool:
        """Draw the cards of the interrupts `keys`, which another view or an earlier kernel has drawn before.

        Returns:
            Whether `shown` can draw them.
        """
        session = await self._of.loaded()
        if not session or not shown.is_live:
            return False
        with self._of.history(session.events) as history:
            open_ = history.interrupts()
        asked = [interrupt for interrupt in open_ if interrupt.id in keys]
        requests = bundle(
            document(*in_list(asked, self._chat.magic(), self._schemas(asked), open_, self.redefined(asked)))
        )
        shown.open_interrupts = lambda: open_
        shown.ask_again_of(keys, session, self.clicks_on(shown), requests)
        self.cards.also_in(shown, keys)
        return True

    def tools_changed(self) -> None:
        """As `Chat.tools_changed`."""
        if not self.cards:
            return
        session, magic, versions = sync.run(self._of.loaded()), self._chat.magic(), self._chat.versions
        with self._of.history(session.events if session else ()) as history:
            open_ = history.interrupts()
        changed = self.redefined(open_)
        for interrupt in open_:
            is_changed = interrupt.id in changed
            version = versions.label(interrupt) if versions and is_changed else ""
            how = ways(interrupt, magic, open_, redefined=is_changed)[0]
            fields = {"changed": _CHANGED if is_changed else "", "version": version, "how": how}
            for shown in self.cards.asking(interrupt.id) if interrupt.kind == "approval" else ():
                shown.patch_card(interrupt.id, fields)

    def clicks_on(self, shown: RunView) -> Clicks:
        """What a card's button does: it resumes on the loop of all runs, in the context of the cell that asked."""

        def answered(key: str, value: Any, *, as_asked: bool = False) -> None:
            shown.in_its_cell(lambda: self._answer_from_click(key, value, shown, as_asked=as_asked))

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
            answered=answered,
            write=write,
            retry=retry,
            drop=drop,
            rerun=rerun,
        )

    async def _rerun(self, event_id: str, shown: RunView) -> None:
        try:
            await self._chat.rerun_in_a_fork(event_id)
        except UserError as wrong:
            shown.say(str(wrong))

    async def _after_an_error(self, key: str, failed: RunView, *, says_again: bool) -> None:
        """Take back the turn that failed, if nothing was said since, and say the same again if that is asked."""
        session = await self._of.loaded()
        with self._of.history(session.events if session else ()) as history:
            turns = [turn for turn in history.turns if not turn.undone]
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

    async def _write(self, key: str, text: str | None, shown: RunView) -> None:
        """Write a key of the state as it was typed into a view, which is told of it."""
        try:
            self.refuse_while_busy()
            event = Event(author="user", actions=EventActions(state_delta=typed_change(key, text)))
            await self._of.append(event)
        except UserError as wrong:
            shown.wrote(key, None, str(wrong))
        else:
            shown.wrote(key, event)

    async def _answer_from_click(self, key: str, value: Any, shown: RunView, *, as_asked: bool) -> None:
        await self._until_idle()
        try:
            await self.answer({key: value}, shown, by=A_CLICK, as_asked=as_asked)
        except InputError as wrong:
            await self._refuse_click(key, wrong, shown)

    async def _until_idle(self) -> None:
        while (turn := self._task) and not turn.done():  # two cards clicked one after the other
            await asyncio.wait([turn])

    async def _refuse_click(self, key: str, wrong: InputError, shown: RunView) -> None:
        session = await self._of.loaded()
        with self._of.history(session.events if session else ()) as history:
            is_open = any(interrupt.id == key for interrupt in history.interrupts())
        if is_open:
            shown.ask_again(key, str(wrong))
        else:  # another kernel has taken the answer
            shown.say_stale(key)


_TOO_LATE = "this answer does not count: another was there first"


def _is_too_late(verdicts: Mapping[str, Verdict], events: Sequence[Event]) -> bool:
    """True if nothing went on with answers to approvals or credential requests: others were taken while no result of
    the calls was there yet.
    """
    decided = [verdict for verdict in verdicts.values() if verdict.state != "answered"]
    return bool(decided) and all(event.author == "user" for event in events)


# ---- approvals that a policy answers


def check_decisions(decisions: Any) -> None:
    """Refuse what is no dict of decisions.

    Raises:
        InputError: It is none.
    """
    values = cast(dict[Any, Any], decisions).values() if isinstance(decisions, dict) else [None]
    if not all(isinstance(decided, ToolConfirmation) for decided in values):
        raise InputError(
            "decisions are a dict of approval ids and what was decided; write "
            "chat.decide({chat.pending[0].id: ToolConfirmation(confirmed=True)}), or chat.approve() for one"
        )


def settled(reply: Reply, decide: Callable[[Decisions], Reply], confirm: Confirm, by: str) -> Reply:
    """The reply after all approvals of a turn were answered by the policy, those that come up then too.

    Args:
        reply: Of the turn.
        decide: Of its chat.
        confirm: The policy.
        by: Where it was set, for the log.
    """
    for _ in range(MOST_ROUNDS):
        if not (decisions := by_policy(reply, confirm, by)):
            break
        reply = decide(decisions)
    return reply


def by_policy(reply: Reply, confirm: Confirm, by: str) -> Decisions:
    """The decisions of the policy on the approvals of `reply`; empty if there are none. `by`: as of `settled`."""
    if confirm == "ask" or reply.status != "pending":
        return {}
    return {approval.id: ToolConfirmation(confirmed=confirm == "yes", by=by) for approval in reply.view.pending}


# ---- who is at work

_LIVE_VIEW = "adk_nb_live_view"


class _Watching(BasePlugin):
    """Only says who is at work; a run that nobody sees live never has it, and pays nothing for it."""

    def __init__(self, shown: RunView) -> None:
        super().__init__(_LIVE_VIEW)
        self.shown = shown

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        self.shown.agent_begins(*_where(agent, callback_context))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        if isinstance(tool, FunctionTool) and inspect.iscoroutinefunction(tool.func):  # others have a thread
            self.shown.blocks()

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self.shown.tool_failed(tool_context.function_call_id or "", tool.name, tool_args, error)

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        self.shown.agent_ends(*_where(agent, callback_context))


def watch(plugins: PluginManager, shown: RunView) -> None:
    """Tell `shown`, and no run before it, of the agents of one turn after another; a run that is not live is not told.

    Args:
        plugins: Those of the runner that runs them.
        shown: The turn that begins now.
    """
    watching = plugins.get_plugin(_LIVE_VIEW)
    if isinstance(watching, _Watching):
        watching.shown = shown
    elif shown.is_live:
        plugins.register_plugin(_Watching(shown))


def _where(agent: BaseAgent, context: CallbackContext) -> tuple[str, str | None, str]:
    """Who it is, by the name of the graph's node if it is that node's own; the branch; the node's path."""
    ctx = context.get_invocation_context()
    path = ctx.node.path if ctx.node else ""
    is_node = ctx.node is not None and ctx.node.agent is agent
    return path.rpartition("/")[2].partition("@")[0] if is_node else agent.name, ctx.branch, path
