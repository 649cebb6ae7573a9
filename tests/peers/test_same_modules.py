"""Each module of google-adk 2.13.0 is here, or its import says what to use.

google_adk_2_13_0_modules.json is what google-adk has. To renew it, in this folder:
../../.venv-adk/bin/python told_modules.py | python -m json.tool --indent 1 > google_adk_2_13_0_modules.json
"""

import importlib
import json
import subprocess
from pathlib import Path

import pytest

from adk_nb.errors import MissingModuleError
from adk_nb.google_adk import INSTEAD
from tests.support.each import each

HERE = Path(__file__).parent
RECORDED: list[str] = json.loads((HERE / "google_adk_2_13_0_modules.json").read_text(encoding="utf-8"))


def outcome(name: str) -> str:
    """`here`, or what the error of the import says."""
    try:
        importlib.import_module(f"adk_nb.{name}")
    except MissingModuleError as error:
        return str(error)
    return "here"


def test_every_module_of_google_adk_is_here_or_its_import_says_what_to_use():
    told = {name: outcome(name) for name in RECORDED}

    parents_missing = {name: text for name, text in told.items() if text != "here"}
    assert [name for name, text in parents_missing.items() if "; " not in text or "\n" in text] == []
    assert sum(text == "here" for text in told.values()) > 150


@each("name", INSTEAD)
def test_the_table_names_only_what_google_adk_has_and_is_missing_here(name: str):
    package, _, last = name.rpartition(".")

    assert name in RECORDED or package in RECORDED
    with pytest.raises(MissingModuleError) as refused:
        exec(f"from adk_nb{package and '.'}{package} import {last}" if package else f"import adk_nb.{last}")
    assert INSTEAD[name] in str(refused.value) or INSTEAD.get(package, "-") in str(refused.value)


@pytest.mark.peers
def test_google_adk_still_has_the_modules_that_were_recorded():
    python = HERE.parent.parent / ".venv-adk/bin/python"

    done = subprocess.run([python, HERE / "told_modules.py"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == RECORDED
