"""`%agents` and `%tools`: what is defined, where, when it was last at work, and what of it is stale."""

import json
from typing import Any

import pytest

from adk_nb.models.scripted_llm import ScriptedLlm
from adk_nb.tools import FunctionTool
from tests.notebook.conftest import Shell

LOOK = '%%tool --effect pure\ndef look(city: str) -> str:\n    "Looks."\n    return city'


@pytest.fixture
def shell(shell: Shell) -> Shell:
    shell.names["model"] = ScriptedLlm("One.", "Two.")
    shell.cell(LOOK)
    shell.cell("places = ['Oslo']\nwanted = {'type': 'string'}")
    shell.cell("%%agent guide -m model -t look --set global_instruction=wanted_text\nGuide to {{places[0]}}.")
    shell.cell("%%agent team --kind sequential --root\nguide")
    return shell


def rows(shown: Any) -> list[list[str]]:
    return [[one.strip() for one in line.split("  ") if one.strip()] for line in str(shown).splitlines()]


def test_the_table_of_agents_has_where_each_was_defined_and_was_at_work_last(shell: Shell) -> None:
    before = rows(shell.cell("%agents"))
    shell.cell("%chat Hello")

    assert before[0] == ["agent", "kind", "model", "tools", "agents", "defined"]
    assert rows(shell.cell("%agents"))[2:] == [
        ["guide v1", "scripted", "look", "In[4]", "In[7]"],
        ["team v1", "sequential", "guide", "In[5]", "In[7]"],
    ]


def test_a_cell_whose_variables_have_changed_is_said_to_be_stale(shell: Shell) -> None:
    fresh = str(shell.cell("%agents"))
    shell.cell("places = ['Rome']")
    stale = str(shell.cell("%agents")).splitlines()[-1]
    shell.names["model"] = ScriptedLlm("Three.")
    shell.names["__html"] = shell.cell("%agents")
    more = str(shell.names["__html"]).splitlines()[-1]
    shell.cell("del places")
    gone = str(shell.cell("%agents")).splitlines()[-1]

    assert "stale" not in fresh
    assert stale.startswith("stale in guide: places[0]; run In[4]")
    assert "places[0], model; run In[4]" in more
    assert gone == more


def test_the_same_is_there_as_json(shell: Shell) -> None:
    guide, team = json.loads(str(shell.cell("%agents --json")))

    assert guide == {
        "name": "guide",
        "version": 1,
        "kind": "",
        "mode": "",
        "skills": [],
        "model": "scripted",
        "tools": ["look"],
        "agents": [],
        "notebook": [],
        "defined_in": 4,
        "last_used": None,
        "stale": [],
    }
    assert (team["kind"], team["agents"]) == ("sequential", ["guide"])


def test_an_agent_is_shown_with_its_whole_cell(shell: Shell) -> None:
    assert str(shell.cell("%agents --show guide")).splitlines() == [
        " · ".join(["guide", "v1", "scripted", "tools look", "defined in In[4]"]),
        "%%agent guide -m model -t look --set global_instruction=wanted_text",
        "Guide to {{places[0]}}.",
    ]
    shell.names["guide"].instruction = "Changed in Python."
    assert str(shell.cell("%agents --show guide")).splitlines()[1:] == ["Changed in Python."]


def test_the_graph_without_a_name_is_that_of_who_is_asked_without_one(shell: Shell) -> None:
    assert str(shell.cell("%agents --graph")).splitlines()[0] == "team (sequential) v1"
    assert str(shell.cell("%agents --graph guide")).splitlines()[0].split("  ") == [
        "guide (scripted) v1",
        "tools: look",
    ]
    assert shell.complete("%agents --graph gu") == ["%agents --graph guide"]


def test_the_table_of_tools_has_effects_and_what_is_missing(shell: Shell) -> None:
    def wild(a, b: int):  # type: ignore[no-untyped-def]
        return a

    shell.names["wild"] = FunctionTool(wild)
    shown = str(shell.cell("%tools")).splitlines()

    assert rows("\n".join(shown[:-1])) == [
        ["tool", "description", "approval, effect", "defined", "used by"],
        rows(shown[1])[0],
        ["look(city) v1", "Looks.", "pure", "In[2]", "guide"],
        ["wild(a, b)", "no docstring: the model gets only the name", "Python"],
    ]
    assert shown[-1].startswith("wild: parameter 'a'")
    assert list(json.loads(str(shell.cell("%tools --schema")))) == ["look", "wild"]
    assert json.loads(str(shell.cell("%tools --schema look")))["description"] == "Looks."
