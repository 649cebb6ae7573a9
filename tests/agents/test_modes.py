"""What an agent's mode says of its place under others."""

from typing import Any

import pytest

from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import InMemoryRunner
from tests.support.talk import Talk, summaries


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def system(agent: LlmAgent) -> list[str]:
    assert isinstance(agent.model, ScriptedLlm)
    return [str(request.config.system_instruction) for request in agent.model.requests]


@pytest.mark.parametrize("mode", ["single_turn", "task"])
def test_nobody_hands_over_to_an_agent_that_is_called(mode: str):
    alone, chats = agent("alone", mode=mode), agent("chats", mode="chat")
    root = agent("root", sub_agents=[alone, chats])

    assert [agent.name for agent in root.transfer_targets] == ["chats"]
    assert [agent.name for agent in chats.transfer_targets] == ["root"]
    assert alone.transfer_targets == []


def test_a_runner_takes_no_agent_of_a_single_turn():
    with pytest.raises(ConfigurationError, match=r"agent 'alone'.*mode='single_turn'") as refused:
        InMemoryRunner(agent("alone", mode="single_turn"))

    assert isinstance(refused.value, ValueError)


def test_an_agent_of_a_single_turn_begins_anew_and_is_told_no_name_unless_it_says_otherwise():
    silent, other_agent = (
        agent("silent", mode="single_turn"),
        agent("other", mode="single_turn", include_contents="default"),
    )

    assert (silent.include_contents, silent.identity) == ("none", False)
    assert (other_agent.include_contents, other_agent.identity) == ("default", False)
    assert agent("told", mode="single_turn", identity=True).identity
    assert silent.model_fields_set == {"name", "model", "mode"}


def test_a_copy_in_another_mode_has_what_that_mode_has():
    copy = agent("silent", mode="single_turn").clone({"mode": "chat"})

    assert (copy.include_contents, copy.identity) == ("default", True)


@pytest.mark.parametrize("mode", ["chat", None])
def test_an_agent_that_chats_is_as_one_without_a_mode(mode: str | None):
    root = agent("root", "hi", mode=mode)

    Talk(root).say("hello")

    assert system(root) == ['You are an agent. Your internal name is "root".']


def test_an_unknown_mode_is_refused():
    with pytest.raises(ConfigurationError, match="mode"):
        agent("alone", mode="other")


def test_a_task_at_the_root_is_talked_over_and_ends_with_what_came_of_it():
    root = agent("root", "which date?", call("finish_task", result="booked"), "next", mode="task", output_key="came")
    talk = Talk(root)

    assert summaries(talk.say("book")) == [("root", "which date? .")]
    events = talk.say("tomorrow")

    assert summaries(events)[-1] == ("root", "answers {'result': 'Task completed.'} => {'came': 'booked'}")
    assert events[-1].output == {"result": "booked"}
    assert summaries(talk.say("thanks")) == [("root", "next .")]
