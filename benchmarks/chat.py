"""A chat box in JupyterLab and Chromium: how soon a long conversation is there, how it types and scrolls, and how many
messages a long answer is.

python -m benchmarks.chat
"""

import itertools
import json
import statistics
import sys
from collections.abc import Iterator

from benchmarks.front_end import Figure, Opened, lab_page

TURNS = 500
TOKENS = 10_000
KEYS = 200

SETUP = f"""
%load_ext adk_nb
import asyncio, json, time
from adk_nb import Agent, tool, types
from adk_nb.models import BaseLlm, LlmResponse, ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from ipykernel.comm.comm import BaseComm

@tool
def look(city: str) -> str:
    "Looks at a city."
    return f"{{city}}: clear sky, 9 degrees"

ANSWER = "It is **clear** in Oslo.\\n\\n| city | sky |\\n|---|---|\\n| Oslo | clear |\\n\\nTake a coat, and look again."
calls = [call("look", city=f"Oslo {{number}}") for number in range({TURNS})]
answers = [one for number in range({TURNS}) for one in (calls[number], f"{{ANSWER}} {{number}}")]
talker = Agent(name="talker", model=ScriptedLlm(*answers), tools=[look])

class Streams(BaseLlm):
    "Gives its tokens as fast as a fast model does: 2,500 a second."
    async def generate_content_async(self, llm_request, stream=False):
        began = time.monotonic()
        for number in range({TOKENS}):
            if number % 25 == 24:
                await asyncio.sleep(max(0, began + number / 2_500 - time.monotonic()))
            part = types.Part(text=f"token{{number}} " + ("\\n\\n" if number % 50 == 49 else ""))
            yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)

streamer = Agent(name="streamer", model=Streams(model="streams"))
counted, publish = [], BaseComm.publish_msg

def counting(self, kind, *said, **named):
    counted.append(len(json.dumps(said[0] if said else named.get("data"), default=str)))
    return publish(self, kind, *said, **named)
"""
FILL = f"chat = Chat(talker, show='off')\nfor number in range({TURNS}):\n    chat.ask(f'How is city {{number}}?')"
OPENED = """
    window.opened = new Promise((done) => {
        const look = () => {
            const all = document.querySelectorAll(".adknb-talk-turn");
            if (all.length === arguments[0]) requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0));
            else requestAnimationFrame(look);
        };
        look();
    });
    window.began = performance.now();
"""
TYPE = """
    const field = document.querySelector(".adknb-composer .adknb-say"), times = [];
    field.focus();
    for (let key = 0; key < arguments[0]; key += 1) {
        const began = performance.now();
        document.execCommand("insertText", false, "abcdefgh "[key % 9]);
        field.getBoundingClientRect();
        times.push(performance.now() - began);
        await new Promise(requestAnimationFrame);
    }
    return times;
"""
SCROLL = """
    const talk = document.querySelector(".adknb-talk"), times = [];
    return await new Promise((done) => {
        let step = -60;
        const frame = (now) => {
            times.push(now);
            if (now - times[0] > 4000) return done(times);
            if (talk.scrollTop + talk.clientHeight >= talk.scrollHeight - 1) step = -60;
            else if (talk.scrollTop <= 0) step = 60;
            talk.scrollTop += step;
            requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    });
"""


def main() -> None:
    """Print each figure as it is measured."""
    with lab_page() as opened:
        for measure in (conversation, stream):
            for item in measure(opened):
                sys.stdout.write(f"{item.name:<64} {item.value:>9.4g} {item.unit:<9} {item.verdict}\n")
                sys.stdout.flush()


def conversation(opened: Opened) -> Iterator[Figure]:
    """A conversation of 500 turns with a call each: opened, typed into and scrolled."""
    page = opened(SETUP, FILL, "chat._runner.show = 'auto'\nchat.box()", "")
    page.run_cell(1, timeout=300)
    page.js(OPENED, TURNS)
    page.run_cell(2, wait=False)
    seconds = page.js("return (await window.opened - window.began) / 1000")
    yield Figure(f"a box with {TURNS} turns is there after", seconds, "s", 2)
    times = page.js(TYPE, KEYS)
    yield Figure("    a key in its field, median", statistics.median(times), "ms", 16)
    yield Figure("    the slowest of them", max(times), "ms", 16)
    frames = page.js(SCROLL)
    gaps = sorted(later - earlier for earlier, later in itertools.pairwise(frames))
    yield Figure("    scroll rate", 1000 * len(gaps) / (frames[-1] - frames[0]), "frames/s", 58, True)
    yield Figure("    the longest frame", gaps[-1], "ms")


def stream(opened: Opened) -> Iterator[Figure]:
    """An answer of 10,000 tokens that streams into a box."""
    page = opened(SETUP, "box = Chat(streamer).box()", "BaseComm.publish_msg = counting", "print(json.dumps(counted))")
    page.run_cell(1)
    page.run_cell(2)
    page.wait(".adknb-say").send_keys("Speak.\n")
    page.wait(".adknb-talk-text", f"token{TOKENS - 1}", timeout=120)
    page.wait(".adknb-status", "done")
    page.run_cell(3)
    counted = json.loads(page.text(3))
    yield Figure(f"an answer of {TOKENS:,} tokens in", len(counted), "messages", 50)
    yield Figure("    all of them", sum(counted) / 1000, "kB")


if __name__ == "__main__":
    main()
