"""Validation of a runner's arguments, before anything happens."""

import asyncio
from pathlib import Path
from typing import Any

from adk_nb.errors import ConfigurationError, InputError
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.run_config import RunConfig


def check_runner_arguments(agent: Any, *services: Any) -> None:
    """Refuse an agent that is none, and a class where an instance belongs.

    Raises:
        ConfigurationError: One of them cannot be used.
    """
    for one in (agent, *services):
        if isinstance(one, type):
            raise ConfigurationError(f"a runner takes no class, and {one.__name__} is one; write {one.__name__}(...)")
    if named := next((one for one in services if isinstance(one, str | Path)), None):
        raise ConfigurationError(
            f"a runner takes services themselves, and {named!r:.80} is the name of one; for sessions in a file write "
            "session_service=SqliteSessionService('nb.db')"
        )
    if not hasattr(agent, "run_async"):
        raise ConfigurationError(f"a runner runs agents, and {agent!r:.80} is none; write Runner(agent=LlmAgent(...))")
    if getattr(agent, "mode", None) == "single_turn":
        raise ConfigurationError(
            f"agent {agent.name!r} has mode='single_turn': it works for an agent above it, and a runner takes the one "
            f"at the top; write Runner(agent=LlmAgent(..., sub_agents=[{agent.name}])), or leave out the mode"
        )


def check_run_config(run_config: Any, abort_signal: Any) -> None:
    """Refuse how a run is to be done.

    Raises:
        ConfigurationError: It is no run config, or one that contradicts itself; or `abort_signal` cannot be waited for.
    """
    if not isinstance(run_config, RunConfig):
        raise ConfigurationError(f"a run_config is a RunConfig, and not {run_config!r:.80}; write RunConfig(...)")
    if run_config.support_cfc and not run_config.streams:
        raise ConfigurationError("support_cfc=True works in streams only; write streaming_mode=StreamingMode.SSE")
    if abort_signal is not None and not isinstance(abort_signal, asyncio.Event):
        raise ConfigurationError(
            f"an abort_signal is an asyncio.Event, and not {abort_signal!r:.80}; "
            "from another thread, stop a run with runner.cancel(invocation_id)"
        )


def check_ids(user_id: Any, session_id: Any, invocation_id: Any) -> None:
    """Refuse ids that are none: a service might store one before it finds out.

    Raises:
        InputError: One of them is no text, or names no invocation.
    """
    for what, one in (("user_id", user_id), ("session_id", session_id), ("invocation_id", invocation_id or "")):
        if not isinstance(one, str):
            raise InputError(f"{what} is text, and not {one!r:.80}")
    if invocation_id is not None and not str(invocation_id).strip():
        raise InputError(f"invocation_id={invocation_id!r} names no run to go on with; leave it out to begin one")


def check_queue(live_request_queue: Any) -> None:
    """Refuse a live conversation in which nobody could say anything.

    Raises:
        ConfigurationError: It is no `LiveRequestQueue`.
    """
    if not isinstance(live_request_queue, LiveRequestQueue):
        raise ConfigurationError(
            f"what a user says comes through a LiveRequestQueue, and not {live_request_queue!r:.80}; "
            "write live_request_queue=LiveRequestQueue()"
        )
