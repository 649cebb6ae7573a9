"""Several streams of events at once, as one: in the order in which they come, each at the pace of its reader."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Generic, TypeVar

from adk_nb.events.event import Event
from adk_nb.runtime.stopping import foreign_cancellation

K = TypeVar("K")


@dataclass(frozen=True)
class Ended:
    """Comes in the place of an event, as the last of its stream."""

    error: BaseException | None
    """What the stream raised."""


_abandoned: set[asyncio.Task[None]] = set()


class SideBySide(Generic[K]):
    """Streams that run at once, each in a task of its own, under names. More can be started while they run.

    A stream goes on only after its event was taken: by then it is history.
    """

    def __init__(self, limit: int | None = None, *, grace: float | None = None) -> None:
        """`limit`: so many run at a time, and the others begin when there is room. None: all of them.

        `grace`: seconds that a cancelled stream has to end; after that it is left to itself. None: as long as it takes.
        """
        self._grace = grace
        self._is_stopped = False
        self.is_abandoned = False
        """True: a stream goes on although it was cancelled."""
        self._room = asyncio.Semaphore(limit) if limit else None
        self._news: deque[tuple[K, Event | Ended, asyncio.Future[None] | None]] = deque()
        self._reader: asyncio.Future[None] | None = None
        """Of who waits for news."""
        self._running: dict[K, asyncio.Task[None]] = {}

    def start(self, key: K, events: AsyncGenerator[Event, None], *, limited: bool = True) -> None:
        """Let one more run; not `limited`: even if that is one more than may. No two have the same key at one time."""
        room = self._room if limited else None
        run = self._run(key, events) if room is None else self._in_turn(key, events, room)
        self._running[key] = asyncio.create_task(run)

    async def taken(self) -> AsyncGenerator[tuple[K, Event | Ended], None]:
        """What comes, until all streams have ended. Closing this cancels those that have not, and waits for them."""
        loop = asyncio.get_running_loop()
        try:
            while self._running:
                while not self._news:
                    self._reader = loop.create_future()
                    await self._reader
                key, news, read = self._news.popleft()
                if isinstance(news, Ended):
                    del self._running[key]
                yield key, news
                if read and not read.done():
                    read.set_result(None)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Cancel what runs, and wait until it has let go."""
        self._is_stopped = True
        tasks = [task for task in self._running.values() if task.cancel()]
        self._running.clear()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=self._grace)
            self.is_abandoned = bool(left)
            for task in left:  # the loop itself refers to its tasks only weakly
                _abandoned.add(task)
                task.add_done_callback(_abandoned.discard)

    async def _in_turn(self, key: K, events: AsyncGenerator[Event, None], room: asyncio.Semaphore) -> None:
        async with room:
            await self._run(key, events)

    async def _run(self, key: K, events: AsyncGenerator[Event, None]) -> None:
        error: BaseException | None = None
        loop = asyncio.get_running_loop()
        try:
            try:
                async for event in events:
                    if self._is_stopped:
                        break  # a cancellation was caught on the way here, and nobody takes the event
                    read = loop.create_future()
                    self._say(key, event, read)
                    await read
            finally:
                await events.aclose()
        except BaseException as raised:  # the reader waits for the end of every stream, however hard it is
            error = foreign_cancellation(raised, f"{key!r}") or raised
        self._say(key, Ended(error), None)

    def _say(self, key: K, news: Event | Ended, read: asyncio.Future[None] | None) -> None:
        self._news.append((key, news, read))
        if self._reader and not self._reader.done():
            self._reader.set_result(None)
