"""Conversations in a real page: asked in a cell, watched, approved by a click, stopped, saved and read again."""

import json
from typing import Any

import pytest
from chats import ASK, COUNT, NOTES, PAYING, SETUP, SLOW
from lab import Lab, Page

pytestmark = pytest.mark.browser


def paying(lab: Lab, *args: str, agent: str = PAYING) -> Page:
    """A page whose third cell waits for an approval; `more` cells come after it."""
    page = lab.open(lab.write("chat.ipynb", SETUP, agent, ASK, *args))
    for cell in range(3):
        page.run_cell(cell)
    page.wait(".adknb-card")
    return page


def notes(page: Page, cell: int) -> list[Any]:
    page.run_cell(cell)
    return json.loads(page.text(cell))


def settled(page: Page, cell: int = 2) -> None:
    """Wait until the reply that came after a click stands in the outputs of the cell that asked."""
    page.until(lambda: "All settled." in page.text(cell), "the reply in the cell that asked")


VIEWS = """return [...document.querySelectorAll('.adknb-root')].map((one) =>
    panel.content.widgets.findIndex((cell) => cell.node.contains(one)))"""


def stays(page: Page, cell: int) -> None:
    """Wait until one view is left, in that cell: question and answer of a run that is over."""
    page.until(lambda: page.js(VIEWS) == [cell], "the view that stays")
    page.wait(".adknb-summary")


WATCHER = """
model = ScriptedLlm(["Let me ", "look.", call("look", city="Oslo")], "It is **9** degrees.")
watcher = Agent(name="watcher", model=model, tools=[look])
"""


def test_rows_are_seen_before_the_cell_ends_and_its_reply_stays(lab: Lab):
    page = lab.open(lab.write("chat.ipynb", SETUP, WATCHER, "%chat watcher How warm is Oslo?"))
    page.run_cell(0)
    page.run_cell(1)

    page.run_cell(2, wait=False)

    page.until(lambda: len(page.rows()) == 3, "three rows")
    assert page.running(2)
    assert page.rows()[:2] == [("you", "How warm is Oslo?"), ("watcher", "Let me look.")]
    assert "look" in page.rows()[2][1]
    (lab.folder / "go").touch()
    page.until(lambda: not page.running(2))
    stays(page, 2)
    page.wait(".adknb-answered", "It is 9 degrees.")
    assert not page.all(".adknb-asked"), "the cell above says it"
    assert page.wait(".adknb-fold", "Details").get_attribute("aria-expanded") == "false"


def test_a_click_on_approve_runs_the_call_once_and_the_answer_comes_into_the_same_cell(lab: Lab):
    page = paying(lab, NOTES)
    assert not page.running(2)

    page.cards_are_on()
    page.js("const go = document.querySelector('.adknb-go'); go.click(); go.click();")
    settled(page)

    assert notes(page, 3) == [[["A17", 250.0]], {"result": "paid 250.0 for A17"}]
    assert page.text(2).splitlines().count("paid 250.0") == 1
    stays(page, 2)
    assert page.wait(".adknb-decision").text.endswith(' refund(order="A17", amount=250.0)')
    [saved] = [output for output in page.saved().cells[2].outputs if output.get("data", {}).get("text/plain")]
    for text in ("refund(order=", "All settled.", "1 tool call"):
        assert text in saved.data["text/markdown"]
    assert "pay me back" not in saved.data["text/markdown"], "the cell above says it"
    assert "Asks for approval" not in saved.data["text/markdown"]


TWICE = """
both = [call("refund", order="A17", amount=250.0), call("refund", order="B2", amount=10.0)]
model = ScriptedLlm(both, "Half **settled**.", "All **settled**.")
payer = Agent(name="payer", model=model, tools=[refund])
"""


