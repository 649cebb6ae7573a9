"""The examples of ADK's page on single-turn mode, with the name of the package as the one difference.

Source: https://github.com/google/adk-python/blob/main/docs/guides/agents/llm_agent/single_turn.md (version 2.3.0).
"""

from typing import Any

import pytest

from adk_nb.agents import LlmAgent, ParallelAgent
from adk_nb.models import ScriptedLlm, call
from adk_nb.models.default_model import model_of_code
from tests.support.talk import Talk, content_summaries, summaries

NODE = """
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

SUB_AGENT = """
from adk_nb.agents import LlmAgent

# Define a specialized single-turn sub-agent
translator_agent = LlmAgent(
    name="translator",
    instruction="Translate the input text to Spanish.",
    mode="single_turn"  # Must be explicit if not auto-wrapped in workflow
)

# Define the parent agent and assign the sub-agent
bilingual_writer = LlmAgent(
    name="bilingual_writer",
    instruction="Write a poem about the topic, then use the translator tool to translate it.",
    sub_agents=[translator_agent] # Exposes 'translator' as a tool to bilingual_writer
)
"""

CONTEXT_AWARE = """
from adk_nb.agents import LlmAgent

verifier_agent = LlmAgent(
    name="verifier",
    instruction="Verify that the draft meets all constraints discussed in the chat.",
    mode="single_turn",
    include_contents="default"  # Allows the sub-agent to see the parent's conversation history
)

editor_agent = LlmAgent(
    name="editor",
    instruction="Discuss the draft with the user and use verifier to check constraints.",
    sub_agents=[verifier_agent]
)
"""


@pytest.fixture
def names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the code defines; its agents, which name no model, ask the script."""
    code, answers = request.param
    monkeypatch.setattr("adk_nb.models.default_model._of_code", [ScriptedLlm(*answers)])
    defined: dict[str, Any] = {}
    exec(code, defined)
    return defined


def asked() -> list[tuple[str, list[tuple[str, str]], list[str]]]:
    """System instruction, contents and tools of each request."""
    model = model_of_code()
    assert isinstance(model, ScriptedLlm)
    return [
        (str(one.config.system_instruction), content_summaries(one.contents), sorted(one.tools_dict))
        for one in model.requests
    ]


@pytest.mark.parametrize("names", [(NODE, ["Once upon a time.", "There was."])], indirect=True)
def test_as_a_node_it_sees_its_input_and_nothing_of_earlier_turns(names: dict[str, Any]):
    talk = Talk(names["wf"])

    first, second = talk.say("the sea"), talk.say("the hills")

    assert summaries(first)[0] == ("writer", "Once upon a time. .")
    assert summaries(second)[0] == ("writer", "There was. .")
    assert asked() == [
        ("Write a short story about the input topic.", [("user", "the sea")], []),
        ("Write a short story about the input topic.", [("user", "the hills")], []),
    ]


@pytest.mark.parametrize("names", [(NODE, ["Once upon a time.", "It was the sea.", "As I said."])], indirect=True)
def test_a_node_that_is_to_see_the_history_says_so(names: dict[str, Any]):
    aware = names["build_node"](
        LlmAgent(name="aware", instruction="Go on.", mode="single_turn", include_contents="default")
    )
    start, writer = "START", names["writer_node"]

    Talk(names["Workflow"](name="wf", edges=[(start, writer), (writer, aware)])).say("the sea")

    (_, alone, _), (_, heard, _) = asked()
    assert alone == [("user", "the sea")]
    assert heard[0] == ("user", "the sea") and "Once upon a time." in heard[1][1]


@pytest.mark.parametrize("names", [(NODE, ["one", "two"])], indirect=True)
def test_a_node_in_chat_mode_preserves_the_history(names: dict[str, Any]):
    talk = Talk(names["Workflow"](name="wf", edges=[("START", LlmAgent(name="chats", mode="chat"))]))

    talk.say("first")
    talk.say("second")

    assert asked()[1][1] == [("user", "first"), ("model", "one"), ("user", "second")]


DELEGATES = [call("translator", request="The sea is blue."), "El mar es azul.", "Both poems."]


