"""Where no thread can be started, such as in a browser, cells, sessions and evaluations work as elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONG = pytest.mark.long


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suites", "least"),
    [
        (("tests/notebook/test_one_turn.py", "tests/notebook/test_redefined.py"), 50),
        pytest.param(("tests/notebook/test_approvals.py", "tests/notebook/test_sessions_in_a_file.py"), 90, marks=LONG),
        pytest.param(("tests/notebook/test_eval.py", "tests/notebook/test_chat_door.py"), 50, marks=LONG),
    ],
)
@pytest.mark.timeout(1000)
def test_suites_pass_while_threads_are_forbidden(suites: tuple[str, ...], least: int):
    flags = ["-q", "-p", "tests.support.no_threads", "-p", "no:xdist", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    run = subprocess.run(
        [sys.executable, "-m", "pytest", *flags, *suites],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )

    assert run.returncode == 0, run.stdout[-4000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and int(passed[1]) >= least


NESTED = """
import tests.support.no_threads
from adk_nb import Agent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat

inner = Chat(Agent(name="inner", model=ScriptedLlm("forty", "two")), show=False)

def first(question: str) -> str:
    "A sync tool."
    return inner.ask(question).text

async def second(question: str) -> str:
    "An async tool that makes a blocking call."
    return inner.ask(question).text

model = ScriptedLlm(call("first", question="?"), call("second", question="?"), "done")
outer = Chat(Agent(name="outer", model=model, tools=[first, second]), show=False)
print(outer.ask("go").text)
print([response.response for event in outer.events for response in event.get_function_responses()])
"""


@pytest.mark.slow
def test_tools_may_ask_other_agents():
    run = subprocess.run([sys.executable, "-c", NESTED], cwd=ROOT, capture_output=True, text=True, timeout=300)

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["done", "[{'result': 'forty'}, {'result': 'two'}]"]
