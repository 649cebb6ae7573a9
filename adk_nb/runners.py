"""Runner: run an agent or an app on a user's message and yield its events."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Self

from adk_nb import runtime, sync, workflow
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.tree import close_toolsets, version_of
from adk_nb.apps.app import App, resolve_runner_arguments
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.auth.credential_service.in_memory_credential_service import InMemoryCredentialService
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events.event import Event
from adk_nb.events.lazy_event import lazy_copy
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.runtime.cancellation import RunHandle, Stop
from adk_nb.runtime.debug_output import event_lines
from adk_nb.runtime.first_event import (
    Message,
    RunRequest,
    check_queue,
    check_runner_arguments,
    first_event,
    idle_reason,
)
from adk_nb.runtime.history import RUN_KEY, history_of
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.invoke import invoke
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.open_sessions import OpenSessions
from adk_nb.runtime.rewind import fork, rewind_event
from adk_nb.runtime.run_config import RunConfig
from adk_nb.runtime.session_queue import QueuePlace, queues_of
from adk_nb.sessions.base_session_service import BaseSessionService, refuse_control, strip_id
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.session import Session
from adk_nb.tools import input_answer

logger = logging.getLogger(__name__)

DEBUG_USER, DEBUG_SESSION = "debug_user_id", "debug_session_id"
"""User and session of `run_debug` by default. Source: google-adk 2.13."""


class Runner:
    """Runs an app, or an agent under an app name, for many users. It has services, and no conversation of its own.

    `async with Runner(...) as runner:` closes it at the end.

    One run at a time works on a session, whatever stores it: of runs that are started at once, as by `asyncio.gather`,
    each begins with what the one before it has stored. By default the others wait their turn, see
    `serialize_sessions`. A nested run does not wait for its outer run: one that a tool, a callback or a node starts,
    also in their tasks and threads, or one that the reader of the outer run's events starts between two events. A run
    that the reader awaits in another task raises SessionBusyError after 15 seconds.

    Raises:
        ConfigurationError: The agent or the app name is missing, two of `app`, `agent` and `node` are given, or two
            plugins have one name.
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
        serialize_sessions: bool = True,
    ) -> None:
        """Pass `app`; or pass `agent` or `node`, with `app_name` and `plugins`.

        Args:
            app: The app to run.
            app_name: With an app: the name its sessions are stored under, instead of its own.
            agent: The agent to run.
            node: A node of a graph or a Workflow to run. `app_name` is its name by default.
            session_service: Stores the sessions.
            artifact_service: Stores files. None: saving a file is an error.
            memory_service: Stores memories. None: a search is an error.
            credential_service: Stores users' credentials. None: in this runner's memory.
            plugins: Plugins of a runner without an app.
            plugin_close_timeout: Seconds that each plugin and each toolset gets to close.
            auto_create_session: Create a missing session instead of refusing the message.
            sticky_agents: The agent that took over the conversation gets the next message. False: the root agent gets
                it. An answer to an interrupt always goes to the agent that raised it, and a message during a task to
                the agent with the task.
            serialize_sessions: Runs of one session wait for each other, first come first served, up to
                `RunConfig.timeout` seconds; a run that is stopped while it waits ends without an event. False: the
                second run raises SessionBusyError, and nothing of it is stored.
        """
        if node is not None:
            if agent is not None or app is not None:
                raise ConfigurationError("a runner runs one of app, agent and node; leave out the others")
            root: RunnableAgent = node if hasattr(node, "run_async") else workflow.Workflow.of(node)
            agent, app_name = root, app_name or root.name
        self.app = app
        self.app_name, self.agent, plugins = resolve_runner_arguments(app, app_name, agent, plugins)
        check_runner_arguments(self.agent, session_service, artifact_service, memory_service)
        refuse_control(app_name=self.app_name)
        self.session_service = session_service
        self.artifact_service = artifact_service
        self.memory_service = memory_service
        self.credential_service = credential_service or InMemoryCredentialService()
        self.plugin_manager = PluginManager(plugins, plugin_close_timeout)
        self.context_cache_config = app.context_cache_config if app else None
        self.resumability_config = app.resumability_config if app else None
        self.auto_create_session = auto_create_session
        self.sticky_agents = sticky_agents
        self._run_config = RunConfig()
        """Default settings of a run; created once, because the constructor reads the environment."""
        self._compaction = app.compaction() if app else None
        self._sessions = OpenSessions(self.app_name, session_service)
        self._queues = queues_of(session_service)
        self._serializes = serialize_sessions
        self._active: dict[str, Stop] = {}
        """Invocation id -> stop signal, of the active runs."""
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
        """Answer `new_message` in a session. The run starts when the first event is requested.

        Args:
            user_id: Owner of the session.
            session_id: An existing session, unless the runner has `auto_create_session`.
            new_message: Text, a content, or parts. Function responses cannot be mixed with other parts.
            invocation_id: Resume this interrupted run; needs a resumable app, or a session service with a journal.
                Agents that had finished do not run again, and calls without a result are repeated: with a journal only
                calls that did not finish, after an approval if the tool has `effect="once"` and may have run. Needs no
                message; a function response to a call of the run resumes it without this argument. A finished run
                yields nothing.
            state_delta: Changes of the state, stored with the message.
            run_config: Settings of the run.
            yield_user_message: Yield the event with the message, too, first.
            abort_signal: Set it to stop the run: current work is cancelled, and the run ends without an error, with an
                INVOCATION_ABORTED event that closes the open calls.

        Yields:
            Events. A complete event is stored before it is yielded; a partial one is not stored.

        Raises:
            SessionNotFoundError: Create the session first, with `session_service.create_session`.
            InvocationNotFoundError: The session has no run with this `invocation_id`.
            InputError: The message is not valid; nothing was stored.
            ConfigurationError: `run_config` does not fit the agent; or the run cannot be resumed, because the app is
                not resumable and there is no journal, or because an agent of the run is not an LlmAgent. Nothing was
                stored.
            SessionBusyError: Another run uses the session, and this one does not wait, or has waited for its timeout;
                nothing was stored.
            StaleSessionError: Another process took over or changed the session; later events were not stored.
            LlmCallsLimitExceededError: The run needs more than `RunConfig.max_llm_calls`.
            Exception: The error of a model, a callback, or a tool whose errors end the run; after its event.
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
        yield_user_message: bool = False,
        abort_signal: asyncio.Event | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Hold a live conversation, until the queue or the model closes it.

        Args:
            user_id: Owner of the session.
            session_id: An existing session, unless the runner has `auto_create_session`.
            live_request_queue: The user's input, which may come at any time.
            run_config: Settings of the run. The answer is audio, unless `response_modalities` contains text.
            yield_user_message: Yield the user's messages, too; their audio never.
            abort_signal: As in `run_async`.

        Yields:
            Partial text and transcripts (`partial=True`) and audio, which are not stored; complete text, transcripts
            with `finished`, calls and results, which are stored. The user's input is stored.

        Raises:
            SessionNotFoundError: Create the session first, with `session_service.create_session`.
            NotImplementedError: The agent or its model has no live conversations.
            ModelConnectionLost: The connection broke and could not be restored.
        """
        check_queue(live_request_queue)
        return self._start_run(
            RunRequest(
                user_id=user_id,
                session_id=session_id,
                run_config=run_config or self._run_config,
                yield_user_message=yield_user_message,
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
        """`run_async` in the background: on the caller's event loop, if there is one, else on the package's own.

        The handle's `events()` raises as `run_async` does.
        """
        request = self._request(user_id, session_id, new_message, invocation_id, state_delta, run_config)
        stop = self._active[request.invocation_id] = request.shared.stop
        self._started = {key: handle for key, handle in self._started.items() if not handle.done}
        handle = RunHandle(request.invocation_id, self._start_run(request), stop)
        self._started[request.invocation_id] = handle
        return handle

    def cancel(self, invocation_id: str) -> bool:
        """Stop a run, from any thread, as `abort_signal` does. False: this runner has no active run with that id."""
        stop = self._active.get(invocation_id)
        if stop:
            stop.request()
        return stop is not None

    def is_active(self, invocation_id: str) -> bool:
        """True from the start of a run of this runner until its last event was read."""
        return invocation_id in self._active

    def _start_run(self, request: RunRequest) -> AsyncGenerator[Event, None]:
        place = self._queue_place(request)
        return place.wrap(self._run(request, place))

    async def _run(self, request: RunRequest, place: QueuePlace) -> AsyncGenerator[Event, None]:
        """One run: take the session, store the message, run the agent, and put the session back.

        `place`: the run's place in the queue of its session.
        """
        agent, config, resumed_id = self.agent, request.run_config, request.resumed_id
        stop = self._active[request.invocation_id] = request.shared.stop
        active_ids = [request.invocation_id]
        try:
            request.check()
            load = partial(
                self._sessions.take,
                request.user_id,
                request.session_id,
                config.get_session_config,
                create=self.auto_create_session,
            )
            version = version_of(agent) if place.has_journal else ""
            run_id = resumed_id or request.invocation_id
            session = await place.take(load, run_id, version, request.abort_signal, config.timeout)
            if session is None:  # stopped while it waited
                return
            ctx = InvocationContext(
                agent=agent,
                session=session,
                session_service=self.session_service,
                artifact_service=self.artifact_service,
                memory_service=self.memory_service,
                credential_service=self.credential_service,
                plugin_manager=self.plugin_manager,
                compaction=self._compaction,
                events_compaction_config=self.app.events_compaction_config if self.app else None,
                context_cache_config=self.context_cache_config,
                resumability_config=self.resumability_config,
                run_config=config,
                invocation_id=request.invocation_id,
                abort_signal=request.abort_signal,
                shared=request.shared,
                live_request_queue=request.live_request_queue,
                yields_input=request.yield_user_message,
            )
            message, delta, key = request.message, request.state_delta, (config.custom_metadata or {}).get(RUN_KEY)
            # An earlier request with the same key: its run is resumed instead.
            if key is not None and (earlier_id := history_of(session).run_with_key(key)):
                message, delta, resumed_id = None, {}, earlier_id
            request.shared.is_continued = message is None and resumed_id is not None
            first = await first_event(
                ctx,
                message,
                delta,
                message_is_optional=isinstance(agent, LlmAgent),
                sticky=self.sticky_agents,
                invocation_id=resumed_id,
            )
            if ctx.user_content and ctx.calls_answered:
                input_answer.check(ctx.user_content, history_of(session))
            if ctx.checkpoints:
                if ctx.invocation_id in self._active:
                    raise InputError(f"invocation {ctx.invocation_id!r} is running; wait for its end, or cancel it")
                self._active[ctx.invocation_id] = stop
                active_ids.append(ctx.invocation_id)
            await place.begin(ctx)
            event = first
            events = invoke(ctx, first)
            try:  # `contextlib.aclosing` costs four times as much
                async for event in events:
                    if event is not first or request.yield_user_message:
                        yield event if event.partial else lazy_copy(event)  # the session keeps the event itself
            finally:
                await events.aclose()
            if event is first and ctx.checkpoints:
                logger.warning("invocation %r was not resumed: %s", ctx.invocation_id, idle_reason(ctx))
            if ctx.compaction and not stop.reason:
                await ctx.compaction.after_run(ctx)
            await self._sessions.put_back(session)  # not after an error: a failed run may leave a partial change
        finally:
            for active_id in active_ids:
                del self._active[active_id]

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

    def _queue_place(self, request: RunRequest) -> QueuePlace:
        """A place in the queue of the session, not entered yet."""
        session_key = self.app_name, request.user_id, strip_id(request.session_id)
        return QueuePlace(self._queues, session_key, request.shared.stop, waits=self._serializes)

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
        return place.wrap_for_thread(sync.iterate(place.wrap(self._run(request, place))))

    async def _current_session(self, user_id: str, session_id: str) -> Session | None:
        return await self._sessions.peek(user_id, session_id)

    async def rewind_async(
        self,
        *,
        user_id: str,
        session_id: str,
        rewind_before_invocation_id: str,
        run_config: RunConfig | None = None,
    ) -> None:
        """Undo an invocation and everything after it: agents no longer see it, and state and files are restored.

        The events stay in the session, and an event that undoes them is added. State and files of the user and the app
        (prefixes `user:` and `app:`) do not change. A key of the session's initial state that was changed later is
        deleted, because no event has its first value.

        Args:
            user_id: Owner of the session.
            session_id: The session.
            rewind_before_invocation_id: The `invocation_id` of any event of the invocation.
            run_config: Its `custom_metadata` is stored with the event; its `get_session_config` is ignored.

        Raises:
            SessionNotFoundError: There is no such session.
            InvocationNotFoundError: The session has no such invocation.
        """
        session = await self._sessions.take(user_id, session_id)
        event = await rewind_event(session, rewind_before_invocation_id, self.artifact_service)
        event.custom_metadata = run_config.custom_metadata if run_config else None
        await self.session_service.append_event(session, event)

    async def fork_async(
        self, *, user_id: str, session_id: str, new_session_id: str, at_event_id: str | None = None
    ) -> int:
        """Copy a session and its files up to an event. Both sessions share the state and files of the user and the app.

        Args:
            user_id: Owner of the session.
            session_id: The session; it does not change.
            new_session_id: Id of the copy.
            at_event_id: The last event to copy. None: copy all.

        Returns:
            Number of copied events.

        Raises:
            SessionNotFoundError: There is no such session.
            AlreadyExistsError: The user has a session with the new id.
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
        """Send one or more messages, and print each answer as a line `author > text`.

        A notebook that has loaded the magics renders the run as `%chat` does, unless there is a `run_config`.

        Args:
            user_messages: The messages, in order.
            user_id: Owner of the session.
            session_id: The session; created if it does not exist.
            run_config: Settings of the runs.
            quiet: Print nothing.
            verbose: Also print thoughts, calls, results, code and files.

        Returns:
            All events but those of the user's messages.
        """
        session_key: dict[str, Any] = {"user_id": user_id, "session_id": session_id}
        if not await self.session_service.get_session(app_name=self.app_name, **session_key):
            await self.session_service.create_session(app_name=self.app_name, **session_key)
        events: list[Event] = []
        messages = [user_messages] if isinstance(user_messages, str) else user_messages
        view = None if quiet or run_config else runtime.debug_view
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
        """Stop the runs of `start`, and close the toolsets and the plugins, once. The services stay open.

        Raises:
            PluginError: A plugin raised, or exceeded `plugin_close_timeout`.
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
    """A runner with services in memory, for tests and tutorials."""

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
        """As `Runner`. `app_name`: by default the app's, without an app `InMemoryRunner`."""
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


async def current_session(runner: Runner, user_id: str, session_id: str) -> Session | None:
    """The session as the next run will use it, or None if there is none; only for reading.

    After a run of this runner the session service is not read again.
    """
    return await runner._current_session(user_id, session_id)  # pyright: ignore[reportPrivateUsage]
