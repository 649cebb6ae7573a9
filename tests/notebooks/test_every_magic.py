"""Every magic once: what a notebook shows when it is executed is what nbval finds when it runs it again."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from adk_nb.notebook.registry import registry

pytestmark = pytest.mark.kernel

CELLS = [
    "%load_ext adk_nb",
    '%%tool --confirm\ndef pay(to: str, amount: int) -> str:\n    """Pay somebody."""\n    return f"{amount} to {to}"',
    '%%tool\ndef add(a: int, b: int) -> int:\n    """Add two numbers."""\n    return a + b',
    "%%agent clerk -m offline -t pay,add --root\nYou pay and add.",
    '%%agent helper -m offline -t add --description "Adds."\nYou add.',
    "%%agent team --kind sequential\nhelper -> clerk",
    "def double(node_input: str) -> str:\n    return 2 * node_input",
    "%%workflow flow\nSTART -> double",
    "%agents",
    "%agents --json",
    "%agents --show clerk",
    "%agents --graph team",
    "%tools",
    "%tools --schema",
    "%chat helper add 2 and 3",
    "%%chat ans << helper\nadd 20 and 3",
    "ans",
    "ans.text",
    "%agents",
    "%agents --json",
    "%agents --show helper",
    "%state topic=tea",
    "%state",
    "%state --json",
    "%state --diff",
    "%session",
    "%session list",
    "%chat clerk pay 4 to Anna",
    "%confirm",
    "%session",
    "%confirm --yes",
    "%trace",
    "%trace 2",
    "%trace --why",
    "%rewind --dry-run",
    "%rewind",
    "%session fork other",
    "%session new third",
    "%session use main",
    "served = %serve helper",
    "served.is_running",
    "%serve --stop;",
    "%record --file tape.jsonl",
    "%chat helper add 4 and 4",
    "%record off",
    "%replay --file tape.jsonl",
    "%replay off",
    "%key",
    "%doctor",
    "%%eval helper\n| message | answer |\n| --- | --- |\n| add 2 and 3 | 5 |\n| add 2 and 4 | 7 |",
    "%eval open case1",
    "sums = [{'text': 'add 5 and 3'}]",
    "%map helper --over sums --message {{text}}",
    "%export desk.py",
    "%config AdkNb",
    "from adk_nb import InMemoryRunner\nevents = await InMemoryRunner(helper).run_debug('add 1 and 2')",
    "%agents --rm helper",
    "%agents",
]
"""`%trace --raw` and `--waterfall` are left out: they show ids and times, which no two runs share."""


def test_each_magic_is_here():
    assert {name for name in registry.magic_names if any(cell.lstrip("%").startswith(name) for cell in CELLS)} == {
        *registry.magic_names
    }


def ignored(cell: str) -> str:
    """`%confirm` alone is changed by the cell that answers, `%doctor` tells of its place: neither is compared."""
    return f"# NBVAL_IGNORE_OUTPUT\n{cell}" if cell in ("%confirm", "%doctor") else cell


def unset() -> dict[str, str]:
    """The environment of somebody who has not said how runs are shown."""
    return {name: value for name, value in os.environ.items() if name != "ADK_NB_DISPLAY"}


def executed(cells: list[str], folder: Path, *, as_in_lab: bool) -> NotebookNode:
    """A new notebook with the outputs of these cells. `as_in_lab`: the kernel believes that a page looks on."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    place = {"metadata": {"path": str(folder)}}
    quiet = ["--log-level=ERROR"]
    client = NotebookClient(notebook, timeout=60, resources=place, extra_arguments=quiet, coalesce_streams=True)
    if not as_in_lab:
        return client.execute()
    with client.setup_kernel(env={**unset(), "JPY_SESSION_NAME": "all.ipynb"}):
        assert client.kc
        client.kc.allow_stdin = True
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
    return notebook


@pytest.mark.kernel_all
@pytest.mark.parametrize("as_in_lab", [False, True], ids=["nbclient", "lab"])
def test_nbval_finds_what_an_execution_has_saved(tmp_path: Path, as_in_lab: bool):
    cells = list(map(ignored, CELLS)) if as_in_lab else CELLS
    notebook = executed(cells, tmp_path, as_in_lab=as_in_lab)
    nbformat.write(notebook, tmp_path / "all.ipynb")
    shown = "application/vnd.jupyter.widget-view+json" in str(notebook)
    for left in ("tape.jsonl", "desk.py"):
        (tmp_path / left).unlink()
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "-c", os.devnull]

    command += ["--rootdir", str(tmp_path), "all.ipynb"]
    env = unset() if as_in_lab else None
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)

    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert shown is as_in_lab
