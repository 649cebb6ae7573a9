"""The arguments of one run, and their checks."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.runtime.invocation_context import InvocationShared, new_invocation_id
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.base_session_service import refuse_control, strip_id

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

    def check(self) -> None:
        """Check the settings, and the ids before a service stores them.

        Raises:
            ConfigurationError: As `check_run_config`.
            InputError: An id is not text, has a control character, or `resumed_id` is empty.
        """
        check_run_config(self.run_config, self.abort_signal)
        ids: dict[str, Any] = {"user_id": self.user_id, "session_id": self.session_id}
        for name, value in (ids | {"invocation_id": self.resumed_id or ""}).items():
            if not isinstance(value, str):
                raise InputError(f"{name} must be text, got {value!r:.80}")
        refuse_control(user_id=self.user_id, session_id=strip_id(self.session_id))
        if self.resumed_id is not None and not self.resumed_id.strip():
            raise InputError(f"invocation_id={self.resumed_id!r} is empty; leave it out to start a new run")


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
