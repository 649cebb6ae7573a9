"""How often a model may be asked: in one run of all agents, and in one turn of one agent."""

from typing import cast

import pytest
from inline_snapshot import snapshot

from adk_nb.agents import LlmAgent, RunConfig, SequentialAgent
from adk_nb.agents.invocation_context import LlmCallsLimitExceededError
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm, call
from tests.support.talk import Talk, summaries


def look() -> str:
    """Looks."""
    return "seen"


def restless(times: int, **fields: object) -> Talk:
    model = ScriptedLlm(*[call("look")] * times, "done", "next")
    return Talk(LlmAgent(name="guide", model=model, tools=[look], **fields))


def asked(talk: Talk) -> int:
    return len(cast(LlmAgent, talk.runner.agent).model.requests)


def test_a_run_ends_with_an_error_when_the_model_was_asked_too_often():
    talk = restless(5)

    events = talk.say(config=RunConfig(max_llm_calls=2))

    assert summaries(events) == snapshot(
        [
            ("guide", "calls look({})"),
            ("guide", "answers {'result': 'seen'}"),
            ("guide", "calls look({})"),
            ("guide", "answers {'result': 'seen'}"),
            ("guide", "failed LlmCallsLimitExceededError"),
        ]
    )
    assert isinstance(talk.error, LlmCallsLimitExceededError)
    assert str(talk.error) == events[-1].error_message
    assert "`2` exceeded: agent 'guide' asked" in str(talk.error)
    assert "RunConfig.max_llm_calls" in str(talk.error)
    assert asked(talk) == 2
    assert talk.stored().events[-1].error_code == "LlmCallsLimitExceededError"


def test_as_many_calls_as_allowed_are_fine():
    talk = restless(1)

    assert talk.say(config=RunConfig(max_llm_calls=2))[-1].text == "done"
    assert talk.error is None


def test_each_message_counts_anew():
    talk = restless(1)

    talk.say(config=RunConfig(max_llm_calls=2))
    assert talk.say(config=RunConfig(max_llm_calls=1))[-1].text == "next"


def test_no_limit_is_none():
    talk = restless(20, max_iterations=None)

    assert talk.say(config=RunConfig(max_llm_calls=0))[-1].text == "done"


def test_an_agent_that_goes_on_and_on_is_ended_with_an_event():
    talk = restless(5, max_iterations=2)

    events = talk.say()

    assert summaries(events) == snapshot(
        [
            ("guide", "calls look({})"),
            ("guide", "answers {'result': 'seen'}"),
            ("guide", "calls look({})"),
            ("guide", "answers {'result': 'seen'}"),
            ("guide", "failed MAX_ITERATIONS"),
        ]
    )
    assert events[-1].content is None
    assert (events[-1].error_message or "").startswith("agent 'guide' called its model 2 times")
    assert "LlmAgent(max_iterations=...)" in (events[-1].error_message or "")
    assert talk.error is None
    assert asked(talk) == 2
    assert talk.stored().events[-1] == events[-1]


def test_the_end_by_limit_is_an_end_like_any_other():
    after: list[str] = []
    talk = restless(2, max_iterations=2, after_agent_callback=lambda callback_context: after.append("after"))

    talk.say()

    assert after == ["after"]
    assert talk.say("go on")[-1].text == "done"


def test_an_agent_may_ask_16_times_unless_told_otherwise():
    talk = restless(15)
    assert talk.say()[-1].text == "done"

    talk = restless(16)
    assert talk.say()[-1].error_code == "MAX_ITERATIONS"

    talk = restless(40, max_iterations=None)
    assert talk.say()[-1].text == "done"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_lets_nothing_through_is_refused(limit: int):
    with pytest.raises(ConfigurationError, match="max_iterations"):
        LlmAgent(name="guide", max_iterations=limit)


def agents(count: int) -> SequentialAgent:
    return SequentialAgent(
        name="all", sub_agents=[LlmAgent(name=f"agent_{at}", model=ScriptedLlm("done")) for at in range(count)]
    )


def test_by_default_many_agents_may_ask_once_each(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ADK_MAX_LLM_CALLS", raising=False)

    assert len(Talk(agents(510)).say()) == 510


def test_a_limit_that_is_set_counts_each_call(monkeypatch: pytest.MonkeyPatch):
    limited = Talk(agents(4))
    limited.say(config=RunConfig(max_llm_calls=3))
    monkeypatch.setenv("ADK_MAX_LLM_CALLS", "3")
    limited_by_environment = Talk(agents(4))
    limited_by_environment.say()

    assert "agent_3" in str(limited.error) and "agent_3" in str(limited_by_environment.error)


def test_by_default_one_agent_may_ask_500_times(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ADK_MAX_LLM_CALLS", raising=False)
    talk = restless(501, max_iterations=None)
    talk.say()

    assert isinstance(talk.error, LlmCallsLimitExceededError) and asked(talk) == 500
