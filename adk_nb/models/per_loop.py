"""What is bound to an event loop, such as a pool of connections: opened once for each loop, closed with it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Closes(Protocol):
    """What can be closed."""

    async def aclose(self) -> None: ...


T = TypeVar("T", bound=Closes)


class PerLoop(Generic[T]):
    """Keeps what it opened for the running loop, and hands it out again on the same loop.

    A loop closes it when it ends through `asyncio.run` or after `loop.shutdown_asyncgens()`, or as soon as nothing
    holds the PerLoop any more. A copy starts empty.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[asyncio.AbstractEventLoop, Hashable], tuple[AsyncGenerator[T, None], T]] = {}

    def __reduce__(self) -> tuple[type["PerLoop[T]"], tuple[()]]:
        return type(self), ()

    async def get(self, about: Hashable, make: Callable[[], T]) -> T:
        """What `make` opened for this loop.

        Args:
            about: The settings it was made with; different settings are given one of their own.
            make: Called on the first use.
        """
        key = (asyncio.get_running_loop(), about)
        if key not in self._open:
            for loop, settings in list(self._open):
                if loop.is_closed():
                    self._open.pop((loop, settings), None)
            held = _hold(make())
            self._open[key] = held, await anext(held)
        return self._open[key][1]


async def _hold(opened: T) -> AsyncGenerator[T, None]:
    """A generator that never goes on: a loop closes the generators it still has before it ends."""
    try:
        yield opened
    finally:
        await opened.aclose()
