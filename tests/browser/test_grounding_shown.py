"""What a service looked up, in a real page: searches, sources, and the suggestions of the search service in a frame."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from chats import SETUP
from lab import Lab, Page

from tests.support.hostile_texts import PAYLOADS
from tests.support.late import late

nbconvert = late("nbconvert")

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
CHIPS = """<style>
.container { align-items: center; border-radius: 8px; box-shadow: 0 0 0 1px #0000000f; display: flex; height: 56px }
.chip { border: 1px solid; border-radius: 16px; font: 500 14px sans-serif; margin-left: 12px; padding: 6px 12px;
  text-decoration: none; white-space: nowrap }
@media (prefers-color-scheme: light) { .container { background: #fafafa } .chip { background: #fff; color: #5e5e5e } }
@media (prefers-color-scheme: dark) { .container { background: #1f1f1f } .chip { background: #2c2c2c; color: #fff } }
</style><div class="container"><a class="chip" href="http://127.0.0.1:9/search?q=weather+oslo">weather oslo</a>
<a class="chip" href="http://127.0.0.1:9/search?q=weather+paris">weather paris</a></div>"""
"""As a search service writes them: chips, for a light page and a dark one."""
FOUND = """
from adk_nb import types
from adk_nb.models import LlmResponse

def found(text, page, *ends):
    chunks = [types.GroundingChunk(web=types.GroundingChunkWeb(title=title, uri=uri)) for title, uri in (
        ("yr.no", "https://www.yr.no/oslo"), ("Météo à Paris", "https://meteo.example/paris"))]
    supports = [types.GroundingSupport(segment=types.Segment(end_index=len(text[:text.index(end) + len(end)].encode())),
        grounding_chunk_indices=[number]) for number, end in enumerate(ends)]
    about = types.GroundingMetadata(
        web_search_queries=["weather oslo", "weather paris"], grounding_chunks=chunks, grounding_supports=supports,
        search_entry_point=types.SearchEntryPoint(rendered_content=page))
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), grounding_metadata=about)
"""
FRAME = "iframe[title='Search suggestions']"


def looked_up(lab: Lab, page: str, *args: str) -> Page:
    """A page whose fourth cell's answer was looked up, and says it with `page`; `more` cells come after it."""
    agent = (
        "text = 'In **Oslo** it is 9 °C, in Paris 21 °C.'\n"
        f"answer = found(text, json.loads({json.dumps(page)!r}), '9 °C', '21 °C')\n"
        "guide = Agent(name='guide', model=ScriptedLlm(answer, [*answer.content.parts]), tools=[refund])"
    )
    opened = lab.open(lab.write("found.ipynb", SETUP, FOUND, agent, "%chat guide How warm is it?", *args))
    for cell in range(4):
        opened.run_cell(cell)
    return opened


def test_a_click_on_a_suggestion_leads_to_the_search_in_a_window_of_its_own(lab: Lab):
    page = looked_up(lab, CHIPS)
    browser, frame = page.browser, page.wait(FRAME)
    page.wait(".adknb-summary", "In Oslo it is 9 °C[1], in Paris 21 °C[2].")
    [handle] = browser.window_handles

    browser.switch_to.frame(frame)
    page.click(".chip", "weather paris")
    browser.switch_to.window(handle)

    page.until(lambda: len(browser.window_handles) == 2, "another window")
    browser.switch_to.window(next(item for item in browser.window_handles if item != handle))
    led_to = page.until(lambda: (url := browser.current_url).startswith("http") and url, "the search")
    browser.close()
    browser.switch_to.window(handle)
    assert led_to == "http://127.0.0.1:9/search?q=weather+paris"
    assert page.js("return location.pathname").endswith("found.ipynb")


HOSTILE = "".join(PAYLOADS) + (
    "<script>parent.alert(1); top.alert(2)</script><a class=out target=_top href='URL/top'>out</a>"
    "<img src='URL/beacon'><link rel=stylesheet href='URL/style'><style>@import 'URL/import'</style>"
    "<form action='URL/form'><input name=a autofocus onfocus=alert(3)></form>"
    "<meta http-equiv=refresh content='0;url=URL'>"
    "<link rel=preconnect href='URL'><link rel=preconnect crossorigin href='URL'>"
    "<link rel=prefetch href='URL/prefetch'><link rel=preload as=image href='URL/preload'>"
    "<link rel=modulepreload href='URL/module.js'>"
    "<link rel=icon href='URL/icon'><link rel=prerender href='URL/prerender'><object data='URL/object'></object>"
    "<embed src='URL/embed'><svg><image href='URL/drawn'/><use href='URL/used#a'/></svg><video poster='URL/poster'>"
    "</video><math><style><!--</style><link rel=preconnect href='URL'><iframe src='URL'></iframe>--></style></math>"
    "<svg><style><!--</style><link rel=preconnect href='URL'>--></style></svg>"
    "<noscript><p title=\"</noscript><link rel=preconnect href='URL'>\"></noscript>"
    "<body onload=alert(4) background='URL/back'><iframe src='URL/frame'></iframe><iframe src='javascript:alert(5)'>"
)


@contextmanager
def listener() -> Iterator[tuple[str, list[str]]]:
    """An address; and a word for each connection to it, and the path of each request."""
    texts: list[str] = []

    class Server(ThreadingHTTPServer):
        def verify_request(self, request: object, client_address: object) -> bool:
            texts.append("connection")
            return True

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            texts.append(self.path)
            self.send_response(204)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", texts
        finally:
            server.shutdown()
            thread.join()


def test_hostile_suggestions_run_nothing_load_nothing_and_lead_nowhere(lab: Lab):
    with listener() as (url, request), listener() as (second, received):
        page = looked_up(lab, HOSTILE.replace("URL", url))
        browser = page.browser
        browser.switch_to.frame(page.wait(FRAME))
        page.until(lambda: page.all(".out"), "the page in the frame")
        assert browser.execute_script("return document.querySelectorAll('form, button, .out[target]').length") == 0
        browser.switch_to.default_content()
        page.js("return fetch(arguments[0] + '/heard', {mode: 'no-cors'}).then(() => 1)", second)
        assert "/heard" in received
        assert request == []
        assert len(browser.window_handles) == 1

    assert page.js("return location.pathname").endswith("found.ipynb")
    assert page.alerts() == []
    notebook = page.saved()
    notebook.cells = notebook.cells[3:]
    notebook.cells[0].source = ""
    exported, _ = nbconvert.HTMLExporter(mathjax_url="", require_js_url="").from_notebook_node(notebook)
    path = lab.folder / "found.html"
    path.write_text(exported, "utf-8")
    browser.get(path.as_uri())
    page.wait(FRAME)
    assert browser.execute_script("return window.alerts") == []


@pytest.mark.parametrize(("theme", "width"), [("Light", 1000), ("Dark", 1000), ("Light", 500)])
def test_what_was_looked_up_is_readable(lab: Lab, theme: str, width: int):
    live = """
from adk_nb.notebook.view.rows import RunRows
from adk_nb.notebook.view.widget import LiveView
view, rows = LiveView(title="guide"), RunRows()
for event in _run.events:
    for op in rows.feed(event): view.push(op)
view.push({"op": "status", "status": "done", "text": "done"})
view.close_run()
view
"""
    page = looked_up(lab, CHIPS, live)
    page.theme(f"JupyterLab {theme}")
    page.resize(width, 900)
    page.js("for (const cell of panel.content.widgets) cell.inputHidden = true;")
    page.run_cell(4)
    page.wait(".adknb-page")
    page.js("panel.content.node.querySelector('.jp-WindowedPanel-outer').scrollTop = 0")

    page.screenshot(f"found-{theme.lower()}-{width}")

    assert page.js(CONTRAST) == []
    frames = (
        "return [...document.querySelectorAll('iframe')].filter((one) => one.offsetParent)"
        ".map((one) => [one.offsetWidth, one.parentElement.clientWidth])"
    )
    assert [custom >= 0.9 * around for custom, around in page.js(frames)] == [True, True]
