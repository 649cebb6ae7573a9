"""A run that goes on by itself, to be followed, or stopped, from anywhere."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import aclosing

from adk_nb import sync
from adk_nb.events.event import Event
from adk_nb.runtime.stopping import Stop


class RunHandle:
    """What `Runner.start` returns. Its events are there whether or not anyone reads them."""

    def __init__(self, invocation_id: str, run: AsyncGenerator[Event, None], stop: Stop) -> None:
        """Begins `run`: on the caller's event loop, or without one on the package's own."""
        self.invocation_id = invocation_id
        """Of the message and of all that answers it; of a run that goes on with another, that one's, once it does."""
        self._stop = stop
        self._events: list[Event] = []
        self._error: Exception | None = None
        self._done = False
        self._more = _news()
        """Replaced, and its waiters told, with each event and at the end."""
        try:
            self._task = asyncio.get_running_loop().create_task(self._follow(run))
        except RuntimeError:
            self._task = sync.start(self._follow(run))

    def __repr__(self) -> str:
        return f"RunHandle({self.invocation_id!r}, {'done' if self._done else 'running'})"

    @property
    def done(self) -> bool:
        """True if it has ended: with an answer, with an error, or stopped."""
        return self._done

    async def events(self) -> AsyncGenerator[Event, None]:
        """All events of the run, from its first on, however late this is asked; the same again each time.

        Raises:
            Exception: What `Runner.run_async` would raise, after its event.
        """
        seen = 0
        while True:
            more = self._more
            while seen < len(self._events):
                yield self._events[seen]
                seen += 1
            if self._done:
                break
            await asyncio.wrap_future(more)
        if self._error:
            raise self._error

    async def cancel(self) -> None:
        """Stop the run, and wait until it has let go; its last events say so. Nothing happens if it has ended."""
        self._stop.request()
        while not self._done:
            await asyncio.wrap_future(self._more)

    async def _follow(self, run: AsyncGenerator[Event, None]) -> None:
        try:
            async with aclosing(run):
                async for event in run:
                    self.invocation_id = event.invocation_id
                    self._events.append(event)
                    self._tell()
        except Exception as error:
            self._error = error
        finally:
            self._done = True
            self._tell()

    def _tell(self) -> None:
        before, self._more = self._more, _news()
        before.set_result(None)


def _news() -> Future[None]:
    future = Future[None]()
    future.set_running_or_notify_cancel()  # whoever waits for it and is cancelled does not cancel it for others
    return future
