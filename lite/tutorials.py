"""The tutorials of the site: as they are in the repository, with a sentence where a browser cannot run a cell."""
# pyright: basic
# nbformat carries no types.

import shutil
from pathlib import Path
from typing import Any

import nbformat

PATTERNS = ("cassettes/*", "data/**/*")
MISSING = {
    "needs-server": "a server on your own machine",
    "needs-process": "another process",
    "needs-threads": "a second thread",
    "needs-nltk": "nltk, a part of which is not built for browsers",
}
"""Tag of a cell -> what it needs and a browser has not."""


def copy(notebooks: Path, folder: Path) -> None:
    """Write the tutorials, their cassettes and their data to `folder`."""
    for path in (path for pattern in PATTERNS for path in sorted(notebooks.glob(pattern)) if path.is_file()):
        target = folder / path.relative_to(notebooks)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for path in sorted(notebooks.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        notebook.cells = _with_sentences(notebook.cells)
        for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
            cell.metadata.trusted = True  # of this site: their saved views are shown as they are
        # JupyterLite hands on what stands in the file: texts of several lines have to be in one piece.
        text = nbformat.writes(notebook, split_lines=False)
        (folder / path.name).write_text(text, encoding="utf-8")


def _with_sentences(cells: list[Any]) -> list[Any]:
    """The cells, with a sentence before the first that cannot run; where these are most of all, below the title."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    unable = [cell for cell in code if _missing(cell)]
    if not unable:
        return cells
    missing, count = _missing(unable[0]), len(unable)
    if count > len(code) / 2:
        place = 1
        text = f"This tutorial needs {missing}, so it does not run here; what it shows was saved."
    else:
        place = cells.index(unable[0])
        text = f"The next {count} code cells need {missing}, so they do not run here; what they show was saved."
    if count == 1:
        text = f"The next cell needs {missing}, so it cannot do its work here; what it shows was saved."
    note = nbformat.v4.new_markdown_cell(f"> **In a browser:** {text}", id="in-a-browser")
    return [*cells[:place], note, *cells[place:]]


def _missing(cell: Any) -> str:
    return next((MISSING[tag] for tag in cell.metadata.get("tags", []) if tag in MISSING), "")
