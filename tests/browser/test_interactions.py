"""A reader's afternoon: all that can be done with a run on a page, in a row, on each kernel that people have."""

import json
from typing import Any

import pytest
from chats import SETUP, SLOW
from lab import Lab, Page
from lab_server import KERNELS
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]
OLDER = ["7.3", "6.31"]
EACH_KERNEL = pytest.mark.parametrize(
    "kernel", ["", *(pytest.param(one, marks=pytest.mark.browser_all) for one in OLDER)], ids=["its own", *OLDER]
)
EACH_KERNEL_LATER = pytest.mark.parametrize(
    "kernel", [pytest.param(one, marks=pytest.mark.browser_all) for one in ("", *OLDER)], ids=["its own", *OLDER]
)
SHOWN = {
    "Waterfall": ".adknb-bars [data-kind=tool]",
    "State": "[aria-label='Edit city']",
    "Graph": ".adknb-graph .adknb-picture",
    "Prompt": ".adknb-prompt-body *",
    "Artifacts": ".adknb-artifact",
}
"""What can be seen in each panel when it has come."""
ASKS = "%chat payer Please pay me back."
AGENTS = """
def asks(amount, answer):
    return [call("refund", order="A17", amount=amount), answer]

model = ScriptedLlm(*asks(1.0, "Paid."), *asks(2.0, "Paid half."), *asks(3.0, "Not paid."), *asks(4.0, "Paid by key."),
                    *asks(5.0, "Paid elsewhere."))
payer = Agent(name="payer", model=model, tools=[refund])
look_up = [["Let me ", "look.", call("look", city="Oslo")], "It is **9** degrees."]
watcher = Agent(name="watcher", model=ScriptedLlm(*look_up, *look_up, *look_up), tools=[look])
"""


def opened(lab: Lab, kernel: str, *cells: str) -> Page:
    if kernel and not (KERNELS / kernel).exists():
        pytest.fail(f"there is no ipykernel {kernel} in {KERNELS}; make kernels puts it there")
    page = lab.open(lab.write("afternoon.ipynb", SETUP, *cells, kernel=kernel))
    version = page.js("return (await panel.sessionContext.session.kernel.info).implementation_version")
    assert version
    page.run_cell(0)
    return page


def within(page: Page, cell: int, css: str) -> list[WebElement]:
    """What one can see in the output of a cell."""
    node = page.js("return panel.content.widgets[arguments[0]].node", cell)
    return [one for one in node.find_elements(By.CSS_SELECTOR, f".jp-Cell-outputArea {css}") if one.is_displayed()]


def rows(page: Page, cell: int) -> list[str]:
    return [row.text for row in within(page, cell, ".adknb-row .adknb-what")]


