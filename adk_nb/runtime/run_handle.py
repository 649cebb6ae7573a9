"""A run in the background."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import aclosing

from adk_nb import sync
from adk_nb.events.event import Event
from adk_nb.runtime.cancellation import Stop


class RunHandle:
    """A run in the background, returned by `Runner.start`. It runs whether or not its events are read."""

    def __init__(self, invocation_id: str, run: AsyncGenerator[Event, None], stop: Stop) -> None:
        """Start `run` on the caller's event loop, or without one on the package's own."""
        self.invocation_id = invocation_id
        """Id of the invocation; a resumed run takes the id of the invocation that it resumes with its first event."""
        self._stop = stop
        self._events: list[Event] = []
        self._error: Exception | None = None
        self._done = False
        self._signal = _new_signal()
        """Completed and replaced at each event and at the end, to wake up readers."""
        try:
            self._task = asyncio.get_running_loop().create_task(self._follow(run))
        except RuntimeError:
            self._task = sync.start(self._follow(run))

    def __repr__(self) -> str:
        return f"RunHandle({self.invocation_id!r}, {'done' if self._done else 'running'})"

    @property
    def done(self) -> bool:
        """True once the run has ended, successfully or not."""
        return self._done

    async def events(self) -> AsyncGenerator[Event, None]:
        """All events of the run from the first; may be called late, and more than once.

        Raises:
            Exception: What `Runner.run_async` would raise, after its event.
        """
        seen = 0
        while True:
            signal = self._signal
            while seen < len(self._events):
                yield self._events[seen]
                seen += 1
            if self._done:
                break
            await asyncio.wrap_future(signal)
        if self._error:
            raise self._error

    async def cancel(self) -> None:
        """Stop the run and wait for its end; its last events say so. No effect after the end."""
        self._stop.request()
        while not self._done:
            await asyncio.wrap_future(self._signal)

    async def _follow(self, run: AsyncGenerator[Event, None]) -> None:
        try:
            async with aclosing(run):
                async for event in run:
                    self.invocation_id = event.invocation_id
                    self._events.append(event)
                    self._notify()
        except Exception as error:
            self._error = error
        finally:
            self._done = True
            self._notify()

    def _notify(self) -> None:
        signal, self._signal = self._signal, _new_signal()
        signal.set_result(None)


def _new_signal() -> Future[None]:
    future = Future[None]()
    future.set_running_or_notify_cancel()  # so that cancelling one reader does not cancel it for the others
    return future
