"""A page that is loaded again while the kernel lives: in a run, after it, and where the notebook is not trusted."""

import json
from pathlib import Path

import nbformat
import pytest
from chats import ASK, PAYING, SETUP, SLOW
from hands import card, press, says, unfold, within
from lab import Lab, Page

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

CONTRAST = Path(__file__).with_name("contrast.js").read_text()
LOOKS = [("Light", 1000), ("Dark", 640)]
CLERK = """
from adk_nb.models import call
@tool
def greet(name: str) -> str:
    'Greets.'
    return f"Good morning, {name}"
clerk = Agent(name="clerk", model=ScriptedLlm(call("greet", name="Ada"), "I did **greet** her."), tools=[greet])
"""


@pytest.mark.parametrize("kernel", ["", pytest.param("7.3", marks=pytest.mark.browser_all)])
def test_a_reload_while_a_cell_runs_shows_the_run_and_its_stop(lab: Lab, kernel: str):
    page = lab.open(lab.write("slow.ipynb", SETUP, SLOW, "%chat slow Go on.", "6 * 7", kernel=kernel))
    page.run_cell(0)
    page.run_cell(1)
    page.run_cell(2, wait=False)
    says(page, 2, "word5 ")

    page.reload()
    says(page, 2, "word5 ")
    text = page.text(2)
    page.until(lambda: len(page.text(2)) > len(text), "more words")
    page.scroll_to(".adknb-view")
    page.screenshot("reloaded-while-it-runs")

    press(page, 2, "Stop")
    says(page, 2, "stopped")
    assert "word5 " in page.text(2)
    page.run_cell(3)
    assert page.text(3) == "42"


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_a_finished_turn_keeps_its_panels_after_a_reload(lab: Lab, theme: str, width: int):
    path = lab.write("done.ipynb", SETUP, CLERK, "%chat clerk Greet Ada.")
    page = lab.open(path)
    for cell in range(3):
        page.run_cell(cell)
    page.wait(".adknb-summary", "I did greet her.")

    page.reload()
    page.wait(".adknb-summary", "I did greet her.")
    assert not page.js("return panel.context.model.dirty")
    page.theme(f"JupyterLab {theme}")
    page.resize(width, 900)
    unfold(page, 2)
    page.click(".adknb-tab", "Waterfall")
    page.until(lambda: len(page.all(".adknb-bars [data-kind=tool]")) == 1, "a bar for the call")
    page.scroll_to(".adknb-view")
    page.screenshot(f"reloaded-done-{theme.lower()}-{width}")
    assert page.js(CONTRAST) == []
    page.click(".adknb-tab", "Prompt")
    page.wait(".adknb-prompt", "Greet Ada.")
    outputs = json.dumps(page.saved().cells[2].outputs)
    assert "I did **greet** her." in outputs
    assert "view" not in outputs, "a file has no ids of views"

    page.js("await panel.sessionContext.shutdown()")
    page = lab.open(path)
    says(page, 2, "I did greet her.")
    assert not within(page, 2, ".adknb-view")


def waiting_in_a_clone(lab: Lab) -> Page:
    """A notebook with an output of someone else, so that Jupyter does not trust it; an approval waits in a cell."""
    path = lab.write("cloned.ipynb", SETUP, PAYING, ASK, "%confirm", "")
    notebook = nbformat.read(path, as_version=4)
    of_others = nbformat.v4.new_output("display_data", data={"text/html": "<b>of someone else</b>"})
    notebook.cells[4].outputs = [of_others]
    nbformat.write(notebook, path)
    page = lab.open(path)
    for cell in range(3):
        page.run_cell(cell)
    card(page, 2)
    return page


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_a_notebook_that_is_not_trusted_says_how_to_get_its_card(lab: Lab, theme: str, width: int):
    page = waiting_in_a_clone(lab)

    page.reload()
    says(page, 2, "not trusted")
    assert "Run %confirm" in page.text(2)
    assert "not trusted" not in json.dumps(page.saved())
    page.theme(f"JupyterLab {theme}")
    page.resize(width, 900)
    page.js("panel.content.widgets[2].node.scrollIntoView({block: 'center'})")
    page.screenshot(f"reloaded-not-trusted-{theme.lower()}-{width}")

    page.js("app.commands.execute('notebook:trust')")
    page.click(".jp-Dialog .jp-mod-accept")
    card(page, 2)
    press(page, 2, "Approve")
    says(page, 2, "All settled.")
    assert "not trusted" not in page.text(2)


def test_confirm_draws_the_card_anew_where_a_notebook_that_is_not_trusted_has_it(lab: Lab):
    page = waiting_in_a_clone(lab)
    page.reload()
    says(page, 2, "not trusted")

    page.run_cell(3)
    press(page, 3, "Approve")
    says(page, 3, "All settled.")
