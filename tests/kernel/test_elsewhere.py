"""The same conversation outside notebooks: a plain script, and IPython in a terminal."""

import subprocess
import sys
from pathlib import Path

import pytest
from kernel import Kernel

pytestmark = pytest.mark.kernel

SCRIPT = """
import asyncio, sys
from adk_nb import sync
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat

def add(a: int, b: int) -> int:
    'Adds.'
    return a + b

agent = Agent(name="sums", model=ScriptedLlm(call("add", a=1, b=2), "three", "again", "and again"), tools=[add])
chat = Chat(agent)
sync.loop().slow_callback_duration = 60  # a busy machine is no fault of this program
print(chat.ask("1 + 2?"))

async def main():
    asyncio.get_running_loop().slow_callback_duration = 60
    print((await chat.aask("once more")).text)

asyncio.run(main())
print(chat.start("and once more").result().text)
print(sorted(name for name in ("anywidget", "ipykernel") if name in sys.modules))
"""


def test_a_plain_script_in_development_mode_gives_no_warnings(tmp_path: Path):
    script = tmp_path / "sums.py"
    script.write_text(SCRIPT)

    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", script], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stderr == ""
    assert done.stdout.splitlines()[:3] == ["sums > three  [1 tool call]", "again", "and again"]


@pytest.mark.kernel_all
def test_ipython_in_a_terminal_holds_a_conversation(tmp_path: Path):
    cells = SCRIPT.replace("asyncio.run(main())", "await main()")
    cells = f"%load_ext adk_nb\n{cells}\n%chat sums one more time\n"
    (tmp_path / "sums.ipy").write_text(cells.replace('"and again")', '"and again", "the last")'))

    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--colors=NoColor", "--no-banner", "sums.ipy"],
        cwd=tmp_path,
        env={"IPYTHONDIR": str(tmp_path / "ipython"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stderr == "", done.stdout
    assert "sums > three  [1 tool call]" in done.stdout
    assert "again\nand again\n" in done.stdout


DESK = """
from adk_nb.models import ScriptedLlm, call
from adk_nb.agents import Agent
from adk_nb.tools import FunctionTool
def refund(order: str, amount: float) -> str: 'Pays.'; return f"paid {amount:g}"
pays = [each for n in range(1, 6) for each in (call("refund", order=f"A{n}", amount=float(n)), f"That was {n}.")]
desk = Agent(name="desk", model=ScriptedLlm(*pays), tools=[FunctionTool(refund, require_confirmation=True)])
"""
TYPED = """
%chat desk One.
%confirm
%confirm --edit amount=7 --yes
%chat --ask desk Two.
y
%chat --ask desk Three.
n
%chat desk
Four.
y

%trace
%trace -1 --waterfall
%trace -1 --why
%trace --diff -1 -2
%rewind --dry-run
%rewind
%agents
%agents --graph desk
%tools
%state budget=3
%session
%key
%doctor
%export desk.py
%record off
"""


def test_all_magics_are_text_in_a_terminal_and_approvals_are_typed(tmp_path: Path):
    typed = f"%load_ext adk_nb\n{DESK.strip()}\n{TYPED.lstrip()}"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--colors=NoColor", "--no-banner"],
        input=typed,
        cwd=tmp_path,
        env={"IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    shown = done.stdout

    assert done.stderr == "", shown
    assert "Error" not in shown and "not found" not in shown, shown
    assert "<" not in shown.replace("In [", "").replace("<<", ""), shown
    for said in (
        'Asks for approval: refund(order="A1", amount=1.0)',
        "desk > That was 1.",
        'approve refund(order="A2", amount=2.0)? [y/N] ',
        "desk > That was 2.",
        "desk > That was 3.",
        "an empty line ends the conversation",
        "desk > That was 4.",
    ):
        assert said in shown, shown


def test_what_comes_of_a_click_stands_in_the_cell_that_asked(kernel: Kernel):
    kernel.run(f"%load_ext adk_nb\n{DESK}")
    cell = kernel.run("%chat desk One.")

    kernel.click(kernel.card("refund"), decision="approve", args=None, reason=None)

    kernel.until(lambda: "desk > That was 1." in cell.shown, "the reply in the cell that asked")
