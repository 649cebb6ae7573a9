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
    assert not cell.has_error_output, "its card says it"
    second = kernel.card("pay")
    assert second[0] == kernel.views[-1] != first[0]
    assert 'pay(to="Anna")' in cell.shown
    assert cell.shown.count("Anna") == 1
    kernel.click(second, decision="approve")
    kernel.until(lambda: "It is paid." in cell.shown, "the answer in the cell whose card was clicked")
    kernel.until(lambda: kernel.cards[first]["state"] == "approved", "the first card closed")
    assert kernel.run("ran").text == "['Anna']"


def test_a_message_that_an_open_card_keeps_back_stops_run_all_and_is_sent_after_a_refusal(kernel: Kernel):
    kernel.run(SETUP.replace("'It is paid.'", "'I did not pay.', 'Hello!'") + "\n%session new kept_back")
    kernel.run("%chat payer pay Anna")

    cell = kernel.run("%chat payer pay Ben instead", raises=True)

    assert (cell.error, cell.has_error_output) == ("PendingError", False)
    assert "PendingError: 1 approval is open (pay)" in cell.shown, "the file has it"
    unsent = cell_card(kernel, "unsent")
    card = kernel.cards[unsent]
    assert (card["texts"], card["ways"]) == (["pay Anna", "pay Ben instead"], ["refuse", "first"])

    kernel.click(unsent, decision="refuse")

    kernel.until(lambda: "Hello!" in cell.shown, "the answer to the new message")
    assert "✗ You rejected pay" in cell.shown and "not sent" not in cell.shown
    messages = "[turn.question for turn in get_ipython().adk_nb.chat('payer').turns]"
    assert kernel.run(f"ran, {messages}").text == "([], ['pay Anna', 'pay Ben instead'])"


def test_a_message_that_was_kept_back_can_be_sent_once_the_card_is_answered(kernel: Kernel):
    kernel.run(SETUP.replace("'It is paid.'", "'It is paid.', 'Hello!'") + "\n%session new answered_first")
    first = kernel.run("%chat payer pay Anna")
    asked = kernel.card("pay")
    cell = kernel.run("%chat payer pay Ben as well", raises=True)
    unsent = cell_card(kernel, "unsent")

    kernel.click(asked, decision="approve")

    kernel.until(lambda: kernel.cards[unsent]["ways"] == ["send"], "the offer to send it")
    kernel.until(lambda: "It is paid." in first.shown, "the answer")
    kernel.until(lambda: "not sent when this cell ran: pay Ben as well" in cell.shown, "the file says so")
    assert "✓ You approved pay" in cell.shown and "PendingError" not in cell.shown
    kernel.click(unsent, decision="send")
    kernel.until(lambda: "Hello!" in cell.shown, "the answer to the new message")


def test_a_loop_ends_at_an_open_card_as_before(kernel: Kernel):
    kernel.run(SETUP + "\n%session new loop")

    cell = kernel.run("%chat payer pay Anna\n%chat payer pay Ben\nprint('went on')", raises=True)

    assert (cell.error, cell.printed) == ("PendingError", "")


def cell_card(kernel: Kernel, kind: str) -> tuple[str, str]:
    """Wait for a card of that kind."""

    def found() -> list[tuple[str, str]]:
        return [key for key, one in kernel.cards.items() if one["kind"] == kind and one["state"] == "asked"]

    kernel.until(lambda: bool(found()), f"a card of kind {kind}")
    return found()[-1]
