"""A loop that ends when a condition over the session's state is met, and keeps what was said last."""

import logging
from typing import Any

import pytest

from adk_nb.agents import LlmAgent, LoopAgent
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm
from tests.support.talk import Talk


def loop_of(*answers: str, **fields: Any) -> LoopAgent:
    critic = LlmAgent(name="critic", model=ScriptedLlm(*answers), output_key="status")
    return LoopAgent(name="again", sub_agents=[critic], **fields)


async def approved(context: Any) -> bool:
    return context.state.get("status") == "approved"


@pytest.mark.parametrize("condition", ["session_state.get('status') == 'approved'", approved])
def test_a_loop_ends_after_the_pass_that_meets_its_condition(condition: Any):
    loop = loop_of("no", "not yet", "approved", "too late", exit_condition=condition, output_key="last")
    talk = Talk(loop)
    assert [event.text for event in talk.say("go")] == ["no", "not yet", "approved", ""]
    assert talk.stored().state == {"status": "approved", "last": "approved"}


def test_a_condition_without_a_value_is_not_met_and_a_warning_says_why(caplog: pytest.LogCaptureFixture):
    loop = loop_of("a", "b", exit_condition="session_state['nothing'] > 3", max_iterations=2)
    with caplog.at_level(logging.WARNING):
        assert [event.text for event in Talk(loop).say("go")] == ["a", "b"]
    assert "'again' continues" in caplog.text and "nothing" in caplog.text


@pytest.mark.parametrize("condition", ["state.get('a')", "session_state.__class__", "1 +", "open('x')"])
def test_a_condition_that_is_none_is_refused_when_the_loop_is_built(condition: str):
    with pytest.raises(ConfigurationError, match="cannot be used"):
        loop_of("a", exit_condition=condition)
