"""A service of one's own as a model: what it is sent, what it may answer, and the places that are filled on the way."""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent, LoopAgent, SequentialAgent
from adk_nb.errors import ConfigurationError
from adk_nb.models import HttpLlm, ScriptedLlm
from tests.support.http_service import Answer, Service
from tests.support.talk import Talk, summaries

SOON = types.HttpRetryOptions(attempts=3, initial_delay=0.001, jitter=0)
ONCE = types.HttpRetryOptions(attempts=1)


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as service:
        yield service


def weather(city: str) -> dict[str, str]:
    """Tells the weather."""
    return {"sky": f"sunny in {city}"}


def agent_of(service: Service, *, retry: types.HttpRetryOptions = SOON, **more: Any) -> LlmAgent:
    fields = {name: more.pop(name) for name in list(more) if name in HttpLlm.model_fields}
    model = HttpLlm(f"{service.url}/chat", retry_options=retry, **fields)
    return LlmAgent(name="guide", model=model, identity=False, **more)


def test_the_request_and_the_answers_are_those_of_the_contract(service: Service):
    service.say(
        "/chat",
        {"content": "I look.", "toolCalls": [{"function_name": "weather", "function_args": {"city": "Oslo"}}]},
        {"content": "Sunny.", "exitFlow": True},
    )
    talk = Talk(agent_of(service, instruction="Be brief.", tools=[weather], output_key="said"), {"unit": "C"})

    oslo, sky = {"city": "Oslo"}, {"sky": "sunny in Oslo"}
    assert summaries(talk.say("How is Oslo?")) == [
        ("guide", f"I look.; calls weather({oslo})"),
        ("guide", f"answers {sky}"),
        ("guide", "Sunny. => {'said': 'Sunny.'} ."),
    ]
    first, second = service.asked
    assert (first.method, first.headers["content-type"]) == ("POST", "application/json")
    assert first.headers["accept-encoding"] == "gzip, deflate"  # whatever else could be unpacked here
    assert first.body == {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How is Oslo?"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Tells the weather.",
                    "parameters": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}},
                        "required": ["city"],
                        "title": "weatherParams",
                    },
                },
            }
        ],
        "state": {"unit": "C"},
    }
    key = second.body["messages"][2]["content"][1]["function_call"]["id"]
    assert second.body["messages"][2:] == [
        {
            "role": "assistant",
            "content": [
                {"text": "I look."},
                {"function_call": {"id": key, "name": "weather", "args": {"city": "Oslo"}}},
            ],
        },
        {
            "role": "tool",
            "content": [
                {"function_response": {"id": key, "name": "weather", "response": {"sky": "sunny in Oslo"}}},
            ],
        },
    ]
    service.say("/chat", {"content": "Bye."})
    talk.say("Thanks")
    assert service.asked[2].body["messages"][4:] == [
        {"role": "assistant", "content": "Sunny."},
        {"role": "user", "content": "Thanks"},
    ]
    assert service.asked[2].body["state"] == {"unit": "C", "said": "Sunny."}


def test_without_an_instruction_there_is_no_system_message(service: Service):
    service.say("/chat", {"content": "Hello"})
    Talk(agent_of(service)).say("hi")
    assert service.asked[0].body == {"messages": [{"role": "user", "content": "hi"}], "tools": [], "state": {}}


@pytest.mark.parametrize(
    "answer",
    [
        {"content": "Hello", "toolCalls": None, "exitFlow": False, "hitlRequest": None, "more": [1]},
        {"content": [{"text": "Hel"}, {"text": "lo"}], "statusCode": 200},
        Answer(b"Hello", headers={"Content-Type": "text/plain; charset=utf-8"}),
        Answer(b'"Hello"'),
    ],
)
def test_an_answer_may_be_spelled_in_several_ways(service: Service, answer: Any):
    service.say("/chat", answer)
    [event] = Talk(agent_of(service)).say("hi")
    assert (event.text, event.error_code) == ("Hello", None)


def test_arguments_may_be_json_text_and_ids_are_kept_or_made(service: Service):
    calls = [
        {"function_name": "weather", "function_args": '{"city": "Oslo"}', "id": "one"},
        {"function_name": "weather", "function_args": {"city": "Rome"}, "call_id": "two"},
        {"function_name": "weather", "function_args": {"city": "Bonn"}},
    ]
    service.say("/chat", {"toolCalls": calls}, {"content": "Done."})
    asked, *_ = Talk(agent_of(service, tools=[weather])).say("hi")
    keys = [call.id for call in asked.get_function_calls()]
    assert [call.args for call in asked.get_function_calls()] == [{"city": one} for one in ("Oslo", "Rome", "Bonn")]
    assert keys[:2] == ["one", "two"] and keys[2]


