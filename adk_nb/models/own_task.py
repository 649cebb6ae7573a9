"""Read a stream in a task of its own, so that who stops listening early closes all of it at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class OwnTask(Generic[T]):
    """`async with OwnTask(stream) as items: async for item in items` - leaving the block ends the stream.

    A client library's stream is often a generator in a generator in a generator. Closing the outermost leaves the
    others to the garbage collector, which closes them one by one, later, and in the loop's last moments all at once.
    Cancelling the task that waits in the innermost one ends them in their order.
    """

    def __init__(self, stream: AsyncGenerator[T, None]) -> None:
        self._stream = stream
        self._items: asyncio.Queue[T | None] = asyncio.Queue()

    async def __aenter__(self) -> "OwnTask[T]":
        self._task = asyncio.create_task(self._read())
        self._task.add_done_callback(lambda _: self._items.put_nowait(None))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # looked at, so that asyncio does not report it as lost

    def __aiter__(self) -> "OwnTask[T]":
        return self

    async def __anext__(self) -> T:
        item = await self._items.get()
        if item is None:
            self._task.result()
            raise StopAsyncIteration
        return item

    async def _read(self) -> None:
        async with aclosing(self._stream) as items:
            async for item in items:
                self._items.put_nowait(item)
