"""Addresses that can be asked; and pools of connections, opened once for each event loop, closed with it."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Hashable
from functools import cache
from typing import Generic, Protocol, TypeVar

import httpx2

from adk_nb.errors import ConfigurationError
from adk_nb.models.http_address import as_address
from adk_nb.redaction import hidden

_HOST = re.compile(rb"[0-9A-Za-z.:_-]+")
_BEGINS = re.compile(r"https?://[^/]|\{\{\s*\$")


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


def check_url(url: str, what: str) -> None:
    """Look at an address before it is filled, as `http_template` does it.

    Raises:
        ConfigurationError: It cannot be one; `what` is named.
    """
    if not _BEGINS.match(url):
        raise ConfigurationError(
            f"{what}: its url starts with http:// or https:// and a host, and {hidden(url)[:200]!r} does not"
            + (f"; write {hidden(meant)[:200]}" if (meant := as_address(url)) else "")
        )
    if "{{" not in url:
        parsed(url, what)


def parsed(url: str, what: str) -> httpx2.URL:
    """An address that can be asked.

    Raises:
        ConfigurationError: It names nothing that could be asked; `what` is named.
    """
    try:
        place = httpx2.URL(url)
        if place.scheme in ("http", "https") and _HOST.fullmatch(place.raw_host) and (place.port or 80) < 65_536:
            return place
        why = "it has no scheme, host and port that could be asked"
    except httpx2.InvalidURL as error:
        why = hidden(str(error))
    raise ConfigurationError(f"{what}: its url cannot be used: {why}; write http://127.0.0.1:8000/chat, or the like")