@pytest.mark.parametrize("names", [(SUB_AGENT, DELEGATES)], indirect=True)
def test_as_a_sub_agent_it_is_a_tool_and_works_apart(names: dict[str, Any]):
    events = Talk(names["bilingual_writer"]).say("the sea")

    assert summaries(events) == [
        ("bilingual_writer", "calls translator({'request': 'The sea is blue.'})"),
        ("translator", "El mar es azul. ."),
        ("bilingual_writer", "answers {'result': 'El mar es azul.'}"),
        ("bilingual_writer", "Both poems. ."),
    ]
    key = events[0].get_function_calls()[0].id
    assert [event.branch for event in events] == [None, f"translator@{key}", None, None]
    parent, child, last = asked()
    assert parent[2] == last[2] == ["translator"]  # a tool, and nobody to hand over to
    assert child == ("Translate the input text to Spanish.", [("user", "The sea is blue.")], [])
    assert last[1][-2:] == [
        ("model", "calls translator({'request': 'The sea is blue.'})"),
        ("user", "answers {'result': 'El mar es azul.'}"),
    ]


BRANCHED = [call("translator", request="The sea is blue."), "El mar es azul.", "Both poems."]


@pytest.mark.parametrize("names", [(SUB_AGENT, BRANCHED)], indirect=True)
def test_its_branch_is_derived_from_that_of_its_parent(names: dict[str, Any]):
    events = Talk(ParallelAgent(name="all", sub_agents=[names["bilingual_writer"]])).say("the sea")

    key = events[0].get_function_calls()[0].id
    assert {event.author: event.branch for event in events} == {
        "bilingual_writer": "all.bilingual_writer",
        "translator": f"all.bilingual_writer.translator@{key}",
    }


REACHES = [call("transfer_to_agent", agent_name="translator"), "I answer myself."]


@pytest.mark.parametrize("names", [(SUB_AGENT, REACHES)], indirect=True)
def test_nobody_hands_over_to_it(names: dict[str, Any]):
    names["bilingual_writer"].sub_agents.append(LlmAgent(name="other"))

    events = Talk(names["bilingual_writer"]).say("the sea")

    [refused] = events[1].get_function_responses()
    assert "agent 'translator' to take" in (refused.response or {})["error"]
    assert summaries(events)[2] == ("bilingual_writer", "I answer myself. .")


VERIFIES = ["Here is a draft.", call("verifier", request="the draft"), "It has four lines.", "It is right."]


@pytest.mark.parametrize("names", [(CONTEXT_AWARE, VERIFIES)], indirect=True)
def test_with_default_contents_it_sees_what_led_to_the_call_and_its_parent_nothing_of_it(names: dict[str, Any]):
    talk = Talk(names["editor_agent"])

    talk.say("At most four lines.")
    talk.say("Is it right?")

    _, _, (_, heard, _), (_, parent, _) = asked()
    assert [heard[at] for at in (0, 2, 4)] == [
        ("user", "At most four lines."),
        ("user", "Is it right?"),
        ("user", "the draft"),
    ]
    assert "Here is a draft." in heard[1][1] and "verifier" in heard[3][1]
    assert [text for _, text in parent] == [
        "At most four lines.",
        "Here is a draft.",
        "Is it right?",
        "calls verifier({'request': 'the draft'})",
        "answers {'result': 'It has four lines.'}",
    ]


@pytest.mark.parametrize(
    ("fields", "mode", "contents"),
    [
        ({}, None, "default"),  # standalone: chat
        ({"mode": "chat"}, "chat", "default"),
        ({"mode": "task"}, "task", "default"),
        ({"mode": "single_turn"}, "single_turn", "none"),
        ({"mode": "single_turn", "include_contents": "default"}, "single_turn", "default"),
        ({"mode": "single_turn", "include_contents": "none"}, "single_turn", "none"),
    ],
)
def test_the_table_of_options(fields: dict[str, Any], mode: str | None, contents: str):
    agent = LlmAgent(name="one", **fields)

    assert (agent.mode, agent.include_contents) == (mode, contents)


@pytest.mark.parametrize("names", [(NODE, [])], indirect=True)
@pytest.mark.parametrize(("fields", "contents"), [({}, "none"), ({"include_contents": "default"}, "default")])
def test_the_table_of_options_for_a_node(names: dict[str, Any], fields: dict[str, Any], contents: str):
    agent = names["build_node"](LlmAgent(name="one", **fields)).agent

    assert (agent.mode, agent.include_contents) == ("single_turn", contents)
