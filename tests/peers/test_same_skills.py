"""Skills are read, shown to a model and run as google-adk 2.13.0 does it; scripts besides only after an approval.

google_adk_2_13_0_skills.json is what google-adk told. To renew it, in this folder:
../../.venv-adk/bin/python told_skills.py google.adk | python -m json.tool --indent 1 > google_adk_2_13_0_skills.json
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RECORDED: dict[str, Any] = json.loads((HERE / "google_adk_2_13_0_skills.json").read_text(encoding="utf-8"))


@cache
def told(python: str, package: str) -> dict[str, Any]:
    done = subprocess.run([python, HERE / "told_skills.py", package], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("scene", RECORDED)
def test_the_same_of_skills_as_google_adk(scene: str):
    assert told(sys.executable, "adk_nb")[scene] == RECORDED[scene]


@pytest.mark.peers
def test_google_adk_still_does_with_skills_what_was_recorded():
    assert told(str(HERE.parent.parent / ".venv-adk/bin/python"), "google.adk") == RECORDED
