"""Cells of the page that an agent reads, writes and changes."""

import json
from typing import Any

import pytest
from chats import SETUP
from lab import Lab, Page
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.browser

START = (
    SETUP
    + """
from adk_nb import NotebookToolset
from adk_nb.notebook.extensions.notebook_tools import pages
pages.ANSWER_SECONDS = 60.0  # a page answers late on a busy machine

def results():
    'What its tools have told the model of the helper.'
    parts = [part for content in helper.model.requests[-1].contents for part in content.parts]
    print(json.dumps([part.function_response.response for part in parts if part.function_response]))
"""
)
"""The first cell of each notebook."""
LOAD = "rows = [3, 1, 2]\nprint('the rows', rows)"
MORE = "rows = [3, 1, 2, 5]\nprint('the rows', rows)"
ASK = "%chat helper Look at my cells."
RESULTS = "results()"
READ_TWO = "call('read_cells', wanted='2')"
CHANGE = f"{READ_TWO}, call('change_cell', number=2, source={MORE!r}), 'Done.'"
"""Two calls and an answer of the model: the second cell is read, and is to be changed."""


def helper(script: str) -> str:
    """A cell with an agent that sees the notebook, and whose model says this."""
    return f"helper = Agent(name='helper', model=ScriptedLlm({script}), tools=[NotebookToolset()])"


def sources(page: Page) -> list[str]:
    return page.js("return panel.content.widgets.map((cell) => cell.model.sharedModel.getSource())")


def marks(page: Page) -> dict[str, Any]:
    """What the metadata of the cells say of agents, by number."""
    of_cells = page.js("return panel.content.widgets.map((cell) => cell.model.getMetadata('adk_nb') ?? null)")
    return {str(number): mark for number, mark in enumerate(of_cells, 1) if mark}


def told(page: Page) -> list[Any]:
    """What the tools have told the model, as the last cell prints it."""
    last = len(sources(page)) - 1
    page.run_cell(last)
    return json.loads(page.text(last))


def asked(lab: Lab, kernel: str = "") -> Page:
    """A page with the card of a change of the second cell, on which the fourth waits."""
    page = lab.open(lab.write("change.ipynb", START, LOAD, helper(CHANGE), ASK, RESULTS, kernel=kernel))
    for cell in range(4):
        page.run_cell(cell)
    page.wait(".adknb-card")
    return page


def accept(page: Page) -> None:
    page.button("Accept").click()
    page.until(lambda: "Done." in page.text(3), "the reply")


def test_a_change_waits_for_a_click_and_the_editor_takes_it_back(lab: Lab):
    page = asked(lab)
    page.scroll_to(".adknb-card")
    lines = page.js("return [...document.querySelectorAll('.adknb-diff')].map((line) => line.textContent)")
    assert lines == ["-rows = [3, 1, 2]", "+rows = [3, 1, 2, 5]", " print('the rows', rows)"]
    assert sources(page)[1] == LOAD
    page.screenshot("cells-card")
    page.theme("JupyterLab Dark")
    page.screenshot("cells-card-dark")
    page.resize(390, 844)
    page.scroll_to(".adknb-card")
    page.screenshot("cells-card-narrow")
    page.resize(1200, 900)
    page.theme("JupyterLab Light")

    accept(page)

    assert sources(page)[1] == MORE
    assert marks(page) == {"2": {"changed_by": "helper"}}
    assert page.text(1) == "the rows [3, 1, 2]"
    assert told(page)[-1]["changed"] == "cell 2"
    page.click(".jp-Cell:nth-child(2) .cm-content")
    page.browser.switch_to.active_element.send_keys(Keys.CONTROL, "z")
    page.until(lambda: sources(page)[1] == LOAD, "the text before")
    assert marks(page) == {}
    assert page.complaints() == []


@pytest.mark.parametrize("kernel", ["6.31", "7.3"])
@pytest.mark.browser_all
def test_a_change_on_a_page_that_was_loaded_again(lab: Lab, kernel: str):
    page = asked(lab, kernel)
    page.reload()
    page.scroll_to(".adknb-card")

    accept(page)

    assert sources(page)[1] == MORE


