"""The live view in JupyterLab and Chromium: how soon, how dear, how large, how smooth.

python -m benchmarks.front_end
"""

import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
STATIC = ROOT / "adk_nb/notebook/view/static"
sys.path.append(str(ROOT / "tests/browser"))

from lab import Lab, Page  # noqa: E402  what the browser tests drive is driven here too
from lab_server import LabServer, chromium  # noqa: E402

KEPT = ROOT / "build/bench/front_end.jsonl"
TURNS = 10
EVENTS = 1000
ROUNDS = 5
ROWS = 10_000
VIEWS = 50

SETUP = """
%load_ext adk_nb
import asyncio, time
from adk_nb import Agent, types
from adk_nb.models import BaseLlm, LlmResponse
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.view.widget import LiveView

class Timed(BaseLlm):
    'Begins to answer after `pause` seconds, notes when, and is not done soon.'
    pause: float = 0
    async def generate_content_async(self, llm_request, stream=False):
        await asyncio.sleep(self.pause)
        said.append(time.time())
        content = types.Content(role="model", parts=[types.Part(text=f"answer-{len(said)} ")])
        yield LlmResponse(content=content, partial=True)
        await asyncio.sleep(1)
        yield LlmResponse(content=content)

class Calls(BaseLlm):
    'Asks for one call after another, so that a turn has as many events as it is told.'
    pause: float = 0
    events: int = 0
    async def generate_content_async(self, llm_request, stream=False):
        await asyncio.sleep(self.pause)
        self.events -= 2
        call = types.FunctionCall(name="look", args={"city": "Oslo"})
        part = types.Part(function_call=call) if self.events > 0 else types.Part(text="That is all.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

def look(city: str) -> str:
    'Looks.'
    return f"{city}: clear sky"

def turn(show, pause):
    model = Calls(model="calls", pause=pause, events=EVENTS)
    agent = Agent(name="looker", model=model, tools=[look], max_iterations=None)
    chat = Chat(agent, show=show)
    began, cpu = time.perf_counter(), time.process_time()
    reply = chat.ask("Look.")
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    return len(reply.events), wall, cpu

said = []
"""
FILL = f"""
for i in range({ROWS}):
    row = {{"id": str(i), "author": "looker", "kind": "call", "tool": "look", "args": 'city="Oslo"', "ok": True}}
    row |= {{"result": f"{{i}} " + "clear sky " * (i % 9), "ms": i, "detail": "{{}}"}}
    view.push({{"op": "append", "row": row}})
view.close_run()
"""
WATCH = """
    window.seen = {};
    new MutationObserver(() => {
        for (const row of document.querySelectorAll(".adknb-row")) {
            const found = row.textContent.match(/answer-\\d+/);
            if (!found || window.seen[found[0]]) continue;
            window.seen[found[0]] = -1;
            requestAnimationFrame(() => { window.seen[found[0]] = Date.now() / 1000; });
        }
    }).observe(document.body, {childList: true, subtree: true, characterData: true});
"""
SCROLL = """
    const log = document.querySelector(".adknb-log"), times = [];
    log.scrollTop = 0;
    return await new Promise((done) => {
        let step = 40;
        const frame = (now) => {
            times.push(now);
            if (now - times[0] > 4000) return done({times, nodes: document.querySelectorAll(".adknb-root *").length});
            if (log.scrollTop + log.clientHeight >= log.scrollHeight - 1) step = -40;
            else if (log.scrollTop <= 0) step = 40;
            log.scrollTop += step;
            requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    });
"""


@dataclass(frozen=True)
class Figure:
    """One figure, and what it is held to."""

    name: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        met = self.value >= self.target if self.at_least else self.value <= self.target
        return f"{'>=' if self.at_least else '<='} {self.target:g} {self.unit}: {'met' if met else 'MISSED'}"


