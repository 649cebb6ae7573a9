"""Messages of an MCP server during a call, passed from the connection's event loop to the call's."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

MAX_PENDING = 100
"""Limit of undelivered progress messages; further ones are dropped."""


@dataclass(frozen=True)
class Progress:
    """Progress of a tool, in the server's own unit."""

    progress: float
    total: float | None
    message: str | None


class Question:
    """A question of the server, which waits for `answer`."""

    def __init__(self, context: Any, params: Any) -> None:
        self.context = context
        self.params = params
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self.loop.create_future()

    @property
    def answer(self) -> Any:
        """Set once, from any loop."""
        return self.outcome.result()

    @answer.setter
    def answer(self, value: Any) -> None:
        """Set the answer, unless the call has ended."""
        self.loop.call_soon_threadsafe(lambda: self.outcome.done() or self.outcome.set_result(value))


class CallMessages:
    """Created on the call's loop; `progress` and `asks` are called on the connection's loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Progress | Question | None] = asyncio.Queue()

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Receive progress."""
        if self._queue.qsize() < MAX_PENDING:
            self._put(Progress(progress, total, message))

    async def asks(self, context: Any, params: Any) -> Any:
        """Receive a question; wait for its answer."""
        question = Question(context, params)
        self._put(question)
        return await question.outcome

    async def until(self, calling: "asyncio.Future[Any]") -> AsyncGenerator[Progress | Question, None]:
        """Messages until `calling` is done. Closing the generator cancels `calling` and waits for its end."""
        calling.add_done_callback(lambda _: self._queue.put_nowait(None))  # wakes the reader
        try:
            while message := await self._queue.get():
                yield message
        finally:
            if calling.cancel():
                await asyncio.wait({calling})

    def _put(self, message: Progress | Question) -> None:
        # asyncio queues are not thread-safe, and the connection may live on another loop.
        if asyncio.get_running_loop() is self._loop:
            self._queue.put_nowait(message)
        else:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, message)
