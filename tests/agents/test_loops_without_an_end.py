"""A loop that nothing could end says so before it runs; it is stopped by the limit of model calls."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from adk_nb.agents import BaseAgent, LlmAgent, LoopAgent, RunConfig, SequentialAgent
from adk_nb.errors import LlmCallsLimitExceededError
from adk_nb.tools import ToolContext, exit_loop
from tests.agents.waiting import agent
from tests.support.talk import Talk

FEW = RunConfig(max_llm_calls=2)


def look() -> str:
    """Looks."""
    return "seen"


def leave(tool_context: ToolContext) -> None:
    """Leaves."""
    tool_context.actions.escalate = True


def critic(**fields: Any) -> LlmAgent:
    return LlmAgent(name="critic", model="offline", **fields)


def warned(caplog: pytest.LogCaptureFixture, *agents: BaseAgent, **fields: Any) -> bool:
    talk = Talk(LoopAgent(name="again", sub_agents=list(agents), **fields))
    with caplog.at_level(logging.WARNING, logger="adk_nb.agents"):
        talk.say("go", config=FEW)
        talk.say("go", config=FEW)
    assert caplog.text.count("loop 'again' never ends") <= 1
    return "never ends" in caplog.text


@pytest.mark.parametrize(
    "make", [critic, lambda: critic(tools=[look]), lambda: SequentialAgent(name="s", sub_agents=[critic()])]
)
def test_a_loop_that_nothing_could_end_says_what_to_write_once(
    make: Callable[[], BaseAgent], caplog: pytest.LogCaptureFixture
):
    assert warned(caplog, make())
    assert "max_iterations=..." in caplog.text


def test_it_is_stopped_when_the_model_calls_are_used_up():
    talk = Talk(LoopAgent(name="again", sub_agents=[critic()]))
    talk.say("go", config=FEW)

    assert isinstance(talk.error, LlmCallsLimitExceededError)


class Own(BaseAgent):
    async def _run_async_impl(self, ctx: Any) -> Any:
        raise ConnectionError("ends it")
        yield


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        (critic, {"max_iterations": 1}),
        (critic, {"exit_condition": "True"}),
        (lambda: critic(tools=[exit_loop]), {}),
        (lambda: critic(tools=[leave]), {}),
        (lambda: critic(after_agent_callback=lambda callback_context: None), {}),
        (lambda: agent("scripted", "words"), {}),
        (lambda: Own(name="own"), {}),
        (lambda: SequentialAgent(name="s", sub_agents=[critic(tools=[exit_loop])]), {}),
    ],
    ids=["passes", "condition", "exit_loop", "tool", "callback", "model object", "own agent", "further down"],
)
def test_what_could_end_is_not_warned_of(
    make: Callable[[], BaseAgent], fields: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    assert not warned(caplog, make(), **fields)
