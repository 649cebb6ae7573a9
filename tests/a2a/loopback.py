"""Web applications on loopback, each in a thread of its own."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.late import late
from tests.support.polling import eventually

uvicorn = late("uvicorn")


class LoopbackServer:
    """Serves an application until it is closed; connections that are open then break."""

    def __init__(self, app_of: Callable[[int], Any]) -> None:
        """`app_of`: makes the application for a port."""
        config = uvicorn.Config(app=_unmade, host="127.0.0.1", port=0, log_level="critical", lifespan="on")
        self._socket = config.bind_socket()
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config.app = app_of(self.port)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        eventually(lambda: self._server.started)

    def close(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(60)
        self._socket.close()


async def _unmade(*_: Any) -> None:
    raise AssertionError


@contextmanager
def served(app_of: Callable[[int], Any]) -> Iterator[LoopbackServer]:
    server = LoopbackServer(app_of)
    try:
        yield server
    finally:
        server.close()
