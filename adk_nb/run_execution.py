"""One run: a message in, the events of an agent out, and the session as these left it."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.version import version_of
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.lazy_event import lazy_copy
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.models.context_cache_config import ContextCacheConfig
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.runtime.cancellation import Stop
from adk_nb.runtime.first_event import first_event
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
from adk_nb.runtime.resumability_config import ResumabilityConfig
from adk_nb.runtime.resume import idle_reason
from adk_nb.runtime.run_config import RunConfig
from adk_nb.runtime.session_queue import QueuePlace
from adk_nb.runtime.validation import check_ids, check_run_config
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.session import Session
from adk_nb.tools import input_answer

logger = logging.getLogger(__name__)

Message = str | types.Content | list[types.Part]


def _no_state() -> dict[str, Any]:
    return {}


@dataclass(kw_only=True, slots=True)
class RunRequest:
    """What `Runner.run_async` is asked for; the fields that are not explained are its arguments."""

    user_id: str
    session_id: str
    message: Message | None = None
    state_delta: dict[str, Any] = field(default_factory=_no_state)
    run_config: RunConfig
    invocation_id: str = field(default_factory=new_invocation_id)
    """Of the run, unless it resumes another."""
    resumed_id: str | None = None
    """Of the run that is resumed."""
    yield_user_message: bool = False
    abort_signal: asyncio.Event | None = None
    live_request_queue: LiveRequestQueue | None = None
    shared: InvocationShared = field(default_factory=InvocationShared)


@dataclass(kw_only=True, slots=True)
class RunSetup:
    """What answers in a run: the agent, the plugins, and the services and options of a runner."""

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
    request: RunRequest, setup: RunSetup, sessions: OpenSessions, active: dict[str, Stop], place: QueuePlace | None
) -> AsyncGenerator[Event, None]:
    """Answer a request.

    Args:
        request: What is asked.
        setup: What answers.
        sessions: The sessions of the runner.
        active: Invocation id -> what stops it, of the runs of the runner that are under way.
        place: The run's place in the queue of its session. None: runs work side by side.
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
            resumed_id = _note_resumed(ctx, active)
        if place:
            await place.begin(ctx)
        event = first
        events = invoke(ctx, first)
        try:  # what `aclosing` does, at a quarter of its price: each run comes by here
            async for event in events:
                if event is not first or request.yield_user_message:
                    yield event if event.partial else lazy_copy(event)  # the event itself is history
        finally:
            await events.aclose()
        if event is first and ctx.checkpoints:
            logger.warning("invocation %r does not go on: %s", ctx.invocation_id, idle_reason(ctx))
        if ctx.compaction and not stop.reason:
            await ctx.compaction.after_run(ctx)
        await sessions.put_back(session)  # not after an error: what it left half done is not kept
    finally:
        del active[request.invocation_id]
        active.pop(resumed_id, None)


async def _take_session(
    request: RunRequest, setup: RunSetup, sessions: OpenSessions, place: QueuePlace | None
) -> Session | None:
    """The session, for this run to work on. None: the run was stopped while it waited."""
    config = request.run_config
    check_run_config(config, request.abort_signal)
    check_ids(request.user_id, request.session_id, request.resumed_id)
    create = setup.auto_create_session
    find = partial(sessions.take, request.user_id, request.session_id, config.get_session_config, create=create)
    if place is None:
        return await find()
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
    """The event with the message of the user."""
    message, delta, resumed_id = request.message, request.state_delta, request.resumed_id
    metadata = ctx.run_config.custom_metadata
    if metadata and RUN_KEY in metadata and (earlier_id := history_of(ctx.session).run_with_key(metadata[RUN_KEY])):
        message, delta, resumed_id = None, {}, earlier_id
    silent = isinstance(setup.agent, LlmAgent)
    first = await first_event(
        ctx, message, delta, message_is_optional=silent, sticky=setup.sticky_agents, invocation_id=resumed_id
    )
    if ctx.user_content and ctx.calls_answered:
        input_answer.check(ctx.user_content, history_of(ctx.session))
    return first


def _note_resumed(ctx: InvocationContext, active: dict[str, Stop]) -> str:
    """Let an invocation that is resumed be known as under way; its id."""
    if ctx.invocation_id in active:
        raise InputError(f"invocation {ctx.invocation_id!r} is under way; wait for its end, or cancel it")
    active[ctx.invocation_id] = ctx.shared.stop
    return ctx.invocation_id
