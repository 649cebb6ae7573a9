"""A conversation you can hold from a cell, without await."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from copy import copy
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import AlreadyExistsError, ConfigurationError, InputError, PendingError, UserError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.notebook import cut_runs, letting_in, questions
from adk_nb.notebook.chat_state import ChatState
from adk_nb.notebook.decisions import (
    Confirm,
    Decisions,
    answers_to,
    check,
    check_policy,
    how_to_answer,
    notice_of,
    one_of,
    schema_of,
    settled,
    state_of,
)
from adk_nb.notebook.interrupted import in_a_cell, shown_in_brief, waited_for
from adk_nb.notebook.letting_in import ASK, Given
from adk_nb.notebook.reply import Reply, Status, answer_in, outcome
from adk_nb.notebook.view import input_words
from adk_nb.notebook.view.credential_words import way
from adk_nb.notebook.view.display import Mode, show_run
from adk_nb.notebook.view.run_on_show import Clicks, RunOnShow
from adk_nb.notebook.waiting_teams import WaitingTeams
from adk_nb.notebook.watching import watch
from adk_nb.redaction import hidden
from adk_nb.runners import Runner
from adk_nb.runtime import approvals, credentials
from adk_nb.runtime.approvals import Pending
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.sessions import session_file
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.journal import Journal, Run
from adk_nb.sessions.session import Session
from adk_nb.wire import copied

T = TypeVar("T")


class Chat:
    """One user, one session, one agent.

    Args:
        agent: Who answers, or an app with an agent and plugins. Assigning `chat.agent` replaces the agent; the session
            stays.
        session: Its id; made when first needed.
        user_id: Whose session it is.
        app_name: The app it belongs to. None: the app's own, or `notebook`.
        session_service: Where it is kept. None: in this process's memory, for this chat alone.
        artifact_service: Where its files are kept. None: as for the session.
        memory_service: Where its memories are kept. None: as for the session.
        credential_service: Where the user's credentials are kept. None: as for the session.
        show: What is seen while the agent works: `auto`, a live view where a page can show it; `static`, only what a
            saved notebook keeps; `off`, only the reply.
    """

    policy: ClassVar[Confirm] = "ask"
    """What every chat does about approvals in a turn that does not say: `%config AdkNb.confirm`."""

    def __init__(
        self,
        agent: BaseAgent | App,
        *,
        session: str = "main",
        user_id: str = "user",
        app_name: str | None = None,
        session_service: BaseSessionService | None = None,
        artifact_service: BaseArtifactService | None = None,
        memory_service: BaseMemoryService | None = None,
        credential_service: BaseCredentialService | None = None,
        show: Mode = "auto",
    ) -> None:
        if not isinstance(agent, BaseAgent | App):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"Chat takes an agent, and {agent!r:.60} is none; write Chat(Agent(name=...))")
        app = agent if isinstance(agent, App) else None
        self.session_id = session
        self.user_id = user_id
        self.show: Mode = show
        self._service = session_service or InMemorySessionService()
        self._has_app = app is not None
        self._runner = Runner(
            app=app,
            app_name=app_name or (app.name if app else "notebook"),
            agent=None if app else cast(BaseAgent, agent),
            session_service=self._service,
            artifact_service=artifact_service or InMemoryArtifactService(),
            memory_service=memory_service or InMemoryMemoryService(),
            credential_service=credential_service,
            auto_create_session=True,
        )
        self._put(self._runner, self.agent)
        self.on_reply: Callable[[Reply], None] | None = None
        """Called with the reply of each turn, also of one that a click on a card let go on."""
        self.magic: Callable[[], str] = str
        """Returns the `%confirm` that reaches this session, empty if only Python has this chat."""
        self.about: Callable[[], dict[str, Any]] = dict
        """Returns what is noted on the events of a turn that begins."""
        self._task: asyncio.Task[Any] | None = None
        self._stopped = False
        """The turn under way was stopped by `stop()`."""
        self._is_looked_through = not isinstance(self._service, Journal)
        """No run of the session was cut before this chat."""
        self._waiting: dict[str, RunOnShow] = {}
        """Approval id -> the view whose card asks for it."""
        self._teams = WaitingTeams()

    def __repr__(self) -> str:
        return f"Chat(agent={self.agent.name!r}, session={self.session_id!r})"

    @property
    def sticky(self) -> bool:
        """Who has taken the conversation over keeps it. False: `agent` answers, unless a task is talked over."""
        return self._runner.sticky_agents

    @sticky.setter
    def sticky(self, value: bool) -> None:
        self._runner.sticky_agents = value

    @property
    def agent(self) -> BaseAgent:
        """Who answers."""
        return cast(BaseAgent, self._runner.agent)

    @agent.setter
    def agent(self, agent: BaseAgent) -> None:
        self._put(self._runner, agent)

    def _put(self, runner: Runner, agent: BaseAgent) -> None:
        runner.agent = agent
        if not self._has_app:
            runner.app = cut_runs.marking(agent) if isinstance(self._service, Journal) else None

    def has_asked(self, id: str) -> bool:
        """True if what waits under `id` is the question of a team, which goes on here as it was then."""
        return self._teams.of([id]) is not None

    def ask(self, text: str, *, confirm: Confirm | None = None) -> Reply:
        """Say `text` and wait for what comes of it. Sync tools run in this thread; Ctrl-C stops the run.

        Args:
            text: The message.
            confirm: What happens to calls that wait for approval in this turn; left open ("ask"), they wait on. None:
                what `%config AdkNb.confirm` says.

        Returns:
            The reply. `status` says whether it is done, waits for an approval, was stopped, or ended with an error.

        Raises:
            UserError: What the author of the notebook has to mend: a missing key, an open approval, a state key
                that is not there.
        """
        by = f"chat.ask(confirm={confirm!r})" if confirm else "%config AdkNb.confirm"
        check_policy(confirm or self.policy)
        return settled(waited_for(self._turn(text, self._on_show(text))), self.decide, confirm or self.policy, by)

    async def aask(self, text: str) -> Reply:
        """`ask` for a cell that awaits."""
        try:
            return await sync.arun(self._turn(text, self._on_show(text)))
        except asyncio.CancelledError as stopped:
            shown_in_brief(stopped, [])
            raise

    def start(self, text: str) -> "sync.Started[Reply]":
        """`ask` in the background: a handle with `.result()`, `.cancel()` and `.done()`."""
        return sync.start(self._turn(text, self._on_show(text)))

    def approve(self, id: str | int | None = None, *, payload: Any = None, **edits: Any) -> Reply:
        """Let a waiting call run, and wait for what comes of it.

        Args:
            id: Which one: its id, or its place in `pending`, 1 for the first. None: the only one.
            payload: What the tool wants to know beside a yes. None: as it was suggested.
            edits: Arguments to change before it runs.

        Raises:
            InputError: Nothing waits, several do and `id` does not say which, or the changed arguments do not fit.
        """
        if not edits and (asked := questions.node_approval(self.events)) and id in (None, asked.id):
            given = {} if payload is None else {"payload": payload}
            return self.answer({"confirmed": True, **given}, id=asked.id)
        waiting = one_of(self.pending, id, self.session_id)
        args = {**(waiting.call.args or {}), **edits} if edits else None
        decided = ToolConfirmation(confirmed=True, args=args, payload=payload, by="chat.approve()")
        return self.decide({waiting.id: decided})

    def reject(self, id: str | int | None = None, reason: str | None = None) -> Reply:
        """Refuse a waiting call; the agent is told, with the reason, and goes on.

        Raises:
            InputError: Nothing waits, or several do and `id` does not say which.
        """
        if (asked := questions.node_approval(self.events)) and id in (None, asked.id):
            return self.answer({"confirmed": False, "reason": reason}, id=asked.id)
        waiting = one_of(self.pending, id, self.session_id)
        return self.decide({waiting.id: ToolConfirmation(confirmed=False, reason=reason, by="chat.reject()")})

    def decide(self, decisions: Decisions) -> Reply:
        """Answer several approvals at once, and wait for what comes of it.

        Raises:
            InputError: One of them is not open, or its changed arguments do not fit its tool.
        """
        events = self.events
        check(decisions, approvals.pending(events), self._teams.of(decisions) or self.agent, self.magic(), events)
        self._refuse_while_busy()
        outcomes = {key: state_of(decided) for key, decided in decisions.items()}
        said = {key: copied(decided, by=decided.by or "chat.decide()") for key, decided in decisions.items()}
        return self._answered(outcomes, lambda shown: self._go_on(said, shown))

    def _answered(self, outcomes: dict[str, str], go_on: Callable[[RunOnShow], Coroutine[Any, Any, Reply]]) -> Reply:
        """The reply of what goes on after an answer that was typed: the cards it answers, by id, say so."""
        asked_in = [shown for key in outcomes if (shown := self._waiting.pop(key, None))]
        for shown in asked_in:
            shown.answered_elsewhere(outcomes, last=shown not in self._waiting.values())
        try:
            return waited_for(go_on(self._on_show(None)))
        finally:
            self._close_answered(*asked_in)

    def submit_credential(self, given: Given = ASK, *, id: str | int | None = None) -> Reply:
        """Let a tool in that waits for it, and wait for what comes of it.

        Args:
            given: The address that the page led to, a key, a token, `name:password`; or an AuthCredential, or JSON.
                None: the tool is not let in. By default it is typed into a field that does not show it.
            id: Which request: its id, or its place in `reply.credentials`, 1 for the first. None: the oldest.

        Raises:
            InputError: Nothing waits, or it is no answer to what is asked.
        """
        self._refuse_while_busy()
        one = letting_in.one_of(credentials.pending(self.events), id, self.session_id)
        given = letting_in.typed_in(one) if given is ASK else given
        letting_in.response_for(one, given)
        outcomes = {one.id: "refused" if given is None else "given"}
        return self._answered(outcomes, lambda shown: self._let_in(one.id, given, shown))

    def answer(self, value: Any, *, id: str | int | None = None) -> Reply:
        """Answer what an agent asked, or send the outcome of what a long-running tool began; wait for what follows.

        Args:
            value: Text as it would be typed, or JSON. A dict is the whole response, anything else its `result`.
            id: Which call: its id, or its place among all that wait, 1 for the oldest. None: the oldest.

        Raises:
            InputError: Nothing waits, or this does not fit what was asked.
        """
        self._refuse_while_busy()
        return waited_for(self._given(value, id, self._on_show(None)))

    def resume(self) -> Reply:
        """Let the run go on that was cut last, by a kernel that died, and wait for what comes of it.

        Calls that have a result are not made again; of one that was begun, and that may not happen twice, a person is
        asked first.

        Raises:
            InputError: No run of this session was cut.
        """
        self._refuse_while_busy()
        run, _ = sync.run(self._cut())
        return waited_for(self._say(lambda _: None, self._on_show(None), run.id))

    def drop(self) -> None:
        """Leave the run as it is that was cut last: what it left open is told as in doubt, and nothing of it goes on.

        Raises:
            InputError: No run of this session was cut.
        """
        self._refuse_while_busy()
        run, session = sync.run(self._cut())
        sync.run(cut_runs.leave(self._service, session, run))

    async def _cut(self) -> tuple[Run, Session]:
        session = await self._loaded()
        runs = await cut_runs.cut_runs(self._service, session)
        if session is None or not runs:
            raise InputError(f"no run of session {self.session_id!r} was cut; nothing is left to go on with")
        return runs[-1], session

    @property
    def pending(self) -> list[Pending]:
        """The approvals that are open in this session, oldest first."""
        return approvals.pending(self.events)

    @property
    def events(self) -> list[Event]:
        """The session so far, oldest first."""
        session = sync.run(self._loaded())
        return session.events if session else []

    @property
    def state(self) -> ChatState:
        """The session's state; a write becomes an event of its own."""
        return ChatState(self.read_state, self.write_state)

    def read_state(self) -> dict[str, Any]:
        """The state as it stands, in a dict of the caller's own."""
        session = sync.run(self._loaded())
        return session.state if session else {}

    def write_state(self, delta: dict[str, Any]) -> None:
        """Write several keys in one event. `None` is a value; `events.event_actions.DELETED` removes the key."""
        sync.run(self._append(Event(author="user", actions=EventActions(state_delta=delta))))

    def save(self, file: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Save the session to a file that people can read.

        Args:
            file: An earlier save of this session is written over.
            replace: Anything else too.

        Raises:
            InputError: Nothing was said yet, or the file holds something else.
            StorageError: It cannot be written.
        """
        if (session := sync.run(self._loaded())) is None:
            raise InputError(f"nothing was said in session {self.session_id!r} yet; there is nothing to save")
        session_file.write(session, file, replace=replace)

    def load(self, file: str | os.PathLike[str], *, name: str | None = None) -> None:
        """Make a session of a file, and go on in it. Keys that other sessions see too stay as they are here.

        Args:
            file: What `save` has written.
            name: The session's here. None: as in the file.

        Raises:
            InputError: The file holds none, the name cannot be one, or there is a session of that name.
            StorageError: It cannot be read.
        """
        self._refuse_while_busy()
        loaded = session_file.read(file)
        name = session_file.check_name(name or loaded.name)
        key = {"app_name": self._runner.app_name, "user_id": self.user_id, "session_id": name}
        try:
            sync.run(loaded.put(self._service, **key))
        except AlreadyExistsError as error:
            raise InputError(f"{error}, and it stays as it is; write chat.load(..., name='another')") from error
        self.session_id = name

    def run_on_loop(self, coro: Coroutine[Any, Any, T]) -> T:
        """Run `coro` on the loop that runs the agents: where clients and locks for async tools have to be made."""
        return sync.run(coro)

    def stop(self) -> None:
        """Stop the turn that is under way, if one is; its reply says `cancelled`."""
        if (task := self._task) and not self._stopped:  # a second cancellation would cut off the first one's clean-up
            self._stopped = True
            task.get_loop().call_soon_threadsafe(task.cancel)

    def _on_show(self, question: str | None) -> RunOnShow:
        notice = notice_of(self.agent)
        shown = show_run(self.agent, question, notice, lambda tool: schema_of(self.agent, tool), self.show)
        shown.magic = self.magic()
        return shown

    async def _turn(self, text: str, shown: RunOnShow) -> Reply:
        await self._look_for_cut_runs()

        def message(events: list[Event]) -> types.Content:
            return questions.message(text, events, self._teams.of_words(events) or self.agent, self.magic())

        return await self._say(message, shown)

    async def _look_for_cut_runs(self) -> None:
        """Say of one, before anything is said over it."""
        if self._is_looked_through:
            return
        session = await self._loaded()
        runs = await cut_runs.cut_runs(self._service, session)
        if session and runs and not approvals.pending(session.events):
            ways = cut_runs.ways(self.magic())
            raise PendingError(cut_runs.cut_words(runs[-1], session.events, session.id, ways))
        self._is_looked_through = not runs

    async def _given(self, value: Any, which: str | int | None, shown: RunOnShow) -> Reply:
        return await self._say(lambda events: questions.answer(value, events, which, self.session_id), shown)

    async def _go_on(self, decisions: Decisions, shown: RunOnShow) -> Reply:
        def answers(events: list[Event]) -> types.Content:
            waiting = approvals.pending(events)
            check(decisions, waiting, self._teams.of(decisions) or self.agent, self.magic(), events)
            return types.Content(role="user", parts=answers_to(waiting, decisions))

        return await self._say(answers, shown)

    async def _let_in(self, key: str, given: Given, shown: RunOnShow) -> Reply:
        return await self._say(lambda events: letting_in.message(key, given, events, self.session_id), shown)

    async def _say(
        self,
        message_after: Callable[[list[Event]], types.Content | None],
        shown: RunOnShow,
        invocation_id: str | None = None,
    ) -> Reply:
        session = await self._loaded()
        before = session.events if session else []
        message = message_after(before)
        agent = (message and self._teams.of_message(message, before)) or self.agent
        self._refuse_while_busy()
        self._task = task = cast(asyncio.Task[Any], asyncio.current_task())
        self._stopped = False
        ended = partial(self._ended, agent, shown, before)
        shown.begin(session, self._clicks_on(shown))
        try:
            await self._walk(agent, message, shown, invocation_id)
        except asyncio.CancelledError:
            reply = ended("cancelled")
            if not self._stopped:
                raise
            task.uncancel()  # whoever awaits this turn goes on
            return reply
        except UserError as wrong:
            ended("error", str(wrong))
            raise
        except Exception as wrong:
            return ended("error", f"{type(wrong).__name__}: {wrong}{in_a_cell(wrong)}")
        finally:
            self._task = None
            self._teams.note(agent, [*before, *shown.events])
        return ended("done")

    def _refuse_while_busy(self) -> None:
        if self._task and not self._task.done():
            raise InputError(f"session {self.session_id!r} is still answering; wait for it, or stop it: chat.stop()")

    async def _walk(
        self, agent: BaseAgent, message: types.Content | None, shown: RunOnShow, invocation_id: str | None
    ) -> None:
        runner = self._runner
        if agent is not self.agent:
            runner = copy(runner)
            self._put(runner, agent)
        watch(runner.plugin_manager, shown)
        streaming = StreamingMode.SSE if shown.is_live else StreamingMode.NONE
        config = RunConfig(streaming_mode=streaming, custom_metadata=self.about() or None)
        turn = runner.run_async(
            user_id=self.user_id,
            session_id=self.session_id,
            new_message=message,
            invocation_id=invocation_id,
            run_config=config,
            yield_user_message=True,
        )
        async with aclosing(turn) as events:
            async for event in events:
                shown.event(event)

    def _ended(
        self, agent: BaseAgent, shown: RunOnShow, before: list[Event], status: Status, error: str | None = None
    ) -> Reply:
        """What `agent` came to in a turn that followed `before`; its view stays while a card of it can be answered."""
        events = shown.events
        status, error = outcome(events, status, error)
        waiting, asked = approvals.pending([*before, *events]), credentials.pending([*before, *events])
        text, answered_by = answer_in(events)
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
            credentials=asked,
            credential_with=way(self.magic()),
            inputs=inputs,
            input_with=input_words.ways(self.magic()),
            chat=self,
            answer_with=how_to_answer(self.magic(), 1 if len(waiting) > 1 else None),
            error=hidden(error) if error else None,
            notice=shown.notice,
        )
        self._waiting = {one.id: self._waiting.get(one.id, shown) for one in (*waiting, *asked)}
        if self.on_reply:
            self.on_reply(reply)
        shown.end(reply)
        self._close_answered(shown)
        return reply

    def _close_answered(self, *views: RunOnShow) -> None:
        for shown in views:
            if shown not in self._waiting.values():
                shown.close()

    def _clicks_on(self, shown: RunOnShow) -> Clicks:
        """What a card's button does: it goes on, on the loop of all runs, in the context of the cell that asked."""

        def decided(key: str, decision: ToolConfirmation) -> None:
            shown.in_its_cell(lambda: self._go_on_from_click(key, lambda: self._go_on({key: decision}, shown), shown))

        def let_in(key: str, given: str | None) -> None:
            shown.in_its_cell(lambda: self._go_on_from_click(key, lambda: self._let_in(key, given, shown), shown))

        return Clicks(stop=self.stop, decided=decided, let_in=let_in)

    async def _go_on_from_click(
        self, key: str, go_on: Callable[[], Coroutine[Any, Any, Reply]], shown: RunOnShow
    ) -> None:
        while (turn := self._task) and not turn.done():  # two cards clicked one after the other
            await asyncio.wait([turn])
        try:
            await go_on()
        except InputError as wrong:
            shown.ask_again(key, str(wrong))

    async def _loaded(self) -> Session | None:
        return await self._service.get_session(
            app_name=self._runner.app_name, user_id=self.user_id, session_id=self.session_id
        )

    async def _append(self, event: Event) -> None:
        session = await self._loaded() or await self._service.create_session(
            app_name=self._runner.app_name, user_id=self.user_id, session_id=self.session_id
        )
        await self._service.append_event(session, event)
