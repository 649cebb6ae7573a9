"""A cell whose message meets an open card: both texts, what can be done, and no error left once it is answered."""

import json

import pytest
from chats import ASK, SETUP
from hands import card, press, says
from lab import Lab, Page

pytestmark = pytest.mark.browser

PAYING = """
model = ScriptedLlm(call("refund", order="A17", amount=250.0), ANSWERS)
payer = Agent(name="payer", model=model, tools=[refund])
"""
OTHER = "%chat payer Please pay back 90 only."
MESSAGES = "print(json.dumps([ran, [turn.question for turn in get_ipython().adk_nb.chat('payer').turns]]))"


def kept_back(lab: Lab, answers: str, *, again: bool) -> Page:
    """A page with an open card in cell 2, on which another message was run: in cell 2 again, or in cell 3."""
    page = lab.open(lab.write("kept_back.ipynb", SETUP, PAYING.replace("ANSWERS", answers), ASK, OTHER, MESSAGES))
    for cell in range(3):
        page.run_cell(cell)
    page.wait(".adknb-card")
    if again:
        page.js("panel.content.widgets[2].model.sharedModel.setSource(arguments[0])", OTHER)
    page.run_cell(2 if again else 3, allow_errors=True)
    page.wait(".adknb-card[data-kind=unsent]", "Your new message was not sent")
    return page


def no_error(page: Page, cell: int) -> None:
    assert [one for one in page.outputs(cell) if one["output_type"] == "error"] == []


def test_a_changed_message_is_shown_beside_the_one_that_waits_and_sent_in_its_place(lab: Lab):
    page = kept_back(lab, '"Not paid.", "Ninety it is."', again=True)
    no_error(page, 2)
    text = page.wait(".adknb-card[data-kind=unsent]").text
    assert "Please pay me back." in text and "Please pay back 90 only." in text

    press(page, 2, "Reject that and send this")

    says(page, 2, "Ninety it is.")
    says(page, 2, "You rejected refund")
    page.gone(".adknb-card[data-state=asked]")
    page.run_cell(4)
    assert json.loads(page.text(4)) == [[], ["Please pay me back.", "Please pay back 90 only."]]


def test_the_card_can_be_answered_first_and_no_error_stays(lab: Lab):
    page = kept_back(lab, '"All settled.", "Ninety as well."', again=False)

    press(page, 3, "Answer first")
    focused = "return document.activeElement.matches('.adknb-card[data-state=asked]')"
    page.until(lambda: page.js(focused), "the focus on the card")
    card(page, 3)
    press(page, 3, "Approve")

    says(page, 3, "All settled.")
    says(page, 3, "✓ You approved refund")
    no_error(page, 3)
    press(page, 3, "Send it now")
    says(page, 3, "Ninety as well.")
    page.run_cell(4)
    assert json.loads(page.text(4))[0] == [["A17", 250.0]]


def test_what_was_not_sent_is_still_told_when_the_kernel_has_gone(lab: Lab):
    page = kept_back(lab, '"Never said."', again=False)

    page.js("await panel.sessionContext.session.kernel.restart()")

    text = page.wait(".adknb-card[data-kind=unsent][data-state=stale]", ": its kernel is gone").text
    assert "Your new message was not sent" in text and "Please pay back 90 only." in text
    assert "Reject that and send this" not in text


def test_run_all_stops_at_a_message_that_was_kept_back(lab: Lab):
    page = lab.open(lab.write("kept_back.ipynb", SETUP, PAYING.replace("ANSWERS", '"x"'), ASK, OTHER, "print('on')"))

    page.run_all(allow_errors=True)

    page.wait(".adknb-card[data-kind=unsent]")
    assert page.text(4) == ""
