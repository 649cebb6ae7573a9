"""Cells that were written for google-adk: their imports, and its command line."""

import sys
from collections.abc import Iterator

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
