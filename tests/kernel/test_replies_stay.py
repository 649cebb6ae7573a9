"""Every turn leaves its reply in the cell it ran in, in order, whatever the cell does with the value."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kernel import Kernel
from nbclient import NotebookClient

from tests.support.warm import WARM

pytestmark = pytest.mark.kernel

SETUP = """
%load_ext adk_nb
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm
from adk_nb.notebook.chat.chat import Chat
def says(*words):
    return Agent(name="a", model=ScriptedLlm(*words))
a = says("one", "two", "three")
chat = Chat(says("one", "two", "three"))
"""
CELLS = {
    "line, then a print": ("%chat a hi\nprint('after')", ["one"]),
    "in a loop": ("for _ in range(3):\n    %chat a hi", ["one", "two", "three"]),
    "ask in a loop": ("for word in ['x', 'y']:\n    chat.ask(word)", ["one", "two"]),
    "two lines": ("%chat a hi\n%chat a hi again", ["one", "two"]),
    "assigned": ("ans = %chat a hi", ["one"]),
    "captured": ("%%chat ans << a\nhi", ["one"]),
    "last expression": ("%chat a hi", ["one"]),
    "the value again": ("reply = chat.ask('hi')\nreply", ["one"]),
    "awaited": ("await chat.aask('hi')\nNone", ["one"]),
    "static": ("%chat --static a hi\nNone", ["one"]),
}
QUIET = [
    "ans = %chat --quiet a hi",
    "%chat a hi;",
    "chat.ask('hi', show=False)\nNone",
    "Chat(a, show=False).ask('hi')\nNone",
]


def replies(outputs: list[Any]) -> list[str]:
    """The words of each reply among the outputs of a cell."""
    plain = [output["data"].get("text/plain", "") for output in outputs if "data" in output]
    return [text.partition(" > ")[2].splitlines()[0] for text in plain if text.startswith("a > ")]


@pytest.mark.parametrize("name", CELLS)
def test_each_turn_leaves_its_reply_once_in_its_cell(kernel: Kernel, name: str):
    source, said = CELLS[name]
    kernel.run(SETUP)

    cell = kernel.run(source)

    assert replies(cell.outputs) == said
    assert len([output for output in cell.outputs if "data" in output]) == len(said)


@pytest.mark.parametrize("source", QUIET)
def test_a_turn_that_is_to_show_nothing_leaves_nothing(kernel: Kernel, source: str):
    kernel.run(SETUP)

    assert kernel.run(source).outputs == []


def test_a_reply_is_shown_again_in_another_cell(kernel: Kernel):
    kernel.run(SETUP)
    kernel.run("reply = chat.ask('hi')")

    assert replies(kernel.run("reply").outputs) == ["one"]


def test_a_turn_in_the_background_leaves_its_reply_where_it_was_started(kernel: Kernel):
    kernel.run(SETUP)
    started = kernel.run("handle = chat.start('hi')")

    result = kernel.run("handle.result()")

    kernel.until(lambda: replies(started.outputs) == ["one"], "the reply in the cell that started it")
    assert replies(result.outputs) == ["one"]


def test_a_mode_that_is_none_is_refused_with_those_that_are(kernel: Kernel):
    kernel.run(SETUP)

    failed = kernel.run("chat.ask('hi', show='no')", raises=True)

    assert failed.error == "InputError"
    assert "'no'" in failed.traceback and "static" in failed.traceback


@pytest.mark.kernel_all
def test_nbclient_keeps_the_same_replies_and_nbval_finds_no_difference(tmp_path: Path):
    sources = [source for cell, _ in CELLS.values() for source in (SETUP, cell)]
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in [*sources, SETUP, *QUIET]]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = tmp_path / "replies.ipynb"

    NotebookClient(notebook, kernel_name=WARM, timeout=60, extra_arguments=["--log-level=ERROR"]).execute()
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    ran = subprocess.run([*command, "--rootdir", str(tmp_path), str(path)], capture_output=True, text=True)

    asked = [cell for cell in cells if cell.source != SETUP.strip()]
    assert [replies(cell.outputs) for cell in asked] == [*(said for _, said in CELLS.values()), *([] for _ in QUIET)]
    assert ran.returncode == 0, ran.stdout[-4000:]
