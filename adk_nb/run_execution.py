"""One run: take the session, store the message, run the agent, and put the session back."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.version import version_of
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events.event import Event
from adk_nb.events.lazy_event import lazy_copy
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.models.cache_metadata import ContextCacheConfig
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.runtime.cancellation import Stop
from adk_nb.runtime.first_event import first_event, idle_reason
from adk_nb.runtime.history import RUN_KEY, history_of
from adk_nb.runtime.invocation_context import (
    Compactor,
    InvocationContext,
    InvocationShared,
    RunnableAgent,
    new_invocation_id,
)
from adk_nb.runtime.invoke import invoke
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.open_sessions import OpenSessions
from adk_nb.runtime.run_config import ResumabilityConfig, RunConfig
from adk_nb.runtime.session_queue import QueuePlace
from adk_nb.sessions.base_session_service import BaseSessionService, refuse_control, strip_id
from adk_nb.sessions.session import Session
from adk_nb.tools import input_answer

logger = logging.getLogger(__name__)

Message = str | types.Content | list[types.Part]


@dataclass(kw_only=True, slots=True)
class RunRequest:
    """The arguments of one run; fields without a docstring are those of `Runner.run_async` and `Runner.run_live`."""

    user_id: str
    session_id: str
    message: Message | None = None
    state_delta: dict[str, Any] = field(default_factory=dict[str, Any])
    run_config: RunConfig
    invocation_id: str = field(default_factory=new_invocation_id)
    """Id of the new run; unused if the run resumes another."""
    resumed_id: str | None = None
    """Id of the run to resume. None: a new run."""
    yield_user_message: bool = False
    abort_signal: asyncio.Event | None = None
    live_request_queue: LiveRequestQueue | None = None
    shared: InvocationShared = field(default_factory=InvocationShared)


@dataclass(kw_only=True, slots=True)
class RunSetup:
    """The agent, plugins, services and options of a run."""

    agent: RunnableAgent
    session_service: BaseSessionService
    artifact_service: BaseArtifactService | None
    memory_service: BaseMemoryService | None
    credential_service: BaseCredentialService
    plugin_manager: PluginManager
    compaction: Compactor | None
    context_cache_config: ContextCacheConfig | None
    resumability_config: ResumabilityConfig | None
    events_compaction_config: Any
    auto_create_session: bool
    sticky_agents: bool


async def execute(
    request: RunRequest, setup: RunSetup, sessions: OpenSessions, active: dict[str, Stop], place: QueuePlace
) -> AsyncGenerator[Event, None]:
    """Run the agent of `setup` on a request, and yield its events.

    Args:
        request: The arguments of the run.
        setup: The agent and its services.
        sessions: The sessions of the runner.
        active: Invocation id -> stop signal, for the active runs of the runner.
        place: The run's place in the queue of its session.
    """
    stop = active[request.invocation_id] = request.shared.stop
    resumed_id = ""
    try:
        session = await _take_session(request, setup, sessions, place)
        if session is None:
            return
        ctx = _new_context(request, setup, session)
        first = await _first_event(ctx, request, setup)
        if ctx.checkpoints:
            resumed_id = _register_resumed(ctx, active)
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
        await sessions.put_back(session)  # not after an error: a failed run may leave a partial change
    finally:
        del active[request.invocation_id]
        active.pop(resumed_id, None)


async def _take_session(
    request: RunRequest, setup: RunSetup, sessions: OpenSessions, place: QueuePlace
) -> Session | None:
    """The session for this run. None: the run was stopped while it waited."""
    config = request.run_config
    check_run_config(config, request.abort_signal)
    check_ids(request.user_id, request.session_id, request.resumed_id)
    create = setup.auto_create_session
    find = partial(sessions.take, request.user_id, request.session_id, config.get_session_config, create=create)
    version = version_of(setup.agent) if place.has_journal else ""
    run_id = request.resumed_id or request.invocation_id
    return await place.take(find, run_id, version, request.abort_signal, config.timeout)


def _new_context(request: RunRequest, setup: RunSetup, session: Session) -> InvocationContext:
    return InvocationContext(
        agent=setup.agent,
        session=session,
        session_service=setup.session_service,
        artifact_service=setup.artifact_service,
        memory_service=setup.memory_service,
        credential_service=setup.credential_service,
        plugin_manager=setup.plugin_manager,
        compaction=setup.compaction,
        context_cache_config=setup.context_cache_config,
        resumability_config=setup.resumability_config,
        events_compaction_config=setup.events_compaction_config,
        run_config=request.run_config,
        invocation_id=request.invocation_id,
        abort_signal=request.abort_signal,
        shared=request.shared,
        live_request_queue=request.live_request_queue,
    )


async def _first_event(ctx: InvocationContext, request: RunRequest, setup: RunSetup) -> Event | None:
    """The event with the user's message; the run of an earlier request with the same key is resumed instead."""
    message, delta, resumed_id = request.message, request.state_delta, request.resumed_id
    metadata = ctx.run_config.custom_metadata
    if metadata and RUN_KEY in metadata and (earlier_id := history_of(ctx.session).run_with_key(metadata[RUN_KEY])):
        message, delta, resumed_id = None, {}, earlier_id
    first = await first_event(
        ctx,
        message,
        delta,
        message_is_optional=isinstance(setup.agent, LlmAgent),
        sticky=setup.sticky_agents,
        invocation_id=resumed_id,
    )
    if ctx.user_content and ctx.calls_answered:
        input_answer.check(ctx.user_content, history_of(ctx.session))
    return first


