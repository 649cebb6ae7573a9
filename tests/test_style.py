"""The house style as tests, so that `pytest` alone says whether a change is ready."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


@pytest.mark.timeout(400)  # pyright reads a thousand files: half a minute, or several on a throttled machine
@pytest.mark.parametrize(
    "command",
    ["ruff format --check .", "ruff check .", "pyright", "lint-imports --no-logo"],
)
def test_style(command: str):
    tool, *arguments = command.split()
    # Without this, pyright asks the package index whether it is the newest.
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "NO_COLOR": "1"}

    done = subprocess.run([BIN / tool, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
