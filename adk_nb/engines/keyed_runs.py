"""Runs with an idempotency key, which are retried or resumed until they end."""

import asyncio
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from typing import Any

from adk_nb import types
from adk_nb.errors import SessionBusyError, StaleSessionError, StorageError
from adk_nb.runners import Runner
from adk_nb.runtime.history import RUN_KEY, History
from adk_nb.runtime.run_config import RunConfig

_PAUSE_SECONDS = 0.2
_MAX_STORAGE_ERRORS = 300
"""Limit of storage errors per run, with a pause after each."""


class KeyedRuns:
    """The runs of this process."""

    def __init__(self, runner: Runner, config: RunConfig) -> None:
        self._runner = runner
        self._config = config
        self._running: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []

    def running(self) -> list[str]:
        """Ids of the running runs. Thread-safe, like `stop`."""
        return [run_id for run_id, *_ in list(self._running)]

    def stop(self, run_id: str) -> None:
        """Stop a run like `abort_signal`, if this process executes it."""
        for running_id, loop, signal in list(self._running):
            if running_id == run_id:
                loop.call_soon_threadsafe(signal.set)  # an asyncio event belongs to its loop

    async def run(self, run_id: str, request: dict[str, Any]) -> str:
        """Execute a run, or resume it; returns its invocation id.

        Args:
            run_id: The idempotency key, equal in every attempt.
            request: `user_id`, `session_id`, `message` (a content, as JSON text) and `state_delta`.

        Raises:
            Exception: As for `Runner.run_async`; but waits while the session is busy, and for an unavailable database
                for a minute.
        """
        attempts_left = _MAX_STORAGE_ERRORS
        with self._signal(run_id) as signal:
            while not signal.is_set():
                try:
                    return await self._run_or_resume(run_id, request, signal)
                except (SessionBusyError, StaleSessionError):
                    pass  # another run uses the session, or this run does, in a worker that was considered dead
                except StorageError:
                    attempts_left -= 1
                    if not attempts_left:
                        raise
                await asyncio.sleep(_PAUSE_SECONDS)
        return ""

    async def _run_or_resume(self, run_id: str, request: dict[str, Any], signal: asyncio.Event) -> str:
        owner: dict[str, Any] = {"user_id": request["user_id"], "session_id": request["session_id"]}
        metadata = (self._config.custom_metadata or {}) | {RUN_KEY: run_id}
        events = self._runner.run_async(
            **owner,
            new_message=types.Content.model_validate_json(request["message"]),
            state_delta=request["state_delta"],
            run_config=self._config.model_copy(update={"custom_metadata": metadata}),
            yield_user_message=True,  # has the invocation id, even if nothing follows
            abort_signal=signal,
        )
        invocation_id = ""
        async with aclosing(events):
            async for event in events:
                invocation_id = event.invocation_id
        if invocation_id:
            return invocation_id
        # The run had ended before, and only its outcome was lost.
        runner = self._runner
        session = await runner.session_service.get_session(app_name=runner.app_name, **owner)
        return (History(session.events).run_with_key(run_id) if session else None) or ""

    @contextmanager
    def _signal(self, run_id: str) -> Generator[asyncio.Event]:
        entry = run_id, asyncio.get_running_loop(), asyncio.Event()
        self._running.append(entry)
        try:
            yield entry[2]
        finally:
            self._running.remove(entry)
