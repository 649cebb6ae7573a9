"""One card of a request wherever it stands, and where the focus goes when it is answered."""

import pytest
from axe import violations
from chats import ASK, SETUP
from hands import card, keys, press, ran, says, within
from lab import Lab, Page
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.browser_all

THREE = """
orders = [call("refund", order=f"A{n}", amount=float(n)) for n in range(1, 4)]
model = ScriptedLlm(orders, "One by one.", "All **settled**.", "Really.")
payer = Agent(name="payer", model=model, tools=[refund])
clerk = Agent(name="clerk", model=ScriptedLlm("Never said."))
"""
PAID = "print(json.dumps([order for order, amount in ran]))"
TOOL = (
    "%%tool --confirm\ndef pay(to: str) -> str:\n    'Pays.'\n    ran.append((to, 'VERSION'))\n    return 'paid ' + to"
)
AGENT = """%%agent payer -m model -t pay
Pay."""
BOTH = 'model = ScriptedLlm([call("pay", to="Anna"), call("pay", to="Ben")], "That is all.", "Really.")'
QUESTION = """
from adk_nb.tools import request_input
questions = [call("adk_request_input", message="Which street?"), call("adk_request_input", message="Which house?")]
model = ScriptedLlm(questions, "Half.", "On my way.")
driver = Agent(name="driver", model=model, tools=[request_input])
"""
LONG = """
@tool(confirm=True)
def note(a: str, b: str, c: str, d: str, e: str, f: str, g: str, h: str, i: str, j: str, k: str, l: str) -> str:
    'Notes twelve lines.'
    return "noted"

notes = [call("note", **{name: f"{name}{n} " + "word " * 20 for name in "abcdefghijkl"}) for n in (1, 2)]
payer = Agent(name="payer", model=ScriptedLlm(notes, "All noted."), tools=[note])
"""
FOCUSED = "return document.activeElement.textContent"
ON_CARD = "return document.activeElement.matches('.adknb-card[data-state=asked]')"


def opened(lab: Lab, *cells: str, until: int) -> Page:
    """A page that has run the cells before `until`."""
    page = lab.open(lab.write("cards.ipynb", *cells))
    for cell in range(until):
        page.run_cell(cell)
    return page


def open_cards(page: Page, *cells: int) -> list[int]:
    """How many cards ask in each of these cells."""
    return [len(within(page, cell, ".adknb-card[data-state=asked]")) for cell in cells]


def focus(page: Page, css: str) -> None:
    """Give an element of a card the focus, once it takes it and the card stands still."""
    given = "const one = document.querySelector(arguments[0]); one.focus(); return document.activeElement === one"
    page.cards_are_on()
    page.until(lambda: page.js(given, css), f"the focus on {css}")
    page.cards_are_on()