def _register_resumed(ctx: InvocationContext, active: dict[str, Stop]) -> str:
    """Register the resumed invocation as active, and return its id."""
    if ctx.invocation_id in active:
        raise InputError(f"invocation {ctx.invocation_id!r} is running; wait for its end, or cancel it")
    active[ctx.invocation_id] = ctx.shared.stop
    return ctx.invocation_id


def check_runner_arguments(agent: Any, *services: Any) -> None:
    """Check the arguments of `Runner`.

    Raises:
        ConfigurationError: `agent` is not an agent, or a class or a name is passed instead of an instance.
    """
    for argument in (agent, *services):
        if isinstance(argument, type):
            raise ConfigurationError(
                f"a runner takes instances, not the class {argument.__name__}; write {argument.__name__}(...)"
            )
    if name := next((argument for argument in services if isinstance(argument, str | Path)), None):
        raise ConfigurationError(
            f"a runner takes service objects, not the path {name!r:.80}; for sessions in a file write "
            "session_service=SqliteSessionService('nb.db')"
        )
    if not hasattr(agent, "run_async"):
        raise ConfigurationError(f"{agent!r:.80} is not an agent; write Runner(agent=LlmAgent(...))")
    if getattr(agent, "mode", None) == "single_turn":
        raise ConfigurationError(
            f"agent {agent.name!r} has mode='single_turn', which works only as a sub-agent; "
            f"write Runner(agent=LlmAgent(..., sub_agents=[{agent.name}])), or leave out the mode"
        )


def check_run_config(run_config: Any, abort_signal: Any) -> None:
    """Check the settings of a run.

    Raises:
        ConfigurationError: `run_config` is not a RunConfig, or contradicts itself; `abort_signal` is not an Event.
    """
    if not isinstance(run_config, RunConfig):
        raise ConfigurationError(f"run_config must be a RunConfig, got {run_config!r:.80}; write RunConfig(...)")
    if run_config.support_cfc and not run_config.streams:
        raise ConfigurationError("support_cfc=True requires streaming; write streaming_mode=StreamingMode.SSE")
    if abort_signal is not None and not isinstance(abort_signal, asyncio.Event):
        raise ConfigurationError(
            f"abort_signal must be an asyncio.Event, got {abort_signal!r:.80}; "
            "from another thread, stop a run with runner.cancel(invocation_id)"
        )


def check_ids(user_id: Any, session_id: Any, invocation_id: Any) -> None:
    """Check ids before a service stores them.

    Raises:
        InputError: An id is not text, has a control character, or `invocation_id` is empty.
    """
    for name, value in (("user_id", user_id), ("session_id", session_id), ("invocation_id", invocation_id or "")):
        if not isinstance(value, str):
            raise InputError(f"{name} must be text, got {value!r:.80}")
    refuse_control(user_id=user_id, session_id=strip_id(session_id))
    if invocation_id is not None and not str(invocation_id).strip():
        raise InputError(f"invocation_id={invocation_id!r} is empty; leave it out to start a new run")


def check_queue(live_request_queue: Any) -> None:
    """Check the queue of a live conversation.

    Raises:
        ConfigurationError: It is not a `LiveRequestQueue`.
    """
    if not isinstance(live_request_queue, LiveRequestQueue):
        raise ConfigurationError(
            f"live_request_queue must be a LiveRequestQueue, got {live_request_queue!r:.80}; "
            "write live_request_queue=LiveRequestQueue()"
        )
