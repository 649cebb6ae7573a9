"""IPython in a terminal: tables as wide as the window, and answers that stream."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebook.conftest import Shell

CELLS = [
    "%load_ext adk_nb",
    'ip = get_ipython(); ip.run_cell_magic("tool", "", "def get_weather(city: str, day: str) -> str:\\n'
    "    '''Say what the weather of a city will be like on a day of the next two weeks.'''\\n    return city\")",
    'ip.run_cell_magic("agent", "guide -m offline -t get_weather", "You are a guide who answers in one sentence.")',
    '%state places=["Oslo", "Rome", "Lima", "Bern", "Paris", "London", "Madrid", "Vienna", "Warsaw", "Berlin", "Kyiv"]',
    "%chat --quiet guide What is the weather of Oslo going to be like on the first Monday of next month, and of Rome?",
    "%trace",
    "%tools",
    "%agents",
    "%state",
    "%doctor",
]


def typed(width: int, folder: Path) -> list[str]:
    """What IPython prints in a terminal of that width, line by line."""
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"]
    environment = {key: one for key, one in os.environ.items() if key != "ADK_NB_DISPLAY"}
    environment |= {"COLUMNS": str(width), "IPYTHONDIR": str(folder), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command, input="\n".join(CELLS) + "\n", capture_output=True, encoding="utf-8", timeout=120, env=environment
    )
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, pytest.param(90, marks=pytest.mark.long)])
def test_a_row_of_a_table_fits_the_terminal_and_what_is_to_be_typed_is_whole(width: int, tmp_path: Path) -> None:
    lines = typed(width, tmp_path)

    rules = [at for at, line in enumerate(lines) if set(line) == {"-", " "}]
    assert len(rules) == 5
    rows = [line for at in rules[:4] for line in (lines[at - 1], lines[at], lines[at + 1])]
    assert all(len(line) <= width for line in rows), rows
    assert max(map(len, rows)) > width - 5
    assert sum("…" in line for line in rows) >= 2
    assert not any("…" in line for line in lines[rules[4] :])
    assert any("%config AdkNb.sessions =" in line for line in lines[rules[4] :])


def test_a_saved_notebook_has_whole_tables_whatever_the_terminal_is(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "a long text " * 20
    shell.cell(f"%state key='{text}'")

    assert text in str(shell.cell("%state"))


SLOW = """%load_ext adk_nb
import pathlib, time
from adk_nb import tool, types
from adk_nb.agents import Agent, BaseAgent, ParallelAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
def look(city: str) -> dict: print("looking"); return {"temp_c": 9}
def keep(amount: int) -> str: return "kept"
"""


class Terminal:
    """IPython in a terminal that reads its cells from a pipe."""

    def __init__(self, folder: Path) -> None:
        environment = {key: one for key, one in os.environ.items() if key != "ADK_NB_DISPLAY"}
        environment |= {"IPYTHONDIR": str(folder), "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=environment)
        self.seen = ""
        self._end = threading.Timer(60, self.process.kill)
        self._end.start()

    def type(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def until(self, text: str) -> None:
        """Read until `text` has been printed."""
        assert self.process.stdout
        while text not in self.seen:
            piece = os.read(self.process.stdout.fileno(), 10_000)
            assert piece, self.seen
            self.seen += piece.decode()

    def close(self) -> str:
        """End it; all that it has printed."""
        out, _ = self.process.communicate()
        self._end.cancel()
        return self.seen + out.decode()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.process.kill()
    terminal.close()


GATED = """from adk_nb import types; from adk_nb.models import BaseLlm, LlmResponse; import asyncio

def said(text, **more): return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), **more)

class Gated(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        yield said("The first half", partial=True)
        while not pathlib.Path("go").exists(): await asyncio.sleep(0.01)
        yield said(" and the second.", partial=True)
        yield said("The first half and the second.")

gated = Agent(name="gated", model=Gated(model="gated"))
"""


def test_an_answer_is_printed_while_it_streams_and_once_and_stays_when_it_is_interrupted(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.type(SLOW + GATED + "\n%chat gated hi\n")
    terminal.until("gated > The first half")
    assert "second" not in terminal.seen

    (tmp_path / "go").touch()
    terminal.until("and the second.")
    (tmp_path / "go").unlink()
    terminal.type("print('no more')\n%chat gated hi\n")
    terminal.until("no more")
    assert terminal.seen.count("The first half and the second.") == 1
    terminal.seen = terminal.seen.partition("no more")[2]
    terminal.until("gated > The first half")

    terminal.process.send_signal(signal.SIGINT)

    terminal.until("KeyboardInterrupt")
    assert "first half  [stopped]\n" in terminal.close()


@pytest.mark.slow
def test_calls_approvals_and_errors_are_printed_once_where_they_happen(terminal: Terminal) -> None:
    cells = """
answers = [call("look", city="Oslo"), ["It ", "is 9."], RuntimeError("boom")]
weather = Agent(name="weather", model=ScriptedLlm(*answers), tools=[look])
%chat weather How is it?
payer = Agent(name="payer", model=ScriptedLlm(call("keep", amount=3), "All settled."), tools=[tool(confirm=True)(keep)])
reply = %chat -s other payer Pay
%confirm -s other --yes
%chat weather again
a = Agent(name="a", model=ScriptedLlm(["a one ", "a two ", "a three."]))
b = Agent(name="b", model=ScriptedLlm(["b one ", "b two ", "b three."]))
both = ParallelAgent(name="both", sub_agents=[a, b])
%chat both Go on.
%config AdkNb.sessions = "sqlite:///nb.db"
class Told(BaseAgent):
    async def _run_async_impl(self, ctx): yield Event(author=self.name, content=types.ModelContent("I was told."))

told = Told(name="told")
%chat told Hi
"""
    terminal.type(SLOW + cells)
    printed = terminal.close()

    lines = printed.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith("looking"))
    assert lines[at + 1] == 'weather: look(city="Oslo") → {"temp_c": 9}'
    assert lines[at + 2].endswith("It is 9.  [1 tool call]")
    assert printed.count("It is 9.") == 1
    assert printed.count("approval: keep(amount=3)") == 1
    assert 'keep(amount=3) → "kept"\npayer > ' in printed
    assert printed.count("All settled.") == 1
    assert printed.count("error: RuntimeError: boom") == 1
    assert "weather: error" not in printed
    # what streams at once is printed one after the other
    assert printed.count("a > a one a two a three.") == 1
    assert printed.count("b > b one b two b three.") == 1
    # the mark with which an agent ends where sessions are stored is no line
    assert printed.count("told > I was told.") == 1
