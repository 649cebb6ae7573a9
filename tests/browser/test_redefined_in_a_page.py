"""A tool's cell that is run again while its card is open: the card says so, and offers what can be done."""

import pytest
from lab import Lab

pytestmark = pytest.mark.browser_all

SETUP = """%load_ext adk_nb
from adk_nb.models.scripted_llm import ScriptedLlm, call
model = ScriptedLlm(call("pay", amount=5), "Paid 5.", call("pay", amount=6), call("pay", amount=7), "Paid 7.")
paid = []"""
PAY = '%%tool --confirm\ndef pay(amount: int) -> str:\n    "Pay."\n    paid.append(amount{})\n    return "paid"'
DEAR, CHEAP = PAY.format(" * 100"), PAY.format("")
CLERK = "%%agent clerk -m model -t pay\nPay what you are asked to."


def test_a_card_whose_tool_changed_can_be_asked_anew_or_made_as_it_was(lab: Lab):
    page = lab.open(
        lab.write(
            "demo.ipynb", SETUP, CHEAP, CLERK, "%chat clerk Pay 5", DEAR, "paid", "%chat clerk Pay 6", CHEAP, "paid"
        )
    )
    for cell in range(4):
        page.run_cell(cell)
    page.wait(".adknb-card", "clerk asks to call pay")
    assert page.button("Approve").is_enabled()

    page.run_cell(4)
    page.wait(".adknb-card .adknb-problem", "the tool changed since this was requested")
    page.wait(".adknb-twin code", "%confirm --reask")
    assert not page.button("Approve").is_enabled()
    page.screenshot("a_tool_that_changed")
    page.button("Run as it was (v1)").click()
    page.until(lambda: "Paid 5." in page.text(3), "the reply")
    page.run_cell(5)
    assert page.text(5) == "[5]"

    page.run_cell(6)
    page.wait(".adknb-card")
    page.run_cell(7)
    page.until(lambda: page.button("Re-ask"), "the choice").click()
    page.until(lambda: "7" in " ".join(element.text for element in page.all(".adknb-card")), "the new card")
    page.screenshot("a_call_asked_anew")
    page.until(lambda: page.button("Approve").is_enabled(), "a yes")
    page.button("Approve").click()
    page.until(lambda: "Paid 7." in page.text(6), "the reply")
    page.run_cell(8)
    assert page.text(8) == "[5, 7]"