def main() -> None:
    """Print each figure as it is measured, and keep it."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with lab_page() as opened, KEPT.open("a") as stored_file:
        for measure in (size, memory, first_row, share, scrolling):
            for item in measure(opened):
                sys.stdout.write(f"{item.name:<64} {item.value:>9.4g} {item.unit:<9} {item.verdict}\n")
                sys.stdout.flush()
                stored_file.write(json.dumps({"name": item.name, "value": item.value, "unit": item.unit}) + "\n")


Opened = Callable[..., Page]
"""Cells -> a page with a notebook of them, none of which was run."""


@contextmanager
def lab_page() -> Iterator[Opened]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with LabServer(home / "lab").running() as server, chromium(home / "chromium") as browser:
            lab = Lab(server, browser, server.root)
            browser.set_script_timeout(60)

            def opened(*cells: str) -> Page:
                page = lab.open(lab.write("front_end.ipynb", *cells), fresh=True)
                page.run_cell(0)
                return page

            yield opened
            lab.close()


def size(_: Opened) -> Iterator[Figure]:
    """What a page loads."""
    for name, limit in (("view.js", 110), ("view.css", 40)):
        yield Figure(f"{name}, once a page", (STATIC / name).stat().st_size / 1000, "kB", limit)
    yield Figure("loader.js, once a view", (STATIC / "loader.js").stat().st_size / 1000, "kB", 1.5)


def memory(opened: Opened) -> Iterator[Figure]:
    """Of the page: finished runs, each in a view of its own."""
    agent = "looker = Agent(name='looker', model=Calls(model='calls', events=6), tools=[look])"
    run = "looker.model.events = 6\nChat(looker).ask('Look.')"
    page = opened(SETUP, agent, *[run] * VIEWS)
    page.run_cell(1)
    page.run_cell(2)
    page.wait(".adknb-fold")
    earlier_heap = heap(page)
    for cell in range(3, VIEWS + 2):
        page.run_cell(cell)
    page.until(lambda: len(page.all(".adknb-fold")) == VIEWS, "every view")
    yield Figure(f"memory of {VIEWS} finished views", (heap(page) - earlier_heap) / 1e6 * VIEWS / (VIEWS - 1), "MB", 60)


def heap(page: Page) -> float:
    """Bytes that the scripts of a page hold."""
    page.browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    page.browser.execute_cdp_cmd("Performance.enable", {})
    metrics = page.browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "JSHeapUsedSize")


def first_row(opened: Opened) -> Iterator[Figure]:
    """From the model's answer in the kernel to the frame in which its row is there; the clock is the same."""
    for name, pause in (("answers at once, the view still to come", 0), ("answers after 0.5 s", 0.5)):
        agent = f"agent = Agent(name='timed', model=Timed(model='timed', pause={pause}))"
        page = opened(SETUP, agent, "Chat(agent).ask('When?')", "print(said)")
        page.run_cell(1)
        page.js(WATCH)
        for _ in range(TURNS):
            page.run_cell(2)
        page.run_cell(3)
        payload = json.loads(page.text(3))
        log = page.js("return window.seen")
        late = sorted(1000 * (log[f"answer-{number}"] - position) for number, position in enumerate(payload, 1))
        yield Figure(f"first event row, median, a model that {name}", statistics.median(late[1:]), "ms", 100)
        yield Figure("    the slowest of them", late[-1], "ms")


def share(opened: Opened) -> Iterator[Figure]:
    """Of a turn of 1,000 events, with the view and without: the fastest of each, since what else runs only adds."""
    page = opened(SETUP.replace("EVENTS", str(EVENTS)), "", "print(turn('auto', PAUSE))", "print(turn('off', PAUSE))")
    for name, pause in (("20 ms", 0.02), ("no time", 0.0)):
        took: dict[int, list[list[float]]] = {2: [], 3: []}
        for cell in took:
            text = "auto" if cell == 2 else "off"
            source = f"print(list(turn('{text}', {pause})))"
            page.js("panel.content.widgets[arguments[0]].model.sharedModel.setSource(arguments[1])", cell, source)
        for _ in range(ROUNDS):
            for cell, runs in took.items():
                page.run_cell(cell, timeout=120)
                runs.append(json.loads(page.text(cell).splitlines()[-1]))
        (_, with_it, cpu), (_, without, bare) = (
            [min(column) for column in zip(*runs, strict=True)] for runs in took.values()
        )
        number = 5 if pause else None
        yield Figure(
            f"view's share of {EVENTS} events, a model that takes {name}", 100 * (with_it / without - 1), "%", number
        )
        yield Figure("    wall time without a view", without, "s")
        yield Figure("    CPU of the view for an event", 1e6 * (cpu - bare) / EVENTS, "us")


def scrolling(opened: Opened) -> Iterator[Figure]:
    """A log of 10,000 rows, as fast as the page paints."""
    page = opened(SETUP + "\nview = LiveView(title='looker')\nview", FILL)
    page.wait(".adknb-head")
    page.run_cell(1)
    page.wait(".adknb-earlier", "earlier")
    page.wait(".adknb-row:last-child", str(ROWS - 1))
    scrolled = page.js(SCROLL)
    times = scrolled["times"]
    gaps = sorted(later - earlier for earlier, later in itertools.pairwise(times))
    yield Figure(
        f"scroll rate of a log of {ROWS:,} events", 1000 * len(gaps) / (times[-1] - times[0]), "frames/s", 50, True
    )
    yield Figure("    the longest frame", gaps[-1], "ms")
    yield Figure("    elements of the view on the page", scrolled["nodes"], "elements")


if __name__ == "__main__":
    main()
