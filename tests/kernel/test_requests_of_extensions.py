"""Requests that extensions of a page send for themselves change nothing of how runs are shown."""

from typing import Any

import ipykernel
import pytest
from kernel import Kernel

pytestmark = pytest.mark.kernel

SETUP = """
%load_ext adk_nb
import threading
from adk_nb import Agent
from adk_nb.models import ScriptedLlm
from adk_nb.notebook.place import can_ask
gate = threading.Event()
parrot = Agent(name="parrot", model=ScriptedLlm(*(f"answer {n}" for n in range(9))))
"""
QUIETLY: dict[str, dict[str, Any]] = {
    "silent": {},
    "not stored": {"silent": False},
}


@pytest.mark.parametrize("request_", QUIETLY)
def test_a_run_after_a_click_is_live_whatever_an_extension_asked_before(kernel: Kernel, request_: str):
    kernel.run(SETUP)
    first = kernel.run("reply = %chat parrot hello")
    event_id = kernel.run("print(reply.events[-1].id)").printed.strip()
    views = len(kernel.views)

    kernel.look_up(**QUIETLY[request_])
    kernel.tell(kernel.views[-1], kind="rerun", event=event_id)

    kernel.until(lambda: len(kernel.views) > views, "a live view of the run")
    kernel.until(lambda: "Rerun" in first.shown, "its answer, in the cell of the click")


@pytest.mark.skipif(ipykernel.version_info < (7,), reason="ipykernel 6 has no subshells")
def test_a_cell_stays_live_while_a_subshell_answers_an_extension(kernel: Kernel):
    kernel.run(SETUP)
    subshell = kernel.subshell()
    cell = kernel.start("print('busy', flush=True)\ngate.wait(30)\nprint(can_ask())")
    kernel.until_printed(cell, "busy")

    kernel.look_up(subshell_id=subshell)
    kernel.look_up(subshell_id=subshell, code="gate.set()")
    kernel.until_ended(cell)

    assert cell.printed.endswith("True\n")


def test_a_cell_that_may_not_ask_is_not_live(kernel: Kernel):
    kernel.run(SETUP)
    kernel.run("%chat parrot hello")
    kernel.look_up(code="told = can_ask()", silent=False, store_history=True)

    assert kernel.run("print(told, can_ask())").printed == "False True\n"
