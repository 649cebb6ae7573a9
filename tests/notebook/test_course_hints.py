"""Cells that were written for google-adk: their imports, and its command line."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adk_nb.agents import LlmAgent
from adk_nb.google_adk import give_google_adk_back
from tests.notebook.conftest import Shell


@pytest.fixture(autouse=True)
def google_adk_is_given_back() -> Iterator[None]:
    yield
    give_google_adk_back()


def test_an_import_that_fails_says_which_setting_finds_it(shell: Shell):
    assert "%config AdkNb.google_adk = True" in shell.fails("from google.adk.agents import Agent")

    shell.cell("%config AdkNb.google_adk = True")
    assert "adk_nb" in shell.printed
    shell.cell("from google.adk.agents import Agent")

    assert shell.names["Agent"] is LlmAgent


def test_switched_off_it_is_as_if_google_adk_were_not_there(shell: Shell):
    shell.cell("%config AdkNb.google_adk = True")
    shell.cell("import google.adk.agents")

    shell.cell("%config AdkNb.google_adk = False")

    assert "google.adk" in shell.fails("import google.adk.agents")
    assert not [name for name in sys.modules if name.startswith("google.adk")]


@pytest.mark.parametrize(
    ("cell", "instead"),
    [
        ("!adk web", "%serve"),
        ("x = 1\n!adk eval agent evalset.json", "%%eval"),
        ("!adk create research-agent --model gemini-2.5-flash", "%%agent"),
        ("out = !adk run waiter", "%chat"),
        ("%%bash\nadk api_server || true", "%serve"),
    ],
)
def test_a_command_of_google_adk_says_what_replaces_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, cell: str, instead: str
):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    shell.run(cell)

    [told] = [line for line in shell.printed.splitlines() if line.startswith("adk_nb:")]
    assert instead in told


def test_a_cell_that_names_no_command_of_google_adk_gets_no_hint(shell: Shell):
    shell.run("text = 'adk web'\n# !adk\n!echo adk web")

    assert "adk_nb:" not in shell.printed


def test_a_cell_runs_adk_where_google_adk_is_not_installed(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    shell.cell("%config AdkNb.google_adk = True")

    shell.cell("out = !adk --help")
    assert any("google-adk's commands, run by adk_nb" in line for line in shell.names["out"])
    shell.cell("!adk frob")
    assert shell.names["_exit_code"] == 2

    shell.cell("%config AdkNb.google_adk = False")
    shell.cell("!adk --help")
    assert shell.names["_exit_code"] == 127


@pytest.mark.slow
def test_the_cells_of_a_course_create_run_and_evaluate_an_agent(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    shell.cell("%config AdkNb.google_adk = True")

    shell.cell("!adk create sample-agent --model offline --api_key not-a-real-key-1")
    shell.cell("out = !adk run sample-agent Hello")
    assert shell.names["out"][0].startswith("[root_agent]: ")

    message = {"role": "user", "parts": [{"text": "Hello"}]}
    case = {"eval_id": "greets", "conversation": [{"user_content": message}]}
    (tmp_path / "cases.evalset.json").write_text(json.dumps({"eval_set_id": "cases", "eval_cases": [case]}))
    (tmp_path / "calls.json").write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": 1.0}}))
    shell.cell("!adk eval sample-agent cases.evalset.json --config_file_path=calls.json --print_detailed_results")
    assert shell.names["_exit_code"] == 0
