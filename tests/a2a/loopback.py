"""Web applications on loopback, each in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


class LoopbackServer:
    """Serves an application until it is closed, or killed: then its connections break."""

    def __init__(self, app_of: Callable[[int], Any]) -> None:
        """`app_of`: makes the application for a port."""
        config = uvicorn.Config(app=_unmade, host="127.0.0.1", port=0, log_level="critical", lifespan="on")
        self._socket = config.bind_socket()
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config.app = app_of(self.port)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run)
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread.start()
        assert self._started.wait(60)

    def close(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(60)
        self._socket.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not (self._server.started or serving.done()):
            await asyncio.sleep(0.005)
        self._started.set()
        await serving


async def _unmade(*_: Any) -> None:
    raise AssertionError


@contextmanager
def served(app_of: Callable[[int], Any]) -> Iterator[LoopbackServer]:
    server = LoopbackServer(app_of)
    try:
        yield server
    finally:
        server.close()
