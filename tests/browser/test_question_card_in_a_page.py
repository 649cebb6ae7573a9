"""What an agent asks, answered on its card: buttons, fields, words; and what the saved notebook keeps of it."""

import json
import re
from pathlib import Path

import pytest
from axe import violations
from chats import SETUP
from lab import Lab, Page
from selenium.webdriver import Keys

pytestmark = pytest.mark.browser
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
ASKING = """
from typing import Literal
from pydantic import BaseModel, Field
from adk_nb.events import RequestInput
from adk_nb.tools import get_user_choice, request_input
from adk_nb.workflow import START, Workflow, node

def clerk_that(*calls):
    model = ScriptedLlm(list(calls) if len(calls) > 1 else calls[0], "Thank **you**.", "And then?")
    return Agent(name="clerk", model=model, tools=[request_input, get_user_choice])

def asks(**question):
    return clerk_that(call("adk_request_input", **question))

def desk_that_asks(schema, message="What may it cost?"):
    def budget(node_input: str):
        yield RequestInput(message=message, payload={"street": node_input}, response_schema=schema)

    def order(node_input) -> str:
        return f"ordered for {node_input!r}"

    return Workflow(name="desk", edges=[(START, budget, order)])

class Order(BaseModel):
    street: str = Field(description="where the lamps are")
    lamps: int
    urgent: bool
    colour: Literal["white", "yellow"] = "white"
    note: str | None = None

def answers(chat):
    'What was sent back for each question.'
    said = [one for event in chat.events if event.author == "user" for one in event.get_function_responses()]
    print(json.dumps([one.response for one in said]))
"""
INTERNAL = ("adk_request_input", "transfer_to_agent", "get_user_choice")


def asked(lab: Lab, *cells: str) -> Page:
    """A page that has run these cells, the last of which asks."""
    page = lab.open(lab.write("asks.ipynb", SETUP, ASKING, *cells, "answers(_run.chat)"))
    for cell in range(2 + len(cells)):
        page.run_cell(cell)
    page.wait(".adknb-card[data-kind='input']")
    return page


def answered(page: Page, cell: int) -> list[object]:
    """The answers of the session, once the run has gone on to its end."""
    page.wait(".adknb-status", "done")
    page.run_cell(cell)
    return json.loads(page.text(cell))


def looked_at(page: Page, name: str) -> None:
    """Light, dark and narrow: everything can be read, and nothing breaks a rule of accessibility."""
    for theme, width in (("JupyterLab Light", 1100), ("JupyterLab Dark", 1100), ("JupyterLab Light", 640)):
        page.theme(theme)
        page.resize(width, 900)
        page.scroll_to(".adknb-card")
        page.screenshot(f"{name}-{'dark' if 'Dark' in theme else width}")
        assert page.js(CONTRAST, ".adknb-card, .adknb-card *") == [], theme
        assert violations(page) == [], theme


def test_words_are_typed_into_the_card_and_the_run_goes_on(lab: Lab):
    page = asked(lab, "clerk = asks(message='Which order is it?')", "%chat clerk Send it back")
    assert (page.wait(".adknb-ask").text, page.wait(".adknb-question").text) == ("⚠ clerk asks", "Which order is it?")
    assert [text for _, text in page.rows()] == ["Send it back", "asks: Which order is it?"]
    looked_at(page, "question-words")

    page.button("Send").click()
    assert page.wait(".adknb-card .adknb-problem").text == "nothing was typed"
    page.wait(".adknb-card textarea")
    page.cards_are_on()
    page.wait(".adknb-card textarea").send_keys("A17", Keys.ENTER)

    assert answered(page, 4) == [{"result": "A17"}]
    page.resize(1100, 900)
    outcome = page.wait("[data-state='answered'] .adknb-outcome")
    assert outcome.text.endswith('"Which order is it?": A17')
    assert "Thank you." in page.text(3)
    page.screenshot("question-answered")
    saved = page.saved().cells[3].outputs
    stored_text = json.dumps(saved)
    assert 'You answered \\"Which order is it?\\": A17' in stored_text
    sub = re.sub(
        "<details><summary>[0-9]+ prompts?, .*?</details>", "", stored_text
    )  # where it is to be seen what was sent
    assert [name for name in INTERNAL if name in sub] == []


