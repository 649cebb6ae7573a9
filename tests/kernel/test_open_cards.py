"""The card of an approval that is open can be had again: by running its cell again, and by `%confirm`."""

import pytest
from kernel import Kernel

pytestmark = pytest.mark.kernel

SETUP = """
%load_ext adk_nb
from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
ran = []
@tool(confirm=True)
def pay(to: str) -> str:
    'Pays.'
    ran.append(to)
    return 'paid'
payer = Agent(name='payer', model=ScriptedLlm(call('pay', to='Anna'), 'It is paid.'), tools=[pay])
"""


@pytest.mark.parametrize("again", ["%chat payer pay Anna", "%confirm"])
def test_the_card_is_there_again_and_one_click_answers_every_view(kernel: Kernel, again: str):
    kernel.run(SETUP + "\n%session new " + again[1:3])
    kernel.run("%chat payer pay Anna")
    first = kernel.card("pay")

    cell = kernel.run(again, raises=True)

    assert cell.error == ("PendingError" if "chat" in again else None)
    second = kernel.card("pay")
    assert second[0] == kernel.views[-1] != first[0]
    assert 'pay(to="Anna")' in cell.shown
    assert cell.shown.count("Anna") == 1
    kernel.click(second, decision="approve")
    kernel.until(lambda: "It is paid." in cell.shown, "the answer in the cell whose card was clicked")
    kernel.until(lambda: kernel.cards[first]["state"] == "approved", "the first card closed")
    assert kernel.run("ran").text == "['Anna']"
