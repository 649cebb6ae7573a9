"""A notebook in VS Code with the extension: what the cells of adk_nb look like."""

import re
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest
from code_server import BOOT, CodeServer, Editor
from selenium.webdriver import Chrome

from tests.front_end import vsix_build

pytestmark = pytest.mark.editors

AGENT = (
    "%%agent clerk -m offline -t pay --modle fast\n"
    "You pay with care and **not** twice, or ask {user:name?} within {budget}.\n"
    "Prices: {{prices}}, and {unclosed"
)
MATTER = "%%agent reader\n---\nmodel: offline\n---\nRead it and say if it is in order."
WORKFLOW = "%%workflow desk --root\n# in order\nSTART -> clerk -[ok, *]-> reader\nreader -> END"
TABLE = '%%eval clerk --repeats 3\n| message | calls |\n| --- | --- |\n| Is it in or not? | pay(to="Anna") |'
TOOL = '%%tool --confirm "amount > 100"\ndef pay(to: str, amount: float) -> str:\n    "Pay."\n    return to'
MAP = "%%map clerk --over questions"
LINES = "%state budget=3 --json\nif prices:\n    answer = %chat clerk --new Is {{prices}} in order, and not for me?"
CELLS = (AGENT, MATTER, WORKFLOW, TABLE, TOOL, MAP, LINES)


@pytest.fixture(scope="module")
def notebook(code_server: CodeServer) -> Path:
    path = code_server.root / "cells.ipynb"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)
    return path


def looks_of_cells(server: CodeServer, browser: Chrome, notebook: Path, theme: str) -> list[dict[str, str]]:
    """The looks of the texts of each cell, once no line is cut short.

    VS Code gives a line half a second, and leaves the rest of it as it is: on a busy machine a page is opened again.
    """
    editor = Editor(server, browser)
    for _ in range(6):
        editor.open(notebook, theme)
        editor.until(lambda: "return" in editor.looks("%%tool"), "the Python of the tool", BOOT)
        with suppress(AssertionError):
            editor.until(lambda: "{budget}" in editor.looks("%%agent clerk"), "the end of a line", 10)
            break
    editor.screenshot(f"vscode-{theme}")
    return [editor.looks(cell.split("\n")[0]) for cell in CELLS]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_kind_of_cell_is_highlighted_as_what_it_is(
    code_server: CodeServer, browser: Chrome, notebook: Path, theme: str
):
    agent, matter, workflow, table, tool, cases, lines = looks_of_cells(code_server, browser, notebook, theme)

    keyword, option = tool["return"], agent["-t"]
    assert [agent["%%agent"], matter["%%agent"], workflow["%%workflow"], table["%%eval"]] == [keyword] * 4
    assert [tool["%%tool"], cases["%%map"], lines["%state"], lines["%chat"], lines["if"]] == [keyword] * 5
    assert [workflow["--root"], table["--repeats"], tool["--confirm"]] == [option] * 3
    assert [cases["--over"], lines["--json"], lines["--new"]] == [option] * 3
    assert len({keyword, option, agent["clerk"], agent["--modle"], agent["fast"]}) == 5
    assert len({agent["{budget}"], agent["{{prices}}"], agent["You pay with care and"]}) == 3
    assert agent["**not**"].endswith("700") and lines["{{prices}}"] == agent["{{prices}}"]
    assert matter["model"] != matter["Read it and say if it is in order."]
    assert len({workflow["# in order"], workflow["START"], workflow["clerk"]}) == 3
    assert table["| message | calls |"].endswith("700") and tool["def"] != tool["to"]
    assert not [text for text in agent | matter | table if re.fullmatch("and|in|if|is|with|or", text)]


def test_the_extension_is_one_file_of_its_version_and_the_same_each_time(tmp_path: Path):
    first, second = (vsix_build.build(tmp_path / name) for name in ("first", "second"))

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert first.name == f"adk-nb-{project['version']}.vsix"
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        manifest = archive.read("extension.vsixmanifest").decode()
        written = {Path(name).name for name in archive.namelist()}
    assert f'Version="{project["version"]}"' in manifest
    assert {path.name for path in (vsix_build.FOLDER / "syntaxes").iterdir()} | {"LICENSE.txt"} <= written


def test_the_editor_lists_the_extension_as_installed(code_server: CodeServer, tmp_path: Path):
    installed = code_server.install(vsix_build.build(tmp_path))

    assert [name.split("@")[0] for name in installed] == ["adk-nb.adk-nb"]
