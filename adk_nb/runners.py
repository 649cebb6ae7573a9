"""The front door: a user's message in, events out."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Self

from adk_nb import sync, workflow
from adk_nb.agents.toolsets import close_toolsets
from adk_nb.apps.app import App, resolve_runner_arguments
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.auth.credential_service.in_memory_credential_service import InMemoryCredentialService
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.run_execution import Message, RunRequest, RunSetup, execute
from adk_nb.runtime import debug_view
from adk_nb.runtime.cancellation import Stop
from adk_nb.runtime.event_lines import event_lines
from adk_nb.runtime.fork import fork
from adk_nb.runtime.invocation_context import RunnableAgent
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.open_sessions import OpenSessions
from adk_nb.runtime.rewind import rewind_event
from adk_nb.runtime.run_config import RunConfig
from adk_nb.runtime.run_handle import RunHandle
from adk_nb.runtime.session_queue import QueuePlace, queues_of
from adk_nb.runtime.validation import check_queue, check_runner_arguments
from adk_nb.sessions.base_session_service import BaseSessionService, strip_id
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.session import Session

DEBUG_USER, DEBUG_SESSION = "debug_user_id", "debug_session_id"
"""Where `run_debug` talks by default. Source: google-adk 2.13."""


class Runner:
    """Runs an app, or an agent under an app's name, for many users. Holds services, never a conversation.

    `async with Runner(...) as runner:` closes it at the end.

    Raises:
        ConfigurationError: No agent or no name is given, or two agents, or two plugins of one name.
    """

    def __init__(
        self,
        *,
        app: App | None = None,
        app_name: str | None = None,
        agent: RunnableAgent | None = None,
        node: Any = None,
        session_service: BaseSessionService,
        artifact_service: BaseArtifactService | None = None,
        memory_service: BaseMemoryService | None = None,
        credential_service: BaseCredentialService | None = None,
        plugins: Sequence[BasePlugin] | None = None,
        plugin_close_timeout: float = 5.0,
        auto_create_session: bool = False,
        sticky_agents: bool = True,
        serialize_sessions: bool = False,
    ) -> None:
        """Give `app`, or `agent` or `node` with `app_name` and `plugins`.

        Args:
            app: The app to run.
            app_name: Beside an app: its sessions are kept under this name instead of its own.
            agent: The agent to run.
            node: A node of a graph to run, or a Workflow. The app's name is the node's, if no other is given.
            session_service: Where conversations are kept.
            artifact_service: Where files are kept. None: nowhere, and saving one is an error.
            memory_service: Where memories are kept. None: nowhere, and asking for one is an error.
            credential_service: Where users' credentials are kept. None: in this runner's memory.
            plugins: Of a runner without an app.
            plugin_close_timeout: Seconds that each plugin and each toolset has when the runner is closed.
            auto_create_session: A missing session is made instead of refused.
            sticky_agents: What the user says next goes to the agent that has taken the conversation over. False: to the
                root, always; but answers go to who asked, and words to who works on a task.
            serialize_sessions: A run on a session that another works on waits for the end of that one: in line, and at
                most `RunConfig.timeout` seconds; stopped while it waits, it ends without an event. False: it gets a
                SessionBusyError from a session service with a journal, and with others the two work side by side.
                Either way a run is part of the run that it is started in: by what that calls (a tool, a callback, a
                node, their tasks and threads), or, between two of its events, by the task that reads them or the thread
                that reads `run`. A run in another task of that reader waits like any other; if the reader awaits it
                there, it gets a SessionBusyError after 15 seconds.
        """
        if node is not None:
            if agent is not None or app is not None:
                raise ConfigurationError("a runner runs one of app, agent and node; leave out the others")
            root: RunnableAgent = node if hasattr(node, "run_async") else workflow.Workflow.of(node)
            agent, app_name = root, app_name or root.name
        self.app = app
        self.app_name, self.agent, plugins = resolve_runner_arguments(app, app_name, agent, plugins)
        check_runner_arguments(self.agent, session_service, artifact_service, memory_service)
        self.session_service = session_service
        self.artifact_service = artifact_service
        self.memory_service = memory_service
        self.credential_service = credential_service or InMemoryCredentialService()
        self.plugin_manager = PluginManager(plugins, plugin_close_timeout)
        self.auto_create_session = auto_create_session
        self.sticky_agents = sticky_agents
        self._run_config = RunConfig()
        """Of the runs that bring none: made once, since it reads the environment."""
        self._compaction = app.compaction() if app else None
        self._sessions = OpenSessions(self.app_name, session_service)
        self._queues = queues_of(session_service)
        self._waits = serialize_sessions
        self._active: dict[str, Stop] = {}
        """Invocation id -> what stops it."""
        self._started: dict[str, RunHandle] = {}
        self._close_timeout = plugin_close_timeout
        self._closed = False

    def __repr__(self) -> str:
        app, agent, sessions = self.app_name, self.agent.name, self.session_service
        return f"{type(self).__name__}(app_name={app!r}, agent={agent!r}, session_service={sessions!r})"

    def run_async(
        self,
        *,
        user_id: str,
        session_id: str,
        new_message: Message | None = None,
        invocation_id: str | None = None,
        state_delta: dict[str, Any] | None = None,
        run_config: RunConfig | None = None,
        yield_user_message: bool = False,
        abort_signal: asyncio.Event | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Answer `new_message` in a session. Nothing is done before the first event is asked for.

        Args:
            user_id: Whose session it is.
            session_id: An existing session's, unless the runner makes missing ones.
            new_message: Words, a content, or parts; function responses stand alone.
            invocation_id: Of a run that was left in its middle, and goes on; in a resumable app, or with a session
                service that has a journal. Agents that had done their work do not work again, and calls without a
                result are made once more: with a journal, what came to its end is not, and of a tool whose `effect` is
                `once`, and which may have run, a person is asked. A message is not needed; a
                function response to a call of that run makes it go on by itself. Nothing comes of a run that is done.
            state_delta: Written to the state together with the message.
            run_config: How the run is to be done.
            yield_user_message: Also yield the event with the message, first.
            abort_signal: Set it to stop the run. What is under way is cancelled, and the run ends, without an error,
                with an INVOCATION_ABORTED event that answers the calls that were left open.

        Yields:
            Events as they happen; each whole one is in the session before it is yielded, partial ones never are.

        Raises:
            SessionNotFoundError: Make the session first, with `session_service.create_session`.
            InvocationNotFoundError: The session has no run of that `invocation_id`.
            InputError: The message cannot be answered; nothing was stored.
            ConfigurationError: The run cannot be as `run_config` says, or is to go on in an app that is not resumable,
                without a journal, or where more than agents with a model are at work; nothing was stored.
            SessionBusyError: Another run works on the session; nothing was stored.
            StaleSessionError: Another took the session over, since this process stood still for too long, or wrote to
                it; what comes after that was not stored.
            LlmCallsLimitExceededError: `RunConfig.max_llm_calls` are used up, and agents want more.
            Exception: What a model raised, or a callback, or a tool whose errors end the run; after its event.
        """
        request = self._request(user_id, session_id, new_message, invocation_id, state_delta, run_config)
        request.yield_user_message, request.abort_signal = yield_user_message, abort_signal
        return self._start_run(request)

    def run_live(
        self,
        *,
        user_id: str,
        session_id: str,
        live_request_queue: LiveRequestQueue,
        run_config: RunConfig | None = None,
        abort_signal: asyncio.Event | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Hold a live conversation, until the queue is closed or the model hangs up.

        Args:
            user_id: Whose session it is.
            session_id: An existing session's, unless the runner makes missing ones.
            live_request_queue: What the user says, at any time.
            run_config: How the conversation is to be held. The answer is sound, unless `response_modalities` says text.
            abort_signal: As in `run_async`.

        Yields:
            Pieces of words and transcripts (`partial=True`) and sound, which the session does not keep; whole words,
            transcripts with `finished`, calls and their results, which it does. What the user sends is kept and not
            yielded.

        Raises:
            SessionNotFoundError: Make the session first, with `session_service.create_session`.
            NotImplementedError: The agent, or its model, holds no live conversations.
            ModelConnectionLost: The connection broke and could not be taken up again.
        """
        check_queue(live_request_queue)
        return self._start_run(
            RunRequest(
                user_id=user_id,
                session_id=session_id,
                run_config=run_config or self._run_config,
                abort_signal=abort_signal,
                live_request_queue=live_request_queue,
            )
        )

    def start(
        self,
        *,
        user_id: str,
        session_id: str,
        new_message: Message | None = None,
        invocation_id: str | None = None,
        state_delta: dict[str, Any] | None = None,
        run_config: RunConfig | None = None,
    ) -> RunHandle:
        """`run_async` in the background, on the caller's event loop, or without one on the package's own.

        What `run_async` would raise comes out of the handle's `events()`.
        """
        request = self._request(user_id, session_id, new_message, invocation_id, state_delta, run_config)
        stop = self._active[request.invocation_id] = request.shared.stop
        self._started = {key: one for key, one in self._started.items() if not one.done}
        handle = RunHandle(request.invocation_id, self._start_run(request), stop)
        self._started[request.invocation_id] = handle
        return handle

    def cancel(self, invocation_id: str) -> bool:
        """Stop a run, from any thread, as `abort_signal` does. False: no such run is under way here."""
        stop = self._active.get(invocation_id)
        if stop:
            stop.request()
        return stop is not None

    def is_active(self, invocation_id: str) -> bool:
        """True from the beginning of a run here until its last event was taken."""
        return invocation_id in self._active

    def _setup(self) -> RunSetup:
        app = self.app
        return RunSetup(
            agent=self.agent,
            session_service=self.session_service,
            artifact_service=self.artifact_service,
            memory_service=self.memory_service,
            credential_service=self.credential_service,
            plugin_manager=self.plugin_manager,
            compaction=self._compaction,
            context_cache_config=app.context_cache_config if app else None,
            resumability_config=app.resumability_config if app else None,
            events_compaction_config=app.events_compaction_config if app else None,
            auto_create_session=self.auto_create_session,
            sticky_agents=self.sticky_agents,
        )

    def _start_run(self, request: RunRequest, setup: RunSetup | None = None) -> AsyncGenerator[Event, None]:
        """Start a run; None: with the runner's own agent and plugins."""
        place = self._queue_place(request)
        events = self._execute(request, setup, place)
        return place.wrap(events) if place else events

    def _request(
        self,
        user_id: str,
        session_id: str,
        message: Message | None,
        resumed_id: str | None,
        state_delta: dict[str, Any] | None,
        run_config: RunConfig | None,
    ) -> RunRequest:
        return RunRequest(
            user_id=user_id,
            session_id=session_id,
            message=message,
            state_delta=state_delta or {},
            run_config=run_config or self._run_config,
            resumed_id=resumed_id,
        )

    def _execute(
        self, request: RunRequest, setup: RunSetup | None, place: QueuePlace | None
    ) -> AsyncGenerator[Event, None]:
        return execute(request, setup or self._setup(), self._sessions, self._active, place)

    def _queue_place(self, request: RunRequest) -> QueuePlace | None:
        """The place of a run in the queue of its session, not taken yet. None: runs work side by side."""
        if not self._waits and not self._queues.journal:
            return None
        session_key = self.app_name, request.user_id, strip_id(request.session_id)
        return QueuePlace(self._queues, session_key, request.shared.stop, waits=self._waits)

    def run(
        self,
        *,
        user_id: str,
        session_id: str,
        new_message: Message | None = None,
        invocation_id: str | None = None,
        state_delta: dict[str, Any] | None = None,
        run_config: RunConfig | None = None,
    ) -> Iterator[Event]:
        """`run_async` for sync code; works in a notebook cell. Sync tools run in the caller's thread."""
        request = self._request(user_id, session_id, new_message, invocation_id, state_delta, run_config)
        place = self._queue_place(request)
        events = self._execute(request, None, place)
        return place.wrap_for_thread(sync.iterate(place.wrap(events))) if place else sync.iterate(events)

    async def look_at(self, user_id: str, session_id: str) -> Session | None:
        """The session as it stands, or None; to be read only, and before the next run changes it.

        After a run of this runner, nothing is read back from where the session is kept.
        """
        return await self._sessions.peek(user_id, session_id)

    async def rewind_async(
        self,
        *,
        user_id: str,
        session_id: str,
        rewind_before_invocation_id: str,
        run_config: RunConfig | None = None,
    ) -> None:
        """Undo an invocation and all that came after it: agents no longer see it, state and files are as before.

        The events stay in the session, with one more that undoes them. What belongs to the user or the app stays as it
        is. A key that the session was created with, and that was first written after, is deleted: no event has its
        first value.

        Args:
            user_id: Whose session it is.
            session_id: The session.
            rewind_before_invocation_id: The `invocation_id` of any event of the invocation.
            run_config: Its `custom_metadata` is put on the event; the whole history is read, whatever it says.

        Raises:
            SessionNotFoundError: There is no such session.
            InvocationNotFoundError: The session has no such invocation.
        """
        session = await self._sessions.take(user_id, session_id)
        mark = await rewind_event(session, rewind_before_invocation_id, self.artifact_service)
        mark.custom_metadata = run_config.custom_metadata if run_config else None
        await self.session_service.append_event(session, mark)

    async def fork_async(
        self, *, user_id: str, session_id: str, new_session_id: str, at_event_id: str | None = None
    ) -> int:
        """Copy a session, with its files, up to an event; it stays as it is. What the user or the app shares is shared.

        Args:
            user_id: Whose session it is.
            session_id: The session.
            new_session_id: The copy's.
            at_event_id: The last event that is copied. None: all are.

        Returns:
            How many events were copied.

        Raises:
            SessionNotFoundError: There is no such session.
            AlreadyExistsError: The user has a session of the new id.
            InputError: The session has no such event.
        """
        session = await self._sessions.take(user_id, session_id)
        services = self.session_service, self.artifact_service
        return await fork(session, *services, session_id=new_session_id, up_to_event_id=at_event_id)

    async def run_debug(
        self,
        user_messages: str | list[str],
        *,
        user_id: str = DEBUG_USER,
        session_id: str = DEBUG_SESSION,
        run_config: RunConfig | None = None,
        quiet: bool = False,
        verbose: bool = False,
    ) -> list[Event]:
        """Say something, or several things one after the other, and print what comes: `author > words`, a line each.

        A notebook that has loaded the magics shows what `%chat` shows, unless there is a `run_config`.

        Args:
            user_messages: What is said.
            user_id: Whose session it is.
            session_id: The session; made if it is not there, gone on with if it is.
            run_config: How the runs are to be done.
            quiet: Print nothing.
            verbose: Also print thoughts, calls, results, code and files.

        Returns:
            All events, the user's own apart.
        """
        session_key: dict[str, Any] = {"user_id": user_id, "session_id": session_id}
        if not await self.session_service.get_session(app_name=self.app_name, **session_key):
            await self.session_service.create_session(app_name=self.app_name, **session_key)
        events: list[Event] = []
        messages = [user_messages] if isinstance(user_messages, str) else user_messages
        view = None if quiet or run_config else debug_view.registered
        if view and (run := view(self, messages, user_id, session_id)):
            return await run
        for message in messages:
            async with aclosing(self.run_async(**session_key, new_message=message, run_config=run_config)) as answers:
                async for event in answers:
                    events.append(event)
                    for line in () if quiet else event_lines(event, verbose=verbose):
                        print(line)  # noqa: T201 - notebooks and tests replace print
        return events

    async def close(self) -> None:
        """Stop what was started, and close the toolsets and the plugins; once. The caller's services stay open.

        Raises:
            PluginError: A plugin raised, or took too long.
        """
        self._sessions.forget()
        for handle in self._started.values():
            await handle.cancel()
        if not self._closed:
            self._closed = True
            await close_toolsets(self.agent, self._close_timeout)
            await self.plugin_manager.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class InMemoryRunner(Runner):
    """A runner whose services live in memory: for tests, lessons, and a first try."""

    def __init__(
        self,
        agent: RunnableAgent | None = None,
        *,
        node: Any = None,
        app_name: str | None = None,
        app: App | None = None,
        plugins: Sequence[BasePlugin] | None = None,
        auto_create_session: bool = False,
        sticky_agents: bool = True,
    ) -> None:
        """`app_name`: the app's own, or `InMemoryRunner`, if none is given."""
        super().__init__(
            app=app,
            app_name=app_name or (None if app else "InMemoryRunner"),
            agent=agent,
            node=node,
            session_service=InMemorySessionService(),
            artifact_service=InMemoryArtifactService(),
            memory_service=InMemoryMemoryService(),
            plugins=plugins,
            auto_create_session=auto_create_session,
            sticky_agents=sticky_agents,
        )


# For the notebook, which runs the agents of cells in a runner's sessions: functions, so that `Runner` has no such name.


def setup_of(runner: Runner) -> RunSetup:
    """The agent, plugins, services and options of a runner's runs."""
    return runner._setup()  # pyright: ignore[reportPrivateUsage]


def run_with(runner: Runner, request: RunRequest, setup: RunSetup) -> AsyncGenerator[Event, None]:
    """`Runner.run_async` with another agent or other plugins, in the runner's sessions."""
    return runner._start_run(request, setup)  # pyright: ignore[reportPrivateUsage]