@pytest.mark.browser_all
def test_a_choice_is_a_button(lab: Lab):
    choice = "call('get_user_choice', options=['tea', 'coffee'], prompt='What may it be?')"
    page = asked(lab, f"clerk = clerk_that({choice})", "%chat clerk A drink")
    looked_at(page, "question-choice")

    page.button("coffee").click()

    assert answered(page, 4) == [{"result": "coffee"}]
    assert page.wait(".adknb-outcome").text.endswith(' "What may it be?": coffee')


@pytest.mark.browser_all
@pytest.mark.parametrize(
    ("schema", "label", "value"),
    [("bool", "No", False), ('Literal["red", "blue"]', "blue", "blue"), ("Literal[1, 2] | None", "Nothing", None)],
)
def test_a_schema_with_few_values_is_a_button_for_each(lab: Lab, schema: str, label: str, value: object):
    page = asked(lab, f"desk = desk_that_asks({schema})", "%chat desk Harbour Street")

    page.button(label).click()

    assert answered(page, 4) == [{"result": value}]


@pytest.mark.browser_all
def test_a_number_is_refused_in_one_line_until_it_fits(lab: Lab):
    page = asked(lab, "desk = desk_that_asks(int)", "%chat desk Harbour Street")
    field = page.wait(".adknb-card input")

    page.cards_are_on()
    field.send_keys("many", Keys.ENTER)
    assert "whole number" in page.wait(".adknb-field .adknb-problem").text
    page.type(".adknb-card input", "250\n")

    assert answered(page, 4) == [{"result": 250}]


@pytest.mark.browser_all
def test_what_only_python_can_refuse_leaves_the_card_as_it_was(lab: Lab):
    schema = "{'type': 'object', 'properties': {'n': {'type': 'integer', 'multipleOf': 5}}, 'required': ['n']}"
    page = asked(lab, f"clerk = asks(message='How many?', response_schema={schema})", "%chat clerk Some")

    page.wait(".adknb-card input")
    page.cards_are_on()
    page.type(".adknb-card input", "3\n")
    problem = page.wait(".adknb-card > .adknb-problem", "How many?").text
    assert "multiple of 5" in problem
    assert "\n" not in problem
    assert page.wait(".adknb-card input").get_attribute("value") == "3", "what was typed is still there"
    page.screenshot("question-refused")
    page.cards_are_on()
    page.type(".adknb-card input", "15\n")

    assert answered(page, 4) == [{"n": 15}]


@pytest.mark.browser_all
def test_an_object_is_a_form_with_its_fields(lab: Lab):
    page = asked(lab, "desk = desk_that_asks(Order, 'What is to be done?')", "%chat desk Harbour Street")
    labels = [element.text for element in page.all(".adknb-card .adknb-field-name")]
    assert [label.split()[0] for label in labels] == ["street", "lamps", "urgent", "colour", "note"]
    assert [label.partition(" ")[2] for label in labels[1:]] == [
        "integer",
        "boolean",
        'one of, default "white"',
        "string, optional",
    ]
    needed = (
        "return [...document.querySelectorAll('.adknb-card .adknb-input')].map((one) => one.ariaRequired === 'true')"
    )
    assert page.js(needed) == [True, True, False, False]
    looked_at(page, "question-form")

    page.type(".adknb-card input.adknb-input", "Quay")
    page.button("Send").click()
    page.wait(".adknb-card .adknb-problem", "lamps: nothing was typed")
    page.all(".adknb-card input.adknb-input")[1].send_keys("4")
    assert [element.text for element in page.all(".adknb-card .adknb-problem") if element.text] == []
    page.click(".adknb-card .adknb-check")
    page.button("Send").click()

    assert answered(page, 4) == [{"street": "Quay", "lamps": 4, "urgent": True, "colour": "white", "note": None}]


