"""What a server on this machine checks of each request: where it comes from, its token, its size."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from adk_nb.models.http_address import names_this_machine

BODY_SECONDS = 10.0
"""From the headers of a request to the first byte of its body."""


def is_for_this_machine(headers: Any) -> bool:
    """True if the request names this machine as its host: a page whose name was rebound to it sends its own."""
    hosts = headers.getlist("host")
    return len(hosts) == 1 and names_this_machine(hosts[0])


def foreign_page(headers: Any, scheme: str) -> str:
    """The origin of a web page that another server has sent; empty if there is none. Shortened, for an error."""
    origin = headers.get("origin")
    return "" if origin in (None, f"{scheme}://{headers.get('host')}") else repr(origin[:80])


def sent_token(headers: Any) -> str | None:
    """The token of the header `Authorization`; None if it is of another scheme, whose name has no case (RFC 9110)."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def is_same(sent: str | None, token: str) -> bool:
    """Compare tokens in constant time."""
    return sent is not None and hmac.compare_digest(sent.encode("utf-8", "replace"), token.encode())


def is_too_long(headers: Any, max_bytes: int) -> bool:
    """True if the header tells a length above `max_bytes`, or none that can be read."""
    length = headers.get("content-length", "0")
    return not length.isdecimal() or int(length) > max_bytes


def bounded(
    receive: Callable[[], Awaitable[Any]], max_bytes: int, error: Callable[[int, str], Exception], late: str, large: str
) -> Callable[[], Awaitable[Any]]:
    """`receive` for a body that must begin in time and end in time: one that comes in chunks tells no length before.

    Args:
        receive: ASGI's.
        max_bytes: The longest body.
        error: Makes the error of a status and a text.
        late: The text, if the body does not begin within `BODY_SECONDS`.
        large: The text, if it is longer.
    """
    count, is_first = 0, True

    async def receive_bounded() -> Any:
        nonlocal count, is_first
        try:
            # The first is the beginning of the body; a later one may be the end of the connection.
            async with asyncio.timeout(BODY_SECONDS if is_first else None):
                message = await receive()
        except TimeoutError as timeout:
            raise error(408, late) from timeout
        is_first = False
        count += len(message.get("body", b""))
        if count > max_bytes:
            raise error(413, large)
        return message

    return receive_bounded
