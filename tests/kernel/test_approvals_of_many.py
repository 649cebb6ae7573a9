"""Calls of many runs that wait are answered by tool, and their card says so whoever answers."""

import pytest
from kernel import Kernel

pytestmark = pytest.mark.kernel

SETUP = """
%load_ext adk_nb
from adk_nb import Agent, tool
from adk_nb.models import ScriptedLlm, call

@tool(confirm=True)
def pay(to: str) -> str:
    "Pay a person."
    return f"paid {to}"

clerk = Agent(name="clerk", model=ScriptedLlm(call("pay", to="Anna"), "Anna has it."), tools=[pay])
rows = [{"message": "Pay her"}]
"""
EVAL = "%%eval clerk\n| message | answer |\n| --- | --- |\n| Pay Anna | has it |"


@pytest.mark.parametrize(("cell", "answer"), [(EVAL, "%eval approve"), ("%map clerk --over rows", "%map approve pay")])
def test_an_answer_in_another_cell_is_on_the_card(kernel: Kernel, cell: str, answer: str):
    kernel.run(SETUP)
    waiting = kernel.run(cell)
    assert answer.removesuffix(" pay") in waiting.shown
    kernel.card("pay")

    kernel.run(answer)

    kernel.card("pay", "approved")


def test_a_click_answers_the_rows_of_a_table(kernel: Kernel):
    kernel.run(SETUP)
    waiting = kernel.run("rows = [{'message': 'Pay her again'}]\n%map clerk --over rows")
    kernel.click(kernel.card("pay"), decision="approve")
    kernel.until(lambda: "Anna has it." in waiting.shown, "the table with the answer")
    assert "Anna has it." in kernel.run("print(_map)").printed
