"""run_code in a real kernel: on its main thread after a click, and what would end, block or hang the kernel."""

from typing import Any

import pytest
from kernel import Kernel
from talkers import SETUP

pytestmark = pytest.mark.kernel

MAIN = "threading.current_thread() is threading.main_thread()"


def ask(kernel: Kernel, *codes: str, line: str = "%chat analyst Go.") -> Any:
    """Ask an agent that runs these pieces of code, one after another; the cell."""
    kernel.run(SETUP)
    calls = ", ".join(f"call('run_code', code={code!r}, why='to see')" for code in codes)
    kernel.run(f"model = ScriptedLlm({calls}, 'All done.')\nranges = []")
    kernel.run("%%agent analyst -m model --notebook\nHelp.")
    kernel.updates.clear()  # those of the tests before
    return kernel.start(line)


def answered(kernel: Kernel, cell: Any) -> None:
    kernel.until(lambda: any("All done." in text for text in [cell.shown, *kernel.updates]), "the answer")


def told(kernel: Kernel) -> str:
    results = "[part.function_response.response for one in model.requests for part in one.contents[-1].parts"
    return kernel.run(f"print({results} if part.function_response])").text


def test_after_a_click_code_runs_on_the_main_thread_and_leaves_its_variables(kernel: Kernel):
    cell = ask(kernel, f"import threading\nx = 41\nprint('in main:', {MAIN})")
    kernel.until_ended(cell)
    assert kernel.run("'x' in globals()").text == "False"

    kernel.click(kernel.card("run_code"), decision="approve", args=None, reason=None)

    answered(kernel, cell)
    assert kernel.run("x + 1").text == "42"
    assert "in main: True" in told(kernel)


def test_a_click_for_the_turn_lets_the_next_piece_run_too(kernel: Kernel):
    cell = ask(kernel, "first = 1", "second = 2")
    kernel.until_ended(cell)

    card = kernel.card("run_code")
    assert kernel.cards[card]["action"] == "Run" and kernel.cards[card]["for_turn"]
    assert kernel.cards[card]["arguments"] == []
    kernel.click(card, decision="approve", args=None, reason=None, for_turn=True)

    answered(kernel, cell)
    assert kernel.run("first + second").text == "3"
    assert "for the rest of this turn" in "".join([cell.shown, *kernel.updates])


def test_code_that_would_end_the_kernel_or_wait_for_a_line_ends_alone(kernel: Kernel):
    cell = ask(kernel, "exit()", "quit()", "input('name')", "import sys; sys.exit()", line="%chat --yes analyst Go.")
    kernel.until_ended(cell)

    said = told(kernel)

    assert said.count("exit() would end the kernel") == 2
    assert "input() is not possible in run_code" in said and "sys.exit(None) ended the code" in said
    assert kernel.prompts == []
    assert kernel.run("6 * 7").text == "42"


def test_an_interrupt_ends_the_code_and_the_turn(kernel: Kernel):
    cell = ask(kernel, "while True: print('busy', flush=True)", line="%chat --yes analyst Go.")
    kernel.until_printed(cell, "busy")

    kernel.interrupt(cell)

    assert cell.error == "KeyboardInterrupt"
    assert kernel.run("print('free')").text == "free"
    assert kernel.run("input").text.startswith("<bound method")


def test_a_stop_of_the_turn_ends_the_code(kernel: Kernel):
    code = "import time\nbegun('looping')\nwhile True: time.sleep(0.01)"
    line = "chat = Chat(analyst)\nstop_in_the_middle(chat)\nreply = chat.ask('Go.', confirm='yes')"
    kernel.until_ended(ask(kernel, code, line=line))

    assert kernel.run("print(reply.status)").text == "cancelled"
    assert kernel.run("6 * 7").text == "42"


def test_displays_go_to_the_cell_and_figures_to_the_result_once(kernel: Kernel):
    code = "import matplotlib.pyplot as plt\nfrom IPython.display import HTML, display\n"
    code += "display(HTML('<b>bold</b>'))\nplt.subplots()\nNone"
    cell = ask(kernel, code, line="%chat --yes --static analyst Go.")
    kernel.until_ended(cell)

    assert any("<b>bold</b>" in one.get("data", {}).get("text/html", "") for one in cell.outputs)
    assert ["image/png" in one.get("data", {}) for one in cell.outputs].count(True) == 0
    assert "image/png" in told(kernel)
    assert kernel.run("plt.get_fignums()").text == "[]"
