"""Every tutorial that needs no key runs in the browser alone, and shows what is saved."""

import difflib
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from lite_page import BOOT, LitePage

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NEEDS = {"needs-server", "needs-process", "needs-threads", "needs-nltk"}
"""Tags of cells that a browser cannot run."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d")
_BAR = re.compile(r"\|[ ─█·]+\|")
"""How long a part of a run took, in a waterfall of text."""
_COUNT = re.compile(r"\d+ (messages(?=, the last)|events)")
_HELP = re.compile(r"%{0,2}\w+\?")
"""A cell that asks for help: a pager shows it elsewhere, so that nothing is saved; here it is an output."""
LOAD = "%load_ext adk_nb"
STATIC = f'import os; os.environ["ADK_NB_DISPLAY"] = "static"\n{LOAD}'
"""As nbval has it: a live view streams, so that parallel texts arrive in another order."""

pytestmark = pytest.mark.lite


def tags(cell: Any) -> set[str]:
    return set(cell.metadata.get("tags", []))


def shown(cell: Any) -> list[tuple[str, str]]:
    """What nbval compares of the outputs: text of each kind, without the tracebacks and the live view."""
    texts: list[tuple[str, Any]] = []
    for output in cell.outputs:
        texts += sorted(output.get("data", {}).items())
        texts += [(name, output[name]) for name in ("text", "evalue") if name in output]
    return [(kind, _steady("".join(text))) for kind, text in texts if not kind.startswith("application/")]


def _steady(text: str) -> str:
    """`text` without the time of day, times of runs, and how long a session is, which counts the cells left out."""
    return _COUNT.sub(r"\1", _BAR.sub("|bar|", _TIME.sub("(time)", text)))


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_each_cell_that_can_run_shows_what_is_saved(page: LitePage, path: Path):
    saved = nbformat.read(path, as_version=4)
    page.open(path.name)
    sources: list[str | None] = [cell.source for cell in page.saved().cells]
    differing: list[str] = []
    unable = [cell.id for cell in saved.cells if tags(cell) & NEEDS]

    for cell in saved.cells:
        is_left_out = cell.id in unable and len(unable) > 1  # a single one is run: others build on it
        if cell.cell_type != "code" or is_left_out or _HELP.fullmatch(cell.source):
            continue
        index = sources.index(cell.source)
        sources[index] = None  # the same source may come again
        if cell.source == LOAD:
            page.write(index, STATIC)
        page.run_cell(index, allow_errors="raises-exception" in tags(cell) or cell.id in unable, timeout=BOOT)
        now = page.saved().cells[index]
        if cell.id not in unable and "nbval-ignore-output" not in tags(cell) and shown(now) != shown(cell):
            lines = [str(shown(each)).replace("\\n", "\n").splitlines() for each in (cell, now)]
            differing += [cell.source, *difflib.unified_diff(*lines, "saved", "in the browser", n=0, lineterm="")]

    assert not differing, "\n".join(differing)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("04_tools", "The next 3 code cells need a second thread"),
        ("06_openapi_and_mcp", "This tutorial needs a server on your own machine"),
        ("09_http_agents", "This tutorial needs a server on your own machine"),
        ("10_sessions_and_recovery", "The next 16 code cells need another process"),
        ("13_evaluation", "The next cell needs nltk"),
        ("15_watch_and_serve", "This tutorial needs a second thread"),
        ("16_skills", "The next cell needs another process"),
    ],
)
def test_what_cannot_run_is_told_once_and_shows_what_was_saved(page: LitePage, name: str, text: str):
    saved = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    page.open(f"{name}.ipynb")

    cells = page.saved().cells

    assert [cell.source.count(text) for cell in cells if "In a browser:" in cell.source] == [1]
    unable = {cell.id: shown(cell) for cell in saved.cells if tags(cell) & NEEDS}
    assert {cell.id: shown(cell) for cell in cells if cell.id in unable} == unable
    page.scroll_to("blockquote")
    page.screenshot(f"lite-{name}")
