"""The default model is said as it is, wherever a notebook names a model."""

import json
from collections.abc import Iterator

import pytest

from adk_nb.agents import LlmAgent
from adk_nb.models import ScriptedLlm
from adk_nb.models.default_model import set_default_model
from tests.notebook.conftest import Shell


@pytest.fixture(autouse=True)
def nothing_set_in_python() -> Iterator[None]:
    yield
    set_default_model(None)


def model_of(shell: Shell, agent: str) -> str:
    return next(row["model"] for row in json.loads(str(shell.cell("%agents --json"))) if row["name"] == agent)


@pytest.mark.parametrize("default", [ScriptedLlm("hi", model="of-a-test"), "ollama:of-a-test"])
def test_a_model_that_python_set_is_the_default_everywhere(shell: Shell, default: str | ScriptedLlm) -> None:
    LlmAgent.set_default_model(default)
    name = default if isinstance(default, str) else default.model

    assert str(shell.cell("%%agent d\nBe brief.")) == f"d v1 · model {name}"
    assert model_of(shell, "d") == name
    assert name in str(shell.cell("%agents --show d"))
    for line in ("%doctor", "%key"):
        said = str(shell.cell(line))
        assert f"{name} (LlmAgent.set_default_model set it)" in said and "model  offline" not in said


def test_a_changed_default_is_a_change_of_the_agents_that_name_none(shell: Shell) -> None:
    shell.cell("%config AdkNb.model = 'offline'")
    shell.cell("%%agent d\nBe brief.")
    LlmAgent.set_default_model(ScriptedLlm("hi", model="of-a-test"))

    assert "offline → of-a-test" in str(shell.cell("%%agent d\nBe brief."))


def test_an_agent_under_one_that_has_a_model_is_listed_with_that_model(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm("hi", model="of-the-boss")
    shell.cell("%%agent helper\nHelp.")
    shell.cell("%%agent boss -m model --sub helper\nLead.")

    [helper] = shell.names["boss"].sub_agents
    assert helper.answering_model == "of-the-boss"


def test_setting_the_model_is_confirmed_even_if_it_changes_nothing(shell: Shell) -> None:
    for _ in range(2):
        shell.cell("%config AdkNb.model = 'gemini-3.8-flash'")
        assert shell.printed == "default model: gemini-3.8-flash\n"
    shell.cell("%config AdkNb.model = ''")
    assert shell.printed.startswith("default model: offline (no key is set)")
    shell.cell("%config AdkNb.strict = True")
    assert shell.printed == ""


def test_a_setting_below_what_python_set_says_so_and_what_to_type(shell: Shell) -> None:
    LlmAgent.set_default_model("gemini-3.8-flash")

    shell.cell("%config AdkNb.model = 'offline'")

    assert "gemini-3.8-flash" in shell.printed
    assert shell.printed.rstrip().endswith('LlmAgent.set_default_model("offline")')


def test_a_model_that_the_environment_names_is_said_to_come_from_there(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADK_NB_DEFAULT_MODEL", "gemini-3.8-flash")

    assert "gemini-3.8-flash (ADK_NB_DEFAULT_MODEL" in str(shell.cell("%doctor"))