@pytest.mark.browser_all
def test_a_text_that_was_edited_since_is_not_changed(lab: Lab):
    page = asked(lab)
    page.js("panel.content.widgets[1].model.sharedModel.setSource('rows = []  # mine')")

    accept(page)

    assert sources(page)[1] == "rows = []  # mine"
    assert "changed meanwhile" in told(page)[-1]["error"]


@pytest.mark.browser_all
def test_a_protected_cell_is_not_offered_for_a_change(lab: Lab):
    page = lab.open(lab.write("protected.ipynb", START, LOAD, helper(CHANGE), ASK, RESULTS))
    page.js("panel.content.widgets[1].model.setMetadata('editable', false)")
    for cell in range(4):
        page.run_cell(cell)

    assert "editable: false" in told(page)[-1]["error"]
    assert sources(page)[1] == LOAD


@pytest.mark.browser_all
def test_new_cells_stand_below_the_running_one_in_their_order_and_do_not_run(lab: Lab):
    writing = "call('write_cell', source='first = 1'), call('write_cell', source='second = 2')"
    script = f"{writing}, call('write_cell', source='# up', below=1), 'Written.'"
    page = lab.open(lab.write("write.ipynb", START, LOAD, helper(script), ASK, "x = 1", RESULTS))
    for cell in (0, 2, 3):
        page.run_cell(cell)

    assert [source for source in sources(page)[1:] if source not in (LOAD, ASK, RESULTS, helper(script))] == [
        "# up", "first = 1", "second = 2", "x = 1",
    ]  # fmt: skip
    assert marks(page) == {number: {"written_by": "helper"} for number in ("2", "6", "7")}
    counts = page.js("return panel.content.widgets.map((cell) => cell.model.executionCount)")
    assert [counts[place] for place in (1, 5, 6)] == [None, None, None]
    assert [result["written"] for result in told(page)] == ["cell 5", "cell 6", "cell 2"]
    page.scroll_to(".jp-Cell:nth-child(6)")
    page.screenshot("cells-written")


@pytest.mark.browser_all
def test_cells_are_read_as_the_page_has_them(lab: Lab):
    script = "call('read_cells', wanted='2-4'), call('read_cells', wanted='LIST indices'), 'Read.'"
    page = lab.open(lab.write("read.ipynb", START, LOAD, "rows['x']", "never = 'run'", helper(script), ASK, RESULTS))
    page.js("panel.content.activeCellIndex = 3; await app.commands.execute('notebook:change-cell-to-markdown')")
    for cell in (0, 1, 4):
        page.run_cell(cell)
    page.run_cell(2, allow_errors=True)
    page.run_cell(5)

    by_number, by_words = told(page)
    loaded, failed, never = by_number["cells"]
    assert loaded == {"number": 2, "ran": "In[2]", "source": LOAD, "output": "the rows [3, 1, 2]"}
    assert failed["error"].endswith("TypeError: list indices must be integers or slices, not str")
    assert never == {"number": 4, "kind": "markdown", "source": "never = 'run'"}
    assert by_words["cells"][0] == failed


@pytest.mark.browser_all
def test_of_two_pages_the_one_that_asked_is_changed(lab: Lab):
    page = lab.open(lab.write("two.ipynb", START, LOAD, helper(CHANGE), ASK, RESULTS))
    first, address = page.browser.current_window_handle, page.browser.current_url
    page.browser.switch_to.new_window("tab")
    second = page.browser.current_window_handle
    try:
        inside = page.path.relative_to(lab.server.root)
        page.browser.get(f"{lab.server.url}/notebooks/{inside}?token={lab.server.token}")
        page.ready()
        for cell in range(4):
            page.run_cell(cell)
        page.scroll_to(".adknb-card")
        accept(page)
        assert sources(page)[1] == MORE
        page.screenshot("cells-notebook7")
        page.browser.close()
        page.browser.switch_to.window(first)
        assert page.browser.current_url == address
        assert sources(page)[1] == LOAD
    finally:
        if second in page.browser.window_handles:
            page.browser.switch_to.window(second)
            page.browser.close()
        page.browser.switch_to.window(first)
