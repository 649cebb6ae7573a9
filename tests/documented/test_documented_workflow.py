"""What ADK's page on single-turn agents promises of them as nodes of a workflow; its code with the prefix replaced."""

import inspect
from typing import Any

import pytest

from adk_nb.agents import LlmAgent
from adk_nb.models import ScriptedLlm, call
from adk_nb.models.default_model import set_default_model
from adk_nb.workflow import Workflow
from tests.support.talk import Talk, requests, summaries

STORY = """
from adk_nb.agents import LlmAgent
from adk_nb.workflow import Workflow, build_node

# Defaults to mode="single_turn" when run as a node
writer_agent = LlmAgent(
    name="writer",
    instruction="Write a short story about the input topic."
)

writer_node = build_node(writer_agent)

wf = Workflow(
    name="story_generator",
    edges=[
        ("START", writer_node),
        (writer_node, "END")
    ]
)
"""


@pytest.fixture
def model():
    """What agents answer with that name no model."""
    scripted = ScriptedLlm("a story of cats", "a story of dogs")
    LlmAgent.set_default_model(scripted)
    yield scripted
    set_default_model(None)


def story() -> dict[str, Any]:
    taken: dict[str, Any] = {}
    exec(inspect.cleandoc(STORY), taken)
    return taken


def test_the_story_generator_runs(model: ScriptedLlm):
    talk = Talk(story()["wf"])

    assert summaries(talk.say("cats")) == [("writer", "a story of cats .")]
    assert talk.error is None


def test_a_node_is_single_turn_by_itself_and_the_agent_stays_as_it_was():
    taken = story()
    node, agent = taken["writer_node"].agent, taken["writer_agent"]

    assert (node.mode, node.include_contents) == ("single_turn", "none")
    assert (agent.mode, agent.include_contents) == (None, "default")


def test_a_node_does_not_see_earlier_turns(model: ScriptedLlm):
    talk = Talk(story()["wf"])

    talk.say("cats")
    talk.say("dogs")

    seen = [[part.text for content in request.contents for part in content.parts or []] for request in model.requests]
    assert seen == [["cats"], ["dogs"]]
    assert [request.config.system_instruction for request in model.requests] == [
        "Write a short story about the input topic."
    ] * 2


def test_a_node_sees_earlier_turns_where_it_says_so():
    verifier = LlmAgent(name="verifier", model=ScriptedLlm("fine", "fine too"), include_contents="default")
    talk = Talk(Workflow(name="wf", edges=[("START", verifier)]))

    talk.say("first")
    talk.say("second")

    assert [words for _, words in requests(verifier)[1]][:2] == ["first", "fine"]
    assert requests(verifier)[1][-1] == ("user", "second")


def test_a_node_that_sees_earlier_turns_has_its_input_last():
    writer = LlmAgent(name="writer", model=ScriptedLlm("draft one", "draft two"))
    verifier = LlmAgent(name="verifier", model=ScriptedLlm("fine", "fine too"), include_contents="default")
    talk = Talk(Workflow(name="wf", edges=[("START", writer, verifier)]))

    talk.say("first")
    talk.say("second")

    seen = [words for _, words in requests(verifier)[1]]
    assert seen[0] == "first" and "draft one" in seen[1] and seen[2:4] == ["fine", "second"] and seen[-1] == "draft two"


def test_a_node_that_says_its_mode_keeps_it():
    for mode in ("single_turn", "chat"):
        chosen = LlmAgent(name="x", model=ScriptedLlm("hi"), mode=mode)
        found = Workflow(name="wf", edges=[("START", chosen)]).find_agent("x")

        assert isinstance(found, LlmAgent) and found.mode == mode


def test_a_node_hands_over_to_nobody():
    node = LlmAgent(name="x", model=ScriptedLlm("hi"))
    graph = Workflow(name="wf", edges=[("START", node)])
    top = LlmAgent(name="top", model=ScriptedLlm(call("transfer_to_agent", agent_name="wf")), sub_agents=[graph])

    Talk(top).say("go")

    assert node.model.requests[0].config.tools in (None, [])
