"""A reader's afternoon: all that can be done with a run on a page, in a row, on each kernel that people have."""

import json
from importlib.metadata import version

import pytest
from chats import SETUP, SLOW
from hands import Steps, card, keys, press, ran, rows, says, unfold, within
from lab import Lab, Page
from lab_server import KERNELS
from selenium.webdriver import ActionChains, Keys

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]
OWN = ".".join(version("ipykernel").split(".")[:2])
FEWEST = 25
"""Steps that the afternoon is at least made of, on each kernel."""
SHOWN = {
    "Waterfall": ".adknb-bars [data-kind=tool]",
    "State": "[aria-label='Edit city']",
    "Graph": ".adknb-graph .adknb-picture",
    "Prompt": ".adknb-prompt-body *",
    "Artifacts": ".adknb-artifact",
}
"""What can be seen in each panel when it has come."""
VERSION = """
    const told = {code: "", user_expressions: {of: "__import__('ipykernel').__version__"}};
    const reply = await panel.sessionContext.session.kernel.requestExecute(told).done;
    return reply.content.user_expressions.of.data["text/plain"];
"""
ASKS = "%chat payer Please pay me back."
AGENTS = """
def asks(amount, answer):
    return [call("refund", order="A17", amount=amount), answer]

model = ScriptedLlm(*asks(1.0, "Paid."), *asks(2.0, "Paid half."), *asks(3.0, "Not paid."), *asks(4.0, "Paid by key."),
                    *asks(5.0, "Paid elsewhere."))
payer = Agent(name="payer", model=model, tools=[refund])
look_up = [["Let me ", "look.", call("look", city="Oslo")], "It is **9** degrees."]
watcher = Agent(name="watcher", model=ScriptedLlm(*look_up * 4), tools=[look])
"""
VIEW = "from adk_nb.notebook.view.widget import LiveView\nview = LiveView('many')\nview"
TEN_THOUSAND = """
for n in range(10_000):
    view.push({'op': 'append', 'row': {'id': str(n), 'author': 'a', 'text': f'row {n}'}})
view.close_run()
"""
LIGHTNESS = """
    const [r, g, b] = getComputedStyle(arguments[0].firstElementChild).backgroundColor.match(/\\d+/g).map(Number);
    return (r + g + b) / 3;
"""


def opened(lab: Lab, kernel: str, name: str, *cells: str) -> Page:
    if kernel != OWN and not (KERNELS / kernel).exists():
        pytest.fail(f"there is no ipykernel {kernel} in {KERNELS}; make kernels puts it there")
    (lab.folder / "go").unlink(missing_ok=True)
    page = lab.open(lab.write(f"{name}.ipynb", SETUP, *cells, kernel="" if kernel == OWN else kernel))
    page.run_cell(0)
    assert page.js(VERSION).startswith(f"'{kernel}.")
    return page


def in_file(page: Page, cell: int) -> str:
    """What the file keeps of the outputs of a cell."""
    return json.dumps(page.saved().cells[cell].outputs)


