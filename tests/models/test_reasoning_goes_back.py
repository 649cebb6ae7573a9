"""What a server of chat completions gave beside its thoughts and calls goes back to it with the next round.

Sources: https://api-docs.deepseek.com/guides/thinking_mode (`reasoning_content`, else HTTP 400),
https://ai.google.dev/gemini-api/docs/thought-signatures, "OpenAI compatibility" (`extra_content`, else HTTP 400), and
https://docs.litellm.ai/docs/reasoning_content (`thinking_blocks`, and ids with `__thought__`).
"""

import json
from typing import Any

import pytest
from gemini_server import USAGE, GeminiServer, Reply, answer
from vendors import ANTHROPIC, GEMINI, KEY, LITELLM, OPENAI, Call, Thought, check_openai, needs_litellm

from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.models import OpenAILlm
from tests.support.talk import Talk

SSE = RunConfig(streaming_mode=StreamingMode.SSE)
SIGNATURE = "A" * 60 + "+/=="


def weather(city: str) -> str:
    """The weather now."""
    return f"{city}: mild"


def talk(model: Any) -> Talk:
    return Talk(LlmAgent(name="guide", model=model, tools=[weather]))


def reply(server: GeminiServer, message: dict[str, Any], *, stream: bool = False) -> None:
    """Answer the next request with this message; as a stream in one piece."""
    finish = "tool_calls" if "tool_calls" in message else "stop"
    about: dict[str, Any] = {"id": "c", "created": 1, "model": "m-1"}
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": None} | message, "finish_reason": finish}
        body = {**about, "object": "chat.completion", "choices": [choice]}
        server.replies.append(Reply(json.dumps(body).encode(), headers={"Connection": "close"}))
        return
    calls = [{"index": index} | call for index, call in enumerate(message.get("tool_calls", ()))]
    deltas = [message | ({"tool_calls": calls} if calls else {}), {}]
    reasons = [None, finish]
    bodies = [
        {**about, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in zip(deltas, reasons, strict=True)
    ]
    data = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in bodies) + b"data: [DONE]\n\n"
    headers = {"Content-Type": "text/event-stream", "Connection": "close"}
    server.replies.append(Reply(data, headers=headers, framing="chunked"))


def call(id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}, **more}


def said_by_model(server: GeminiServer, index: int = -1) -> list[dict[str, Any]]:
    return [one for one in server.requests[index].body["messages"] if one["role"] == "assistant"]


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_content_goes_back_for_every_message_that_tools_were_called_for(server: GeminiServer, stream: bool):
    chat = talk(OPENAI.model(server))
    for said in (
        [Thought("I had better look."), Call("weather", {"city": "Oslo"})],
        [Call("weather", {"city": "Rome"}, id="call_2")],
        [Thought("Mild, then."), "It is mild."],
        [Thought("They are polite."), "You are welcome."],
        ["Bye."],
    ):
        OPENAI.say(server, *said, stream=stream)

    for words in ("How is Oslo?", "Thanks!", "Bye!"):
        chat.say(words, config=SSE if stream else None)
        assert chat.error is None

    assert [one["reasoning_content"] for one in said_by_model(server, 1)] == ["I had better look."]
    last = [one.pop("reasoning_content", None) for one in said_by_model(server)]
    assert last == ["I had better look.", "", "Mild, then.", None]
    check_openai(server.requests[-1].body)


def test_reasoning_goes_back_to_no_other_server(server: GeminiServer):
    chat = talk(OPENAI.model(server))
    OPENAI.say(server, Thought("I had better look."), Call("weather", {"city": "Oslo"}))
    OPENAI.say(server, "It is mild.")
    chat.say()
    with GeminiServer() as other:
        OPENAI.say(other, "Fine.")
        chat.runner.agent.model = OPENAI.model(other)  # type: ignore[union-attr]
        chat.say("Thanks!")
        assert "reasoning_content" not in json.dumps(other.requests[0].body)
        check_openai(other.requests[0].body)


@pytest.mark.parametrize("stream", [False, True])
def test_the_signature_of_a_call_from_gemini_s_openai_door_goes_back(server: GeminiServer, stream: bool):
    extra = {"google": {"thought_signature": SIGNATURE}}
    chat = talk(OPENAI.model(server, model="gemini-3-pro"))
    reply(server, {"tool_calls": [call(extra_content=extra), call("call_2")]}, stream=stream)
    reply(server, {"content": "It is mild."}, stream=stream)

    chat.say(config=SSE if stream else None)

    assert chat.error is None
    [message] = said_by_model(server)
    assert [one.get("extra_content") for one in message["tool_calls"]] == [extra, None]
    for one in message["tool_calls"]:
        one.pop("extra_content", None)
    check_openai(server.requests[-1].body)


