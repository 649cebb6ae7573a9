"""A conversation in a real page: bubbles, what can be done about them, and what other cells say."""

import pytest
from axe import violations
from chats import SETUP
from lab import Lab, Page
from lab_server import KERNELS
from selenium.webdriver import Keys
from selenium.webdriver.support.ui import Select

pytestmark = pytest.mark.browser

ANSWER = (
    "It is **cold**.\\n\\n```python\\nprint('coat')  # warm\\n```\\n\\n| city | sky |\\n|---|---|\\n| Oslo | clear |\\n"
)
AGENTS = f"""
@tool
def sky(city: str) -> str:
    'Looks at the sky.'
    return "clear"

look_first = [call("sky", city="Oslo"), call("sky", city="Rome")]
model = ScriptedLlm(look_first, "{ANSWER}", "Still cold.", "From a cell.", "With the table.", model="of-the-box")
guide = Agent(name="guide", description="Knows the weather.", model=model, tools=[sky])
table = [1, 2]
"""
FOCUS = "return document.activeElement.matches('.adknb-composer .adknb-say')"


def asked(page: Page, text: str, answer: str) -> None:
    """Type a message, and wait for the answer."""
    page.wait(".adknb-say").send_keys(text, Keys.ENTER)
    page.wait(".adknb-talk-text", answer)


def act(page: Page, label: str) -> None:
    """Press what stands under the last answer."""
    buttons = [button for button in page.all(".adknb-talk-actions .adknb-button") if button.text == label]
    buttons[-1].click()


def test_an_answer_has_its_calls_under_it_and_is_asked_for_again_in_a_copy(lab: Lab):
    page = lab.open(lab.write("talk.ipynb", SETUP, AGENTS, "%chat guide"))
    for cell in (0, 1, 2):
        page.run_cell(cell)
    page.click(".adknb-suggestion", "Use sky for …")
    assert page.js("return getSelection().toString()") == "…"
    page.wait(".adknb-say").clear()

    asked(page, "How is Oslo?", "cold")

    page.wait(".adknb-talk-model", "of-the-box")
    assert [who for who, _ in page.talk()] == ["you", "guide"]
    assert page.wait(".adknb-talk-text table td").text == "Oslo"
    assert page.wait(".adknb-code .adknb-code-string").text == "'coat'"
    assert page.wait(".adknb-code .adknb-button").get_attribute("aria-label") == "Copy python"
    page.click(".adknb-talk-steps-button", "used sky · 2 calls")
    steps = [step.text.split("\n")[0] for step in page.all(".adknb-talk-step")]
    assert steps == ['sky(city="Oslo")', 'sky(city="Rome")']
    act(page, "Details")
    page.until(lambda: len(page.rows()) == 4, "the events of the turn")

    act(page, "Retry")
    page.wait(".adknb-talk-text", "Still cold.")
    assert page.wait(".adknb-session").get_attribute("value") == "main-2"
    assert [text for who, text in page.talk() if who == "you"] == ["How is Oslo?"]
    assert page.js(FOCUS)
    page.screenshot("talk")


@pytest.mark.browser_all
def test_a_box_follows_its_session_attaches_and_goes_back(lab: Lab):
    page = lab.open(lab.write("talk.ipynb", SETUP, AGENTS, "%chat guide", "%chat guide In a cell"))
    for cell in (0, 1, 2):
        page.run_cell(cell)
    asked(page, "How is Oslo?", "cold")
    act(page, "Edit")
    field = page.wait(".adknb-talk-edit")
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, "And Rome?", Keys.ENTER)
    page.wait(".adknb-talk-text", "Still cold.")
    assert ("you", "And Rome?") in page.talk()
    Select(page.wait(".adknb-session")).select_by_visible_text("main")
    page.until(lambda: ("you", "How is Oslo?") in page.talk() and ("you", "And Rome?") not in page.talk(), "main")

    page.run_cell(3)
    page.until(lambda: page.talk()[-2:] == [("you", "In a cell"), ("guide", "From a cell.")], "what the cell said")
    page.click(".adknb-attach")
    page.wait(".adknb-attach-row", "table")
    page.wait(".adknb-attach-search").send_keys("tab", Keys.ENTER)
    page.wait(".adknb-attached-chip", "table")
    assert page.js(FOCUS)
    asked(page, "What is it?", "With the table.")
    assert page.wait(".adknb-talk-mine .adknb-attached-chip").text == "table"
    for theme, width in (("JupyterLab Dark", 1100), ("JupyterLab Light", 640), ("JupyterLab Light", 390)):
        page.theme(theme)
        page.resize(width, 900)
        page.scroll_to(".adknb-composer")
        page.screenshot(f"talk-{'dark' if 'Dark' in theme else width}")
        assert violations(page) == [], (theme, width)
    assert page.complaints() == []


@pytest.mark.browser_all
def test_a_message_to_a_busy_kernel_names_the_cell_that_it_waits_for(lab: Lab):
    if not (KERNELS / "6.31").exists():
        pytest.skip("ipykernel 6, which has no subshells, is not there; type: make kernels")
    page = lab.open(lab.write("busy.ipynb", SETUP, AGENTS, "%chat guide", "wait_for('go')", kernel="6.31"))
    for cell in (0, 1, 2):
        page.run_cell(cell)
    page.run_cell(3, wait=False)
    page.until(lambda: page.running(3), "the cell at work")

    page.wait(".adknb-say").send_keys("How is Oslo?", Keys.ENTER)

    page.wait(".adknb-talk-note", "waiting for cell [4]")
    page.screenshot("talk-waits")
    (lab.folder / "go").touch()
    page.wait(".adknb-talk-text", "cold")
    page.gone(".adknb-talk-note")
