"""Claude beyond what all adapters keep: signed thoughts, what is kept from call to call, and its settings."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply
from pydantic import BaseModel, Field
from vendors import ANTHROPIC, Call, Thought, check_anthropic

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import MissingKeyError, ModelHTTPError
from adk_nb.models import LLMRegistry, LlmRequest, LlmResponse
from adk_nb.models.cache_metadata import ContextCacheConfig
from tests.support.talk import Talk


def ask(model: Any, request: LlmRequest | None = None, *, stream: bool = False, **config: Any) -> list[LlmResponse]:
    asked = request or LlmRequest(contents=[types.UserContent("Go")], config=types.GenerateContentConfig(**config))

    async def collect() -> list[LlmResponse]:
        async with aclosing(model.generate_content_async(asked, stream=stream)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())


def look() -> str:
    """Looks."""
    return "seen"


@pytest.mark.parametrize("stream", [False, True])
def test_signed_thoughts_go_back_as_they_came_before_the_call_they_led_to(server: GeminiServer, stream: bool):
    ANTHROPIC.say(server, Thought("I had better look."), "Well,", Call("look"), stream=stream, framing="close")
    ANTHROPIC.say(server, "Seen.", stream=stream, framing="close")
    talk = Talk(LlmAgent(name="guide", model=ANTHROPIC.model(server), tools=[look]))

    talk.say("Look.", config=RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE))

    assert talk.error is None
    body = server.requests[1].body
    check_anthropic(body)
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "I had better look.", "signature": "c2lnbmVk"},
        {"type": "text", "text": "Well,"},
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {}},
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_that_are_not_shown_go_back_too(server: GeminiServer, stream: bool):
    hidden = {"type": "redacted_thinking", "data": "RW1wdHk="}
    blank = {"type": "thinking", "thinking": "", "signature": "Ymxhbms="}
    if stream:
        events = ANTHROPIC.events(["Seen."], "")
        blocks = [hidden, blank | {"signature": ""}]
        more = [
            {"type": "content_block_start", "index": 5, "content_block": blocks[0]},
            {"type": "content_block_stop", "index": 5},
            {"type": "content_block_start", "index": 6, "content_block": blocks[1]},
            {"type": "content_block_delta", "index": 6, "delta": {"type": "signature_delta", "signature": "Ymxhbms="}},
            {"type": "content_block_stop", "index": 6},
        ]
        events[2:2] = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in more]
        headers = {"Content-Type": "text/event-stream"}
        server.replies.append(Reply(b"".join(events), headers=headers, framing="chunked"))
    else:
        message = ANTHROPIC.whole(["Seen."], "")
        message["content"][:0] = [hidden, blank]
        server.replies.append(Reply(json.dumps(message).encode()))
    said = ask(ANTHROPIC.model(server), stream=stream)[-1].content
    assert said
    ANTHROPIC.say(server, "Fine.")

    ask(ANTHROPIC.model(server), LlmRequest(contents=[types.UserContent("Go"), said, types.UserContent("And?")]))

    body = server.requests[1].body
    check_anthropic(body)
    assert body["messages"][1]["content"] == [hidden, blank, {"type": "text", "text": "Seen."}]


def test_thoughts_that_claude_has_not_signed_are_not_sent(server: GeminiServer):
    ANTHROPIC.say(server, "Fine.")
    thoughts = [
        types.Part(text="Hm.", thought=True),
        types.Part(text="Hm.", thought=True, thought_signature=b"\x01\xfe"),
        types.Part(text="Hm.", thought=True, thought_signature=b"of another"),
    ]
    said = types.Content(role="model", parts=[*thoughts, types.Part(text="Seen.")])

    ask(ANTHROPIC.model(server), LlmRequest(contents=[types.UserContent("Go"), said, types.UserContent("And?")]))

    assert server.requests[0].body["messages"][1]["content"] == [{"type": "text", "text": "Seen."}]


def cached(config: ContextCacheConfig, tokens: int | None = None) -> LlmRequest:
    request = LlmRequest(
        contents=[types.UserContent("Go")],
        config=types.GenerateContentConfig(
            system_instruction="Be kind.\n\nToday is Monday.",
            tools=[types.Tool(function_declarations=[types.FunctionDeclaration(name=name) for name in ("a", "b")])],
        ),
    )
    return request.model_copy(
        update={"static_instruction": "Be kind.", "cache_config": config, "cacheable_contents_token_count": tokens}
    )


@pytest.mark.parametrize(
    ("seconds", "mark"), [(1800, {"type": "ephemeral"}), (7200, {"type": "ephemeral", "ttl": "1h"})]
)
def test_what_stays_the_same_is_marked_to_be_kept(server: GeminiServer, seconds: int, mark: dict[str, str]):
    ANTHROPIC.say(server, "Fine.")

    ask(ANTHROPIC.model(server), cached(ContextCacheConfig(ttl_seconds=seconds)))

    body = server.requests[0].body
    check_anthropic(body)
    assert body["system"] == [
        {"type": "text", "text": "Be kind.", "cache_control": mark},
        {"type": "text", "text": "Today is Monday."},
    ]
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, mark]
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark


def test_a_prompt_that_is_too_short_to_be_kept_is_not_marked(server: GeminiServer):
    for _ in range(2):
        ANTHROPIC.say(server, "Fine.")

    ask(ANTHROPIC.model(server), cached(ContextCacheConfig(min_tokens=5000), tokens=900))
    ask(ANTHROPIC.model(server), cached(ContextCacheConfig(min_tokens=5000), tokens=9000))

    assert ["cache_control" in str(asked.body) for asked in server.requests] == [False, True]


@pytest.mark.parametrize(
    ("thinking", "asked"),
    [
        ({"thinking_budget": 2048}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ({"thinking_budget": 0}, {"thinking": {"type": "disabled"}}),
        ({"thinking_budget": -1}, {"thinking": {"type": "adaptive", "display": "summarized"}}),
        (
            {"thinking_level": "HIGH"},
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
        ),
    ],
)
def test_thinking_is_asked_for_in_claude_s_words(server: GeminiServer, thinking: dict[str, Any], asked: dict[str, Any]):
    ANTHROPIC.say(server, "Fine.")

    ask(ANTHROPIC.model(server), thinking_config=types.ThinkingConfig(**thinking))

    check_anthropic(server.requests[0].body)
    assert server.requests[0].body.items() >= asked.items()


class Forecast(BaseModel):
    city: str
    degrees: int = Field(default=8, ge=-90)


def test_a_schema_is_kept_by_the_service_or_told_in_words(server: GeminiServer):
    for _ in range(2):
        ANTHROPIC.say(server, "{}")

    ask(ANTHROPIC.model(server), response_schema=Forecast)
    ask(ANTHROPIC.model(server), response_schema=dict[str, int])

    kept, told = (asked.body for asked in server.requests)
    check_anthropic(kept)
    check_anthropic(told)
    assert kept["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert "output_config" not in told
    assert "additionalProperties" in told["system"][0]["text"]


def test_a_result_with_an_image_shows_it_and_a_failure_says_so(server: GeminiServer):
    ANTHROPIC.say(server, "Fine.")
    blob = types.FunctionResponseBlob(data=b"\x89PNG", mime_type="image/png")
    results = [
        types.FunctionResponse(
            id="a", name="look", response={"result": "a cat"}, parts=[types.FunctionResponsePart(inline_data=blob)]
        ),
        types.FunctionResponse(id="b", name="look", response={"error": "too dark"}),
    ]
    calls = [types.Part(function_call=types.FunctionCall(id=one.id, name="look", args={})) for one in results]
    contents = [
        types.UserContent("Go"),
        types.Content(role="model", parts=calls),
        types.Content(role="user", parts=[types.Part(function_response=one) for one in results]),
    ]

    ask(ANTHROPIC.model(server), LlmRequest(contents=contents))

    body = server.requests[0].body
    check_anthropic(body)
    shown, failed = body["messages"][2]["content"]
    assert [block["type"] for block in shown["content"]] == ["text", "image"]
    assert ("is_error" in shown, failed["is_error"]) == (False, True)


def test_a_refusal_by_the_model_says_why(server: GeminiServer):
    message = ANTHROPIC.whole([], "refusal") | {
        "stop_details": {"type": "refusal", "category": "bio", "explanation": "That would harm."}
    }
    server.replies.append(Reply(json.dumps(message).encode()))

    (whole,) = ask(ANTHROPIC.model(server))

    assert (whole.error_code, whole.error_message) == ("SAFETY", "That would harm.")


def test_an_overloaded_service_that_says_so_within_the_stream_is_asked_again(server: GeminiServer):
    told = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
    server.replies.append(Reply(told, headers={"Content-Type": "text/event-stream"}, framing="chunked"))
    ANTHROPIC.say(server, "Fine.", stream=True)

    assert ask(ANTHROPIC.model(server, attempts=2), stream=True)[-1].text == "Fine."

    server.replies.append(Reply(told, headers={"Content-Type": "text/event-stream"}, framing="chunked"))
    with pytest.raises(ModelHTTPError, match="HTTP 529: overloaded_error: Overloaded"):
        ask(ANTHROPIC.model(server), stream=True)


def test_without_a_key_anthropic_is_not_called(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)

    with pytest.raises(MissingKeyError, match=r"'claude-haiku-4-5' .*ANTHROPIC_API_KEY"):
        ask(LLMRegistry.new_llm("anthropic:claude-haiku-4-5"))