def look_at(page: Page, node: WebElement) -> None:
    """Scroll to a node, and let the page notice it."""
    page.js("arguments[0].scrollIntoView({block: 'center'})", node)
    page.js("await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_cards_are_approved_together_once_each_was_in_sight(lab: Lab):
    page = opened(lab, SETUP, THREE, ASK, PAID, until=3)
    page.until(lambda: open_cards(page, 2) == [3], "three cards")
    page.resize(1200, 330)
    page.reload()
    page.js("panel.content.node.querySelector('.jp-WindowedPanel-outer')?.scrollTo(0, 0)")
    button = page.until(lambda: within(page, 2, ".adknb-approve-all .adknb-button"), "the button for all")[0]
    assert button.text == "Approve all 3"
    assert not button.is_enabled(), "not all of them were in sight"

    for one in within(page, 2, ".adknb-card[data-state=asked]"):
        look_at(page, one)
    page.resize(1200, 900)
    assert violations(page) == []
    press(page, 2, "Approve all 3")

    says(page, 2, "One by one.")
    page.until(lambda: "One by one." in page.js(FOCUSED), "the focus on the answer")
    assert ran(page, 3) == ["A1", "A2", "A3"]


def test_cards_that_no_screen_shows_as_a_whole_are_approved_together_too(lab: Lab):
    page = opened(lab, SETUP, LONG, ASK, until=3)
    page.until(lambda: open_cards(page, 2) == [2], "two cards")
    page.resize(1200, 330)
    page.reload()
    button = page.until(lambda: within(page, 2, ".adknb-approve-all .adknb-button"), "the button for both")[0]
    for one in within(page, 2, ".adknb-card[data-state=asked]"):
        assert one.size["height"] > page.js("return panel.content.node.clientHeight")
        for css in (".adknb-ask", ".adknb-reject"):
            assert button.get_property("disabled"), "not all of both was in sight"
            look_at(page, one.find_element(By.CSS_SELECTOR, css))

    press(page, 2, "Approve all 2")

    says(page, 2, "All noted.")


def test_cards_are_not_approved_together_while_one_has_an_open_form(lab: Lab):
    page = opened(lab, SETUP, THREE, ASK, PAID, until=3)
    button = page.until(lambda: within(page, 2, ".adknb-approve-all .adknb-button"), "the button for all")[0]
    for one in within(page, 2, ".adknb-card[data-state=asked]"):
        look_at(page, one)
    page.until(lambda: not button.get_property("disabled"), "the button on")

    press(page, 2, "Edit…")

    assert button.get_property("disabled"), "what is typed would be lost"
    assert "the open form" in within(page, 2, ".adknb-approve-all")[0].text
    press(page, 2, "Back")
    press(page, 2, "Approve all 3")
    says(page, 2, "One by one.")
    assert ran(page, 3) == ["A1", "A2", "A3"]


def test_a_card_is_the_same_in_each_cell_and_box_and_one_of_many_clicks_counts(lab: Lab):
    box, resume, rest = "%chat -s main clerk", "%session resume", "%confirm 1 --no"
    page = opened(lab, SETUP, THREE, ASK, box, resume, rest, PAID, until=6)
    page.until(lambda: open_cards(page, 2, 3, 4, 5) == [2, 2, 2, 2], "two cards in each cell")
    assert "Asks for approval" not in "".join(map(page.text, (2, 3, 4, 5)))
    page.cards_are_on()

    clicked = "for (const one of document.querySelectorAll('.adknb-card[data-state=asked] .adknb-go')) one.click()"
    page.js(clicked)  # the buttons of both cards, in all four cells

    page.until(lambda: open_cards(page, 2, 3, 4, 5) == [0, 0, 0, 0], "no open card")
    page.until(lambda: "Really." in "".join(map(page.text, (2, 4, 5))), "the answer where a click counted")
    for cell in (2, 4, 5):  # the box has it among its messages
        says(page, cell, '✓ You approved refund(order="A2", amount=2.0)')
        says(page, cell, '✓ You approved refund(order="A3", amount=3.0)')
    assert sorted(ran(page, 6)) == ["A2", "A3"]


def test_a_tool_that_changed_is_told_on_every_copy_and_runs_as_it_was_from_any(lab: Lab):
    old, new = TOOL.replace("VERSION", "old"), TOOL.replace("VERSION", "new")
    noted = "print(json.dumps(ran))"
    cells = SETUP, BOTH, old, AGENT, "%chat payer Pay both.", "%confirm 1 --no", "%chat payer", new, noted
    page = opened(lab, *cells, until=7)
    page.until(lambda: open_cards(page, 4, 5, 6) == [1, 1, 1], "a card in each cell")

    page.run_cell(7)

    for cell in (4, 5, 6):
        says(page, cell, "the tool changed since this was requested")
        labels = [one.text for one in within(page, cell, ".adknb-card[data-state=asked] .adknb-buttons button")]
        assert labels == ["Approve", "Re-ask", "Run as it was (v1)", "Reject…"]
    assert violations(page) == []
    press(page, 5, "Run as it was (v1)")
    says(page, 5, "Really.")
    page.until(lambda: open_cards(page, 4, 5, 6) == [0, 0, 0], "no open card")
    assert ran(page, 8) == [["Ben", "old"]]


def test_the_focus_goes_from_card_to_card_and_to_the_answer(lab: Lab):
    page = opened(lab, SETUP, THREE, ASK, until=3)
    focus(page, ".adknb-card .adknb-go")

    keys(page, Keys.ENTER)  # approve
    page.until(lambda: open_cards(page, 2) == [2], "two cards")
    page.until(lambda: page.js(ON_CARD) and '"A2"' in page.js(FOCUSED), "the focus on the next card")
    focus(page, ".adknb-card[data-state=asked] .adknb-reject")
    keys(page, Keys.ENTER)
    keys(page, "Too much.", Keys.ENTER)  # reject, with a reason
    page.until(lambda: open_cards(page, 2) == [1], "one card")
    page.until(lambda: page.js(ON_CARD) and '"A3"' in page.js(FOCUSED), "the focus on the last card")
    page.cards_are_on()
    keys(page, Keys.TAB, Keys.ENTER)

    says(page, 2, "Really.")
    page.until(lambda: page.js(FOCUSED).startswith("Really."), "the focus on the answer")


def test_the_focus_goes_from_question_to_question_and_to_the_answer(lab: Lab):
    page = opened(lab, SETUP, QUESTION, "%chat driver Take me home.", until=3)
    page.until(lambda: open_cards(page, 2) == [2], "two questions")
    focus(page, ".adknb-card .adknb-input")

    keys(page, "Harbour road", Keys.ENTER)  # send
    page.until(lambda: open_cards(page, 2) == [1], "one question")
    inside = "return document.activeElement.closest('.adknb-card[data-state=asked]') !== null"
    page.until(lambda: page.js(inside), "the focus on the next question")
    keys(page, "12")
    press(page, 2, "Send")

    says(page, 2, "On my way.")
    page.until(lambda: page.js(FOCUSED).startswith("On my way."), "the focus on the answer")


def test_the_focus_goes_from_a_card_of_a_box_to_its_field(lab: Lab):
    page = opened(lab, SETUP, THREE, "%chat payer", until=3)
    page.wait(".adknb-composer textarea").send_keys("Please pay me back.", Keys.ENTER)
    page.until(lambda: open_cards(page, 2) == [3], "three cards")
    assert card(page, 2)
    page.cards_are_on()

    press(page, 2, "Approve all 3")

    page.until(lambda: page.js("return document.activeElement.tagName") == "TEXTAREA", "the focus in the field")
