"""A notebook whose kernel died, in a real page: old cards say so, and what waited is asked again."""

import json
from pathlib import Path

import pytest
from chats import ASK, PAYING, SETUP
from hands import card, press, rows, says, within
from lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

CONTRAST = Path(__file__).with_name("contrast.js").read_text()
KEPT = '%config AdkNb.sessions = "sqlite:///nb.db"'
GOES_ON = 'model = ScriptedLlm("All **settled**.")\npayer = Agent(name="payer", model=model, tools=[refund])'
SMALL = """const targets = document.querySelectorAll('.adknb-root button');
    return [...targets].filter((one) => one.offsetParent && (one.offsetHeight < 24 || one.offsetWidth < 24))
        .map((one) => one.outerHTML)"""
MORE = pytest.mark.browser_all


@pytest.mark.parametrize(
    ("theme", "width"),
    [("Light", 1000), pytest.param("Dark", 1000, marks=MORE), pytest.param("Light", 500, marks=MORE)],
)
def test_what_waited_when_the_kernel_died_is_asked_again_and_the_old_card_is_stale(lab: Lab, theme: str, width: int):
    page = lab.open(lab.write("pay.ipynb", SETUP, KEPT, PAYING, ASK, GOES_ON, "%confirm", "print(ran)"))
    page.js("for (const one of [0, 2, 4]) panel.content.widgets[one].inputHidden = true;")
    for cell in range(4):
        page.run_cell(cell)
    page.button("Approve")

    page.js("await panel.sessionContext.session.kernel.restart()")
    page.ready()
    page.wait(".adknb-card", ": its kernel is gone")
    page.wait(".adknb-notice", "is asked again by %confirm")
    assert not page.all(".adknb-card button")
    assert "widget-view" not in json.dumps(page.saved().cells[3]), "a file cannot show it any more"
    page.theme(f"JupyterLab {theme}")
    page.resize(width, 900)
    page.screenshot(f"reopened-stale-{theme.lower()}-{width}")
    assert page.js(CONTRAST) == []

    for cell in (0, 1, 4, 5):
        page.run_cell(cell)
    assert page.text(1).startswith("session 'main'")
    assert "4 events" in page.text(1)
    assert page.text(1).endswith("%confirm")
    page.button("Approve")
    page.js("panel.content.widgets[5].node.scrollIntoView({block: 'center'})")
    page.screenshot(f"reopened-asked-{theme.lower()}-{width}")
    assert page.js(CONTRAST) == []
    assert page.js(SMALL) == []

    page.button("Approve").click()
    page.until(lambda: "All settled." in page.text(5), "the reply")
    page.screenshot(f"reopened-answered-{theme.lower()}-{width}")
    page.run_cell(6)
    assert page.text(6) == "[('A17', 250.0)]"


def test_what_was_saved_while_it_waited_is_words_when_its_kernel_is_dead_and_a_card_while_it_lives(lab: Lab):
    box = "model = ScriptedLlm('Hello.')\nclerk = Agent(name='clerk', model=model)"
    path = lab.write("saved.ipynb", SETUP, PAYING, ASK, box, "%chat clerk -s desk")
    page = lab.open(path)
    for cell in range(5):
        page.run_cell(cell)
    card(page, 2)
    page.until(lambda: within(page, 4, "textarea"), "the box")[0].send_keys("Good morning")
    press(page, 4, "Send")
    page.until(lambda: "Hello." in rows(page, 4), "the answer")

    assert "widget-view" not in json.dumps(page.saved())
    page.reload()
    card(page, 2)
    page.until(lambda: "Hello." in rows(page, 4), "the box again")
    page.screenshot("saved-while-it-waits-alive")
    assert "widget-view" not in json.dumps(page.saved())
    page.js("await panel.sessionContext.shutdown()")
    page = lab.open(path)
    says(page, 2, "Asks for approval")
    page.screenshot("saved-while-it-waits-dead")
    assert "Hello." in page.text(4)
    assert "not found" not in page.browser.page_source
    assert not within(page, 2, ".adknb-card")
