"""Whether a history is one that the services of models accept, by the strictest of their rules."""

import json
from collections.abc import Sequence
from typing import Any

from adk_nb import types
from adk_nb.models import LlmRequest, anthropic_messages, openai_chat
from adk_nb.models.google_requests import prepare_contents


def check_roles(contents: Sequence[types.Content]) -> None:
    """Fail for a history that one of them would refuse, as it is or as its adapter sends it.

    Source: Gemini: function calling, the responses to all calls of a turn follow in the next one,
    https://ai.google.dev/gemini-api/docs/function-calling. OpenAI: a message with `tool_calls` is followed by one to
    each `tool_call_id`, https://platform.openai.com/docs/guides/function-calling. Anthropic: `tool_result` blocks for
    all `tool_use` blocks come first in the next user message, and the first message is the user's,
    https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use.
    """
    assert contents and contents[0].role == "user", "it begins with the user"
    assert contents[-1].role == "user", "nothing is left to be answered"
    open_now: list[str | None] = []
    for at, content in enumerate(contents):
        parts = content.parts or []
        assert parts, f"content {at} has no parts"
        calls = [part.function_call.id for part in parts if part.function_call]
        answered = [part.function_response.id for part in parts if part.function_response]
        assert not (calls and answered), f"content {at} has calls and results"
        assert (
            content.role == ("model" if calls else "user") if calls or answered else content.role in ("user", "model")
        )
        first = [part.function_response is not None for part in parts[: len(answered)]]
        assert all(first), f"content {at} has words before results"
        assert answered == open_now, f"content {at} answers {answered}, and {open_now} are open"
        open_now = calls
        assert len(set(calls)) == len(calls), f"content {at} has two calls of one id"
    assert not open_now
    check_as_sent(contents)


def check_as_sent(contents: Sequence[types.Content]) -> None:
    """Fail for a history that an adapter would send as its service does not take it."""
    request = LlmRequest(contents=list(contents))
    check_openai_turns(list(openai_chat.chat_messages(request)))
    check_anthropic_turns(anthropic_messages.chat_messages(request))
    sent = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in prepare_contents(list(contents))]
    check_gemini_turns(sent)


def check_openai_turns(messages: list[dict[str, Any]]) -> None:
    """Behind a message with calls stands one result of each of them, and no other."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = [call["id"] for call in message.get("tool_calls", [])]
        assert len(set(waiting)) == len(waiting)
        assert all(0 < len(own_id) <= 40 for own_id in waiting)
        assert message.get("content") or waiting
        for call in message.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert not waiting
    assert messages[-1]["role"] in ("user", "tool")


def check_anthropic_turns(messages: list[dict[str, Any]]) -> None:
    """Turns change sides, the user's is first and last; a turn begins with the results of the last."""
    waiting: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        assert message["role"] == ("assistant" if number % 2 else "user")
        blocks = message["content"]
        assert blocks
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting)
        assert all(block["type"] == "tool_result" for block in blocks[: len(results)])
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not seen & set(waiting)
        assert len(set(waiting)) == len(waiting)
        seen |= set(waiting)
        assert all(own_id.replace("-", "").replace("_", "").isalnum() and own_id.isascii() for own_id in waiting)
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert not waiting
    assert len(messages) % 2


def check_gemini_turns(contents: list[dict[str, Any]]) -> None:
    """A turn with calls follows one of the user's, and is followed by one result of each of them."""
    waiting: list[str] = []
    before = "model"
    for content in contents:
        parts = content["parts"]
        assert parts
        results = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        assert results == waiting
        waiting = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        assert not waiting or (content["role"] == "model" and before == "user")
        assert content["role"] == "user" or not results
        before = content["role"]
        assert not any("thoughtSignature" in part and part["thoughtSignature"].startswith("Y2xhdWRl") for part in parts)
    assert not waiting
    assert contents[0]["role"] == contents[-1]["role"] == "user"