@pytest.mark.browser_all
@pytest.mark.parametrize("quickly", [True, False])
def test_two_cards_are_answered_one_after_the_other(lab: Lab, quickly: bool):
    page = lab.open(lab.write("chat.ipynb", SETUP, TWICE, ASK, NOTES))
    for cell in range(3):
        page.run_cell(cell)
    page.until(lambda: len(page.all(".adknb-card")) == 2, "both cards")

    if quickly:
        page.cards_are_on()
        page.js("document.querySelectorAll('.adknb-go').forEach((go) => go.click())")
    else:
        page.button("Approve").click()
        page.until(lambda: "Half settled." in page.text(2), "the first reply")
        page.button("Approve").click()
    settled(page)

    stays(page, 2)
    assert notes(page, 3)[0] == [["A17", 250.0], ["B2", 10.0]]


@pytest.mark.browser_all
def test_what_is_typed_on_a_card_stays_while_another_is_answered(lab: Lab):
    page = lab.open(lab.write("chat.ipynb", SETUP, TWICE, ASK, NOTES))
    for cell in range(3):
        page.run_cell(cell)
    page.until(lambda: len(page.all(".adknb-card")) == 2, "both cards")
    page.steady(lambda: page.all(".adknb-card .adknb-button")[4], "Edit…").click()  # Edit… on the second
    fields = {label.text.split()[0]: label.get_attribute("for") for label in page.all(".adknb-field-name")}
    page.type(f"#{fields['amount']}", "9")

    page.button("Approve").click()
    page.wait(".adknb-row", "Half settled.")
    assert page.js(VIEWS) == [2]
    page.button("Approve with these changes").click()
    settled(page)

    assert notes(page, 3)[0] == [["A17", 250.0], ["B2", 9]]
    [saved] = [output for output in page.saved().cells[2].outputs if output.get("data", {}).get("text/plain")]
    assert "Half settled." in saved.data["text/markdown"] and "Waits" not in saved.data["text/markdown"]


@pytest.mark.browser_all
def test_the_tool_gets_the_arguments_as_edited(lab: Lab):
    page = paying(lab, NOTES)
    page.button("Edit…").click()
    fields = {label.text.split()[0]: label.get_attribute("for") for label in page.all(".adknb-field-name")}

    page.type(f"#{fields['amount']}", "100")
    page.button("Approve with these changes").click()
    settled(page)

    ran, note = notes(page, 3)
    assert ran == [["A17", 100]]
    assert note["result"] == "paid 100.0 for A17"


@pytest.mark.browser_all
def test_the_model_sees_the_reason_of_a_rejection(lab: Lab):
    page = paying(lab, NOTES)

    page.button("Reject…").click()
    page.type(".adknb-form input", "too much")
    page.button("Reject").click()
    settled(page)

    ran, note = notes(page, 3)
    assert ran == []
    assert "too much" in note["error"]


@pytest.mark.browser_all
def test_an_answer_in_another_cell_closes_the_card_and_a_click_after_it_does_nothing(lab: Lab):
    slowly = PAYING.replace('"refund", order="A17", amount=250.0', '"refund_slowly", order="A17"')
    page = paying(
        lab, "%confirm --yes", "print(len(model.requests))", agent=slowly.replace("[refund]", "[refund_slowly]")
    )

    page.run_cell(3, wait=False)
    page.wait(".adknb-card", "in [")
    page.js("document.querySelectorAll('.adknb-card button').forEach((one) => one.click())")
    (lab.folder / "go").touch()

    page.until(lambda: not page.running(3))
    assert "All settled." in page.text(3)
    page.until(lambda: page.js(VIEWS) == [2, 3], "a view of the question and one of the answer")
    assert "approved refund_slowly(" in page.text(2)
    assert notes(page, 4) == 2


def test_stop_ends_a_streaming_answer_and_the_reply_says_so(lab: Lab):
    page = lab.open(lab.write("chat.ipynb", SETUP, SLOW, "%chat slow go on", "print(json.dumps(_run.status))"))
    page.run_cell(0)
    page.run_cell(1)
    page.run_cell(2, wait=False)
    page.until(lambda: len(page.rows()) == 2 and "word5 " in page.rows()[1][1], "some words")

    page.button("Stop").click()

    page.until(lambda: not page.running(2))
    page.wait(".adknb-status", "stopped")
    assert notes(page, 3) == "cancelled"
    assert "word0 word1 " in json.dumps(page.saved().cells[2].outputs)


