"""Snippets of public tutorials give the same on adk_nb as on google-adk 2.13.0, from which they move by their imports.

google_adk_2_13_0_moving.json is what they gave on google-adk. To renew it, in this folder:
../../.venv-adk/bin/python told_moving.py google.adk | python -m json.tool --indent 1 > google_adk_2_13_0_moving.json
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.each import each

HERE = Path(__file__).parent
RECORDED: dict[str, Any] = json.loads((HERE / "google_adk_2_13_0_moving.json").read_text(encoding="utf-8"))


@cache
def told(python: str, package: str) -> dict[str, Any]:
    done = subprocess.run([python, HERE / "told_moving.py", package], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@each("scene", RECORDED)
def test_a_snippet_gives_the_same_as_on_google_adk(scene: str):
    assert told(sys.executable, "adk_nb")[scene] == RECORDED[scene]


@pytest.mark.peers
def test_google_adk_still_gives_what_was_recorded():
    assert told(str(HERE.parent.parent / ".venv-adk/bin/python"), "google.adk") == RECORDED
