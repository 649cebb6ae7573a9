"""What is put around the ways to an MCP server: one that tells of its end, and one with a limit."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx2

MAX_BYTES = 64 * 1024 * 1024
"""Of one answer of a service; the events of a stream have a limit of their own, in the package `mcp`."""


class Bounded(httpx2.AsyncHTTPTransport):
    """Breaks off an answer that is too long."""

    def __init__(self) -> None:
        super().__init__(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
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
        room = MAX_BYTES
        async for piece in self._stream:
            room -= len(piece)
            if room < 0:
                raise httpx2.StreamError(f"the answer has more than {MAX_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class Watched:
    """A transport of the package `mcp` that tells when the server says nothing more."""

    def __init__(self, transport: Any, on_end: Callable[[], None]) -> None:
        self._transport = transport
        self._on_end = on_end

    async def __aenter__(self) -> Any:
        read, write = await self._transport.__aenter__()
        return _Reading(read, self._on_end), write

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._transport.__aexit__(*raised)


class _Reading:
    """A transport's stream of messages."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_Reading":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._on_end()
            raise

    async def __aenter__(self) -> "_Reading":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._stream.__aexit__(*raised)
