"""The cell that asked for an approval says what was decided and by what, on its card and in the file."""

import pytest
from kernel import Kernel

pytestmark = pytest.mark.kernel

SETUP = """
%load_ext adk_nb
%config AdkNb.confirm = "ask"
%session new NAME
from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
@tool(confirm=True)
def pay(to: str, amount: int) -> str:
    'Pays.'
    return 'paid'
payer = Agent(name='payer', tools=[pay], model=ScriptedLlm(
    call('pay', to='Anna', amount=40), 'Anna is paid.', call('pay', to='Ben', amount=50), 'Ben is paid.'))
"""
CALL, EDITED = 'pay(to="Anna", amount=40)', 'pay(to="Anna", amount=10)'


def set_up(kernel: Kernel, name: str) -> None:
    kernel.run(SETUP.replace("NAME", name))


@pytest.mark.parametrize("show", ["", "--static "])
@pytest.mark.parametrize(
    ("before", "source", "by"),
    [
        ("", "%chat SHOW--yes payer pay Anna", "by %chat --yes"),
        ("%config AdkNb.confirm = 'yes'", "%chat SHOW payer pay Anna", "by %config AdkNb.confirm"),
    ],
)
def test_a_policy_decides_in_the_view_that_asked(kernel: Kernel, before: str, source: str, by: str, show: str):
    set_up(kernel, f"policy{len(kernel.views)}{show.strip()}{len(by)}")
    kernel.run(before)
    cards = len(kernel.cards)

    cell = kernel.run(source.replace("SHOW", show))

    assert len([output for output in cell.outputs if "data" in output]) == 1
    assert len(kernel.cards) - cards == (0 if show else 1)  # one view asks, and goes on
    assert f"✓ You approved {CALL} {by}" in cell.shown
    assert "Anna is paid." in cell.shown and "Asks for approval:" not in cell.shown
    assert "another cell" not in str(cell.outputs)


def test_answers_of_a_loop_stay_with_what_was_decided_of_each(kernel: Kernel):
    set_up(kernel, "loop")

    cell = kernel.run("for word in 'ab':\n    %chat --yes payer pay {{word}}")

    assert [text in cell.shown for text in ("Anna is paid.", "Ben is paid.", "another cell")] == [True, True, False]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("%confirm --yes", f"✓ You approved {CALL} in ["),
        ("_run.approve()", f"✓ You approved {CALL} in ["),
        ("%confirm --no --reason 'too much'", f"✗ You rejected {CALL} in ["),
        ("%confirm --edit amount=10 --yes", f"✓ You approved {EDITED} in ["),
    ],
)
def test_the_cell_that_asked_names_the_cell_that_decided(kernel: Kernel, answer: str, line: str):
    set_up(kernel, f"typed{len(kernel.views)}")
    asked = kernel.run("%chat payer pay Anna")
    card = kernel.card("pay")

    decided = kernel.run(answer)

    number = kernel.run("len(In) - 2").text
    kernel.until(lambda: f"{line}{number}]" in asked.shown, "the decision in the cell that asked")
    assert kernel.cards[card]["note"].startswith(f"in [{number}]")
    assert "another cell" not in asked.shown
    assert (EDITED if "--edit" in answer else CALL) in decided.shown and ("too much" in asked.shown) == (
        "reason" in answer
    )
    assert ("asked with amount=40" in asked.shown) == ("--edit" in answer)


@pytest.mark.parametrize("answer", ["%confirm --edit amount=10 --yes", "a click"])
def test_a_cell_that_was_run_again_and_a_listing_say_what_was_decided(kernel: Kernel, answer: str):
    set_up(kernel, f"again{len(kernel.views)}")
    kernel.run("%chat payer pay Anna")
    again = kernel.run("%chat payer pay Anna", raises=True)
    listed = kernel.run("%confirm")
    number = int(kernel.run("len(In) - 2").text)

    if answer == "a click":
        kernel.click(kernel.card("pay"), decision="approve", args={"amount": 10})
        where, others = f"by a click in [{number}]", [again]
    else:
        kernel.run(answer)
        where, others = f"in [{number + 2}]", [again, listed]

    for cell in others:
        kernel.until(lambda cell=cell: f"✓ You approved {EDITED} {where}" in cell.shown, "the decision")
        assert "asked with amount=40" in cell.shown
    kernel.until(lambda: "Anna is paid." in kernel.run("_run.text").text, "the answer")


def test_a_click_is_told_in_the_cell_and_in_its_file(kernel: Kernel):
    set_up(kernel, "clicked")
    asked = kernel.run("%chat payer pay Anna")

    kernel.click(kernel.card("pay"), decision="approve")

    kernel.until(lambda: "Anna is paid." in asked.shown, "the answer")
    assert f"✓ You approved {CALL} by a click" in asked.shown


def test_a_settled_card_shows_the_payload_that_was_given(kernel: Kernel):
    set_up(kernel, "payload")
    kernel.run(
        "from adk_nb.tools import ToolContext\n"
        "def days(tool_context: ToolContext) -> str:\n"
        "    'Takes days off.'\n"
        "    if not tool_context.tool_confirmation:\n"
        "        tool_context.request_confirmation(hint='How many?', payload={'days': 0})\n"
        "        return 'asked'\n"
        "    return 'taken'\n"
        "payer = Agent(name='payer', model=ScriptedLlm(call('days'), 'Enjoy.'), tools=[days])"
    )
    asked = kernel.run("%chat payer go")
    card = kernel.card("days")

    kernel.run("%confirm --yes --payload days=7")

    kernel.until(lambda: kernel.cards[card]["state"] == "approved", "the settled card")
    settled = kernel.cards[card]
    assert '{"days": 7}' in settled["note"] and '"days": 0' not in str(settled["hint"])
    assert '{"days": 7}' in asked.shown and '{"days": 0}' not in asked.shown
