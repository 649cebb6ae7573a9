"""A service of one's own as a model: what it is sent, what it may answer, and what goes wrong on the way."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent, LoopAgent, SequentialAgent
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event
from adk_nb.models import HttpLlm, ScriptedLlm
from adk_nb.models.http_llm import MAX_BYTES
from tests.http_service import Answer, Asked, Service
from tests.talk import Talk, told

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

    assert told(talk.say("How is Oslo?")) == [
        ("guide", "I look.; calls weather({'city': 'Oslo'})"),
        ("guide", "answers {'sky': 'sunny in Oslo'}"),
        ("guide", "Sunny. => {'said': 'Sunny.'} ."),
    ]
    first, second = service.asked
    assert (first.method, first.headers["content-type"]) == ("POST", "application/json")
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
    assert [text for _, text in told(events)] == ["calls weather({'city': 'Oslo'})", "answers {'sky': 'sunny in Oslo'}"]
    assert (len(service.asked), talk.error) == (1, None)
    service.say("/chat", {"content": "Here."})
    assert talk.say("again")[-1].text == "Here."


def test_a_silent_signal_is_no_error(service: Service):
    service.say("/chat", {"content": None, "exitFlow": True}, {})
    talk = Talk(agent_of(service))
    [event] = talk.say("hi")
    assert (event.error_code, event.custom_metadata) == (None, {"exit_flow": True})
    assert [one.error_code for one in talk.say("hi")] == ["MODEL_RETURNED_NO_CONTENT"]


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
    assert asked.query == {"payload": '{"messages": [{"role": "user", "content": "hi"}], "tools": [], "state": {}}'}


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
    with pytest.raises(ConfigurationError, match="not pickled"):
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


# ---- what goes wrong


def failed(talk: Talk) -> Event:
    """The one event of a turn that failed; the next turn works."""
    [event] = talk.say("first")
    assert event.error_message and talk.error
    return event


def works_again(service: Service, talk: Talk, path: str = "/chat") -> None:
    service.say(path, {"content": "Here I am."})
    assert [event.text for event in talk.say("second")] == ["Here I am."]
    assert [one["content"] for one in service.asked[-1].body["messages"]] == ["first", "second"]


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refusal_is_not_asked_again(service: Service, status: int):
    service.say("/chat", Answer({"error": "no"}, status, {"Location": "/other"}))
    talk = Talk(agent_of(service))
    assert failed(talk).error_code == f"HTTP_{status}"
    assert [one.path for one in service.asked] == ["/chat"]  # nor is it gone where it was sent on to
    works_again(service, talk)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 599])
def test_a_busy_service_is_asked_again_and_then_given_up(service: Service, status: int):
    service.say("/chat", Answer(b"busy", status), {"content": "Hello"})
    talk = Talk(agent_of(service))
    assert [event.text for event in talk.say("hi")] == ["Hello"]
    service.say("/chat", *[Answer(b"busy", status)] * 3)
    [event] = talk.say("hi")
    assert (event.error_code, len(service.asked)) == (f"HTTP_{status}", 5)


def test_retry_after_is_waited_for_and_never_longer_than_all_attempts_may_take(service: Service):
    slow = types.HttpRetryOptions(attempts=3, initial_delay=60, jitter=0)
    service.say("/chat", Answer(b"", 429, {"Retry-After": "0.01"}), {"content": "Hello"})
    talk = Talk(agent_of(service, retry=slow, total_timeout=20.0))
    assert [event.text for event in talk.say("hi")] == ["Hello"]
    service.say("/chat", Answer(b"", 429, {"Retry-After": "3600"}))
    assert [event.error_code for event in talk.say("hi")] == ["HTTP_429"]


def test_a_service_that_is_gone_is_one_error_and_the_next_message_works(service: Service):
    with Service() as other:
        url = f"{other.url}/chat"
    talk = Talk(LlmAgent(name="guide", model=(model := HttpLlm(url, retry_options=SOON)), identity=False))
    event = failed(talk)
    assert event.error_code == "HTTP_CONNECTION" and "look whether it runs" in (event.error_message or "")
    model.url = f"{service.url}/chat"
    works_again(service, talk)


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_slow_service_is_left_after_its_time(service: Service, attempts: int):
    service.say("/chat", *[Answer(silent=True)] * attempts)
    retry = types.HttpRetryOptions(attempts=attempts, initial_delay=0.001, jitter=0)
    talk = Talk(agent_of(service, retry=retry, timeout=0.05))
    assert failed(talk).error_code == "HTTP_CONNECTION"
    assert len(service.asked) == attempts
    talk.runner.agent.model.timeout = 5
    works_again(service, talk)


def test_all_attempts_together_have_their_time(service: Service):
    service.say("/chat", Answer(silent=True))
    event = failed(Talk(agent_of(service, timeout=5.0, total_timeout=0.05)))
    assert event.error_code == "HTTP_CONNECTION" and "0.05 s" in (event.error_message or "")


def test_half_a_body_is_asked_for_again(service: Service):
    half = Answer({"content": "Hello, all of you"}, cut=12)
    service.say("/chat", half, {"content": "Hello"})
    talk = Talk(agent_of(service))
    assert [event.text for event in talk.say("hi")] == ["Hello"]
    service.say("/chat", half, half, half)
    assert [event.error_code for event in talk.say("hi")] == ["HTTP_CONNECTION"]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff\xfe\x00garbage",
        b"",
        b'{"content": ',
        b"[1, 2]",
        b"42",
        b"<html>It works!</html>",
        b'{"content": 5}',
        b'{"content": [{"text": 5}]}',
        b'{"exitFlow": "yes"}',
        b'{"toolCalls": {}}',
        b'{"toolCalls": [{"name": "weather"}]}',
        b'{"toolCalls": [{"function_name": "weather", "function_args": "{"}]}',
        b'{"toolCalls": [{"function_name": "weather", "function_args": [1]}]}',
        b'{"hitlRequest": {"question": "?"}}',
        b'{"hitlRequest": {"prompt": "?"}}',
        b"[" * 100_000,
        b'"' + b"x" * MAX_BYTES + b'"',
    ],
    ids=lambda said: said[:40],
)
def test_garbage_is_one_error_that_tells_what_is_wrong(service: Service, garbage: bytes):
    service.say("/chat", Answer(garbage))
    talk = Talk(agent_of(service, tools=[weather]))
    assert failed(talk).error_code == "INVALID_RESPONSE"
    assert len(service.asked) == 1
    works_again(service, talk)


def test_what_was_committed_before_a_failure_is_kept(service: Service):
    def noted(asked: Asked) -> Any:
        return {"toolCalls": [{"function_name": "note", "function_args": {}}]}

    def note(tool_context: Any) -> str:
        tool_context.state["noted"] = "yes"
        return "noted"

    service.make("/chat", noted)
    service.say("/chat", noted(Asked("", "", {}, {}, None)), Answer(b"", 500))
    talk = Talk(agent_of(service, retry=ONCE, tools=[note]))
    events = talk.say("first")
    assert [event.error_code for event in events] == [None, None, "HTTP_500"]
    assert talk.stored().state == {"noted": "yes"}
    service.say("/chat", {"content": "On we go."})
    assert [event.text for event in talk.say("second")] == ["On we go."]
    assert service.asked[-1].body["state"] == {"noted": "yes"}


@pytest.mark.parametrize(
    ("fields", "told_so"),
    [
        ({"url": "ftp://x/y"}, "starts with http"),
        ({}, "'url' is missing"),
        ({"url": "http://x", "method": "FETCH"}, "method"),
        ({"url": "http://x", "headers": {"A": "{{$secret(name)}}"}}, "no place that is filled"),
        ({"url": "http://x", "body": {"A": "{{$secrets('x')}}"}}, "no place that is filled"),
    ],
)
def test_a_model_put_together_wrongly_says_what_to_write(fields: dict[str, Any], told_so: str):
    with pytest.raises(ConfigurationError, match=told_so):
        HttpLlm(**fields)
