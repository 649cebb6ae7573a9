"""Manages the connections to an MCP server, one for each set of headers."""

import asyncio
import atexit
import shlex
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar
from weakref import WeakSet

from adk_nb import sync
from adk_nb.errors import UserError
from adk_nb.lazy import require
from adk_nb.redaction import remember_named
from adk_nb.tools.mcp_tool.connection_params import (
    ConnectionParams,
    SseConnectionParams,
    SseServerParams,
    StdioConnectionParams,
    StdioServerParameters,
    StreamableHTTPConnectionParams,
)
from adk_nb.tools.mcp_tool.mcp_connection import EXTRA, Connection, QuestionHandler, UnauthorizedError

__all__ = [
    "McpSessionManager",
    "SseConnectionParams",
    "SseServerParams",
    "StdioConnectionParams",
    "StdioServerParameters",
    "StreamableHTTPConnectionParams",
]

T = TypeVar("T")

_EXIT_SECONDS = 5.0
"""Grace period for programs at the end of the process; `mcp` kills them after four seconds."""
_managers: "WeakSet[McpSessionManager]" = WeakSet()
MAX_CONNECTIONS = 32
"""Limit per toolset; the oldest connection is closed for a new one."""


async def on_background_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the background loop, where all connections live, from any loop."""
    loop = sync.loop()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class McpSessionManager:
    """Opens connections on demand, and again after they have ended.

    Raises:
        MissingExtraError: The package `mcp` is not installed.
    """

    def __init__(self, params: ConnectionParams, **client_options: Any) -> None:
        """`client_options`: options of each `mcp.Client`, such as `sampling_callback`."""
        require("mcp", package=EXTRA)
        self.params = params
        self._client_options = client_options
        self._open: dict[Any, Connection] = {}

    @property
    def server(self) -> str:
        """The command that starts the server, with its arguments, or the server's URL."""
        if isinstance(self.params, StdioConnectionParams):
            return shlex.join([self.params.server_params.command, *self.params.server_params.args])
        return self.params.url

    async def use(
        self,
        headers: Mapping[str, str] | None,
        work: Callable[[Any], Awaitable[T]],
        *,
        again: bool = False,
        answers: QuestionHandler | None = None,
    ) -> T:
        """Run `work` on the background loop with a connected `mcp.Client`.

        Args:
            headers: HTTP headers in addition to the parameters'; other headers use another connection.
            work: Called once, or again if the server certainly did not execute it.
            again: `work` may be repeated on a new connection if this one has ended.
            answers: Handles the server's questions, on the background loop. None: questions are refused.

        Raises:
            UnauthorizedError: The server demands a credential, or another one.
            Exception: The server was not reached, or an error of `work`.
        """

        async def use(connection: Connection, client: Any) -> T:
            """Run `work`, with a handler for the server's questions."""
            with connection.call(answers):
                return await work(client)

        remember_named(headers)
        return await on_background_loop(self._use(dict(headers or {}), use, again))

    async def cached(
        self,
        headers: Mapping[str, str] | None,
        work: Callable[[Any], Awaitable[T]],
        *,
        refresh: bool = False,
        keep_seconds: float | None = None,
    ) -> T:
        """Return the last result of `work` while the server announces no change; else run it.

        Args:
            headers: As for `use`.
            work: May be repeated; limited by the parameters' `timeout`.
            refresh: Run it in any case.
            keep_seconds: Return the last result for so long also where the server announces no changes at all.

        Raises:
            Exception: As for `use`; TimeoutError if it takes too long.
        """

        async def use(connection: Connection, client: Any) -> T:
            async def fetch() -> T:
                with connection.call(None):
                    async with asyncio.timeout(self.params.timeout):
                        return await work(client)

            return await connection.cached(fetch, refresh=refresh, keep_seconds=keep_seconds)

        return await on_background_loop(self._use(dict(headers or {}), use, again=True))

    async def close(self) -> None:
        """Close all connections. A later call opens new ones."""
        await on_background_loop(self._close())

    def close_future(self) -> "Future[None] | None":
        """Close the connections at the end of the process. None: there are none in this process, as after a fork."""
        loops = {connection.task.get_loop() for connection in self._open.values() if not connection.task.done()}
        own_loops = [loop for loop in loops if loop is sync.loop()] if loops else []
        return asyncio.run_coroutine_threadsafe(self._close(), own_loops[0]) if own_loops else None

    async def _use(self, headers: dict[str, str], work: Callable[[Connection, Any], Awaitable[T]], again: bool) -> T:
        connection, is_new = self._connection(headers)
        try:
            client = await asyncio.shield(connection.client)  # shared with other calls, so not cancelled with this one
            return await work(connection, client)
        except Exception as error:
            explained = connection.explain(error)
        lost = _is_lost(explained)
        if lost:
            connection.end()
        if (
            is_new
            or not lost
            or not (again or _is_unknown_session(explained))
            or isinstance(explained, UnauthorizedError)
        ):
            raise explained
        return await self._use(headers, work, again)

    def _connection(self, headers: dict[str, str]) -> tuple[Connection, bool]:
        """The connection for these headers, and True if it was opened now."""
        key = (asyncio.get_running_loop(), *sorted(headers.items()))  # the loop differs after a fork
        connection = self._open.get(key)
        if connection and not connection.ended:
            return connection, False
        self._open.pop(key, None)
        while len(self._open) >= MAX_CONNECTIONS:
            self._open.pop(next(iter(self._open))).end()
        _managers.add(self)
        self._open[key] = Connection(self.params, headers, self._client_options)
        return self._open[key], True

    async def _close(self) -> None:
        connections = list(self._open.values())
        self._open.clear()
        for connection in connections:
            connection.end()
        loop = asyncio.get_running_loop()
        if tasks := [
            connection.task
            for connection in connections
            if connection.task.get_loop() is loop and not connection.task.done()
        ]:
            await asyncio.wait(tasks)


@atexit.register
def _close_all() -> None:
    """Close all connections. Before the background loop ends: without it, programs would go on running."""
    futures = [manager.close_future() for manager in list(_managers)]
    if any(futures):
        wait([future for future in futures if future], _EXIT_SECONDS)


def _is_lost(error: Exception) -> bool:
    """True if the connection cannot be used any more."""
    mcp = require("mcp", package=EXTRA)
    if not isinstance(error, mcp.MCPError):
        # None of these is the connection's: an invalid result, a busy server, a mistake of the author.
        return not isinstance(error, ValueError | TimeoutError | UserError)
    code: Any = getattr(error, "code", None)
    return code == require("mcp_types", package=EXTRA).CONNECTION_CLOSED or _is_unknown_session(error)


def _is_unknown_session(error: Exception) -> bool:
    """True if a server refused the call because it was restarted and does not know the session.

    Source: mcp 2.3, client/streamable_http.py, for HTTP 404.
    """
    return str(error) == "Session terminated"
