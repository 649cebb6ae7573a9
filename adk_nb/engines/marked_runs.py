"""Runs that are done to their end, however often it takes: their events carry a mark by which another goes on."""

import asyncio
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from typing import Any

from adk_nb import types
from adk_nb.errors import SessionBusyError, StaleSessionError, StorageError
from adk_nb.runners import Runner
from adk_nb.runtime.run_config import RunConfig

MARK = "adk_nb_run"
"""In the `custom_metadata` of a run's events: its id."""
_PAUSE_SECONDS = 0.2
_AWAY = 300
"""How many pauses a run waits for a database that is away."""


class MarkedRuns:
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
        with self._signal(run_id) as signal:
            for _ in range(_AWAY):
                try:
                    return await self._when_free(run_id, said, signal)
                except StorageError:
                    await asyncio.sleep(_PAUSE_SECONDS)
            return await self._when_free(run_id, said, signal)

    async def _when_free(self, run_id: str, said: dict[str, Any], signal: asyncio.Event) -> str:
        while not signal.is_set():
            try:
                return await self._go_on(run_id, said, signal)
            except (SessionBusyError, StaleSessionError):  # another run's, or the same with a worker taken for dead
                await asyncio.sleep(_PAUSE_SECONDS)
        return ""

    async def _go_on(self, run_id: str, said: dict[str, Any], signal: asyncio.Event) -> str:
        where: dict[str, Any] = {"user_id": said["user_id"], "session_id": said["session_id"]}
        begun = await self._begun(run_id, where)
        given: dict[str, Any] = {"invocation_id": begun}
        if not begun:
            message = types.Content.model_validate_json(said["message"])
            given = {"new_message": message, "state_delta": said["state_delta"], "yield_user_message": True}
        mark = (self._config.custom_metadata or {}) | {MARK: run_id}
        config = self._config.model_copy(update={"custom_metadata": mark})
        async with aclosing(self._runner.run_async(**where, **given, run_config=config, abort_signal=signal)) as events:
            async for event in events:
                begun = event.invocation_id
        return begun or ""

    async def _begun(self, run_id: str, where: dict[str, Any]) -> str | None:
        """The invocation that the run became when it was begun before."""
        runner = self._runner
        session = await runner.session_service.get_session(app_name=runner.app_name, **where)
        for event in reversed(session.events if session else ()):
            if event.custom_metadata and event.custom_metadata.get(MARK) == run_id:
                return event.invocation_id
        return None

    @contextmanager
    def _signal(self, run_id: str) -> Generator[asyncio.Event]:
        one = run_id, asyncio.get_running_loop(), asyncio.Event()
        self._here.append(one)
        try:
            yield one[2]
        finally:
            self._here.remove(one)
