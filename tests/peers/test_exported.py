"""What %export writes runs under google-adk 2.13.0 and tells the events that the notebook told."""

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.exports import NOTEBOOKS, Notebook, forget, told_in_the_notebook

HERE = Path(__file__).parent
PYTHON = HERE.parent.parent / ".venv-adk/bin/python"

pytestmark = pytest.mark.peers


def told_by_google_adk(folder: Path, notebooks: dict[str, Notebook]) -> Any:
    asked = json.dumps({name: dataclasses.asdict(one) for name, one in notebooks.items()})
    command = [PYTHON, HERE / "told_exported.py", folder]
    done = subprocess.run(command, input=asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_google_adk_tells_the_same_events_of_what_was_exported(shell: Any, tmp_path: Path):
    told: dict[str, Any] = {}
    for name, notebook in NOTEBOOKS.items():
        told[name] = told_in_the_notebook(shell, notebook)
        shell.cell(f"%export {tmp_path / name}")
        forget(shell)

    by_google = told_by_google_adk(tmp_path, NOTEBOOKS)
    assert by_google == told
