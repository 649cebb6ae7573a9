"""Runs that are done to their end, however often it takes: their events have a key by which another goes on."""

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
_AWAY = 300
"""How many pauses a run waits for a database that is away."""


class KeyedRuns:
    """The runs that this process works on."""

    def __init__(self, runner: Runner, config: RunConfig) -> None:
        self._runner = runner
        self._config = config
        self._here: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []

    def running(self) -> list[str]:
        """Their ids. From any thread, as `stop`."""
        return [one for one, *_ in list(self._here)]

    def stop(self, run_id: str) -> None:
        """Stop it, if it is one of them, as `abort_signal` does."""
        for one, loop, signal in list(self._here):
            if one == run_id:
                loop.call_soon_threadsafe(signal.set)

    async def run(self, run_id: str, said: dict[str, Any]) -> str:
        """Do a run, or go on with it where it was left; the id of its invocation.

        Args:
            run_id: The same at every attempt.
            said: `user_id`, `session_id`, `message` (a content, as JSON text) and `state_delta`.

        Raises:
            Exception: As `Runner.run_async`; but who works on the session is waited for, and so is a database that
                is away, for a minute.
        """
        away = _AWAY
        with self._signal(run_id) as signal:
            while not signal.is_set():
                try:
                    return await self._go_on(run_id, said, signal)
                except (SessionBusyError, StaleSessionError):
                    pass  # another run works on the session, or this one does, in a worker that was taken for dead
                except StorageError:
                    away -= 1
                    if not away:
                        raise
                await asyncio.sleep(_PAUSE_SECONDS)
        return ""

    async def _go_on(self, run_id: str, said: dict[str, Any], signal: asyncio.Event) -> str:
        where: dict[str, Any] = {"user_id": said["user_id"], "session_id": said["session_id"]}
        metadata = (self._config.custom_metadata or {}) | {RUN_KEY: run_id}
        events = self._runner.run_async(
            **where,
            new_message=types.Content.model_validate_json(said["message"]),
            state_delta=said["state_delta"],
            run_config=self._config.model_copy(update={"custom_metadata": metadata}),
            yield_user_message=True,
            abort_signal=signal,
        )
        invocation_id = ""
        async with aclosing(events):
            async for event in events:
                invocation_id = event.invocation_id
        return invocation_id or await self._begun_as(run_id, where)

    async def _begun_as(self, run_id: str, where: dict[str, Any]) -> str:
        """Of a run that had come to its end, and nobody had heard."""
        runner = self._runner
        session = await runner.session_service.get_session(app_name=runner.app_name, **where)
        return (History(session.events).run_with_key(run_id) if session else None) or ""

    @contextmanager
    def _signal(self, run_id: str) -> Generator[asyncio.Event]:
        one = run_id, asyncio.get_running_loop(), asyncio.Event()
        self._here.append(one)
        try:
            yield one[2]
        finally:
            self._here.remove(one)