@pytest.mark.browser_all
def test_an_interrupt_of_the_kernel_leaves_the_text_that_had_streamed_as_stop_does(lab: Lab):
    page = lab.open(lab.write("chat.ipynb", SETUP, SLOW, "%chat slow go on"))
    page.run_cell(0)
    page.run_cell(1)
    page.run_cell(2, wait=False)
    page.until(lambda: len(page.rows()) == 2 and "word5 " in page.rows()[1][1], "some words")

    page.js("await panel.sessionContext.session.kernel.interrupt()")

    page.until(lambda: not page.running(2))
    page.wait(".adknb-status", "stopped")
    assert "word5 " in page.rows()[1][1]
    page.scroll_to(".adknb-view")
    page.screenshot("interrupted")
    outputs = page.saved().cells[2].outputs
    assert "word0 word1 " in outputs[0]["data"]["text/html"]
    assert outputs[-1]["ename"] == "KeyboardInterrupt"


@pytest.mark.browser_all
def test_ten_thousand_tokens_of_an_answer_arrive_whole_in_at_most_fifty_messages(lab: Lab):
    talker = (
        "words = [f'word{number} ' for number in range(10_000)]\n"
        "talker = Agent(name='talker', model=ScriptedLlm(words + [call('look', city='Oslo')], 'done'), tools=[look])"
    )
    page = lab.open(lab.write("chat.ipynb", SETUP, talker, COUNT, "%chat talker Speak.", "print(len(counted))"))
    for cell in range(3):
        page.run_cell(cell)

    page.run_cell(3, wait=False)

    script = "const row = document.querySelectorAll('.adknb-row')[1]; return row ? row.innerText : ''"
    page.until(lambda: "word9999" in page.js(script) and "▌" not in page.js(script), "the last token")
    assert [token for token in page.js(script).split() if token.startswith("word")] == [
        f"word{n}" for n in range(10_000)
    ]
    (lab.folder / "go").touch()
    page.until(lambda: not page.running(3))
    assert 3 < notes(page, 4) <= 50


@pytest.mark.browser_all
def test_agents_share_a_session_and_one_waits_for_the_others_approval(lab: Lab):
    other_text = "other = Agent(name='other', model=ScriptedLlm('I am the other.'))"
    page = paying(lab, other_text, "%chat other And you?", "%chat other And you?", "%trace", NOTES)
    page.run_cell(3)

    page.run_cell(4, allow_errors=True)
    assert "is open (refund)" in page.text(4)
    page.button("Approve").click()
    settled(page)
    page.run_cell(5)

    assert "I am the other." in page.text(5)
    page.run_cell(6)
    trace = page.text(6)
    assert [text in trace for text in ("payer", "other", "pay me back.", "And you?")] == [True] * 4


BY_MAIL = """
def refund(order: str, notify: bool = True, currency: str = "EUR") -> str:
    'Pays back.'
    ran.append((order, notify, currency))
    return "paid"

model = ScriptedLlm(call("refund", order="A17"), "All **settled**.")
clerk = Agent(name="clerk", model=model, tools=[tool(confirm=True)(refund)])
payer = SequentialAgent(name="payer", sub_agents=[clerk])
"""


@pytest.mark.browser_all
def test_what_is_not_given_is_told_and_false_can_be_chosen_in_a_team_too(lab: Lab):
    imports = "from adk_nb.agents import SequentialAgent\n"
    page = lab.open(lab.write("chat.ipynb", SETUP, imports + BY_MAIL, ASK, "print(json.dumps(ran))"))
    for cell in range(3):
        page.run_cell(cell)
    page.wait(".adknb-arguments", "notify true (default)")
    page.button("Edit…").click()
    fields = {label.text.split()[0]: label for label in page.all(".adknb-field-name")}
    assert fields["currency"].text.endswith('default "EUR"')

    notify = page.wait(f"#{fields['notify'].get_attribute('for')}")
    assert notify.is_selected()
    notify.click()
    page.wait(".adknb-difference", "notify true → false")
    page.button("Approve with these changes").click()
    settled(page)

    page.run_cell(3)
    assert json.loads(page.text(3)) == [["A17", False, "EUR"]]


