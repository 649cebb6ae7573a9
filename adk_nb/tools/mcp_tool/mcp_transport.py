"""Transports to MCP servers: one with a size limit, and one that reports its end."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx2

MAX_BYTES = 64 * 1024 * 1024
"""Limit of one HTTP response; the package `mcp` limits the events of a stream."""


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Aborts responses that are too long."""

    def __init__(self) -> None:
        super().__init__(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request with a size limit on its response."""
        response = await super().handle_async_request(request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _BoundedStream(response.stream, packed="content-encoding" in response.headers)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, *, packed: bool) -> None:
        self._stream = stream
        self._packed = packed

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        if self._packed:
            raise httpx2.StreamError("the answer is packed, which was not asked for: nobody knows how long it is")
        remaining = MAX_BYTES
        async for chunk in self._stream:
            remaining -= len(chunk)
            if remaining < 0:
                raise httpx2.StreamError(f"the answer has more than {MAX_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


class WatchedTransport:
    """A transport of the package `mcp` that reports the end of the server's messages."""

    def __init__(self, transport: Any, on_end: Callable[[], None]) -> None:
        self._transport = transport
        self._on_end = on_end

    async def __aenter__(self) -> Any:
        read, write = await self._transport.__aenter__()
        return _WatchedStream(read, self._on_end), write

    async def __aexit__(self, *exc_info: Any) -> Any:
        return await self._transport.__aexit__(*exc_info)


class _WatchedStream:
    """The transport's stream of incoming messages."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_WatchedStream":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._on_end()
            raise

    async def __aenter__(self) -> "_WatchedStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc_info: Any) -> Any:
        return await self._stream.__aexit__(*exc_info)
