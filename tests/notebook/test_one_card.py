"""One card of a request: wherever it stands, it has the same state, and takes the same answer."""

from typing import Any

import pytest
from wire import Pages, Wire, told

from adk_nb.models.scripted_llm import ScriptedLlm, call
from tests.notebook.conftest import Shell

PAY = "%%tool --confirm\ndef pay(to: str) -> str:\n    'Pays.'\n    paid.append(to)\n    return 'paid ' + to"
CHANGED = PAY.replace("'paid '", "'has paid '")


@pytest.fixture
def payer(shell: Shell, pages: Pages) -> Shell:
    """An agent that wants to pay Anna and Ben, on a page, and asks for both."""
    both = [call("pay", to="Anna"), call("pay", to="Ben")]
    shell.names.update(model=ScriptedLlm(both, "That is all.", "Really."), other=ScriptedLlm("Hello."), paid=[])
    shell.cell(PAY)
    shell.cell("%%agent payer -m model -t pay\nPay.")
    shell.cell("%chat payer Pay both.")
    return shell


def card(page: Wire, to: str, **fields: Any) -> dict[str, Any]:
    """Wait for the card of a payment that has these fields."""
    page.wait_for(lambda page: told(page, "card", args={"to": to}, **fields))
    return told(page, "card", args={"to": to}, **fields)[-1]


def approve(page: Wire, to: str) -> None:
    page.says(kind="answer", id=card(page, to)["id"], decision="approve")


def paid(shell: Shell, page: Wire, to: list[str]) -> None:
    """Wait until these are paid, and no other."""
    page.wait_for(lambda _: shell.names["paid"] == to)


def test_what_a_line_leaves_open_stands_on_a_card_there_too(payer: Shell, pages: Pages) -> None:
    asked = pages.next()

    payer.cell("%confirm 1 --no")

    rest = pages.next()
    card(rest, "Ben", state="asked")
    assert not told(rest, "card", args={"to": "Anna"}, state="asked"), "this cell has answered it"
    approve(asked, "Ben")
    card(rest, "Ben", state="approved")
    paid(payer, asked, ["Ben"])


def test_a_click_where_a_line_left_it_open_closes_every_other_card(payer: Shell, pages: Pages) -> None:
    asked = pages.next()
    payer.cell("%confirm 1 --yes")
    rest = pages.next()
    payer.cell("%confirm")
    listed = pages.next()

    approve(rest, "Ben")

    for page in (asked, listed):
        card(page, "Ben", state="approved")
    paid(payer, asked, ["Anna", "Ben"])


def test_a_tool_that_changed_is_told_on_every_card(payer: Shell, pages: Pages) -> None:
    asked = pages.next()
    payer.cell("%confirm 1 --no")
    rest = pages.next()

    payer.cell(CHANGED)
    payer.cell("%confirm")

    for page in (asked, rest, pages.next()):
        changed = card(page, "Ben", changed="the tool changed since this was requested")
        assert (changed["version"], changed["how"]) == ("v1", "%confirm --reask")
    rest.says(kind="answer", id=card(rest, "Ben")["id"], decision="old")
    card(asked, "Ben", state="approved")
    paid(payer, asked, ["Ben"])


def test_a_tool_that_changed_before_a_line_is_told_on_the_card_that_it_leaves_open(payer: Shell, pages: Pages) -> None:
    payer.cell(CHANGED)

    payer.cell("%confirm 1 --no")

    pages.next()
    card(pages.next(), "Ben", changed="the tool changed since this was requested")


def test_the_box_of_another_agent_has_the_card_and_takes_the_answer(payer: Shell, pages: Pages) -> None:
    asked = pages.next()
    payer.cell("%%agent clerk -m other\nGreet.")

    payer.cell("%chat -s main clerk")

    box = pages.next()
    assert card(box, "Anna", state="asked")["schema"]["properties"] == {"to": {"type": "string"}}
    approve(box, "Anna")
    card(asked, "Anna", state="approved")
    paid(payer, box, ["Anna"])
    box.wait_for(lambda page: told(page, "row", author="payer", kind="text"))
    payer.cell("%confirm --no")
    card(box, "Ben", state="rejected")
    box.says(kind="ask", text="Hi")
    box.wait_for(lambda page: told(page, "row", author="clerk"))


def test_a_message_to_another_agent_has_the_card_that_keeps_it_back(payer: Shell, pages: Pages) -> None:
    asked = pages.next()
    payer.cell("%%agent clerk -m other\nGreet.")

    payer.fails("%chat -s main clerk Hi")

    pages.next()  # that of the run that did not begin
    page = pages.next()
    [unsent] = told(page, "card", id="unsent")
    assert (unsent["texts"], unsent["ways"]) == (["Pay both.", "Hi"], ["refuse", "first"])
    page.says(kind="answer", id="unsent", decision="refuse")
    card(asked, "Ben", state="rejected")
    answer = pages.next()
    answer.wait_for(lambda page: told(page, "row", author="clerk"))
    paid(payer, asked, [])


def test_several_cards_are_approved_together_and_the_agent_goes_on_once(payer: Shell, pages: Pages) -> None:
    asked = pages.next()
    ids = [card(asked, to)["id"] for to in ("Anna", "Ben")]

    asked.says(kind="approve", ids=ids)

    card(asked, "Ben", state="approved")
    asked.wait_for(lambda page: told(page, "row", author="payer", kind="text"))
    paid(payer, asked, ["Anna", "Ben"])
    assert len(payer.names["model"].requests) == 2


def test_cards_of_which_one_changed_are_not_approved_together(payer: Shell, pages: Pages) -> None:
    asked = pages.next()
    ids = [card(asked, to)["id"] for to in ("Anna", "Ben")]
    payer.cell(CHANGED)
    card(asked, "Ben", changed="the tool changed since this was requested")

    asked.says(kind="approve", ids=ids)

    payer.cell("%confirm --no --all")
    paid(payer, asked, [])


def test_resume_shows_the_card_of_a_run_that_waits(payer: Shell, pages: Pages) -> None:
    asked = pages.next()

    payer.cell("%session resume")

    resumed = pages.next()
    approve(resumed, "Anna")
    card(asked, "Anna", state="approved")
    paid(payer, asked, ["Anna"])
    resumed.wait_for(lambda page: told(page, "row", author="payer", kind="text"))
