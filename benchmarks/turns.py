"""A `%chat` turn in JupyterLab and Chromium: from Shift-Enter to its first row and to its end, and a long stream.

python -m benchmarks.turns
python -m benchmarks.turns ANOTHER_CHECKOUT     # of the package that the kernels import
"""

import itertools
import os
import statistics
import sys
from collections.abc import Iterator

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from benchmarks.front_end import Figure, Opened, lab_page

TURNS = 10
TOKENS = 10_000
TOOL_SECONDS = 0.5

SETUP = (
    f"""
TOOL_SECONDS = {TOOL_SECONDS}
"""
    + """
%load_ext adk_nb
import asyncio
from adk_nb import Agent, types
from adk_nb.models import BaseLlm, LlmResponse

async def look(city: str) -> str:
    'Looks out of the window for as long as a reader needs to see its row.'
    await asyncio.sleep(TOOL_SECONDS)
    return f"{city}: clear sky"

class OneCall(BaseLlm):
    'Calls the tool once, then answers with the number of the turn.'
    turns: int = 0
    async def generate_content_async(self, llm_request, stream=False):
        if llm_request.contents[-1].parts[0].function_response is None:
            part = types.Part(function_call=types.FunctionCall(name="look", args={"city": "Oslo"}))
        else:
            part = types.Part(text=f"answer-{self.turns}.")
            self.turns += 1
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

class Tokens(BaseLlm):
    'Streams as many tokens as it is set to, in as many seconds.'
    tokens: int = 0
    seconds: float = 0
    async def generate_content_async(self, llm_request, stream=False):
        pieces = [f"word{number} " for number in range(self.tokens)]
        for number, piece in enumerate(pieces):
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=piece)]), partial=True)
            if number % 100 == 99:
                await asyncio.sleep(self.seconds * 100 / self.tokens)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="".join(pieces))]))

looker = Agent(name="looker", model=OneCall(model="scripted"), tools=[look])
talker = Agent(name="talker", model=Tokens(model="tokens"))
"""
)
COUNT = """
from ipykernel.comm.comm import BaseComm
messages, publish = [], BaseComm.publish_msg
def counting(self, *args, **options):
    messages.append(args)
    return publish(self, *args, **options)
BaseComm.publish_msg = counting
"""
# The times of the first frames in which the output of a cell has the call's row, the answer and a settled prompt.
WATCH = """
    const node = panel.content.widgets[arguments[0]].node, answer = arguments[1], times = {};
    panel.content.activeCellIndex = arguments[0];
    app.commands.execute("notebook:enter-command-mode");
    panel.content.node.focus();
    window.turn = times;
    const settled = () => /\\[\\d+\\]/.test(node.querySelector(".jp-InputPrompt")?.textContent || "");
    const frame = () => {
        const now = performance.now();
        const rows = [...node.querySelectorAll(".adknb-row")].map((row) => row.textContent).join(" ");
        if (times.view === undefined && node.querySelector(".adknb-head")) times.view = now - times.key;
        if (times.row === undefined && rows.includes("look")) times.row = now - times.key;
        const output = node.querySelector(".jp-Cell-outputArea")?.textContent || "";
        if (times.end === undefined && output.includes(answer) && settled()) times.end = now - times.key;
        if (times.row === undefined || times.end === undefined) requestAnimationFrame(frame);
    };
    document.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || times.key !== undefined) return;
        times.key = performance.now();
        requestAnimationFrame(frame);
    }, {capture: true});
"""
# Times of the frames from the first word of the stream to the end of the run.
STREAM = """
    const frames = window.frames_seen = [], node = panel.content.widgets[arguments[0]].node;
    window.stream_over = false;
    const frame = (now) => {
        if (frames.length || node.querySelector(".adknb-log")?.textContent.includes("word0")) frames.push(now);
        window.stream_over = frames.length > 0 && node.querySelector(".adknb-status").textContent.includes("done");
        if (!window.stream_over) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
"""


def main() -> None:
    if sys.argv[1:]:
        os.environ["PYTHONPATH"] = os.path.abspath(sys.argv[1])
    with lab_page() as opened:
        for measure in (one_call, streaming):
            for figure in measure(opened):
                print(f"{figure.name:<64} {figure.value:>9.4g} {figure.unit:<9} {figure.verdict}", flush=True)


def one_call(opened: Opened) -> Iterator[Figure]:
    """Turns with one call of a tool, each in a cell of its own. The first loads the code of the view."""
    page = opened(SETUP, *["%chat looker Look."] * (TURNS + 1))
    times: list[dict[str, float]] = []
    for turn in range(TURNS + 1):
        page.js(WATCH, turn + 1, f"answer-{turn}.")
        ActionChains(page.browser).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
        page.until(lambda: page.js("return window.turn.row && window.turn.end"), "the end of the turn")
        times.append(page.js("return window.turn"))
    moments = {
        "view": "the view",
        "row": "the row of the first call",
        "end": f"the end, with a tool of {TOOL_SECONDS} s",
    }
    for key, moment in moments.items():
        first, *rivals = [turn[key] for turn in times]
        yield Figure(f"Shift-Enter to {moment}, median of {TURNS}", statistics.median(rivals), "ms")
        yield Figure("    the slowest of them", max(rivals), "ms")
        yield Figure("    the first turn of the page", first, "ms")
    yield _load()


def streaming(opened: Opened) -> Iterator[Figure]:
    """A stream of tokens into an open view, as fast as it goes and at the pace of a fast model."""
    prepare = "talker.model.tokens, talker.model.seconds = {}, {}; messages.clear()"
    paces = (0, 5)
    cells = [
        cell
        for seconds in paces
        for cell in (prepare.format(TOKENS, seconds), "%chat talker Speak.", "print(len(messages))")
    ]
    page = opened(SETUP + COUNT, *cells)
    for number, seconds in enumerate(paces):
        chat = 3 * number + 2
        page.run_cell(chat - 1)
        page.js(STREAM, chat)
        page.run_cell(chat, wait=False)
        page.until(lambda: page.js("return window.stream_over"), "the end of the stream", 120)
        times = page.js("return window.frames_seen")
        page.run_cell(chat + 1)
        gaps = sorted(later - earlier for earlier, later in itertools.pairwise(times))
        span = times[-1] - times[0]
        yield Figure(
            f"frames while {TOKENS:,} tokens stream in {span / 1000:.1f} s",
            1000 * len(gaps) / span,
            "frames/s",
            50,
            True,
        )
        yield Figure("    the longest frame", gaps[-1], "ms")
        yield Figure("    the 95th of 100 frames", gaps[int(0.95 * len(gaps))], "ms")
        yield Figure("    messages of widgets", float(page.text(chat + 1)), "messages", None if seconds else 50)
        yield _load()


def _load() -> Figure:
    return Figure("    load of the machine, 1 min", os.getloadavg()[0], "")


if __name__ == "__main__":
    main()
