"""The other front end of Jupyter: a saved notebook is opened in Notebook 7, read, run and answered there."""

import shutil

import pytest
from chats import ASK, NOTES, PAYING, SETUP
from lab import REPOSITORY, Lab, Page

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]


@pytest.fixture
def notebook7(lab: Lab):
    """Opens a notebook of the test's folder in Notebook 7; after it, the page is no page of a lab any more."""

    def opened(name: str) -> Page:
        inside = (lab.folder / name).relative_to(lab.server.root)
        lab.browser.get(f"{lab.server.url}/notebooks/{inside}?token={lab.server.token}")
        page = Page(lab, lab.folder / name)
        page.ready()
        return page

    yield opened
    lab.browser.get("about:blank")


def test_a_saved_tutorial_is_read_and_run(lab: Lab, notebook7):
    shutil.copytree(REPOSITORY / "notebooks" / "data", lab.folder / "data")
    page = notebook7(lab.copy("notebooks/01_first_agent.ipynb").name)
    sources = page.js("return panel.content.widgets.map((cell) => cell.model.sharedModel.getSource())")
    index = next(index for index, source in enumerate(sources) if source.startswith("%chat What would 70 kg"))
    assert "64.3 kg on Saturn" in page.text(index)
    page.scroll_to(f".jp-Cell:nth-child({index + 1})")
    page.screenshot("notebook7-saved")

    page.run_all(timeout=90)

    page.until(lambda: "64.3 kg on Saturn" in page.text(index), "the answer again")
    page.screenshot("notebook7-run")
    assert "not found" not in page.browser.page_source
    assert page.alerts() == []


def test_a_click_approves_on_a_page_that_was_loaded_again_and_what_is_saved_has_no_view(lab: Lab, notebook7):
    lab.write("chat.ipynb", SETUP, PAYING, ASK, NOTES)
    page = notebook7("chat.ipynb")
    for cell in range(3):
        page.run_cell(cell)
    page.wait(".adknb-card")
    page.reload()
    page.scroll_to(".adknb-card")
    page.screenshot("notebook7-card")

    page.button("Approve").click()

    page.until(lambda: "All settled." in page.text(2), "the reply")
    page.run_cell(3)
    assert page.text(3).startswith('[[["A17", 250.0]]')
    page.screenshot("notebook7-answered")
    assert "widget-view" not in str(page.saved())
