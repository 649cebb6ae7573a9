"""adk_nb tells the same events as google-adk, and sends its model the same history."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
TOLD = Path(__file__).with_name("told.py")
SCENES = [
    "words",
    "a tool",
    "tools side by side",
    "tools in a row",
    "a tool that writes state",
    "a stream",
    "a stream after a tool",
    "a callback that answers",
    "a callback that changes a result",
    "an approval",
]

pytestmark = pytest.mark.peers


@cache
def told(python: str, package: str) -> dict[str, Any]:
    done = subprocess.run([python, TOLD, package], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("scene", SCENES)
def test_the_same_events_in_the_same_order(scene: str):
    theirs = told(str(ROOT / ".venv-adk/bin/python"), "google.adk")
    ours = told(sys.executable, "adk_nb")

    assert set(theirs) == set(ours) == set(SCENES)
    assert ours[scene] == theirs[scene]
