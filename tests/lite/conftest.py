"""The site of `make lite` on loopback, and a Chromium whose requests to anywhere else are noted and refused."""

import socketserver
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from lab_server import chromium
from lite_page import LitePage
from selenium.webdriver import Chrome

SITE = Path(__file__).parents[2] / "build" / "lite"
OF_CHROMIUM = ("start.duckduckgo.com:443", "passwordsleakcheck-pa.googleapis.com:443")
"""What Debian's Chromium itself opens: once when it starts, and where a password was typed."""


class Files(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    before_python = b""
    """Script that a page's Python begins with."""

    def do_GET(self) -> None:
        """Send a file; `before_python` in front of Pyodide's first one."""
        if not (self.before_python and self.path.endswith("/pyodide/pyodide.mjs")):
            super().do_GET()
            return
        body = self.before_python + Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class ElsewhereProxy(socketserver.ThreadingTCPServer):
    """A proxy that lets nothing through, and keeps the first line of each request: its method and address."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self) -> None:
        self.requests: list[str] = []
        requests = self.requests

        class Refuse(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                if request := self.rfile.readline().decode("latin-1").strip():  # else a connection made in advance
                    requests.append(request)
                self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        super().__init__(("127.0.0.1", 0), Refuse)


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the site."""
    assert (SITE / "index.html").exists(), "there is no site; type: make lite"
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[ElsewhereProxy]:
    """The way out of the browser: all but loopback goes through it."""
    with ElsewhereProxy() as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield proxy
        proxy.shutdown()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory, elsewhere: ElsewhereProxy) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium"), f"--proxy-server=127.0.0.1:{elsewhere.server_address[1]}") as it:
        yield it


@pytest.fixture
def page(site: str, browser: Chrome, elsewhere: ElsewhereProxy) -> Iterator[LitePage]:
    """A page of the site; at the end, nothing has been asked of another server."""
    page = LitePage(site, browser)
    yield page
    browser.get("about:blank")  # ends the page's Python
    assert not [request for request in elsewhere.requests if not any(host in request for host in OF_CHROMIUM)]


@pytest.fixture
def without_waiting(browser: Chrome, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A browser as Firefox 140 is: WebAssembly has no JavaScript Promise Integration."""
    monkeypatch.setattr(Files, "before_python", b"delete WebAssembly.Suspending; delete WebAssembly.promising;\n")
    browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    yield
    browser.execute_cdp_cmd("Network.clearBrowserCache", {})
