"""What an MCP server says during a call, handed from the loop of its connection to that of the call."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

MOST_UNHEARD = 100
"""Progress that waits to be taken; what comes then is not told."""


@dataclass(frozen=True)
class Progress:
    """How far the tool is, in the server's own measure."""

    progress: float
    total: float | None
    message: str | None


class Question:
    """What the server wants to know; it waits for `answer`."""

    def __init__(self, context: Any, params: Any) -> None:
        self.context = context
        self.params = params
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self.loop.create_future()

    @property
    def answer(self) -> Any:
        """Set from any loop, once."""
        return self.outcome.result()

    @answer.setter
    def answer(self, value: Any) -> None:
        self.loop.call_soon_threadsafe(lambda: self.outcome.done() or self.outcome.set_result(value))


class News:
    """Made on the loop of the call; `progress` and `asks` are called on that of the connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._told: asyncio.Queue[Progress | Question | None] = asyncio.Queue()

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._told.qsize() < MOST_UNHEARD:
            self._tell(Progress(progress, total, message))

    async def asks(self, context: Any, params: Any) -> Any:
        """The answer to a question of the server."""
        question = Question(context, params)
        self._tell(question)
        return await question.outcome

    async def until(self, calling: "asyncio.Future[Any]") -> AsyncGenerator[Progress | Question, None]:
        """What comes until `calling` is done. Closing this cancels it, and waits until it has let go."""
        calling.add_done_callback(lambda _: self._told.put_nowait(None))
        try:
            while one := await self._told.get():
                yield one
        finally:
            if calling.cancel():
                await asyncio.wait({calling})

    def _tell(self, one: Progress | Question) -> None:
        if asyncio.get_running_loop() is self._loop:
            self._told.put_nowait(one)
        else:
            self._loop.call_soon_threadsafe(self._told.put_nowait, one)