def approve(lab: Lab, kernel: str, steps: Steps) -> None:
    busy = kernel != "6.31"  # before 7 a kernel hears a page only between cells
    asking = range(2, 7)
    notebook = [AGENTS, *[ASKS] * 5, "%confirm --yes", "print(json.dumps(ran))", SLOW, "%chat slow go on"]
    page = opened(lab, kernel, "approve", *notebook)
    confirming, notes, slow = 7, 8, 10
    page.run_cell(1)
    first, second, third, fourth, fifth = asking

    page.run_cell(first)
    card(page, first)
    go = page.steady(lambda: within(page, first, ".adknb-go")[0], "Approve")
    ActionChains(page.browser).double_click(go).perform()
    says(page, first, "Paid.")
    steps("a call is approved by a click, and answered in the cell that asked")
    assert ran(page, notes) == [["A17", 1.0]]
    steps("a hand that clicks twice pays once")
    page.reload()
    says(page, first, "Paid.")
    assert not within(page, first, ".adknb-go")
    steps("the page is loaded again: what was answered is not asked again")

    page.run_cell(second)
    card(page, second)
    page.reload()
    card(page, second)
    steps("the page is loaded again while a card waits, and it waits on")
    press(page, second, "Edit…")
    fields = {label.text.split()[0]: label.get_attribute("for") for label in within(page, second, ".adknb-field-name")}
    page.type(f"#{fields['amount']}", "a lot")
    page.wait(".adknb-problem", "a number is needed")
    assert [element.is_enabled() for element in within(page, second, ".adknb-go")] == [False]
    steps("an argument that is none is refused where it is typed")
    page.type(f"#{fields['amount']}", "1.5")
    page.wait(".adknb-difference", "2 → 1.5")
    steps("what was changed stands beside what was asked")
    press(page, second, "Approve with these changes")
    says(page, second, "Paid half.")
    assert ran(page, notes)[1:] == [["A17", 1.5]]
    steps("the call is made with the changed argument")

    page.run_cell(third)
    press(page, third, "Reject…")
    keys(page, Keys.ESCAPE)
    page.until(lambda: not within(page, third, ".adknb-form"), "the end of the form")
    card(page, third)
    steps("a rejection is thought better of: Escape, and the card waits on")
    press(page, third, "Reject…")
    keys(page, "too much", Keys.ENTER)
    says(page, third, "Not paid.")
    assert "too much" in card(page, third, "rejected").text
    assert len(ran(page, notes)) == 2
    steps("a call is rejected, and the reason is kept on the card")

    page.run_cell(fourth)
    request = card(page, fourth)
    page.js("arguments[0].focus()", request)
    keys(page, "y", Keys.ENTER, " ")
    assert len(ran(page, notes)) == 2
    steps("keys that are meant for no button approve nothing")
    go = page.steady(lambda: within(page, fourth, ".adknb-go")[0], "Approve")
    page.js("arguments[0].focus({preventScroll: true})", go)
    for _ in range(6):
        if page.js("return document.activeElement.textContent") == "Approve":
            break
        keys(page, Keys.TAB)
    assert page.js("return document.activeElement.textContent") == "Approve"
    keys(page, Keys.ENTER)
    says(page, fourth, "Paid by key.")
    assert ran(page, notes)[2:] == [["A17", 4.0]]
    steps("a call is approved by keyboard alone")

    page.run_cell(fifth)
    card(page, fifth)
    page.run_cell(confirming)
    says(page, confirming, "Paid elsewhere.")
    page.until(lambda: not within(page, fifth, ".adknb-go"), "the end of the card")
    assert len(ran(page, notes)) == 4
    steps("an answer typed in another cell closes the card")

    page.run_cell(notes + 1)
    page.run_cell(slow, wait=False)
    page.until(lambda: any("word5 " in row for row in rows(page, slow)), "some words")
    assert page.running(slow)
    steps("words stand on the page while the cell runs")
    if busy:
        press(page, slow, "Stop")
    else:
        page.js("await panel.sessionContext.session.kernel.interrupt()")
    page.until(lambda: not page.running(slow))
    if busy:
        page.until(lambda: within(page, slow, ".adknb-view[data-status=cancelled]"), "its end")
    else:
        says(page, slow, "KeyboardInterrupt: the run was stopped")
    steps("an answer that streams is stopped")

    cells = page.saved().cells
    assert [cell for cell in (*asking, slow) if "widget-view" in json.dumps(cells[cell])] == []
    assert "Paid half." in json.dumps(cells[second])
    assert page.alerts() == []
    steps("what is saved needs no kernel, and says what was answered after the page was loaded again")


