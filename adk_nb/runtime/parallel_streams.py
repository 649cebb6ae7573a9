"""Merge parallel event streams into one, in order of arrival and with backpressure."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

from adk_nb.events.event import Event
from adk_nb.runtime.cancellation import foreign_cancellation

K = TypeVar("K")


@dataclass(frozen=True)
class StreamEnd:
    """Marks the end of a stream, instead of an event."""

    error: BaseException | None
    """The stream's exception, if any."""


_abandoned: set[asyncio.Task[None]] = set()
"""Cancelled streams that still run, held because an event loop refers to its tasks only weakly."""


class ParallelStreams(Generic[K]):
    """Event streams that run in parallel, each in its own task, by key. More can be started while they run.

    A stream continues only after its event was consumed, and so is stored.
    """

    def __init__(self, limit: int | None = None, *, grace: float | None = None) -> None:
        """`limit`: number of streams that run at a time; the others wait. None: all.

        `grace`: seconds to wait for a cancelled stream before abandoning it. None: no limit.
        """
        self._grace = grace
        self._is_stopped = False
        self.is_abandoned = False
        """True: a cancelled stream still runs."""
        self._slots = asyncio.Semaphore(limit) if limit else None
        self._items: deque[tuple[K, Event | StreamEnd, asyncio.Future[None] | None]] = deque()
        self._reader: asyncio.Future[None] | None = None
        """Completed when an item arrives for the waiting reader."""
        self._running: dict[K, asyncio.Task[None]] = {}

    def start(self, key: K, events: AsyncGenerator[Event, None], *, limited: bool = True) -> None:
        """Start a stream; its key must be unique among the running. `limited=False`: regardless of the limit."""
        self._running[key] = asyncio.create_task(self._run(key, events, self._slots if limited else None))

    async def merged(self) -> AsyncGenerator[tuple[K, Event | StreamEnd], None]:
        """Events and stream ends with their keys, until all streams have ended. Closing it stops the streams."""
        loop = asyncio.get_running_loop()
        try:
            while self._running:
                while not self._items:
                    self._reader = loop.create_future()
                    await self._reader
                key, item, consumed = self._items.popleft()
                if isinstance(item, StreamEnd):
                    del self._running[key]
                yield key, item
                if consumed and not consumed.done():
                    consumed.set_result(None)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Cancel the running streams, and wait for their end."""
        self._is_stopped = True
        tasks = [task for task in self._running.values() if task.cancel()]  # False: it has ended
        self._running.clear()
        if tasks:
            _, remaining = await asyncio.wait(tasks, timeout=self._grace)
            self.is_abandoned = bool(remaining)
            for task in remaining:
                _abandoned.add(task)
                task.add_done_callback(_abandoned.discard)

    async def _run(self, key: K, events: AsyncGenerator[Event, None], slots: asyncio.Semaphore | None) -> None:
        error: BaseException | None = None
        loop = asyncio.get_running_loop()
        async with slots or nullcontext():
            try:
                try:
                    async for event in events:
                        if self._is_stopped:
                            break  # the stream caught its cancellation, and no reader takes the event
                        consumed = loop.create_future()
                        self._put(key, event, consumed)
                        await consumed
                finally:
                    await events.aclose()
            except BaseException as raised:  # the reader needs a StreamEnd in every case
                error = foreign_cancellation(raised, f"{key!r}") or raised
            self._put(key, StreamEnd(error), None)

    def _put(self, key: K, item: Event | StreamEnd, consumed: asyncio.Future[None] | None) -> None:
        self._items.append((key, item, consumed))
        if self._reader and not self._reader.done():
            self._reader.set_result(None)
