"""A server in the background: uvicorn on the package's own event loop, beside whatever else runs there."""

import asyncio
import atexit
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from adk_nb import sync
from adk_nb.errors import InputError
from adk_nb.serving.access import MAX_BODY

HOST = "127.0.0.1"
PORT = 8765
"""The first port that is tried."""
_TRIES = 50
"""Ports that are tried one after another."""
_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_MAX_CONNECTIONS = 100
"""At a time. Each takes a file of the process, which may have 256 of them on macOS."""
_HEADER_SECONDS = 10.0
"""From a connection, or an answer on it, to the end of the next request's headers."""
logger = logging.getLogger(__name__)


def bound_socket(port: int | None, host: str = HOST) -> socket.socket:
    """A socket that listens.

    Args:
        port: The port; 0 for any. None: the first that is free from `PORT` on.
        host: The address, by default loopback.

    Raises:
        InputError: The port cannot be used.
    """
    wanted = [port] if port is not None else [*range(PORT, PORT + _TRIES), 0]
    for candidate in wanted:
        server = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        # On Windows the option would share a port that somebody else listens on.
        if not hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, candidate))
            server.listen(128)
        except OSError as error:
            server.close()
            if candidate != wanted[-1]:
                continue
            reason = f"port {candidate} cannot be used: {error.strerror}; leave --port out, and a free one is taken"
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                reason = f"{host!r} is no address of this machine; name one, as 127.0.0.1"
            if error.errno == errno.EADDRINUSE:
                with suppress(OSError), socket.socket() as probe:
                    probe.bind((HOST, 0))
                    free = probe.getsockname()[1]
                    reason = f"port {candidate} is taken; name another, as --port {free}, or leave --port out"
            raise InputError(reason) from error
        except OverflowError as error:
            server.close()
            raise InputError(f"{candidate} is no port; use a number from 0 to 65535") from error
        else:
            server.setblocking(False)
            return server
    raise AssertionError("the last port was either bound or refused")


class Connection(H11Protocol):
    """A connection of a client: one of at most `_MAX_CONNECTIONS`, which must send its requests in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # pyright: ignore[reportArgumentType] - uvicorn narrows it, too
        if len(self.connections) > _MAX_CONNECTIONS:
            self.transport.abort()
        else:
            self._await_request()

    def handle_events(self) -> None:
        cycle = self.cycle
        super().handle_events()
        if self.cycle is not cycle and self._deadline:
            self._deadline.cancel()

    def handle_websocket_upgrade(self, event: Any) -> None:
        if self._deadline:
            self._deadline.cancel()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        self._await_request()  # before pipelined requests are taken up
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        # Bytes that come do not prolong it: a body that nobody reads, and headers sent one letter at a time.
        if self._deadline:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(_HEADER_SECONDS, self.transport.abort)


LIMITS: dict[str, Any] = {
    "access_log": False, "lifespan": "on", "http": Connection, "ws": "websockets-sansio", "ws_max_size": MAX_BODY,
    "server_header": False,
}  # fmt: skip
"""Settings of uvicorn that each server of this package has."""


class Server:
    """An ASGI app on a port of this machine, until `stop` or the end of the process.

    Blocking calls of what it serves run in worker threads: the thread of the cells may be busy, or wait for an answer
    of this very server. A client that connects must send the headers of its request soon, and connections are few, so
    that many of them leave the process its files.

    Args:
        create: Makes the app, from the address of this server.
        listening: The socket, which is closed at the end, or a port of this machine.

    Raises:
        InputError: The port cannot be used.
    """

    def __init__(self, create: Callable[[str], ASGIApp], listening: socket.socket | int) -> None:
        if isinstance(listening, int):
            listening = bound_socket(listening)
        self.port: int = listening.getsockname()[1]
        self._socket = listening
        config = uvicorn.Config(
            create(self.url), log_config=None, log_level="error", proxy_headers=False,
            timeout_graceful_shutdown=int(_STOP_SECONDS), **LIMITS,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._started = asyncio.Event()
        self._work: sync.Started[None] | None = None

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        """True until it was stopped, or has failed."""
        return self._work is not None and not self._work.done()

    def start(self) -> None:
        """Start, and wait until it answers.

        Raises:
            InputError: It did not start; the log says why.
        """
        self._work = sync.start(self._serve())
        # Exit handlers run last in, first out: this one before that of the loop, which cancels what still runs.
        atexit.register(self.stop)

        async def answers() -> None:
            async with asyncio.timeout(_START_SECONDS):
                while not self._server.started:
                    if not self.is_running:
                        raise TimeoutError
                    await asyncio.sleep(0.01)

        try:
            sync.run(answers())
        except TimeoutError as error:
            self.stop()
            raise InputError(f"the server did not start within {_START_SECONDS:.0f} s; the log says why") from error

    def stop(self) -> None:
        """Refuse new requests, end the open ones, and free the port."""
        atexit.unregister(self.stop)
        work, self._work = self._work, None
        if work is not None:
            sync.loop().call_soon_threadsafe(setattr, self._server, "should_exit", True)
            with suppress(Exception):  # as it failed before, the log has it
                work.result(2 * _STOP_SECONDS)
            work.cancel()
        self._socket.close()

    async def _serve(self) -> None:
        with sync.in_workers():
            try:
                await self._server.serve(sockets=[self._socket])
            finally:
                self._socket.close()
