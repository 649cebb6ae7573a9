"""An agent for callers from outside: runs of it, each in a task of its own, and the sessions they are in."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from typing import Any

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.errors import InputError
from adk_nb.events.event import Event, as_content
from adk_nb.events.event_actions import ESCALATED
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.models.llm_response import (
    ESCALATE,
    EXIT_FLOW,
    HITL_REQUEST,
    MODEL_NOTE,
    WAIT_FOR_USER_INPUT,
    WRITTEN_AS_TEXT,
)
from adk_nb.runners import Runner
from adk_nb.runtime.calls import NOT_RUN, RAN_WITH, SAME_CALL
from adk_nb.runtime.history import RESTORED, SENT_BY
from adk_nb.runtime.live_request_queue import LiveRequest, LiveRequestQueue
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.runtime.trace import Trace, Traces
from adk_nb.sessions.base_session_service import BaseSessionService, GetSessionConfig, refuse_control, strip_id
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.session import Session
from adk_nb.wire import copy_model

CLIENT = "client"
"""The name of a caller whose protocol has no other."""
_RESERVED = {
    "agent_version", "agent_versions", "calls", "defined_as", "definition_changed", "failed_at", "nested_usage",
    "repeated", "replayed", "shown", "spoken_to", "traceparent", RESTORED, SENT_BY,
    ESCALATE, ESCALATED, EXIT_FLOW, HITL_REQUEST, MODEL_NOTE, NOT_RUN, RAN_WITH, SAME_CALL,
    WAIT_FOR_USER_INPUT, WRITTEN_AS_TEXT,
}  # fmt: skip
"""Keys of metadata that this package writes to events, and acts on."""
_RESERVED_PREFIXES = ("a2a", "adk")


def refuse_reserved(metadata: Mapping[str, Any], what: str) -> None:
    """Refuse metadata of a client that would steer a run, a remote agent or the notebook.

    Raises:
        InputError: A key is of this package.
    """
    for key in metadata:
        if key.casefold() in _RESERVED or key.casefold().startswith(_RESERVED_PREFIXES):
            raise InputError(f"the customMetadata of {what} has the reserved key {key!r:.60}; leave it out")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One run that somebody asks for; fields without a docstring are arguments of `Runner.run_async`."""

    user_id: str
    session_id: str
    message: types.Content | None = None
    state_delta: dict[str, Any] = field(default_factory=dict[str, Any])
    invocation_id: str | None = None
    custom_metadata: dict[str, Any] | None = None
    streaming: bool = True
    """The client wants partial text."""
    client: str = ""
    """The kind of client, for the notebook that shows the chat; empty: unknown."""
    creates_session: bool = True
    """A missing session is created. False: it is an error."""
    live_requests: LiveRequestQueue | None = None
    """The input of a live conversation. None: it is none."""
    run_config: RunConfig = field(default_factory=RunConfig)
    """More settings, of a live conversation."""


