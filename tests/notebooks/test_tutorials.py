"""Every tutorial runs top to bottom with no key, as it is saved, and again from its cassette."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from packaging.requirements import Requirement

from adk_nb.code_executors.base_code_executor import USER_REACH
from adk_nb.code_executors.isolation import SANDBOX_REACH
from tests.support.warm import WARM

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
TUTORIALS = sorted(FOLDER.glob("*.ipynb"))
RECORDED = [path for path in TUTORIALS if (FOLDER / "cassettes" / f"{path.stem}.jsonl").exists()]

pytestmark = pytest.mark.kernel


def first(count: int, paths: list[Path], others: pytest.MarkDecorator = pytest.mark.long) -> pytest.MarkDecorator:
    """The first of these, and the others when asked for."""
    marks = [(others,) if number >= count else () for number in range(len(paths))]
    return pytest.mark.parametrize(
        "path", [pytest.param(path, id=path.stem, marks=mark) for path, mark in zip(paths, marks, strict=True)]
    )


recorded_tutorial = first(1, RECORDED)
"""Those in which the offline model answers; in the others all models are scripted."""


def code_cells(notebook: Any) -> Iterator[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def executed(path: Path) -> Any:
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(path.parent)}}
    options: dict[str, Any] = {"kernel_name": WARM, "extra_arguments": ["--log-level=ERROR"]}
    # a busy kernel sends one text in several messages; pages put them together
    NotebookClient(notebook, timeout=60, resources=place, coalesce_streams=True, **options).execute()
    return notebook


def timeless(text: Any) -> str:
    """`text` with no time of day, which tells when a call was begun that may have happened, and no machine in it.

    A script runs in a sandbox where there is one, and its approver is told so.
    """
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", "(time)", str(text))
    return text.replace(SANDBOX_REACH, USER_REACH)


def shown(notebook: Any) -> list[list[tuple[str, str, dict[str, str]]]]:
    """What each code cell shows, without anything that is not content."""
    return [
        [
            (
                output.output_type,
                timeless(output.get("text", "")),
                {kind: timeless(data) for kind, data in (output.get("data") or {}).items()},
            )
            for output in cell.outputs
            if output.output_type != "error"
        ]
        for cell in code_cells(notebook)
    ]


def plain(notebook: Any) -> str:
    return "\n".join(
        str(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for cell in code_cells(notebook)
        for output in cell.outputs
    )


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_it_shows_what_is_saved_and_prints_nothing_that_is_a_complaint(path: Path):
    saved = nbformat.read(path, as_version=4)
    now = executed(path)

    assert shown(now) == shown(saved)
    assert not [output for cell in code_cells(now) for output in cell.outputs if output.get("name") == "stderr"]
    assert all(cell.execution_count for cell in code_cells(saved))


@pytest.mark.kernel_all
@pytest.mark.parametrize("name", ["06_openapi_and_mcp", "13_evaluation", "15_watch_and_serve", "16_skills"])
def test_the_extra_lab_brings_all_optional_packages_that_it_imports(name: str):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    notebook.cells.append(
        nbformat.v4.new_code_cell("import sys; print(*{name.partition('.')[0] for name in sys.modules})")
    )
    place = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(
        notebook, timeout=60, allow_errors=True, resources=place, extra_arguments=["--log-level=ERROR"]
    ).execute()
    loaded = set(notebook.cells[-1].outputs[0].text.split())

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    shared = packages_of(extras, "lab")
    modules = packages_distributions()
    owners = {owner.lower() for module in loaded for owner in modules.get(module, ())}
    for extra in (
        "anthropic",
        "auth",
        "cost",
        "dask",
        "db",
        "dbos",
        "eval",
        "keys",
        "mcp",
        "openai",
        "openapi",
        "otel",
    ):
        assert not (packages_of(extras, extra) - shared) & owners, extra


def packages_of(extras: dict[str, list[str]], name: str) -> set[str]:
    """The packages that an extra names, with those of the extras that it brings."""
    packages: set[str] = set()
    for requirement in map(Requirement, extras[name]):
        if requirement.name == "adk-nb":
            packages |= {package for extra in requirement.extras for package in packages_of(extras, extra)}
        else:
            packages.add(requirement.name)
    return packages


@first(1, TUTORIALS, pytest.mark.kernel_all)
def test_nbval_finds_no_difference(path: Path):
    # With no other plugin and without the grammar of a format that no notebook has, both slow to import.
    pytest_alone = "import sys; sys.modules['rfc3987_syntax'] = None; import pytest; sys.exit(pytest.main())"
    options = ["-p", "nbval.plugin", "--nbval", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    ran = subprocess.run(
        [sys.executable, "-c", pytest_alone, *options, "--rootdir", str(FOLDER), str(path)],
        capture_output=True,
        text=True,
        cwd=FOLDER,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )

    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


@recorded_tutorial
def test_it_says_the_same_from_its_cassette_and_whose_words_they_are(path: Path, monkeypatch: pytest.MonkeyPatch):
    cassette = FOLDER / "cassettes" / f"{path.stem}.jsonl"
    monkeypatch.setenv("ADK_NB_REPLAY", str(cassette))
    replayed = plain(executed(path))
    saved = plain(nbformat.read(path, as_version=4))

    chip = "Offline stand-in"
    notice = f"{chip}: picks tools by keywords. No language model."
    recorded = f'replayed from {cassette.name}: recorded answers of model "offline" ({notice})'
    assert saved.count(f"({notice})") == 1
    chips = re.sub(rf"{chip}(?!:)", f"replayed from {cassette.name}", saved)
    assert replayed == chips.replace(f"({notice})", f"({recorded})")


@first(1, [path for path in RECORDED if '"%chat' in path.read_text(encoding="utf-8")])
def test_an_edited_question_is_a_miss_that_says_what_changed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    notebook = nbformat.read(path, as_version=4)
    asking = next(cell for cell in code_cells(notebook) if cell.source.startswith("%chat"))
    asking.source += " please"
    notebook.cells = notebook.cells[: notebook.cells.index(asking) + 1]
    monkeypatch.setenv("ADK_NB_REPLAY", str(FOLDER / "cassettes" / f"{path.stem}.jsonl"))

    client = NotebookClient(
        notebook,
        timeout=60,
        allow_errors=True,
        resources={"metadata": {"path": str(FOLDER)}},
        extra_arguments=["--log-level=ERROR"],
    )
    client.execute()

    said = "\n".join("\n".join(output.traceback) for output in asking.outputs if output.output_type == "error")
    assert said.startswith("RecordingMismatchError: no recording in ")
    assert "\n" not in said
    assert (plain(notebook) + said).count("message 1 differs") == 1  # in the error if the cell is quiet
