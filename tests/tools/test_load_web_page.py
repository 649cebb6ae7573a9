"""The words of a web page, from a server on this machine; and the addresses that a page must not be read from."""

import importlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import sync
from adk_nb.models import call
from adk_nb.tools.load_web_page import load_web_page
from adk_nb.tools.web_access import WebAccess
from tests.support.talk import Talk, guide, summaries

PAGE = """<!doctype html><html><head><title>A page about some tides</title><style>p { color: red of some kind }</style>
<script>var x = "some words that nobody sees";</script></head><body><nav><ul><li>Home</li><li>About us</li></ul></nav>
<p>The tide rises <b>twice</b> a day &amp; falls
 again.</p><p>So it is.</p><div>It is caused by the <a href="/moon">moon</a> and the sun.
<br>That is all of it.</div></body></html>
"""


HOSTILE = {
    "/unclosed": "<a " * 70_000,
    "/open": "<b>" * 50_000 + "</i>" * 50_000,
    "/quotes": "<a b='" * 30_000,
    "/comments": "<!--" * 50_000,
    "/attributes": "<a " + " ".join(f"a{n}=1" for n in range(30_000)) + ">",
    "/tables": "<table><td><p>" * 20_000,
    "/long": "<p>some words of a page</p>" * 200_000,
}
"""Pages that a parser might take minutes for."""


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if page := HOSTILE.get(self.path):
            return self.answer(("text/html", f"<p>It begins with a line.</p>{page}".encode(), 200))
        found = {
            "/page": ("text/html; charset=utf-8", PAGE.encode(), 200),
            "/latin": ("text/html", "<meta charset=latin-1><p>Så går det en gang".encode("latin-1"), 200),
            "/empty": ("text/html", b"", 200),
            "/json": ("application/json", b'{"a": 1}', 200),
            "/picture": ("image/png", b"png", 200),
            "/moved": ("text/html", b"", 302),
            "/round": ("text/html", b"", 302),
        }.get(self.path, ("text/html", b"gone", 404))
        self.answer(found)

    def answer(self, found: tuple[str, bytes, int]) -> None:
        kind, body, status = found
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/page" if self.path == "/moved" else self.path)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as pages:
        serving = threading.Thread(target=pages.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield f"http://127.0.0.1:{pages.server_port}"
        pages.shutdown()
        serving.join()


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine may be reached."""
    web = WebAccess(allow_private_network_access=True)
    monkeypatch.setattr(importlib.import_module("adk_nb.tools.load_web_page"), "web", web)
    yield
    web.drop_connections()


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("path", ["/page", "/moved"])
def test_the_long_lines_of_a_page_are_read(server: str, path: str):
    assert sync.run(load_web_page(server + path)) == (
        "A page about some tides\n"
        "The tide rises twice a day & falls again.\n"
        "It is caused by the moon and the sun.\n"
        "That is all of it."
    )


@pytest.mark.usefixtures("inside")
def test_a_page_may_say_its_encoding_and_text_that_is_no_page_is_read_as_it_is(server: str):
    assert sync.run(load_web_page(f"{server}/latin")) == "Så går det en gang"
    assert sync.run(load_web_page(f"{server}/empty")) == ""
    assert sync.run(load_web_page(f"{server}/json")) == '{"a": 1}'


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("path", HOSTILE)
def test_no_page_takes_a_parser_longer_than_its_length(server: str, path: str):
    began = time.process_time()

    text = sync.run(load_web_page(server + path))

    assert time.process_time() - began < 5  # 200 kB of `<a ` took Python's own parser minutes
    assert isinstance(text, str) and text.startswith("It begins with a line.") and len(text) < 2_000_100
    assert ("not read" in text or "were read" in text) == (path in ("/open", "/tables", "/long"))


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize(
    ("path", "why"),
    [("/none", "HTTP 404"), ("/picture", "image/png, … not text"), ("/round", "redirected more than 5")],
)
def test_unreadable_input_is_reported(server: str, path: str, why: str):
    said = sync.run(load_web_page(server + path))

    assert isinstance(said, dict) and mentions(said["error"], why)


@pytest.mark.parametrize(
    "url", ["http://localhost/", "http://127.0.0.1:1/", "http://[::1]/", "file:///etc/passwd", "no address"]
)
def test_this_machine_and_its_networks_are_not_read(url: str):
    said = sync.run(load_web_page(url))

    assert isinstance(said, dict) and "was not read" in said["error"]


def test_a_model_reads_a_page_with_it(server: str):
    talk = Talk(guide(call("load_web_page", url=f"{server}/page"), "I may not.", tools=[load_web_page]))
    events = talk.say()

    assert "private network" in summaries(events)[1][1]  # the address of this machine: not the model's to ask for
