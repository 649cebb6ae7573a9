"""What tools say while they run goes out while they run."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, Generic, TypeVar

from adk_nb.events.event import Event
from adk_nb.runtime.invocation_context import InvocationContext

T = TypeVar("T")


class Progress(Generic[T]):
    """A piece of work that has news. Each tool waits until its event is taken, so there is one of each at most."""

    outcome: T
    """What the work came to; there once all its events are out."""

    def __init__(self, ctx: InvocationContext, work: Coroutine[Any, Any, T]) -> None:
        """`work` starts when the first event is read; its tools emit events with `ctx.emit`."""
        self._ctx = ctx
        self._work = work
        self._told: asyncio.Queue[tuple[Event, asyncio.Future[None]] | None] = asyncio.Queue()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Do the work, and yield what is told meanwhile. Closing this cancels it and waits until it has let go.

        Raises:
            BaseException: What the work raised.
        """
        before, self._ctx.emit = self._ctx.emit, self._tell
        task = asyncio.create_task(self._work)
        task.add_done_callback(lambda _: self._told.put_nowait(None))
        try:
            while told := await self._told.get():
                event, taken = told
                if taken.done():
                    continue  # who told it was cut off
                yield event
                if not taken.done():
                    taken.set_result(None)
            self.outcome = task.result()
        finally:
            self._ctx.emit = before
            if task.cancel():
                await asyncio.wait({task})

    async def _tell(self, event: Event) -> None:
        taken = asyncio.get_running_loop().create_future()
        self._told.put_nowait((event, taken))
        await taken
