"""A served agent, asked by AG-UI's own client from npm, which `make servers` has installed."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import FOLDER, node

from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
from tests.serving.conftest import TOKEN, serve

__all__ = ["serve"]
pytestmark = pytest.mark.servers
SCRIPT = Path(__file__).parent / "ag_ui.mjs"


@tool(confirm=True)
def pay(to: str, amount: float, tool_context) -> str:
    """Pay a person."""
    tool_context.state["paid"] = amount
    return f"paid {amount:g} to {to}"


def talk(served: Any, *steps: Any, token: str = TOKEN) -> list[dict[str, Any]]:
    command = [node(), str(SCRIPT), str(FOLDER.parent), f"{served.url}/ag-ui", token, json.dumps(steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_message_an_approval_and_what_comes_of_it(serve):
    agent = Agent(
        name="clerk",
        model=ScriptedLlm("Good day.", call("pay", to="Anna", amount=250), "Anna has it."),
        tools=[pay],
    )
    greeted, asked, done = talk(serve(agent), "Hello", "Pay Anna", {"resume": {"approved": True}})
    assert [step["failure"] for step in (greeted, asked, done)] == [None, None, None]
    assert [(one["role"], one["content"]) for one in greeted["messages"]] == [
        ("user", "Hello"),
        ("assistant", "Good day."),
    ]
    assert "TEXT_MESSAGE_CONTENT" in greeted["events"] and greeted["open"] == []
    (interrupt,) = asked["open"]
    assert interrupt["reason"] == "tool_call" and interrupt["toolCallId"] == asked["messages"][-1]["toolCalls"][0]["id"]
    assert done["open"] == [] and done["state"] == {"paid": 250}
    assert [one["role"] for one in done["messages"][-3:]] == ["assistant", "tool", "assistant"]
    assert done["messages"][-1]["content"] == "Anna has it."


def test_a_wrong_token_and_a_failed_run_are_errors_of_the_client(serve):
    served = serve(Agent(name="clerk", model=ScriptedLlm(RuntimeError("the service is down"), "Back.")))
    (refused,) = talk(served, "Hello", token="wrong")
    assert "401" in refused["failure"]
    failed, back = talk(served, "Hello", "Again")
    assert "RUN_ERROR" in failed["events"]
    assert back["failure"] is None and back["messages"][-1]["content"] == "Back."
