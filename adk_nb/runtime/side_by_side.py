"""Several streams of events at once, as one: in the order in which they come, each at the pace of its reader."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

from adk_nb.events.event import Event

K = TypeVar("K")


@dataclass(frozen=True)
class Ended:
    """Comes in the place of an event, as the last of its stream."""

    error: Exception | None
    """What the stream raised."""


class SideBySide(Generic[K]):
    """Streams that run at once, each in a task of its own, under names. More can be started while they run.

    A stream goes on only after its event was taken: by then it is history.
    """

    def __init__(self, limit: int | None = None) -> None:
        """`limit`: so many run at a time, and the others begin when there is room. None: all of them."""
        self._room = asyncio.Semaphore(limit) if limit else None
        self._news: asyncio.Queue[tuple[K, Event | Ended, asyncio.Future[None] | None]] = asyncio.Queue()
        self._running: dict[K, asyncio.Task[None]] = {}

    def start(self, key: K, events: AsyncGenerator[Event, None], *, limited: bool = True) -> None:
        """Let one more run; not `limited`: even if that is one more than may. No two have the same key at one time."""
        room = self._room if limited else None
        self._running[key] = asyncio.create_task(self._run(key, events, room))

    async def taken(self) -> AsyncGenerator[tuple[K, Event | Ended], None]:
        """What comes, until all streams have ended. Closing this cancels those that have not, and waits for them."""
        try:
            while self._running:
                key, news, read = await self._news.get()
                if isinstance(news, Ended):
                    del self._running[key]
                yield key, news
                if read and not read.done():
                    read.set_result(None)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Cancel what runs, and wait until it has let go."""
        tasks = [task for task in self._running.values() if task.cancel()]
        self._running.clear()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, key: K, events: AsyncGenerator[Event, None], room: asyncio.Semaphore | None) -> None:
        error: Exception | None = None
        try:
            if room:
                async with room:
                    await self._hand_on(key, events)
            else:
                await self._hand_on(key, events)
        except Exception as raised:
            error = raised
        self._news.put_nowait((key, Ended(error), None))

    async def _hand_on(self, key: K, events: AsyncGenerator[Event, None]) -> None:
        loop = asyncio.get_running_loop()
        async with aclosing(events):
            async for event in events:
                read = loop.create_future()
                self._news.put_nowait((key, event, read))
                await read