class AgentService:
    """A runner, under the name by which clients call its agent.

    Args:
        runner: Runs the agent and has the services.
        name: By default the name of its agent.
        traces: Gets the traces of its runs, if the runner records them itself. None: they are recorded here.
        task_runner: Runs tasks that outlive a pause, as those of A2A. None: `runner`.
        refuse_answer: Raises if a client may not give the answers in a message of a live conversation. Its arguments
            are the user, the session and the message. None: a client answers all.
    """

    def __init__(
        self,
        runner: Runner,
        name: str | None = None,
        traces: Traces | None = None,
        task_runner: Runner | None = None,
        refuse_answer: Callable[[str, str, types.Content], Awaitable[None]] | None = None,
    ) -> None:
        self.runner = runner
        self.task_runner = task_runner or runner
        self.name = name or runner.agent.name
        self.traces = traces or Traces()
        self._records = traces is None
        self._refuse_answer = refuse_answer
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def agent(self) -> Any:
        """The agent as it is now."""
        return self.runner.agent

    def key(self, user_id: str, session_id: str) -> dict[str, Any]:
        """The arguments of the services for a session.

        Raises:
            InputError: An id has a control character.
        """
        refuse_control(user_id=user_id, session_id=strip_id(session_id))
        return {"app_name": self.runner.app_name, "user_id": user_id, "session_id": session_id}

    async def session(self, user_id: str, session_id: str) -> Session | None:
        """The caller's copy of a session; None if there is none."""
        return await self.runner.session_service.get_session(**self.key(user_id, session_id))

    async def has_session(self, user_id: str, session_id: str) -> bool:
        """True if there is the session. Its events are not loaded."""
        no_events = GetSessionConfig(num_recent_events=0)
        return bool(await self.runner.session_service.get_session(**self.key(user_id, session_id), config=no_events))

    async def say(self, call: Call, request: LiveRequest) -> None:
        """Put what a client says into its live conversation.

        Raises:
            InputError: Its message calls functions.
            PendingError: It answers what others answer.
        """
        assert call.live_requests
        if request.content:
            message = as_content(request.content)
            if any(part.function_call for part in message.parts or ()):
                raise InputError("a user's message cannot call functions; only a model's answer does")
            if self._refuse_answer and any(part.function_response for part in message.parts or ()):
                await self._refuse_answer(call.user_id, call.session_id, message)
            request = copy_model(request, content=message)
        call.live_requests.send(request)

    async def events(self, call: Call) -> AsyncGenerator[Event, None]:
        """Run, and yield the user's message and all events that answer it.

        Closing this stops the run: it stores an event that closes its open calls, and ends in the background.
        Raises as `Runner.run_async`, before the first event if nothing was stored.
        """
        if call.creates_session and not await self.has_session(call.user_id, call.session_id):
            await self.runner.session_service.create_session(**self.key(call.user_id, call.session_id))
        stop = asyncio.Event()
        feed: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(self._run(call, stop, feed), name="adk-nb-served-run")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while (event := await feed.get()) is not None:
                yield event
            await task
        finally:
            stop.set()
            task.add_done_callback(_retrieve)

    async def _run(self, call: Call, stop: asyncio.Event, feed: asyncio.Queue[Event | None]) -> None:
        trace = Trace()
        recording = trace.active() if self._records else nullcontext()
        metadata = {**(call.custom_metadata or {}), SENT_BY: call.client or CLIENT}
        mode = StreamingMode.SSE if call.streaming else StreamingMode.NONE
        config = copy_model(call.run_config, streaming_mode=mode, custom_metadata=metadata or None)
        of_session: dict[str, Any] = {"user_id": call.user_id, "session_id": call.session_id}
        if call.live_requests:
            run = self.runner.run_live(
                **of_session, live_request_queue=call.live_requests, run_config=config, abort_signal=stop
            )
        else:
            run = self.runner.run_async(
                **of_session,
                new_message=call.message,
                invocation_id=call.invocation_id,
                state_delta=call.state_delta,
                run_config=config,
                yield_user_message=True,
                abort_signal=stop,
            )
        try:
            with recording:
                async with aclosing(run) as events:
                    async for event in events:
                        if self._records:
                            self.traces.add(event.invocation_id, trace)
                        feed.put_nowait(event)
        finally:
            feed.put_nowait(None)

    async def close(self, seconds: float) -> None:
        """Cancel the runs under way, and wait up to `seconds` for them."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)


def new_runner(source: App | BaseAgent, session_service: BaseSessionService | None = None) -> Runner:
    """A runner for an app or an agent, in which runs of a session wait for each other; memory is the default store."""
    app = source if isinstance(source, App) else None
    return Runner(
        app=app,
        app_name=None if app else source.name,
        agent=None if app else source,  # pyright: ignore[reportArgumentType] - a BaseAgent where there is no app
        session_service=session_service or InMemorySessionService(),
        artifact_service=InMemoryArtifactService(),
        memory_service=InMemoryMemoryService(),
    )


def _retrieve(task: asyncio.Task[None]) -> None:
    """Read the error of a run whose client is gone, else asyncio logs it; the session has it already."""
    if not task.cancelled():
        task.exception()