@pytest.mark.browser_all
def test_what_is_typed_in_another_cell_settles_the_card(lab: Lab):
    page = asked(lab, "clerk = asks(message='Which order is it?')", "%chat clerk Send it back")
    page.js("panel.model.sharedModel.insertCell(4, {cell_type: 'code', source: '%chat A17'})")
    page.run_cell(4)

    page.until(lambda: 'You answered "Which order is it?" in [5]: A17' in page.text(3), "the answer")
    assert [element.text for element in page.all(".adknb-card[data-state='asked']")] == []


@pytest.mark.browser_all
def test_confirm_draws_the_card_again(lab: Lab):
    page = asked(lab, "clerk = asks(message='Which order is it?')", "%chat clerk Send it back")
    page.js("panel.model.sharedModel.insertCell(4, {cell_type: 'code', source: '%confirm'})")
    page.run_cell(4)
    page.until(lambda: len(page.all(".adknb-card[data-state='asked']")) == 2, "a second card")

    page.cards_are_on()
    page.all(".adknb-card textarea")[1].send_keys("A18", Keys.ENTER)

    page.until(lambda: page.all(".adknb-card[data-state='asked']") == [], "both cards")
    page.until(lambda: "in [5]: A18" in page.text(3), "where it was answered")
    page.until(lambda: "Thank you." in page.text(4), "the answer")


@pytest.mark.browser_all
def test_a_chat_box_takes_the_answer_on_the_card_and_below(lab: Lab):
    second_text = (
        "call('adk_request_input', message='Which order?'), call('adk_request_input', message='Which reason?')"
    )
    page = lab.open(
        lab.write("box.ipynb", SETUP, ASKING, f"clerk = clerk_that({second_text})", "%chat clerk", "answers(_run.chat)")
    )
    for cell in range(4):
        page.run_cell(cell)
    say = page.wait(".adknb-say")
    say.send_keys("Send it back", Keys.ENTER)
    page.wait(".adknb-card", "Which order?")
    assert page.wait(".adknb-hint-line").text.startswith("Enter sends")
    looked_at(page, "question-box")

    composer = page.wait(".adknb-composer .adknb-say")
    composer.send_keys("A17", Keys.ENTER)
    page.until(lambda: ("you", "A17") in page.talk(), "the answer in the log")
    page.cards_are_on()
    page.wait(".adknb-card[data-state='asked'] textarea").send_keys("too late", Keys.ENTER)
    page.until(lambda: ("clerk", "And then?") in page.talk(), "the end")

    page.run_cell(4)
    assert json.loads(page.text(4)) == [{"result": "A17"}, {"result": "too late"}]
    assert [text for _, text in page.talk() if any(name in text for name in INTERNAL)] == []


@pytest.mark.browser_all
def test_a_node_that_waits_for_approval_takes_a_yes_and_a_no_with_a_reason(lab: Lab):
    gate = """
def pay(node_input: str) -> str:
    return f"paid {node_input}"

desk = Workflow(name="desk", edges=[(START, node(pay, require_confirmation=True, rerun_on_resume=True))])"""
    page = asked(lab, gate, "%chat desk 7")
    assert page.wait(".adknb-ask").text.endswith("to call pay")
    assert [element.text for element in page.all(".adknb-card .adknb-button")] == ["Approve", "Reject…"]
    page.button("Reject…").click()
    page.wait(".adknb-card .adknb-form")
    looked_at(page, "node-reason")
    page.button("Back").click()
    page.until(lambda: page.js("return document.activeElement.textContent") == "Reject…", "the focus where it was")
    page.button("Reject…").click()
    page.type(".adknb-card .adknb-form input", "too much\n")
    page.wait(".adknb-card .adknb-outcome", ": too much")
    page.wait(".adknb-status", "done")

    page.js("panel.model.sharedModel.insertCell(4, {cell_type: 'code', source: '%chat desk 8'})")
    page.run_cell(4)
    page.until(lambda: len(page.all(".adknb-card")) == 2, "the second card")
    page.button("Approve").click()

    page.until(lambda: "paid 8" in page.text(4), "the output")
    page.run_cell(5)
    assert json.loads(page.text(5)) == [{"confirmed": False, "reason": "too much"}, {"confirmed": True}]
