"""Keeps connections to an MCP server, each in a task of its own on the package's background loop."""

import asyncio
import logging
import shlex
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar, cast

import httpx2

from adk_nb import sync
from adk_nb.lazy import require
from adk_nb.tools.mcp_tool.connection_params import (
    ConnectionParams,
    SseConnectionParams,
    SseServerParams,
    StdioConnectionParams,
    StdioServerParameters,
    StreamableHTTPConnectionParams,
)

__all__ = [
    "McpSessionManager",
    "SseConnectionParams",
    "SseServerParams",
    "StdioConnectionParams",
    "StdioServerParameters",
    "StreamableHTTPConnectionParams",
]
logger = logging.getLogger(__name__)

T = TypeVar("T")

EXTRA = "'adk-nb[mcp]'"
"""What brings the package that speaks with servers."""
MAX_CONNECTIONS = 32
"""Of one toolset, one for each set of headers; the one that was opened first is closed for another."""
_TOLD = 500
"""Characters of what a server that did not start has said."""


async def on_background_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, done on the loop where all connections live, whichever loop this is."""
    loop = sync.loop()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class McpSessionManager:
    """Opens a connection when one is needed, and again when it has ended.

    Raises:
        MissingExtraError: The package `mcp` is not installed.
    """

    def __init__(self, params: ConnectionParams) -> None:
        require("mcp", package=EXTRA)
        self.params = params
        self._open: dict[Any, _Connection] = {}

    @property
    def server(self) -> str:
        """The command that starts the server, with its arguments, or the server's address."""
        if isinstance(self.params, StdioConnectionParams):
            return shlex.join([self.params.server_params.command, *self.params.server_params.args])
        return self.params.url

    async def use(
        self, headers: Mapping[str, str] | None, work: Callable[[Any], Awaitable[T]], *, again: bool = False
    ) -> T:
        """What `work` gives, which is handed a connected `mcp.Client`, and runs on the background loop.

        Args:
            headers: Of HTTP requests, beside those of the parameters; who has others has another connection.
            work: Called once, and a second time if the server has certainly not done it.
            again: It may be done twice: if the connection turns out to have ended, a new one is opened for it.

        Raises:
            Exception: The server was not reached, or what `work` raised.
        """
        return await on_background_loop(self._use(dict(headers or {}), work, again))

    async def close(self) -> None:
        """End all connections. A later use opens one again."""
        await on_background_loop(self._close())

    async def _use(self, headers: dict[str, str], work: Callable[[Any], Awaitable[T]], again: bool) -> T:
        connection, is_new = self._connection(headers)
        try:
            client = await asyncio.shield(connection.client)  # others may wait for it too
            return await work(client)
        except Exception as error:
            if not _is_lost(error):
                raise
            connection.end()
            if is_new or not (again or _is_unknown_session(error)):
                raise
        return await self._use(headers, work, again)

    def _connection(self, headers: dict[str, str]) -> tuple["_Connection", bool]:
        """The connection with these headers, and whether it was opened for this use."""
        key = (asyncio.get_running_loop(), *sorted(headers.items()))  # after a fork there is another loop
        connection = self._open.get(key)
        if connection and not connection.ended:
            return connection, False
        self._open.pop(key, None)
        while len(self._open) >= MAX_CONNECTIONS:
            self._open.pop(next(iter(self._open))).end()
        self._open[key] = _Connection(self.params, headers)
        return self._open[key], True

    async def _close(self) -> None:
        connections = list(self._open.values())
        self._open.clear()
        for one in connections:
            one.end()
        here = asyncio.get_running_loop()
        if tasks := [one.task for one in connections if one.task.get_loop() is here and not one.task.done()]:
            await asyncio.wait(tasks)


