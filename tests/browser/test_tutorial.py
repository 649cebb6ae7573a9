"""The tutorials as a reader meets them: run in JupyterLab, approved by a click, saved, and read again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab import REPOSITORY, Lab, Page

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

FIRST = REPOSITORY / "notebooks" / "01_first_agent.ipynb"
OTHERS = sorted(set((REPOSITORY / "notebooks").glob("*.ipynb")) - {FIRST})


def opened(lab: Lab, path: Path = FIRST) -> Page:
    shutil.copytree(REPOSITORY / "notebooks" / "data", lab.folder / "data")
    page = lab.open(lab.copy(path))
    page.js("await app.commands.execute('notebook:clear-all-cell-outputs')")
    return page


def index_of(page: Page, beginning: str) -> int:
    sources: list[str] = page.js("return panel.content.widgets.map((cell) => cell.model.sharedModel.getSource())")
    return next(index for index, source in enumerate(sources) if source.startswith(beginning))


def run_up_to(page: Page, last: int) -> None:
    kinds: list[str] = page.js("return panel.content.widgets.map((cell) => cell.model.type)")
    for index in range(last + 1):
        if kinds[index] == "code":
            page.run_cell(index)


def assert_nbval_finds_no_difference(path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    place = {"capture_output": True, "text": True, "cwd": path.parent}
    ran = subprocess.run([*command, "--rootdir", str(path.parent), str(path)], check=False, **place)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]


def test_three_rows_are_there_before_the_cell_ends(lab: Lab):
    page = opened(lab)
    asking = index_of(page, "%chat stargazer How long")
    run_up_to(page, asking - 1)
    page.js(
        """const cell = panel.content.widgets[arguments[0]].node;
        window.most = 0;
        new MutationObserver(() => {
            const rows = document.querySelectorAll('.adknb-row').length;
            const running = cell.querySelector('.jp-InputPrompt').textContent.includes('*');
            if (running) window.most = Math.max(window.most, rows);
        }).observe(document.body, {childList: true, subtree: true, characterData: true});""",
        asking,
    )

    page.run_cell(asking)

    assert page.browser.execute_script("return window.most") >= 3
    page.until(lambda: "day_length_hours is 9.9" in page.text(asking), "the answer")


def test_run_all_works_the_page_reads_the_same_after_a_reload_and_there_a_click_approves(lab: Lab):
    page = opened(lab)

    page.run_all(timeout=60)
    page.screenshot("tutorial-light")
    page.theme("JupyterLab Dark")
    page.screenshot("tutorial-dark")
    page.theme("JupyterLab Light")
    index = index_of(page, "%chat What would 70 kg")
    assert "64.3 kg on Saturn" in page.text(index)
    earlier_outputs = page.saved().cells[index].outputs
    assert_nbval_finds_no_difference(page.path)
    page.reload()

    page.until(lambda: "64.3 kg on Saturn" in page.text(index), "the answer, of the file alone")
    assert page.saved().cells[index].outputs == earlier_outputs
    assert "not found" not in page.browser.page_source
    assert page.alerts() == []

    asking = index_of(page, "%chat Save the facts about Venus")
    page.run_cell(asking)
    page.wait(".adknb-card", "save_facts")
    page.scroll_to(".adknb-card")
    page.screenshot("tutorial-approval-light")
    page.theme("JupyterLab Dark")
    page.screenshot("tutorial-approval-dark")
    page.theme("JupyterLab Light")

    page.button("Approve").click()

    page.until(lambda: "7 facts about Venus" in page.text(asking), "the answer in the cell that asked")
    printing = index_of(page, "print((folder")
    page.run_cell(printing)
    assert "mean_temperature_c: 464" in page.text(printing)
    page.run_cell(index_of(page, "%confirm --yes"))
    text = page.text(index_of(page, "%confirm --yes"))
    assert 'file_name="venus.txt")' in text
    assert text.endswith("by a click")


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_the_other_tutorials_run_as_well_and_fail_only_where_they_mean_to(lab: Lab, path: Path):
    page = opened(lab, path)

    page.run_all(timeout=100, allow_errors=True)
    page.screenshot(path.stem)

    expected: list[list[str]] = page.js(
        "return panel.content.widgets.map((cell) => cell.model.getMetadata('tags') || [])"
    )
    failed = [any(output["output_type"] == "error" for output in page.outputs(n)) for n in range(len(expected))]
    assert failed == ["raises-exception" in tags for tags in expected]
    assert page.alerts() == []
