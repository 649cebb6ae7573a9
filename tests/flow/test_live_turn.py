"""Compositional calls: one turn of a conversation over the model's live door."""

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import ConfigurationError
from adk_nb.models import BaseLlm, ScriptedLlm, call
from tests.support.talk import Talk, content_summaries, guide, look, summaries

CFC = RunConfig(support_cfc=True, streaming_mode=StreamingMode.SSE)


def test_the_turn_goes_over_the_live_door_with_its_calls_and_ends_when_the_model_has_said_all():
    agent = guide("before", call("look"), ["do", "ne"], "after", tools=[look])
    talk = Talk(agent)
    talk.say("first")

    events = talk.say("second", config=CFC)

    assert [line for line in summaries(events) if "nothing" not in line[1]] == [
        ("guide", "calls look({})"),
        ("guide", "answers {'result': 'seen'}"),
        ("guide", "do..."),
        ("guide", "ne..."),
        ("guide", "done ."),
    ]
    assert talk.error is None
    assert isinstance(agent.model, ScriptedLlm)
    [connection] = agent.model.connections
    assert content_summaries([one for one in connection.sent if isinstance(one, types.Content)]) == [
        ("user", "first"),
        ("model", "before"),
        ("user", "second"),
        ("user", "answers {'result': 'seen'}"),
    ]
    assert connection.closed
    config = agent.model.requests[-1].live_connect_config
    assert config and config.response_modalities == [types.Modality.TEXT]
    assert summaries(talk.say("third")) == [("guide", "after .")]


def test_compositional_calls_are_for_streams_only():
    talk = Talk(guide("hello"))

    assert talk.say("hi", config=RunConfig(support_cfc=True)) == []
    assert isinstance(talk.error, ConfigurationError) and "StreamingMode.SSE" in str(talk.error)
    assert talk.stored().events == []


def test_a_model_without_a_live_door_says_so():
    class Quiet(ScriptedLlm):
        connect = BaseLlm.connect

    talk = Talk(LlmAgent(name="guide", model=Quiet("never")))

    [failed] = talk.say("hi", config=CFC)

    assert failed.error_code == "NotImplementedError"
    assert "live" in (failed.error_message or "")
