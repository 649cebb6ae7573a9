"""What a reader does on a page of the site: waits for Python, clicks a card, types into a chat box."""

import pytest
from lite_page import BOOT, LitePage
from selenium.webdriver import Keys

pytestmark = pytest.mark.lite

PAY = '''%%tool --confirm
def pay(to: str, amount: float) -> str:
    """Pay a person an amount in euros."""
    return f"paid {amount:g} euros to {to}"'''
SPELLER = """
from adk_nb import Agent, Chat

def count_letter(word: str, letter: str) -> int:
    'Count how often a letter occurs in a word.'
    return word.count(letter)

chat = Chat(Agent(name="speller", tools=[count_letter]), show="off")
"""
CLERK = "%%agent clerk -t pay\nYou pay what is agreed."


def test_python_is_loaded_with_a_line_on_the_page_and_a_click_approves(page: LitePage):
    page.open("00_start_here.ipynb")
    page.until(lambda: "MB" in page.line(), "the line", BOOT)
    page.until(lambda: page.line() == "", "the end of the line", BOOT)
    for index, source in enumerate(["%load_ext adk_nb", PAY, CLERK, '%chat clerk Pay 250 euros to "Anna"'], 1):
        page.write(index, source)
        page.run_cell(index, timeout=BOOT)
    page.scroll_to(".adknb-card")
    page.screenshot("lite-card-light")
    page.theme("JupyterLab Dark")
    page.screenshot("lite-card-dark")
    page.theme("JupyterLab Light")

    page.button("Approve").click()

    page.until(lambda: "Paid 250 euros to Anna." in page.text(4), "the answer in the cell that asked")
    page.screenshot("lite-approved")


def test_a_chat_box_is_typed_into(page: LitePage):
    page.open("00_start_here.ipynb")
    for index in (1, 2, 3):
        page.run_cell(index, timeout=BOOT)
    page.write(4, "%chat speller")
    page.run_cell(4)

    page.wait(".adknb-say").send_keys("How often is the letter n in the word banana?", Keys.ENTER)

    page.until(lambda: "gives 2" in page.text(4), "the answer")
    page.screenshot("lite-chat-box")


def test_a_browser_that_cannot_wait_says_so_and_can_be_awaited(page: LitePage, without_waiting: None):
    page.open("00_start_here.ipynb")
    assert "Chrome or Edge 137" in page.wait("#adk-nb-cannot-wait", timeout=BOOT).text
    page.run_cell(1, timeout=BOOT)
    page.write(2, SPELLER)
    page.run_cell(2)
    page.write(3, "chat.ask('How often is the letter n in the word banana?')")
    page.run_cell(3, allow_errors=True)
    errors = [output["evalue"] for output in page.outputs(3) if output["output_type"] == "error"]
    assert len(errors) == 1
    assert "JavaScript Promise Integration" in errors[0]
    assert "await chat.aask" in errors[0]
    page.screenshot("lite-cannot-wait")
    page.write(4, "reply = await chat.aask('How often is the letter n in the word banana?')\nreply.text")

    page.run_cell(4, timeout=BOOT)

    assert "gives 2" in page.text(4)


def test_a_browser_that_cannot_wait_names_the_agent_of_the_cell(page: LitePage, without_waiting: None):
    page.open("00_start_here.ipynb")
    for index in (1, 2, 3):
        page.run_cell(index, timeout=BOOT)

    page.run_cell(4, allow_errors=True, timeout=BOOT)

    (error,) = [output["evalue"] for output in page.outputs(4) if output["output_type"] == "error"]
    line = error.partition("or write: ")[2]
    assert "Chat(speller).aask('How often" in line
    page.write(6, f"{line}\nreply.text")
    page.run_cell(6, timeout=BOOT)
    assert "gives 3" in page.text(6)


def test_sessions_in_a_file_outlive_the_page(page: LitePage):
    page.open("00_start_here.ipynb")
    for index in (1, 2, 3):
        page.run_cell(index, timeout=BOOT)
    page.write(6, '%config AdkNb.sessions = "sqlite:///nb.db"')
    page.run_cell(6)
    page.run_cell(4)
    page.browser.refresh()
    page.ready()
    for index in (1, 2, 3):
        page.run_cell(index, timeout=BOOT)
    page.write(6, '%config AdkNb.sessions = "sqlite:///nb.db"')
    page.run_cell(6)
    page.write(4, "%trace")

    page.run_cell(4)

    assert "the word strawberry" in page.text(4)
    page.write(4, "%doctor")
    page.run_cell(4)
    assert "the browser alone" in page.text(4)
    assert "nb.db" in page.text(4)
    assert "nb.db" in page.text(4)


def test_names_that_the_pages_python_does_not_have_are_underlined(page: LitePage):
    page.open("00_start_here.ipynb")
    page.run_cell(1, timeout=BOOT)
    page.write(2, PAY)
    page.run_cell(2, timeout=BOOT)
    page.write(3, "%%agent clerk -t pay -t collect\nYou pay {{prices}} within {budget}.")

    def unknown() -> set[str]:
        script = """return [...panel.content.widgets[3].node.querySelectorAll('.adknb-mark-unknown')].map(
            (mark) => mark.innerText)"""
        return set(page.js(script))

    page.until(lambda: unknown() == {"collect", "{{prices}}", "{budget}"}, "what is not defined", BOOT)
    page.write(4, "prices = [1]")
    page.run_cell(4)

    page.until(lambda: unknown() == {"collect", "{budget}"}, "what is still not defined", BOOT)
    page.scroll_to(".adknb-mark-unknown")
    page.screenshot("lite-names")


HELPER = """%load_ext adk_nb
from adk_nb import NotebookToolset
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
script = [call("read_cells", wanted="3"), call("write_cell", source="new = 1")]
script += [call("change_cell", number=3, source="rows = [1, 2]"), "Done."]
helper = Agent(name="helper", model=ScriptedLlm(*script), tools=[NotebookToolset()])"""


def test_an_agent_writes_a_cell_and_changes_one_after_a_click(page: LitePage):
    page.open("00_start_here.ipynb")
    for index, source in enumerate([HELPER, "rows = [1]", "%chat helper Look at my cells."], 1):
        page.write(index, source)
    page.run_cell(1, timeout=BOOT)
    page.run_cell(3, timeout=BOOT)
    sources = "return panel.content.widgets.map((cell) => cell.model.sharedModel.getSource())"
    assert page.js(sources)[4] == "new = 1"
    page.scroll_to(".adknb-card")

    page.button("Accept").click()

    page.until(lambda: "Done." in page.text(3), "the answer in the cell that asked")
    assert page.js(sources)[2] == "rows = [1, 2]"
    page.screenshot("lite-cells")