@pytest.mark.parametrize("field", ["exitFlow", "escalate", "waitForUserInput"])
def test_after_a_signal_tools_still_run_and_the_service_is_not_asked_again(service: Service, field: str):
    service.say("/chat", {"toolCalls": [{"function_name": "weather", "function_args": {"city": "Oslo"}}], field: True})
    talk = Talk(agent_of(service, tools=[weather]))
    events = talk.say("hi")
    [call], [result] = events[0].get_function_calls(), events[1].get_function_responses()
    assert (call.args, result.response) == ({"city": "Oslo"}, {"sky": "sunny in Oslo"})
    assert (len(service.asked), talk.error) == (1, None)
    service.say("/chat", {"content": "Here."})
    assert talk.say("again")[-1].text == "Here."


def test_a_silent_signal_is_no_error(service: Service):
    service.say("/chat", {"content": None, "exitFlow": True}, {})
    talk = Talk(agent_of(service))
    [event] = talk.say("hi")
    assert (event.error_code, event.custom_metadata) == (None, {"exit_flow": True})
    [event] = talk.say("hi")
    assert (event.error_code or "").endswith("_NO_CONTENT")


def test_escalate_ends_the_loop_around_the_agent(service: Service):
    service.say("/chat", {"content": "one"}, {"content": "two", "escalate": True})
    after = LlmAgent(name="after", model=ScriptedLlm("after"))
    loop = LoopAgent(name="again", max_iterations=5, sub_agents=[agent_of(service)])
    events = Talk(SequentialAgent(name="line", sub_agents=[loop, after])).say("go")
    assert [event.text for event in events] == ["one", "two", "after"]
    assert events[1].actions.escalate is True


def test_get_sends_the_same_json_in_the_query(service: Service):
    service.say("/chat", {"content": "Hello"})
    Talk(agent_of(service, method="GET")).say("hi")
    [asked] = service.asked
    assert (asked.method, asked.body) == ("GET", None)
    assert list(asked.query) == ["payload"]
    assert json.loads(asked.query["payload"]) == {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [],
        "state": {},
    }


# ---- places that are filled when a request is sent


def test_templates_are_filled_when_the_request_is_sent(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CHAT_TOKEN", "env-token-1234")
    service.make("/v1/a%2Fb", lambda asked: {"content": "Hello"})
    model = HttpLlm(
        f"{service.url}/v1/{{{{state.room}}}}",
        headers={"Authorization": "Bearer {{$secret('CHAT_TOKEN')}}", "X-Team": "{{ state.team }}{{state.nobody}}"},
        body={"key": '{{$secret("own")}}', "deep": ["{{state.room}}"]},
        secrets={"own": "own-secret-5678"},
    )
    Talk(LlmAgent(name="guide", model=model), {"room": "a/b", "team": {"id": 7}}).say("hi")
    [asked] = service.asked
    assert asked.headers["authorization"] == "Bearer env-token-1234"
    assert asked.headers["x-team"] == '{"id": 7}'
    assert (asked.body["key"], asked.body["deep"]) == ("own-secret-5678", ["a/b"])
    assert "own-secret-5678" not in repr(model)
    with pytest.raises(ConfigurationError, match="cannot be pickled"):
        pickle.dumps(model)


def test_a_value_of_the_state_cannot_ask_for_a_secret(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CHAT_TOKEN", "env-token-1234")
    service.say("/chat", {"content": "Hello"})
    agent = agent_of(service, headers={"X-Said": "{{state.said}}"})
    Talk(agent, {"said": "{{$secret('CHAT_TOKEN')}}"}).say("hi")
    assert service.asked[0].headers["x-said"] == "{{$secret('CHAT_TOKEN')}}"


def test_a_secret_that_is_not_there_is_named_and_nothing_is_sent(service: Service):
    talk = Talk(agent_of(service, headers={"Authorization": "{{$secret('NO_SUCH_TOKEN')}}"}))
    [event] = talk.say("hi")
    assert event.error_code == "MissingKeyError" and "NO_SUCH_TOKEN" in (event.error_message or "")
    assert service.asked == []


def test_a_line_break_from_the_state_does_not_get_into_a_header(service: Service):
    talk = Talk(agent_of(service, headers={"X-Said": "{{state.said}}"}), {"said": "a\r\nX-Admin: yes"})
    [event] = talk.say("hi")
    assert event.error_code == "ConfigurationError" and service.asked == []


def test_a_secret_that_the_service_repeats_does_not_get_into_an_error(service: Service):
    service.make("/chat", lambda asked: Answer({"error": f"who is {asked.headers['authorization']}?"}, 401))
    talk = Talk(
        agent_of(service, headers={"Authorization": "Bearer {{$secret('t')}}"}, secrets={"t": "s3cr3t-of-mine"})
    )
    [event] = talk.say("hi")
    assert event.error_code == "HTTP_401"
    assert "s3cr3t-of-mine" not in event.model_dump_json() and "s3cr3t-of-mine" not in str(talk.error)


def test_a_secret_that_the_service_repeats_is_neither_shown_nor_kept(service: Service):
    service.make("/chat", lambda asked: {"content": f"You are {asked.headers['x-key']}."})
    talk = Talk(agent_of(service, headers={"X-Key": "{{$secret('t')}}"}, secrets={"t": "s3cr3t-of-mine"}))
    assert [event.text for event in talk.say("hi")] == ["You are [secret]."]
    assert "s3cr3t" not in talk.stored().model_dump_json()