def press(page: Page, cell: int, label: str) -> WebElement:
    """Click the button of a cell that says so, when it is there."""

    def found() -> WebElement | None:
        return next((one for one in within(page, cell, ".adknb-button") if one.text == label), None)

    button = page.until(found, f"a button {label}")
    assert button is not None
    page.js("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    return button


def card(page: Page, cell: int, state: str = "asked") -> WebElement:
    found = page.until(lambda: within(page, cell, f".adknb-card[data-state={state}]"), f"a card that is {state}")
    return found[-1]


def says(page: Page, cell: int, words: str) -> None:
    page.until(lambda: words in page.text(cell), f"{words!r} in cell {cell}")


def keys(page: Page, *pressed: str) -> None:
    ActionChains(page.browser).send_keys(*pressed).perform()


def ran(page: Page, cell: int) -> list[Any]:
    page.run_cell(cell)
    return json.loads(page.text(cell))


@EACH_KERNEL
def test_an_afternoon_of_approvals(lab: Lab, kernel: str):
    busy = kernel != "6.31"  # before 7 a kernel hears a page only between cells
    asking = range(2, 7)
    page = opened(
        lab, kernel, AGENTS, *[ASKS] * 5, "%confirm --yes", "print(json.dumps(ran))", SLOW, "%chat slow go on"
    )
    confirming, notes, slow = 7, 8, 10
    page.run_cell(1)
    first, second, third, fourth, fifth = asking

    # approve, with a hand that clicks twice
    page.run_cell(first)
    card(page, first)
    approve = next(one for one in within(page, first, ".adknb-go"))
    ActionChains(page.browser).double_click(approve).perform()
    says(page, first, "Paid.")
    assert ran(page, notes) == [["A17", 1.0]]

    # reload while it waits; then edit: wrong, then right
    page.run_cell(second)
    card(page, second)
    page.reload()
    card(page, second)
    press(page, second, "Edit…")
    fields = {label.text.split()[0]: label.get_attribute("for") for label in within(page, second, ".adknb-field-name")}
    page.type(f"#{fields['amount']}", "a lot")
    page.wait(".adknb-problem", "a number is needed")
    page.type(f"#{fields['amount']}", "1.5")
    press(page, second, "Approve with these changes")
    says(page, second, "Paid half.")
    assert ran(page, notes)[1:] == [["A17", 1.5]]

    # reject, and say why
    page.run_cell(third)
    press(page, third, "Reject…")
    keys(page, "too much", Keys.ENTER)
    if within(page, third, ".adknb-form"):
        press(page, third, "Reject")
    says(page, third, "Not paid.")
    assert len(ran(page, notes)) == 2

    # keyboard alone: nothing is approved by a key that is not meant for the button
    page.run_cell(fourth)
    asked = card(page, fourth)
    page.js("arguments[0].focus()", asked)
    keys(page, "y", Keys.ENTER, " ")
    assert len(ran(page, notes)) == 2
    page.js("arguments[0].querySelector('button').focus()", card(page, fourth))
    for _ in range(6):
        if page.js("return document.activeElement.textContent") == "Approve":
            break
        keys(page, Keys.TAB)
    assert page.js("return document.activeElement.textContent") == "Approve"
    keys(page, Keys.ENTER)
    says(page, fourth, "Paid by key.")
    assert ran(page, notes)[2:] == [["A17", 4.0]]

    # answered in another cell: the card closes, and its buttons are gone
    page.run_cell(fifth)
    card(page, fifth)
    page.run_cell(confirming)
    says(page, confirming, "Paid elsewhere.")
    page.until(lambda: not within(page, fifth, ".adknb-go"), "the end of the card")
    assert len(ran(page, notes)) == 4

    # stop an answer that streams
    page.run_cell(notes + 1)
    page.run_cell(slow, wait=False)
    page.until(lambda: any("word5 " in one for one in rows(page, slow)), "some words")
    if busy:
        press(page, slow, "Stop")
    else:
        page.js("await panel.sessionContext.session.kernel.interrupt()")
    page.until(lambda: not page.running(slow))
    if busy:
        page.until(lambda: within(page, slow, ".adknb-view[data-status=cancelled]"), "its end")
    else:
        says(page, slow, "KeyboardInterrupt: the run was stopped")

    # what is saved needs no kernel
    cells = page.saved().cells
    assert [cell for cell in (first, third, fourth, fifth, slow) if "widget-view" in json.dumps(cells[cell])] == []
    assert page.alerts() == []


@EACH_KERNEL_LATER
def test_an_afternoon_of_looking_and_going_back(lab: Lab, kernel: str):
    page = opened(
        lab, kernel, AGENTS, "%state city=Oslo", "%chat watcher How warm is it?", "%chat watcher And now?",
        "%rewind --dry-run", "%session fork aside", "%rewind", "%trace", "%session use main", "%trace",
        "%trace --diff -1 -2", "%state --json",
    )  # fmt: skip
    first, second, dry, fork, back, trace, main, kept, differ, state = range(3, 13)
    page.run_cell(1)
    page.run_cell(2)

    # it streams into two views; the page is loaded again in the middle, and has it all when the kernel is free
    page.run_cell(first, wait=False)
    page.until(lambda: len(rows(page, first)) >= 3, "three rows")
    assert rows(page, first)[:2] == ["How warm is it?", "Let me look."]
    page.js("panel.content.activeCellIndex = arguments[0]", first)
    page.js(
        "const here = panel; await app.commands.execute('notebook:create-output-view'); app.shell.activateById(here.id)"
    )
    said = (
        "return [...document.querySelectorAll('.adknb-what')].filter((one) => one.textContent === arguments[0]).length"
    )
    page.until(lambda: page.js(said, "Let me look.") == 2, "both views")
    page.screenshot("afternoon-two-views")
    page.save()
    page.browser.refresh()
    (lab.folder / "go").touch()
    page.ready()
    page.js("for (const one of [...app.shell.widgets('main')]) if (one.id !== panel.id) one.dispose()")
    says(page, first, "It is 9 degrees.")
    page.run_cell(second)
    says(page, second, "It is 9 degrees.")

    # each panel, by keyboard; a filter; a row's JSON
    page.until(lambda: within(page, second, ".adknb-root"), "the view that stays")
    unfold(page, second)
    tabs = [tab.text for tab in within(page, second, ".adknb-tab")]
    assert {"Events", "Waterfall", "State", "Prompt"} <= set(tabs)
    page.js("arguments[0].focus()", within(page, second, ".adknb-tab")[0])
    for name in tabs[1:]:
        keys(page, Keys.ARROW_RIGHT)
        assert page.js("return document.activeElement.textContent") == name
        page.until(lambda css=SHOWN[name]: within(page, second, css), f"what {name} shows")
        page.screenshot(f"afternoon-{name.lower()}")
    keys(page, Keys.HOME)
    field = page.until(lambda: within(page, second, "input.adknb-filter"), "the filter")[0]
    field.send_keys("degrees")
    page.until(lambda: len(rows(page, second)) == 1, "the one row")
    field.send_keys(Keys.ESCAPE)
    page.until(lambda: len(rows(page, second)) > 2, "all rows")
    page.js("arguments[0].focus()", within(page, second, ".adknb-row")[0])
    keys(page, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    page.until(lambda: within(page, second, ".adknb-detail"), "the row's detail")
    keys(page, Keys.ESCAPE)
    assert page.js("return document.activeElement.closest('.adknb-root') === null")

    # the state, changed where it stands: wrong, then right
    tab = next(one for one in within(page, second, ".adknb-tab") if one.text == "State")
    tab.click()
    page.until(lambda: within(page, second, "[aria-label='Edit city']"), "a state to edit")[0].click()
    page.type(".adknb-key-form .adknb-input", "[1, ")
    keys(page, Keys.ENTER)
    page.wait(".adknb-key-form .adknb-problem", "begins like JSON and is none")
    page.type(".adknb-key-form .adknb-input", "Bergen")
    keys(page, Keys.ENTER)
    page.until(lambda: any('"Bergen"' in one.text for one in within(page, second, ".adknb-value")), "the new value")
    page.run_cell(state)
    assert json.loads(page.text(state)) == {"city": "Bergen"}

    # asked again from an event on, in a copy
    within(page, second, ".adknb-tab")[0].click()
    page.until(lambda: rows(page, second), "the rows again")
    next(one for one in within(page, second, ".adknb-row .adknb-what") if one.text == "And now?").click()
    press(page, second, "Rerun from here")
    page.until(lambda: within(page, second, ".adknb-summary"), "the other answer, folded")
    says(page, second, "a copy")

    # dark, and narrow
    page.theme("JupyterLab Dark")
    page.resize(640, 900)
    overflow = "const one = arguments[0]; return one.scrollWidth - one.clientWidth"
    assert page.js(overflow, within(page, second, ".adknb-root")[0]) <= 0
    page.screenshot("afternoon-dark-640")
    page.resize(1200, 900)
    page.theme("JupyterLab Light")

    # back and aside, with the original kept; two runs beside each other
    page.run_cell(dry)
    assert "And now?" in page.text(dry)
    for cell in (fork, back, trace):
        page.run_cell(cell)
    assert [one for one in page.text(trace).splitlines() if "And now?" in one and "undone" in one]
    page.run_cell(main)
    page.run_cell(kept)
    assert "And now?" in page.text(kept) and "undone" not in page.text(kept)
    page.run_cell(differ)
    assert "How warm is it?" in page.text(differ) and "And now?" in page.text(differ)
    page.js("panel.content.widgets[arguments[0]].node.scrollIntoView()", differ)
    page.screenshot("afternoon-diff")
    assert page.alerts() == []


def unfold(page: Page, cell: int) -> None:
    """Open a view that is folded over its answer."""
    for one in within(page, cell, ".adknb-fold"):
        one.click()


@EACH_KERNEL_LATER
def test_an_afternoon_in_a_chat_box_and_with_ten_thousand_events(lab: Lab, kernel: str):
    filling = (
        "for n in range(10_000):\n"
        "    view.push({'op': 'append', 'row': {'id': str(n), 'author': 'a', 'text': f'row {n}'}})\n"
        "view.close_run()"
    )
    viewing = "from adk_nb.notebook.view.widget import LiveView\nview = LiveView('many')\nview"
    talker = "model = ScriptedLlm('Hello.', call('refund', order='B4', amount=7.0), 'Paid.', 'Bye.')\n"
    talker += "clerk = Agent(name='clerk', model=model, tools=[refund])"
    page = opened(lab, kernel, talker, "%chat clerk", "print(json.dumps(ran))", viewing, filling)
    box, notes, many, fill = 2, 3, 4, 5
    page.run_cell(1)
    page.run_cell(box)

    # two lines in one message; Enter sends; the field is ready for the next
    page.until(lambda: within(page, box, "textarea"), "the box")
    page.js("arguments[0].focus()", within(page, box, "textarea")[0])
    ActionChains(page.browser).send_keys("Good").key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
    keys(page, "morning", Keys.ENTER)
    page.until(lambda: "Hello." in rows(page, box), "the answer")
    assert "Good\nmorning" in rows(page, box)[0]
    assert page.js("return document.activeElement.tagName + document.activeElement.value") == "TEXTAREA"

    # an approval in the conversation; the page is loaded again while it waits
    keys(page, "Pay me back", Keys.ENTER)
    card(page, box)
    page.screenshot("afternoon-chat-box")
    page.reload()
    card(page, box)
    press(page, box, "Approve")
    page.until(lambda: "Paid." in rows(page, box), "the answer after the approval")
    within(page, box, "textarea")[0].send_keys("Bye")
    press(page, box, "Send")
    page.until(lambda: "Bye." in rows(page, box), "the last answer")
    assert ran(page, notes) == [["B4", 7.0]]

    # ten thousand events: the page keeps the last thousand, and walks through them
    page.run_cell(many)
    page.run_cell(fill)
    page.until(
        lambda: "9,000 earlier rows" in page.text(many) or "9000 earlier rows" in page.text(many), "what was left out"
    )
    count = "return panel.content.widgets[arguments[0]].node.querySelectorAll(arguments[1]).length"
    assert page.js(count, many, ".adknb-row") == 1000
    assert page.js(count, many, ".adknb-root *") < 20_000
    page.js("arguments[0].focus()", within(page, many, ".adknb-row[tabindex='0']")[0])
    keys(page, Keys.HOME)
    assert page.js("return document.activeElement.innerText").strip().endswith("row 9000")
    keys(page, Keys.END)
    assert page.js("return document.activeElement.innerText").strip().endswith("row 9999")
    assert page.alerts() == []
