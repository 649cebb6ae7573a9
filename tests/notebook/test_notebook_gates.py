"""Who reaches the tools of a notebook: its owner, and nobody through a server or a stored session."""

import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models import ScriptedLlm
from adk_nb.models import call as model_call
from adk_nb.runtime.interrupts import answer
from tests.notebook.conftest import Shell
from tests.notebook.test_serve import Caller
from tests.serving.conftest import texts

ANALYST = "%%agent analyst -m model --notebook\nHelp with the data."


@pytest.fixture
def call(shell: Shell) -> Iterator[Callable[[str], Caller]]:
    with ExitStack() as stack:

        def serving(line: str) -> Caller:
            caller = Caller(shell.cell(line))
            stack.enter_context(caller.http)
            return caller

        yield serving


def scripted(shell: Shell, *answers: Any) -> ScriptedLlm:
    shell.names["model"] = model = ScriptedLlm(*answers)
    shell.cell(ANALYST)
    return model


def code(text: str) -> Any:
    return model_call("run_code", code=text, why="to see")


# ---- clients of a server


@pytest.mark.parametrize("line", ["%serve analyst", "%serve analyst --share-sessions"])
def test_a_client_is_offered_nothing_of_the_notebook(shell: Shell, call: Callable[[str], Caller], line: str):
    model = scripted(shell, model_call("list_variables"), "I cannot.")
    shell.cell("salary = 4711")

    caller = call(line)

    assert texts(caller.run("What is there?").json())[-1] == "I cannot."
    assert [*model.requests[0].tools_dict] == []
    assert "4711" not in str(model.requests) and "salary" not in str(model.requests)


def test_the_owner_of_a_served_agent_keeps_the_tools(shell: Shell, call: Callable[[str], Caller]):
    model = scripted(shell, model_call("list_variables"), "I see.")
    shell.cell("salary = 4711")
    call("%serve analyst")

    shell.cell("%chat -q analyst What is there?")

    assert "salary" in str(model.requests[1].contents[-1])


def test_a_click_of_the_owner_in_a_clients_session_opens_nothing(shell: Shell, call: Callable[[str], Caller]):
    shell.cell("%%tool --confirm\ndef pay(amount: int) -> str:\n    'Pays.'\n    return 'paid'")
    shell.names["model"] = model = ScriptedLlm(model_call("pay", amount=1), model_call("list_variables"), "Done.")
    shell.cell("%%agent analyst -m model -t pay --notebook\nHelp.")
    caller = call("%serve analyst")
    caller.run("Pay 1.")

    shell.cell("%confirm -s @analyst/web --yes")

    assert [[*request.tools_dict] for request in model.requests] == [["pay"]] * 3


def test_nor_does_it_in_an_agent_that_works_apart_from_its_caller(shell: Shell, call: Callable[[str], Caller]):
    shell.cell("%%tool --confirm\ndef pay(amount: int) -> str:\n    'Pays.'\n    return 'paid'")
    shell.names["inner"] = inner = ScriptedLlm("I see nothing.")
    shell.names["outer"] = ScriptedLlm(model_call("pay", amount=1), model_call("looker", request="Look."), "Done.")
    shell.cell(
        "from adk_nb import Agent, NotebookToolset\nfrom adk_nb.tools import AgentTool\n"
        "looker = Agent(name='looker', model=inner, tools=[NotebookToolset()])\n"
        "boss = Agent(name='boss', model=outer, tools=[pay, AgentTool(looker)])"
    )
    caller = call("%serve boss --share-sessions")
    caller.run("Pay 1.")

    shell.cell("%confirm -s web --yes")

    assert [[*request.tools_dict] for request in inner.requests] == [[]]


def test_with_the_word_of_the_owner_clients_look_and_code_still_asks(shell: Shell, call: Callable[[str], Caller]):
    model = scripted(shell, model_call("list_variables"), code("salary = 0"), "Done.", "I cannot.")
    shell.cell("salary = 4711")

    caller = call("%serve analyst --with-notebook")
    said = str(shell.cell("%serve"))
    caller.run("What is there?")

    assert "clients reach the variables and cells of this notebook" in said
    assert "salary" in str(model.requests[1].contents[-1])
    assert shell.names["salary"] == 4711
    assert "run_code" in str(shell.cell("%confirm -s @analyst/web"))

    shell.cell("%confirm -s @analyst/web --no")
    shell.cell("%serve analyst")
    assert [*scripted(shell, "I cannot.").requests] == []
    caller.run("And now?", session="other")
    assert [*shell.names["model"].requests[0].tools_dict] == []


# ---- sessions that are stored


def test_a_yes_that_was_stored_before_a_run_was_cut_runs_nothing(shell: Shell, tmp_path: Path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    shell.cell(f'%config AdkNb.sessions = "sqlite:///{tmp_path / "nb.db"}"')
    scripted(shell, code("x = 1"), "Done.")
    shell.cell("%chat -q analyst Go.")
    [waits] = shell.names["_run"].interrupts
    service = shell.ip.adk_nb.sessions.service

    async def die_with_the_answer() -> None:
        session = await service.get_session(app_name="notebook", user_id="user", session_id="main")
        assert session
        await service.claim(session, "run-2", owner=f"process {ended.pid} on {platform.node()}", version="")
        content = types.Content(role="user", parts=[answer(waits, ToolConfirmation(confirmed=True, for_turn=True))])
        text = {"invocation_id": "run-2", "custom_metadata": {"spoken_to": "analyst", "defined_as": "other"}}
        await service.append_event(session, Event(author="user", content=content, **text))

    sync.run(die_with_the_answer())

    shell.cell("%session resume --edited")
    assert "x" not in shell.names
    assert [one.documents for one in shell.names["_run"].interrupts] == [{"code.py": "x = 1"}]

    shell.cell("%confirm --yes")
    assert shell.names["x"] == 1
    shell.cell('%config AdkNb.sessions = ""')
