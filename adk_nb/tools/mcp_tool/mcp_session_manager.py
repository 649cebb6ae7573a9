"""Keeps the connections to an MCP server, one for each set of headers."""

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
from adk_nb.tools.mcp_tool.mcp_connection import EXTRA, Asked, Connection, NotLetInError

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
"""What a program that does not want to end is given at the end of the process; `mcp` kills it after four."""
_to_end: "WeakSet[McpSessionManager]" = WeakSet()
MAX_CONNECTIONS = 32
"""Of one toolset; the one that was opened first is closed for another."""


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

    def __init__(self, params: ConnectionParams, **more: Any) -> None:
        """`more`: for each `mcp.Client`, such as `sampling_callback`."""
        require("mcp", package=EXTRA)
        self.params = params
        self._more = more
        self._open: dict[Any, Connection] = {}

    @property
    def server(self) -> str:
        """The command that starts the server, with its arguments, or the server's address."""
        if isinstance(self.params, StdioConnectionParams):
            return shlex.join([self.params.server_params.command, *self.params.server_params.args])
        return self.params.url

    async def use(
        self,
        headers: Mapping[str, str] | None,
        work: Callable[[Any], Awaitable[T]],
        *,
        again: bool = False,
        answers: Asked | None = None,
    ) -> T:
        """What `work` gives, which is handed a connected `mcp.Client`, and runs on the background loop.

        Args:
            headers: Of HTTP requests, beside those of the parameters; who has others has another connection.
            work: Called once, and a second time if the server has certainly not done it.
            again: It may be done twice: if the connection turns out to have ended, a new one is opened for it.
            answers: Told on the background loop what the server asks meanwhile. None: it may not ask.

        Raises:
            NotLetInError: The server wants to be shown a credential, or another one.
            Exception: The server was not reached, or what `work` raised.
        """

        async def used(connection: Connection, client: Any) -> T:
            with connection.call(answers):
                return await work(client)

        remember_named(headers)
        return await on_background_loop(self._use(dict(headers or {}), used, again))

    async def kept(
        self, headers: Mapping[str, str] | None, work: Callable[[Any], Awaitable[T]], *, anew: bool = False
    ) -> T:
        """What `work` gave the last time, or, unless the server tells when it offers something else, gives now.

        Args:
            headers: As for `use`.
            work: May be done twice, and has `timeout` of the parameters for it.
            anew: Do it in any case.

        Raises:
            Exception: As `use`; TimeoutError if it takes too long.
        """

        async def used(connection: Connection, client: Any) -> T:
            async def done() -> T:
                with connection.call(None):
                    async with asyncio.timeout(self.params.timeout):
                        return await work(client)

            return await connection.kept(done, anew=anew)

        return await on_background_loop(self._use(dict(headers or {}), used, again=True))

    async def close(self) -> None:
        """End all connections. A later use opens one again."""
        await on_background_loop(self._close())

    def ending(self) -> "Future[None] | None":
        """Its connections being ended, at the end of the process. None: it has none here, as after a fork."""
        loops = {one.task.get_loop() for one in self._open.values() if not one.task.done()}
        running = [one for one in loops if one is sync.loop()] if loops else []
        return asyncio.run_coroutine_threadsafe(self._close(), running[0]) if running else None

    async def _use(self, headers: dict[str, str], work: Callable[[Connection, Any], Awaitable[T]], again: bool) -> T:
        connection, is_new = self._connection(headers)
        try:
            client = await asyncio.shield(connection.client)  # others may wait for it too
            return await work(connection, client)
        except Exception as error:
            failed = connection.told_apart(error)
        lost = _is_lost(failed)
        if lost:
            connection.end()
        if is_new or not lost or not (again or _is_unknown_session(failed)) or isinstance(failed, NotLetInError):
            raise failed
        return await self._use(headers, work, again)

    def _connection(self, headers: dict[str, str]) -> tuple[Connection, bool]:
        """The connection with these headers, and whether it was opened for this use."""
        key = (asyncio.get_running_loop(), *sorted(headers.items()))  # after a fork there is another loop
        connection = self._open.get(key)
        if connection and not connection.ended:
            return connection, False
        self._open.pop(key, None)
        while len(self._open) >= MAX_CONNECTIONS:
            self._open.pop(next(iter(self._open))).end()
        _to_end.add(self)
        self._open[key] = Connection(self.params, headers, self._more)
        return self._open[key], True

    async def _close(self) -> None:
        connections = list(self._open.values())
        self._open.clear()
        for one in connections:
            one.end()
        here = asyncio.get_running_loop()
        if tasks := [one.task for one in connections if one.task.get_loop() is here and not one.task.done()]:
            await asyncio.wait(tasks)


@atexit.register
def _end_programs() -> None:
    """Before the background loop is ended, which would leave programs behind."""
    ending = [one.ending() for one in list(_to_end)]
    if any(ending):
        wait([found for found in ending if found], _EXIT_SECONDS)


def _is_lost(error: Exception) -> bool:
    """Whether the connection is of no more use."""
    mcp = require("mcp", package=EXTRA)
    if not isinstance(error, mcp.MCPError):
        # No fault of the connection: a result that does not fit its schema, a server that is busy, an author's mistake.
        return not isinstance(error, ValueError | TimeoutError | UserError)
    code: Any = getattr(error, "code", None)
    return code == require("mcp_types", package=EXTRA).CONNECTION_CLOSED or _is_unknown_session(error)


def _is_unknown_session(error: Exception) -> bool:
    """Whether a server refused to do anything, as one does that was started anew.

    Source: mcp 2.3, client/streamable_http.py, for HTTP 404.
    """
    return str(error) == "Session terminated"
