"""What %export writes runs under google-adk 2.13.0 and tells the events that the notebook told."""

import contextlib
import dataclasses
import importlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adk_nb.errors import InputError
from adk_nb.notebook.extensions.export.target import GOOGLE_ADK
from tests.support.exports import MODEL, NOTEBOOKS, Notebook, forget, told_in_the_notebook
from tests.support.skills import write_skill

HERE = Path(__file__).parent
PYTHON = HERE.parent.parent / ".venv-adk/bin/python"
ROOMS = ["a2a", "agents", "apps", "artifacts", "code_executors", "events", "memory", "models", "planners", "plugins"]
ROOMS += ["sessions", "skills", "tools", "workflow"]
TRIED = """
import json, sys
missing = []
for line in json.load(sys.stdin):
    try:
        exec(line, {})
    except ImportError as error:
        if "cannot import name" in str(error) and "google.adk" in str(error):
            missing.append(line)
print(json.dumps(missing))
"""

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


def test_google_adk_loads_the_skills_of_an_exported_agent(shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    shell.ip.starting_dir = str(tmp_path)
    files: dict[str, str | bytes] = {"references/prices.md": "Bus: 3", "scripts/report.py": "print(1)"}
    write_skill(tmp_path / "skills", files=files)
    notebook = Notebook(
        [f"%%agent clerk -m {MODEL} --skills skills\nAnswer."],
        [
            [("load_skill", {"skill_name": "trip-budget"})],
            [("load_skill_resource", {"skill_name": "trip-budget", "file_path": "references/prices.md"})],
            "It costs 3.",
        ],
    )
    told = told_in_the_notebook(shell, notebook)
    shell.cell("%export exported")

    by_google = told_by_google_adk(tmp_path, {"exported": notebook})["exported"]
    assert [event["said"] for event in by_google] == [event["said"] for event in told]


def test_google_adk_has_each_name_where_an_export_imports_it():
    """Each name at the door of a room that is not refused; those of google-genai are in a package of their own."""
    asked: list[str] = []
    for room in ROOMS:
        for name in dir(importlib.import_module(f"adk_nb.{room}")):
            with contextlib.suppress(InputError):
                module, there = GOOGLE_ADK.place_of(f"adk_nb.{room}", name)
                asked.append(f"from {module} import {there}")
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", TRIED], input=json.dumps(asked), capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert len(asked) > 90
    assert json.loads(done.stdout) == []
