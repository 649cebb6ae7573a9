"""Tables in IPython in a terminal, where a line is as long as the window is wide."""

import os
import subprocess
import sys
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
    environment = {key: one for key, one in os.environ.items() if not key.startswith("PYTEST")}
    environment |= {"COLUMNS": str(width), "IPYTHONDIR": str(folder), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command, input="\n".join(CELLS) + "\n", capture_output=True, encoding="utf-8", timeout=120, env=environment
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("width", [60, 90])
def test_a_row_of_a_table_fits_the_terminal_and_what_is_to_be_typed_is_whole(width: int, tmp_path: Path) -> None:
    lines = typed(width, tmp_path)

    rules = [at for at, line in enumerate(lines) if set(line) == {"-", " "}]
    assert len(rules) == 5
    rows = [line for at in rules[:4] for line in (lines[at - 1], lines[at], lines[at + 1])]
    assert all(len(line) <= width for line in rows), rows
    assert max(map(len, rows)) > width - 5
    assert sum("…" in line for line in rows) >= 2
    assert not any("…" in line for line in lines[rules[4] :])
    assert any(line.endswith(" -> or: %config AdkNb.nest_asyncio = True") for line in lines[rules[4] :])


def test_a_saved_notebook_has_whole_tables_whatever_the_terminal_is(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "a long text " * 20
    shell.cell(f"%state key='{text}'")

    assert text in str(shell.cell("%state"))
