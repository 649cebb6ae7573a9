"""Pools of connections, which are bound to an event loop: opened once for each loop, closed with it."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Hashable
from functools import cache
from typing import Generic, Protocol, TypeVar

import httpx2


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


@cache
def tls() -> ssl.SSLContext:
    """One context for all connections: reading the certificates takes 70 ms."""
    return httpx2.create_ssl_context()


def http_client() -> httpx2.AsyncClient:
    """A pool of connections for a vendor's package.

    It follows no redirect: on the way to another host httpx2 takes off `Authorization`, and no other header with a key.
    """
    return httpx2.AsyncClient(verify=tls(), follow_redirects=False, timeout=None)
