"""What messages and pages tell a user to install can be installed, also before this package is in an index."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling import build
from packaging.requirements import Requirement

from adk_nb.errors import MissingExtraError
from adk_nb.lazy import extras, install_line, require
from tests.support.each import each

ROOT = Path(__file__).parents[2]
READ = ["adk_nb", "binder", "docs", "editors", "lite", "notebooks", "README.md", "CHANGELOG.md", "SECURITY.md"]
FROM_AN_INDEX = re.compile(r"""(?<!un)install(?:\s+-\w+)*[\s("'\\`\[]+adk[-_]nb\b(?![-_]|\s*@)""")
"""`pip install adk-nb`, `'adk-nb[db]'`, `micropip.install("adk-nb")`; a wheel's or a folder's name goes on."""
DECLARED: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
NAMED = sorted(
    {
        extra
        for path in (ROOT / "adk_nb").rglob("*.py")
        for extra in re.findall(r'"adk[-_]nb\[([\w-]+)\]"', path.read_text(encoding="utf-8"))
    }
)
"""Extras that the package's own code asks for."""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This package as an installation of today records it; that of the environment may be older."""
    monkeypatch.chdir(ROOT)  # a build backend is called in the project's folder (PEP 517)
    build.prepare_metadata_for_build_wheel(str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    extras.cache_clear()
    yield
    extras.cache_clear()


def test_nothing_tells_to_install_this_package_from_an_index():
    listed = subprocess.run(["git", "ls-files", *READ], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {
        path: (ROOT / path).read_text(encoding="utf-8")
        for path in listed.stdout.split()
        if path.endswith((".css", ".ipynb", ".js", ".json", ".md", ".mjs", ".py", ".pyi", ".txt"))
    }

    assert len(texts) > 500
    assert [(path, found[0]) for path, text in texts.items() for found in FROM_AN_INDEX.finditer(text)] == []
    for wrong in ("%pip install -U adk-nb", "pip install 'adk-nb[db]'", 'await micropip.install("adk-nb")'):
        assert FROM_AN_INDEX.search(wrong), wrong


@each("extra", sorted(DECLARED))
def test_a_missing_extra_is_told_as_the_packages_that_it_needs(extra: str):
    command, *told = re.findall(r'%pip install|"[^"]+"|[\w.-]+', install_line(f"adk-nb[{extra}]"))

    assert command == "%pip install"
    assert {str(Requirement(one.strip('"'))) for one in told} == needed(extra)


def needed(extra: str) -> set[str]:
    """What pyproject.toml says, without markers, with what the extras that it brings need."""
    found: set[str] = set()
    for requirement in map(Requirement, DECLARED[extra]):
        requirement.marker = None
        ours = requirement.name == "adk-nb"
        found |= {one for brought in requirement.extras for one in needed(brought)} if ours else {str(requirement)}
    return found


def test_all_extras_are_known_as_they_were_installed():
    assert {"db", "serve"} <= {*NAMED} <= {*extras()} == {*DECLARED}


def test_the_line_is_the_same_to_every_shell():
    """The shell of Windows takes single quotes for letters, and `<` outside of quotes for a file."""
    for extra in extras():
        line = install_line(f"adk-nb[{extra}]")
        assert "'" not in line and not re.search(r"[<>\[|&]", re.sub(r'"[^"]*"', "", line)), line


def test_a_package_of_others_is_told_as_it_was_named():
    with pytest.raises(MissingExtraError, match=r"^'no_such' is not installed; type: %pip install no-such openpyxl$"):
        require("no_such.part", package="no-such openpyxl")


@pytest.mark.slow
def test_where_this_package_was_never_installed_the_clone_is_named(tmp_path: Path):
    """As with a folder on PYTHONPATH: there is no record of what an extra needs."""
    path = tmp_path / "path"
    path.mkdir()
    (path / "adk_nb").symlink_to(ROOT / "adk_nb")
    code = "from adk_nb.lazy import require; require('no_such', package='adk-nb[db]')"
    bare = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(path)!r}); {code}"]

    ended = subprocess.run(bare, capture_output=True, text=True, cwd=path)

    assert """type: pip install -e ".[db]" in a clone of adk_nb""" in ended.stderr, ended.stderr


def test_the_tutorials_name_extras_that_exist():
    pages = [*(ROOT / "docs" / "pages").glob("*.md"), *(ROOT / "notebooks").glob("*.ipynb"), ROOT / "README.md"]
    named = {
        extra
        for path in pages
        for found in re.findall(r"""pip install (?:-e )?["']?[^\s"']*\[([\w,]+)\]""", words(path))
        for extra in found.split(",")
    }

    assert {"lab", "serve", "otel"} <= named <= {*DECLARED} | {"httpx2"}


def words(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
