"""Agents of a tree hand the conversation over to each other."""

import logging
from typing import Any

import pytest

from adk_nb.agents import LlmAgent, SequentialAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import ToolContext
from tests.support.talk import Talk, requests, summaries


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def to(name: str) -> Any:
    return call("transfer_to_agent", agent_name=name)


def offered(one: LlmAgent, turn: int = 0) -> list[str]:
    """Whom its model could hand over to."""
    assert isinstance(one.model, ScriptedLlm)
    tools = one.model.requests[turn].tools_dict
    if "transfer_to_agent" not in tools:
        return []
    declared = tools["transfer_to_agent"].declaration
    assert declared is not None
    return declared.parameters_json_schema["properties"]["agent_name"]["enum"]


def words(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.author, event.text) for event in events if event.text]


def test_who_takes_over_answers_in_the_same_turn_and_keeps_the_conversation():
    root = agent("root", to("b"), "root again", sub_agents=[agent("b", "B", "B again", to("root"))])
    talk = Talk(root)

    assert summaries(talk.say("hello")) == [
        ("root", "calls transfer_to_agent({'agent_name': 'b'})"),
        ("root", "answers {'result': None}"),
        ("b", "B ."),
    ]
    assert talk.stored().events[-2].actions.transfer_to_agent == "b"
    assert words(talk.say("second")) == [("b", "B again")]
    assert words(talk.say("third")) == [("root", "root again")]
    assert len({event.invocation_id for event in talk.stored().events}) == 3


def test_an_agent_whose_transfer_is_disabled_offers_none_and_follows_no_tool(caplog: pytest.LogCaptureFixture):
    def hand_over(tool_context: ToolContext) -> str:
        """Hands over."""
        tool_context.actions.transfer_to_agent = "b"
        return "tried"

    b = agent("b", "never")
    root = agent("root", call("hand_over"), "Still me.", sub_agents=[b], tools=[hand_over], disable_transfer=True)
    talk = Talk(root)

    assert summaries(talk.say("hello"))[1:] == [("root", "answers {'result': 'tried'}"), ("root", "Still me. .")]
    assert offered(root) == [] and isinstance(root.model, ScriptedLlm) and isinstance(b.model, ScriptedLlm)
    assert "hand_over" in root.model.requests[0].tools_dict and b.model.requests == []
    assert "'b'" not in str(root.model.requests[0].config.system_instruction)
    assert talk.stored().events[-2].actions.transfer_to_agent is None


def test_a_model_is_told_whom_there_is_and_what_they_are_good_at():
    b, c = agent("b", "B", description="knows b"), agent("c", description="knows c")
    root = agent("root", to("b"), sub_agents=[b, c])

    Talk(root).say("hello")

    assert offered(root) == ["b", "c"]
    assert offered(b) == ["root", "c"]
    assert isinstance(root.model, ScriptedLlm)
    instruction = str(root.model.requests[0].config.system_instruction)
    assert "b: knows b" in instruction
    assert "c: knows c" in instruction


@pytest.mark.parametrize(
    ("fields", "whom"),
    [
        ({"disallow_transfer_to_parent": True}, ["c"]),
        ({"disallow_transfer_to_peers": True}, ["root"]),
        ({"disallow_transfer_to_parent": True, "disallow_transfer_to_peers": True}, []),
    ],
)
def test_an_agent_hands_over_to_whom_it_may(fields: dict[str, bool], whom: list[str]):
    b = agent("b", "B", **fields)

    Talk(agent("root", to("b"), sub_agents=[b, agent("c")])).say("hello")

    assert offered(b) == whom


def test_a_lone_agent_is_offered_nobody():
    alone = agent("alone", "x")
    Talk(alone).say("hello")
    assert offered(alone) == []


def test_agents_of_a_sequence_hand_nothing_over_to_it():
    step = agent("step", "x")
    Talk(SequentialAgent(name="seq", sub_agents=[step])).say("hello")
    assert offered(step) == []


def test_who_must_not_hand_back_is_not_asked_first_next_time():
    b = agent("b", "B", disallow_transfer_to_parent=True)
    talk = Talk(agent("root", to("b"), "root", sub_agents=[b]))

    talk.say("hello")

    assert words(talk.say("second")) == [("root", "root")]


@pytest.mark.parametrize(
    ("name", "hint"), [("bb", "Did you mean 'b'?"), ("root", "Those that can: b."), (None, "Those that can: b.")]
)
def test_a_name_that_nobody_has_goes_back_to_the_model(name: Any, hint: str):
    root = agent("root", to(name), "sorry", sub_agents=[agent("b")])
    talk = Talk(root)

    assert words(talk.say("hello")) == [("root", "sorry")]
    assert hint in requests(root)[1][-1][1]


def test_a_tool_may_hand_over_too():
    def escalate_to(name: str, tool_context: ToolContext) -> str:
        """Hands over."""
        tool_context.actions.transfer_to_agent = name
        return "on its way"

    def root() -> LlmAgent:
        answers = [call("escalate_to", name="nobody"), call("escalate_to", name="b")]
        return agent("root", *answers, tools=[escalate_to], sub_agents=[agent("b", "B")])

    events = Talk(root()).say("hello")

    assert words(events) == [("b", "B")]
    assert "cannot transfer to 'nobody'" in summaries(events)[1][1]


def test_other_calls_of_the_same_step_are_done_first():
    def look() -> str:
        """Looks."""
        return "seen"

    root = agent("root", [call("look"), to("b")], tools=[look], sub_agents=[agent("b", "B")])

    assert summaries(Talk(root).say("hello"))[1:] == [
        ("root", "answers {'result': 'seen'}; answers {'result': None}"),
        ("b", "B ."),
    ]


def test_a_whole_sequence_can_take_over():
    team = SequentialAgent(name="team", sub_agents=[agent("s1", "one"), agent("s2", "two")])
    talk = Talk(agent("root", to("team"), "root", sub_agents=[team]))

    assert words(talk.say("hello")) == [("s1", "one"), ("s2", "two")]
    assert words(talk.say("second")) == [("root", "root")]


def test_a_conversation_goes_down_and_up_through_three_layers_in_one_turn():
    leaf = agent("leaf", to("middle"))
    root = agent("root", to("middle"), "done", sub_agents=[agent("middle", to("leaf"), to("root"), sub_agents=[leaf])])
    talk = Talk(root)

    assert words(talk.say("hello")) == [("root", "done")]
    assert talk.error is None


def test_agents_that_hand_over_in_a_circle_are_told_to_answer():
    root = agent("root", *[to("b")] * 25, "enough", sub_agents=[agent("b", *[to("root")] * 30)])
    talk = Talk(root)

    assert words(talk.say("hello")) == [("root", "enough")]
    assert talk.error is None


def test_who_hands_over_has_its_last_callback_after_the_other_has_answered(caplog: pytest.LogCaptureFixture):
    order: list[str] = []

    def note(callback_context: Any) -> None:
        order.append(callback_context.agent_name)

    b = agent("b", "B", after_agent_callback=note)
    with caplog.at_level(logging.WARNING):
        Talk(agent("root", to("b"), sub_agents=[b], after_agent_callback=note)).say("hello")

    assert order == ["b", "root"]
