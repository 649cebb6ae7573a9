"""The site of `make docs`, on loopback and as files."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "build" / "site"


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="session")
def site() -> Path:
    """Its folder."""
    assert (SITE / "index.html").exists(), "there is no site; type: make docs"
    return SITE


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where a browser finds it: its search needs a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
