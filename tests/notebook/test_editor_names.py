"""What an editor learns of the names in a cell, by the expression that the extension of JupyterLab evaluates."""

import json
import re
import sys
from pathlib import Path

from tests.notebook.conftest import Shell

EXTENSION_JS = Path(__file__).parents[2] / "editors" / "jupyterlab" / "src" / "extension.js"
EXPRESSION = re.search(r"IN_KERNEL = '(.*)';", EXTENSION_JS.read_text(encoding="utf-8"))


def ask(shell: Shell, **names: list[str]):
    """Evaluate what the extension would, as a kernel does for it: silently, beside a cell without code."""
    assert EXPRESSION
    answer = shell.ip.user_expressions({"names": f"{EXPRESSION[1]}({json.dumps(names)})"})["names"]
    return answer.get("data", {}).get("application/json") if answer["status"] == "ok" else answer["ename"]


def test_names_of_every_kind_are_known_once_they_are_defined(shell: Shell):
    shell.cell("%%tool\ndef wind(x: int) -> int:\n    'W.'\n    return x")
    shell.cell("%%agent guide -m offline -t wind --output-key plan\nHi.")
    shell.cell("%state budget=3 user:name=Ada\nplaces = [1]\ndef sort(x): return x")

    answer = ask(
        shell,
        agent=["guide", "nobody"],
        tool=["wind", "rain"],
        node=["guide", "sort", "START", "clerk"],
        state=["budget", "plan", "user:name", "places"],
        variable=["places", "budget", "_run"],
    )

    assert answer == {
        "agent": ["guide"],
        "tool": ["wind"],
        "node": ["guide", "sort", "START"],
        "state": ["budget", "plan", "user:name"],
        "variable": ["places"],
    }


def test_before_the_first_definition_nothing_is_known_of_any_name(shell: Shell):
    shell.cell("places = [1]")

    assert ask(shell, variable=["places"]) is None
    assert not hasattr(shell.ip, "adk_nb"), "an answer would have made a notebook of a kernel that uses none"


def test_a_kernel_without_the_magics_has_no_answer(bare: Shell, monkeypatch):
    monkeypatch.delitem(sys.modules, "adk_nb.notebook.magics.extension")

    assert ask(bare, variable=["places"]) == "KeyError"


def test_a_kernel_that_unloaded_the_magics_has_no_answer(shell: Shell):
    shell.cell("%%agent guide -m offline\nHi.")
    shell.cell("%unload_ext adk_nb")

    assert ask(shell, agent=["guide"]) is None


def test_a_question_leaves_the_names_and_the_history_of_the_notebook_as_they_are(shell: Shell):
    shell.cell("%%agent guide -m offline\nHi.")
    before = dict(shell.names), shell.ip.execution_count

    ask(shell, variable=["x'); import os #", "ä"], state=["__class__"], unheard_of=["x"])

    assert (dict(shell.names), shell.ip.execution_count) == before
