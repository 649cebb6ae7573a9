"""Tab in the lines and cells of the magics."""

from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter

from adk_nb.models.default_model import GEMINI_MODEL
from tests.notebook.conftest import Shell
from tests.support.each import each


@pytest.fixture
def full(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell with something of every kind."""
    monkeypatch.chdir(tmp_path)
    Path("my_notes.txt").touch()
    shell.cell(
        "%%tool\ndef weather_in(city: str) -> str:\n    'Weather.'\n    return city\n"
        "def wind(x: int) -> int:\n    'W.'\n    return x"
    )
    shell.cell("%%agent guide -m offline -t weather_in --output-key plan\nHi.")
    shell.cell("%state budget=3 user:name=Ada\n%chat -s side guide hello\nplaces = [1]")
    return shell


@each(
    "typed, offered",
    [
        ("%%agent guide --mo", ["%%agent guide --model", "%%agent guide --mode"]),
        ("%%agent guide --max", ["%%agent guide --max-iterations"]),
        ("%%agent guide -m off", ["%%agent guide -m offline"]),
        ("%%agent guide --model=off", ["%%agent guide --model=offline"]),
        ("%%agent guide -t wea", ["%%agent guide -t weather_in"]),
        ("%%agent guide -t weather_in,wi", ["%%agent guide -t weather_in,wind"]),
        ("%%agent guide -t weather_in,", ["%%agent guide -t weather_in,wind"]),
        ("%%agent gu", ["%%agent guide"]),
        ("%chat gu", ["%chat guide"]),
        ("%chat --new gu", ["%chat --new guide"]),
        ("%chat -s si", ["%chat -s side"]),
        ("%chat guide --qu", ["%chat guide --quiet"]),
        ("%chat guide --attach pla", ["%chat guide --attach places"]),
        ("%chat guide --attach my_", ["%chat guide --attach my_notes.txt"]),
        ("%chat guide --model off", ["%chat guide --model offline"]),
        ("%chat guide -t wi", ["%chat guide -t wind"]),
        ("%chat guide --err", ["%chat guide --error"]),
        ("%chat guide --sta", ["%chat guide --static"]),
        ("ans = %chat gu", ["ans = %chat guide"]),
        ("for _ in range(2):\n    %chat gu", ["for _ in range(2):\n    %chat guide"]),
        ("%state bud", ["%state budget"]),
        ("%state --del us", ["%state --del user:name"]),
        ("%agents --rm g", ["%agents --rm guide"]),
        ("%tools --schema wea", ["%tools --schema weather_in"]),
        ("%confirm --ye", ["%confirm --yes"]),
        ("%%tool --confirm=n", ["%%tool --confirm=never"]),
        ("%tool wea", ["%tool weather_in"]),
        ("%%agent guide\nWithin {bud", ["%%agent guide\nWithin {budget"]),
        ("%%agent guide\nWithin {user:n", ["%%agent guide\nWithin {user:name"]),
        ("%%agent guide\nRead {art", ["%%agent guide\nRead {artifact."]),
        ("%%agent guide\nAbout {{pla", ["%%agent guide\nAbout {{places"]),
        ("%%chat guide\nAbout {{pla", ["%%chat guide\nAbout {{places"]),
    ],
)
def test_what_fits_is_offered_and_nothing_else(full: Shell, typed: str, offered: list[str]) -> None:
    assert full.complete(typed) == offered


def test_files_of_models_are_offered_behind_their_prefix(
    full: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in ("here.gguf", "models/qwen.gguf", "models/notes.txt"):
        (tmp_path / name).touch()

    assert "%%agent guide -m gguf:here.gguf" in full.complete("%%agent guide -m ")
    assert full.complete("%%agent guide -m gguf:h") == ["%%agent guide -m gguf:here.gguf"]
    assert full.complete("%%agent guide -m gguf:mo") == ["%%agent guide -m gguf:models/"]
    assert full.complete("%chat guide --model=gguf:models/") == ["%chat guide --model=gguf:models/qwen.gguf"]
    assert full.complete(f"%chat guide -m gguf:{tmp_path}/h") == [f"%chat guide -m gguf:{tmp_path}/here.gguf"]
    assert full.complete("%chat guide -m gguf:nowhere/") == []


def test_an_empty_place_offers_all_that_can_stand_there(full: Shell) -> None:
    assert full.complete("%chat ")[:1] == ["%chat guide"]
    assert f"%%agent guide -m {GEMINI_MODEL}" in full.complete("%%agent guide -m ")
    line = "%%agent guide --root"
    assert line in full.complete("%%agent guide --")
    assert f"{line} --root" not in full.complete(f"{line} --")


def test_python_is_completed_as_ever(full: Shell) -> None:
    assert "places" in full.complete("pla")
    assert any("places" in one for one in full.complete("%%tool\npla"))


def test_completion_says_what_kind_a_name_is(full: Shell) -> None:
    with provisionalcompleter():
        found = list(full.ip.Completer.completions("%chat gu", 8))

    assert [(one.text, one.type) for one in found] == [("guide", "agent")]
