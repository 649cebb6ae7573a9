"""`KernelCodeExecutor(kernel="this")`: a model's code among the notebook's own variables, where that is asked for."""

from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import KernelCodeExecutor
from adk_nb.models import ScriptedLlm
from tests.notebook.conftest import Shell
from tests.support.talk import Talk


def runs(code: str) -> Any:
    model = ScriptedLlm(f"```python\n{code}\n```", "ok")
    talk = Talk(LlmAgent(name="a", model=model, code_executor=KernelCodeExecutor(kernel="this")))
    events = talk.say()
    assert not talk.error, talk.error
    return events[1]


def output(event: Any) -> tuple[bool, str]:
    result = event.parts[0].code_execution_result
    return result.outcome == types.Outcome.OUTCOME_OK, result.output


def test_the_code_reads_and_writes_the_notebooks_variables(bare: Shell):
    bare.cell("price = 20")

    assert output(runs("total = price * 2\nprint('done')\ntotal + 2")) == (
        True,
        "Code execution result:\ndone\n42\n\n",
    )
    assert bare.names["total"] == 40


def test_what_the_code_prints_and_raises_is_told_to_the_model_and_not_shown_in_the_cell(bare: Shell):
    bare.names["run_it"] = lambda: runs("print('to the model')\n1/0")

    bare.run("event = run_it()")
    ok, said = output(bare.names["event"])

    assert bare.printed == ""
    assert not ok
    assert said.startswith("to the model\n\nTraceback")
    assert "ZeroDivisionError" in said
    assert "kernel_code_executor.py" not in said


def test_what_it_shows_becomes_a_file(bare: Shell):
    event = runs("from IPython.display import Image\nImage(data=b'\\x89PNG\\r\\n\\x1a\\n0000', format='png')")

    assert event.actions.artifact_delta == {"image_1.png": 0}


def test_it_can_use_magics_and_may_not_end_the_process(bare: Shell):
    bare.cell("name = 1")

    assert output(runs("%who_ls int")) == (True, "Code execution result:\n['name']\n\n")
    ok, said = output(runs("raise SystemExit(1)"))
    assert not ok
    assert "SystemExit" in said


def test_outside_of_a_notebook_it_is_refused(monkeypatch: pytest.MonkeyPatch):
    talk = Talk(
        LlmAgent(name="a", model=ScriptedLlm("```python\n1\n```"), code_executor=KernelCodeExecutor(kernel="this"))
    )
    talk.say()

    assert "kernel= out" in str(talk.error)