@pytest.mark.parametrize("stream", [False, True])
def test_an_id_with_a_signature_in_it_goes_back_uncut(server: GeminiServer, stream: bool):
    chat = talk(OPENAI.model(server))
    reply(server, {"tool_calls": [call(f"call_1__thought__{SIGNATURE}"), call("call_2")]}, stream=stream)
    reply(server, {"content": "It is mild."}, stream=stream)

    events = chat.say(config=SSE if stream else None)

    [message] = said_by_model(server)
    ids = [one["id"] for one in message["tool_calls"]]
    assert ids[0].endswith(f"__thought__{SIGNATURE}") and "__thought__" not in ids[1]
    results = [one for one in server.requests[-1].body["messages"] if one["role"] == "tool"]
    assert [one["tool_call_id"] for one in results] == ids
    assert all("__thought__" not in (one.id or "") for event in events for one in event.get_function_calls())


def test_what_another_server_signed_is_sent_to_neither_gemini_nor_claude(server: GeminiServer):
    extra = {"google": {"thought_signature": SIGNATURE}}
    chat = talk(OPENAI.model(server))
    reply(server, {"reasoning_content": "I look.", "tool_calls": [call(extra_content=extra)]})
    reply(server, {"content": "It is mild."})
    chat.say()

    with GeminiServer() as gemini, GeminiServer() as anthropic:
        gemini.say(answer("Fine.", finish="STOP"))
        chat.runner.agent.model = GEMINI.model(gemini)  # type: ignore[union-attr]
        chat.say("Thanks!")
        ANTHROPIC.say(anthropic, "Fine.")
        chat.runner.agent.model = ANTHROPIC.model(anthropic)  # type: ignore[union-attr]
        chat.say("Thanks!")

        assert chat.error is None
        GEMINI.check(gemini.requests[0].body)
        ANTHROPIC.check(anthropic.requests[0].body)
        for body in (gemini.requests[0].body, anthropic.requests[0].body):
            assert "I look." not in json.dumps(body) and "ignature" not in json.dumps(body)
            assert "weather" in json.dumps(body)


def test_a_server_at_an_address_gets_back_what_it_gave(server: GeminiServer):
    chat = talk(OpenAILlm(model=f"{server.url}/v1#deepseek", api_key=KEY))
    reply(server, {"reasoning_content": "I look.", "tool_calls": [call()]})
    reply(server, {"content": "It is mild."})

    chat.say()

    assert said_by_model(server)[0]["reasoning_content"] == "I look."


@needs_litellm
@pytest.mark.filterwarnings("default")
class TestLiteLlm:
    def test_thinking_blocks_go_back(self, server: GeminiServer):
        """litellm asks a Claude at this address, in Anthropic's words."""
        model = LITELLM.model(server, model="anthropic/claude-opus-4-6", base_url=server.url)
        chat = talk(model)
        ANTHROPIC.say(server, Thought("I had better look."), Call("weather", {"city": "Oslo"}))
        ANTHROPIC.say(server, "It is mild.")

        chat.say()

        assert chat.error is None
        [message] = [one for one in server.requests[-1].body["messages"] if one["role"] == "assistant"]
        assert message["content"][0] == {
            "type": "thinking",
            "thinking": "I had better look.",
            "signature": "c2lnbmVk",
        }
        assert message["content"][1]["type"] == "tool_use"

    def test_thinking_blocks_of_a_stream_go_back(self, server: GeminiServer):
        model = LITELLM.model(server, model="anthropic/claude-opus-4-6", base_url=server.url)
        chat = talk(model)
        ANTHROPIC.say(server, Thought("I had better look."), Call("weather", {"city": "Oslo"}), stream=True)
        ANTHROPIC.say(server, "It is mild.", stream=True)

        chat.say(config=SSE)

        assert chat.error is None
        [message] = [one for one in server.requests[-1].body["messages"] if one["role"] == "assistant"]
        thought = message["content"][0]
        assert (thought["thinking"], thought["signature"]) == ("I had better look.", "c2lnbmVk")

    def test_gemini_s_signature_goes_back(self, server: GeminiServer):
        """litellm asks a Gemini at this address, in Google's words, and puts the signature into the call's id."""
        model = LITELLM.model(server, model="gemini/gemini-3-pro-preview", base_url=server.url)
        chat = talk(model)
        signed = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": SIGNATURE}
        server.say(answer(signed, finish="STOP", usageMetadata=USAGE), headers={"Connection": "close"})
        server.say(answer("It is mild.", finish="STOP", usageMetadata=USAGE), headers={"Connection": "close"})

        chat.say()

        assert chat.error is None
        parts = [part for one in server.requests[-1].body["contents"] for part in one["parts"]]
        calls = [part for part in parts if "functionCall" in part or "function_call" in part]
        assert [part.get("thoughtSignature") for part in calls] == [SIGNATURE]
