"""Validate the arguments of a runner and of a run."""

import asyncio
from pathlib import Path
from typing import Any

from adk_nb.errors import ConfigurationError, InputError
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.run_config import RunConfig


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
        ConfigurationError: `run_config` is not a RunConfig or contradicts itself; or `abort_signal` is no Event.
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
        InputError: An id is not text, or `invocation_id` is empty.
    """
    for name, value in (("user_id", user_id), ("session_id", session_id), ("invocation_id", invocation_id or "")):
        if not isinstance(value, str):
            raise InputError(f"{name} must be text, got {value!r:.80}")
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
