"""HTTP by the `fetch` of the page, for Python in a browser."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from adk_nb.concurrency.single_thread import IN_A_BROWSER


class PageFetch(httpx2.AsyncBaseTransport):
    """httpx2's transport for a browser, with pieces of bytes, and requests that end when their reader leaves.

    That of httpx2-jsfetch 1.0 hands on memory views, which no reader of lines takes, and lets a request go on.
    """

    def __init__(self) -> None:
        self._transport = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; its response streams."""
        response = await self._transport.handle_async_request(request)
        return httpx2.Response(response.status_code, headers=response.headers, stream=_Body(response.stream))


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield bytes(piece)

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._stream.abort_controller_js.abort()


def transport_of_page() -> PageFetch | None:
    """The transport for a client; None where sockets exist, and httpx2 chooses."""
    return PageFetch() if IN_A_BROWSER else None