def look_and_go_back(lab: Lab, kernel: str, steps: Steps) -> None:
    page = opened(
        lab, kernel, "look", AGENTS, "%state city=Oslo", "%chat watcher How warm is it?", "%chat watcher And now?",
        "%rewind --dry-run", "%session fork aside", "%rewind", "%trace", "%session use main", "%trace",
        "%trace --diff -1 -2", "%state --json",
    )  # fmt: skip
    first, second, dry, fork, back, trace, main, stored, differ, state = range(3, 13)
    page.run_cell(1)
    page.run_cell(2)

    page.run_cell(first, wait=False)
    page.until(lambda: len(rows(page, first)) >= 2, "two rows")
    assert rows(page, first)[0] == "Let me look.", "the cell above says the question"
    steps("the rows of a run stand there while its tool works")
    page.js("panel.content.activeCellIndex = arguments[0]", first)
    page.js(
        "const here = panel; await app.commands.execute('notebook:create-output-view'); app.shell.activateById(here.id)"
    )
    text = (
        "return [...document.querySelectorAll('.adknb-what')].filter((one) => one.textContent === arguments[0]).length"
    )
    page.until(lambda: page.js(text, "Let me look.") == 2, "both views")
    page.screenshot("afternoon-two-views")
    steps("a second view of the run shows the same")
    page.save()
    page.browser.refresh()
    (lab.folder / "go").touch()
    page.ready()
    page.js("for (const one of [...app.shell.widgets('main')]) if (one.id !== panel.id) one.dispose()")
    says(page, first, "It is 9 degrees.")
    steps("the page is loaded again in mid-run, and has it all when the kernel is free")
    page.until(lambda: "It is **9** degrees." in in_file(page, first), "the answer in the file")
    assert "widget-view" not in in_file(page, first)
    steps("so has the file, which needs no kernel")
    unfold(page, first)
    page.until(lambda: rows(page, first), "the rows")
    next(
        element for element in within(page, first, ".adknb-row .adknb-what") if element.text == "How warm is it?"
    ).click()
    press(page, first, "Rerun from here")
    page.until(lambda: within(page, first, ".adknb-summary"), "the second answer")
    page.until(lambda: in_file(page, first).count('"text/markdown"') == 2, "the second answer in the file")
    assert "widget-view" not in in_file(page, first)
    steps("it is asked again on a page that was loaded after the cell was run, and stands below")
    page.run_cell(second)
    says(page, second, "It is 9 degrees.")
    page.until(lambda: within(page, second, ".adknb-root"), "the view that stays")
    steps("the conversation goes on in the next cell")

    unfold(page, second)
    tabs = [tab.text for tab in within(page, second, ".adknb-tab")]
    assert {"Events", "Waterfall", "State", "Prompt"} <= set(tabs)
    steps("a view that is folded over its answer is opened")
    page.js("arguments[0].focus()", within(page, second, ".adknb-tab")[0])
    for name in tabs[1:]:
        keys(page, Keys.ARROW_RIGHT)
        assert page.js("return document.activeElement.textContent") == name
        page.until(lambda css=SHOWN[name]: within(page, second, css), f"what {name} shows")
        page.screenshot(f"afternoon-{name.lower()}")
        steps(f"an arrow key leads to the panel {name}, which comes")
    keys(page, Keys.HOME)
    field = page.until(lambda: within(page, second, "input.adknb-filter"), "the filter")[0]
    field.send_keys("degrees")
    page.until(lambda: len(rows(page, second)) == 1, "the one row")
    field.send_keys(Keys.ESCAPE)
    page.until(lambda: len(rows(page, second)) > 2, "all rows")
    steps("the log is filtered, and whole again")
    page.js("arguments[0].focus()", within(page, second, ".adknb-row")[0])
    keys(page, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    page.until(lambda: within(page, second, ".adknb-detail"), "the row's detail")
    steps("a row is opened by keys")
    keys(page, Keys.ESCAPE)
    assert page.js("return document.activeElement.closest('.adknb-root') === null")
    steps("Escape leads out of the view")

    tab = next(element for element in within(page, second, ".adknb-tab") if element.text == "State")
    tab.click()
    page.until(lambda: within(page, second, "[aria-label='Edit city']"), "a state to edit")[0].click()
    page.type(".adknb-key-form .adknb-input", "[1, ")
    keys(page, Keys.ENTER)
    page.wait(".adknb-key-form .adknb-problem", "begins like JSON, but is not valid")
    steps("a value of the state that cannot be is refused where it is typed")
    page.type(".adknb-key-form .adknb-input", "Bergen")
    keys(page, Keys.ENTER)
    page.until(
        lambda: any('"Bergen"' in element.text for element in within(page, second, ".adknb-value")), "the new value"
    )
    page.run_cell(state)
    assert json.loads(page.text(state)) == {"city": "Bergen"}
    steps("the state is changed where it stands")

    within(page, second, ".adknb-tab")[0].click()
    page.until(lambda: rows(page, second), "the rows again")
    next(element for element in within(page, second, ".adknb-row .adknb-what") if element.text == "And now?").click()
    press(page, second, "Rerun from here")
    page.until(lambda: within(page, second, ".adknb-summary"), "the other answer, folded")
    says(page, second, "a copy")
    steps("it is asked again from an event on, in a copy")

    page.theme("JupyterLab Dark")
    assert page.js(LIGHTNESS, within(page, second, ".adknb-root")[0]) < 128
    steps("the theme is dark, and so is the view")
    page.resize(640, 900)
    overflow = "const one = arguments[0]; return one.scrollWidth - one.clientWidth"
    assert page.js(overflow, within(page, second, ".adknb-root")[0]) <= 0
    page.screenshot("afternoon-dark-640")
    steps("640 pixels are enough")
    page.resize(1200, 900)
    page.theme("JupyterLab Light")

    page.run_cell(dry)
    assert "And now?" in page.text(dry)
    steps("a rewind says what it would undo")
    page.run_cell(fork)
    steps("the session is forked")
    page.run_cell(back)
    page.run_cell(trace)
    assert [line for line in page.text(trace).splitlines() if "And now?" in line and "undone" in line]
    steps("a turn is undone there")
    page.run_cell(main)
    page.run_cell(stored)
    assert "And now?" in page.text(stored) and "undone" not in page.text(stored)
    steps("the original has kept it")
    page.run_cell(differ)
    assert "How warm is it?" in page.text(differ) and "And now?" in page.text(differ)
    page.js("panel.content.widgets[arguments[0]].node.scrollIntoView()", differ)
    page.screenshot("afternoon-diff")
    assert page.alerts() == []
    steps("two runs stand beside each other")


def converse_and_scroll(lab: Lab, kernel: str, steps: Steps) -> None:
    talker = "model = ScriptedLlm('Hello.', call('refund', order='B4', amount=7.0), 'Paid.', 'Bye.')\n"
    talker += "clerk = Agent(name='clerk', model=model, tools=[refund])"
    page = opened(lab, kernel, "talk", talker, "%chat clerk", "print(json.dumps(ran))", VIEW, TEN_THOUSAND)
    box, notes, many, fill = 2, 3, 4, 5
    page.run_cell(1)
    page.run_cell(box)

    page.until(lambda: within(page, box, "textarea"), "the box")
    page.js("arguments[0].focus()", within(page, box, "textarea")[0])
    ActionChains(page.browser).send_keys("Good").key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
    keys(page, "morning", Keys.ENTER)
    page.until(lambda: "Hello." in rows(page, box), "the answer")
    assert "Good\nmorning" in rows(page, box)[0]
    steps("two lines are one message of a chat box, and Enter sends")
    assert page.js("return document.activeElement.tagName + document.activeElement.value") == "TEXTAREA"
    steps("the box is ready for the next")

    keys(page, "Pay me back", Keys.ENTER)
    card(page, box)
    page.screenshot("afternoon-chat-box")
    page.reload()
    card(page, box)
    steps("the page is loaded again while the box waits for an approval")
    press(page, box, "Approve")
    page.until(lambda: "Paid." in rows(page, box), "the answer after the approval")
    assert ran(page, notes) == [["B4", 7.0]]
    steps("a call is approved in the conversation")
    within(page, box, "textarea")[0].send_keys("Bye")
    press(page, box, "Send")
    page.until(lambda: "Bye." in rows(page, box), "the last answer")
    steps("a button sends as well")
    page.until(lambda: "Bye." in in_file(page, box), "the answer in the file")
    steps("what was said after the page was loaded again is in the file")

    page.run_cell(many)
    page.run_cell(fill)
    page.until(
        lambda: "9,000 earlier rows" in page.text(many) or "9000 earlier rows" in page.text(many), "what was left out"
    )
    count = "return panel.content.widgets[arguments[0]].node.querySelectorAll(arguments[1]).length"
    assert page.js(count, many, ".adknb-row") == 1000
    assert page.js(count, many, ".adknb-root *") < 20_000
    steps("of ten thousand events the page keeps the last thousand")
    page.js("arguments[0].focus()", within(page, many, ".adknb-row[tabindex='0']")[0])
    keys(page, Keys.HOME)
    assert page.js("return document.activeElement.innerText").strip().endswith("row 9000")
    keys(page, Keys.END)
    assert page.js("return document.activeElement.innerText").strip().endswith("row 9999")
    steps("keys lead to the first and to the last of them")
    assert page.alerts() == []


def test_a_call_is_approved_changed_rejected_and_a_run_stopped(lab: Lab):
    approve(lab, OWN, Steps())


@pytest.mark.parametrize("kernel", [OWN, "7.3", "6.31"])
def test_a_whole_afternoon_on_each_kernel(lab: Lab, kernel: str):
    steps = Steps()

    for part in (approve, look_and_go_back, converse_and_scroll):
        part(lab, kernel, steps)

    assert len(steps.done) >= FEWEST