@pytest.mark.browser_all
def test_on_a_page_that_was_loaded_again_the_file_has_each_answer_while_others_wait(lab: Lab):
    text = (
        "model = ScriptedLlm([call('refund', order=one, amount=1.0) for one in 'ABC'], 'On.', 'Further on.', 'Done.')"
    )
    agent = f"{text}\npayer = Agent(name='payer', model=model, tools=[refund])"
    page = paying(lab, "%confirm 2 --yes", agent=agent)

    def stored_values() -> str:
        return json.dumps(page.saved().cells[2].outputs)

    page.reload()
    page.wait(".adknb-card")
    page.button("Reject…").click()
    page.type(".adknb-form input", "half typed")
    page.run_cell(3)
    page.wait(".adknb-card", "in [")
    assert (
        stored_values().count("Asks for approval (") == 9
    )  # as nbval finds it before that cell is run, in three forms
    assert page.js("return document.querySelector('.adknb-form input').value") == "half typed"
    page.button("Back").click()
    page.button("Approve").click()
    page.until(
        lambda: "Further on." in stored_values() and "approves refund by a click" in stored_values(), "what was clicked"
    )
    assert "Asks for approval" in stored_values() and len(page.all(".adknb-root")) == 1
    assert "approved in [" in stored_values()
    page.button("Approve").click()
    page.until(lambda: "Done." in stored_values() and "Asks for approval" not in stored_values(), "the whole turn")
    assert "approved in [" in stored_values()


@pytest.mark.browser_all
def test_of_several_each_is_asked_in_one_place_and_each_answer_is_told_once(lab: Lab):
    text = (
        "model = ScriptedLlm([call('refund', order=one, amount=1.0) for one in 'ABC'], 'On.', 'Further on.', 'Done.')"
    )
    agent = f"{text}\npayer = Agent(name='payer', model=model, tools=[refund])"
    page = paying(lab, "%confirm 1 --yes", "%confirm 3 --no --reason 'too much'", "%confirm --yes", agent=agent)

    page.run_cell(3)
    page.until(lambda: "Open requests: %confirm" in page.text(3), "what is left")
    assert page.text(3).count("On.") == 1 and "(3)" in page.text(3)
    page.run_cell(4)
    page.until(lambda: "rejected in [" in page.text(2), "how it was answered")
    page.screenshot("several_approvals")

    assert page.text(4).count("Further on.") == 1
    data = [[output.data for output in cell.outputs if "data" in output] for cell in page.saved().cells]
    assert [str([data["text/plain"] for data in data[cell]]).count("payer > ") for cell in (2, 3, 4)] == [1, 1, 1]
    content_text = [
        text in str(data[2]) for text in ("You approved", "You rejected", *(f"approval ({n}):</s" for n in (1, 2, 3)))
    ]
    assert content_text == [False] * 2 + [True] * 3  # nbval compares the cell before those that answer are run
    page.run_cell(5)
    page.until(lambda: "✓ You approved refund(" in page.text(2))
    summary = "return panel.content.widgets[2].node.querySelector('.adknb-summary').offsetHeight"
    assert page.js(summary) == 0, "its answer stands in another cell"
    lines = """const bar = panel.content.widgets[2].node.querySelector('.adknb-bar');
        const above = [...bar.parentElement.querySelectorAll('.adknb-decision')].at(-1);
        return parseFloat(getComputedStyle(above).borderBottomWidth) + parseFloat(getComputedStyle(bar).borderTopWidth)
    """
    assert page.js(lines) == 1, "one line between what was decided and the fold"