class _Connection:
    """One connection, opened and closed by one task: what a cancel scope opened, only its own task may close."""

    def __init__(self, params: ConnectionParams, headers: dict[str, str]) -> None:
        self._over = asyncio.Event()
        self.client: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """There once the server has answered."""
        self.client.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it
        self.task = asyncio.create_task(self._hold(params, headers), name="adk-nb-mcp")

    @property
    def ended(self) -> bool:
        """Whether there will be no answer any more."""
        return self._over.is_set() or self.task.done()

    def end(self) -> None:
        """Let the task close it."""
        self._over.set()
        if not self.client.done():
            self.task.cancel()

    async def _hold(self, params: ConnectionParams, headers: dict[str, str]) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(params.timeout):
                    client = await stack.enter_async_context(_client(params, headers, self._over.set))
                self.client.set_result(client)
                await self._over.wait()
        except Exception as error:
            if not self.client.done():
                self.client.set_exception(_cause(error, params))
            else:
                logger.debug("a connection to an MCP server ended: %s", error)
        finally:
            self._over.set()
            if not self.client.done():
                self.client.set_exception(ConnectionError("the connection to the MCP server was closed"))


@asynccontextmanager
async def _client(
    params: ConnectionParams, headers: dict[str, str], on_end: Callable[[], None]
) -> AsyncGenerator[Any, None]:
    """A connected `mcp.Client`; a program that was started has the last word in the error, as its note."""
    mcp = require("mcp", package=EXTRA)
    info = mcp.Implementation(name="adk-nb", version="1")
    silent = 300.0 if isinstance(params, StdioConnectionParams) else params.sse_read_timeout
    # A kernel's sys.stderr is no file; and what a server says before it gives up is what its author wants to know.
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        try:
            async with AsyncExitStack() as stack:
                transport = _Watched(await _transport(params, headers, said, stack), on_end)
                client = mcp.Client(transport, client_info=info, read_timeout_seconds=silent, cache=None)
                yield await stack.enter_async_context(client)
        except BaseException as error:
            said.seek(0)
            if text := said.read()[-_TOLD:].strip():
                error.add_note(text)
            raise


async def _transport(params: ConnectionParams, headers: dict[str, str], said: Any, stack: AsyncExitStack) -> Any:
    if isinstance(params, StdioConnectionParams):
        stdio = require("mcp.client.stdio", package=EXTRA)
        return stdio.stdio_client(stdio.StdioServerParameters(**params.server_params.model_dump()), errlog=said)
    both = {**(params.headers or {}), **headers}
    if isinstance(params, SseConnectionParams):
        sse = require("mcp.client.sse", package=EXTRA)
        return sse.sse_client(params.url, both, timeout=params.timeout, sse_read_timeout=params.sse_read_timeout)
    http = require("mcp.client.streamable_http", package=EXTRA)
    timeout = httpx2.Timeout(params.timeout, read=params.sse_read_timeout)
    client = await stack.enter_async_context(httpx2.AsyncClient(headers=both, timeout=timeout))
    return http.streamable_http_client(params.url, http_client=client, terminate_on_close=params.terminate_on_close)


class _Watched:
    """A transport that tells when the server says nothing more."""

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


def _is_lost(error: Exception) -> bool:
    """Whether the connection is of no more use."""
    mcp = require("mcp", package=EXTRA)
    if not isinstance(error, mcp.MCPError):
        return not isinstance(error, ValueError)  # a result that does not fit its schema is no fault of the connection
    code: Any = getattr(error, "code", None)
    return code == require("mcp_types", package=EXTRA).CONNECTION_CLOSED or _is_unknown_session(error)


def _is_unknown_session(error: Exception) -> bool:
    """Whether a server refused to do anything, as one does that was started anew.

    Source: mcp 2.3, client/streamable_http.py, for HTTP 404.
    """
    return str(error) == "Session terminated"


def _cause(error: BaseException, params: ConnectionParams) -> Exception:
    """The one error at the bottom of a group of groups, in words that say what was not reached."""
    notes = [*getattr(error, "__notes__", ()), *getattr(error.__cause__, "__notes__", ())]
    while isinstance(error, BaseExceptionGroup):
        error = cast(BaseExceptionGroup[BaseException], error).exceptions[0]
    where = params.server_params.command if isinstance(params, StdioConnectionParams) else params.url
    why = f"no answer within {params.timeout:g} seconds" if isinstance(error, TimeoutError) else str(error)
    told = "; it said: " + notes[0] if notes else ""
    made = ConnectionError(f"the MCP server {where!r} was not reached: {why}{told}")
    made.__cause__ = error
    return made
