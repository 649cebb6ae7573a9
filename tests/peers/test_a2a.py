"""google-adk 2.13.0 and adk_nb call each other's agents by A2A."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.a2a import RemoteA2aAgent, to_a2a
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import answer
from adk_nb.tools import request_input
from tests.a2a.loopback import served
from tests.support.talk import Talk, requests, summaries

HERE = Path(__file__).parent
COMMAND = [HERE.parent.parent / ".venv-adk/bin/python", "-W", "ignore", HERE / "a2a_by_google_adk.py"]

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def there() -> Iterator[RemoteA2aAgent]:
    """An agent that google-adk serves."""
    with subprocess.Popen([*COMMAND, "serve"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout
        url = server.stdout.readline().strip()
        try:
            yield RemoteA2aAgent(name="there", agent_card=url)
        finally:
            server.terminate()


def answered(events: list[Event], value: Any) -> types.Content:
    [interrupt] = open_interrupts(events)
    return types.Content(role="user", parts=[answer(interrupt, value)])


def test_an_agent_of_google_adk_answers_and_the_conversation_goes_on(there: RemoteA2aAgent):
    talk = Talk(there)

    assert summaries(talk.say("Hello")) == [("there", "1: Hello .")]
    assert summaries(talk.say("Again")) == [("there", "3: Again .")]


def test_what_its_long_running_tool_waits_for_is_answered_here(there: RemoteA2aAgent):
    talk = Talk(there)
    first = talk.say("ask")
    [question] = open_interrupts(first)
    second = talk.say(answered(first, "sure"))

    assert (question.kind, question.payload) == ("input", {"ask": {"amount": 250}})
    assert summaries(second)[-1] == ("there", 'The tool says {"result": "sure"}. .')


def test_its_approval_is_given_here(there: RemoteA2aAgent):
    talk = Talk(there)
    first = talk.say("pay")
    [approval] = open_interrupts(first)
    second = talk.say(answered(first, True))

    assert (approval.kind, approval.call.name, approval.call.args) == ("approval", "pay", {"amount": 250})
    assert summaries(second)[-1] == ("there", 'The tool says {"result": "paid 250"}. .')
    assert not open_interrupts(talk.stored().events)


def asked_by_google_adk(agent: LlmAgent, *messages: str) -> Any:
    with served(lambda port: to_a2a(agent, host="127.0.0.1", port=port)) as server:
        done = subprocess.run([*COMMAND, "ask", server.url, *messages], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_google_adk_asks_an_agent_of_ours_and_the_conversation_goes_on():
    agent = LlmAgent(name="planner", model=ScriptedLlm("Rome.", "Two days."))

    assert asked_by_google_adk(agent, "Where to?", "How long?") == [["Rome."], ["Two days."]]
    assert [len(contents) for contents in requests(agent)] == [1, 3]


def test_google_adk_answers_a_question_of_ours():
    script = ScriptedLlm(call("adk_request_input", message="Which city?"), "Rome it is.")
    agent = LlmAgent(name="planner", model=script, tools=[request_input])

    first, second = asked_by_google_adk(agent, "Plan", "Rome")

    assert "Which city?" in first
    assert second == ["Rome it is."]
