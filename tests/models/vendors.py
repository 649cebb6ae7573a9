"""The protocols of vendors' services, from their public references, for one set of tests about all adapters.

Answers are told in three words (a text, `Call`, `Thought`) and spelled as each service spells them. What is asked is
held against the types of the vendor's own package, key by key, and against the rules of turns that its service keeps.

OpenAI: https://platform.openai.com/docs/api-reference/chat and /chat-streaming.
Anthropic: https://docs.anthropic.com/en/api/messages and https://docs.anthropic.com/en/docs/build-with-claude/streaming.
Gemini: https://ai.google.dev/api/generate-content.
"""

import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply
from pydantic import TypeAdapter

from adk_nb import types
from adk_nb.models import BaseLlm, Claude, Gemini, LiteLlm, OpenAILlm
from tests.support.late import late
from tests.support.role_rules import check_anthropic_turns, check_gemini_turns, check_openai_turns

message_create_params = late("anthropic.types.message_create_params")
completion_create_params = late("openai.types.chat.completion_create_params")
KEY = "sk-a-key-that-must-not-be-shown-1"


@dataclass
class Call:
    name: str
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    id: str = "call_1"
    raw: str | None = None
    """The arguments as they are sent, when they are to be wrong."""

    @property
    def json(self) -> str:
        return json.dumps(self.args) if self.raw is None else self.raw


@dataclass
class Thought:
    text: str


Said = str | Call | Thought


@dataclass
class Vendor:
    name: str
    kind: Callable[..., BaseLlm]
    prefix: str
    """Of the address, after the server's."""
    whole: Callable[..., dict[str, Any]]
    events: Callable[..., list[bytes]]
    refusal: Callable[[str, str], dict[str, Any]]
    check: Callable[[dict[str, Any]], None]
    cut_off: str = "length"
    """How it says that an answer has reached its limit."""
    ended: bytes = b'"finish_reason": "tool_calls"'
    """Of a streamed answer with calls: where this is read it has ended."""
    begun: int = 5
    """How many events there are of an answer that has some words."""

    def model(self, server: GeminiServer, *, attempts: int = 1, **fields: Any) -> Any:
        patience = types.HttpRetryOptions(attempts=attempts, initial_delay=0.01, max_delay=0.02, jitter=0.01)
        value = {"model": f"{self.prefix}m-1", "base_url": server.url + self.path, "api_key": KEY}
        return self.kind(**value | {"retry_options": patience} | fields)

    @property
    def path(self) -> str:
        return "" if self.name in ("anthropic", "gemini") else "/v1"

    @property
    def calls_are_text(self) -> bool:
        """Whether arguments come as JSON in a text, which may be none."""
        return self.name != "gemini"

    def turns(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        return body["contents" if self.name == "gemini" else "messages"]

    def say(self, server: GeminiServer, *args: Said, finish: str = "", stream: bool = False, **kwargs: Any) -> None:
        """Answer the next request."""
        headers = {"Content-Type": "text/event-stream"} if stream else {}
        if self.name == "litellm":  # it keeps its connections for longer than a loop
            headers["Connection"] = "close"
        if stream:
            body = b"".join(self.events(args, finish))
            server.replies.append(Reply(body, headers=headers, **{"framing": "chunked"} | kwargs))
        else:
            server.replies.append(Reply(json.dumps(self.whole(args, finish)).encode(), headers=headers, **kwargs))

    def begin(self, server: GeminiServer, *args: Said) -> None:
        """Answer the next request with a stream that stops after some words and is left open."""
        self.say(server, *args, stream=True, then_wait=True)
        server.replies[-1].body = b"".join(self.events(args, "")[: self.begun])

    def refuse(self, server: GeminiServer, status: int, message: str, **kwargs: Any) -> None:
        headers = {"Connection": "close", **kwargs.pop("headers", {})}
        body = json.dumps(self.refusal(f"error_{status}", message)).encode()
        server.replies.append(Reply(body, status, headers=headers, **kwargs))


def _halves(text: str) -> Iterator[str]:
    middle = len(text) // 2
    yield from (piece for piece in (text[:middle], text[middle:]) if piece)


# ---- OpenAI


def _completion(replies: Iterable[Said], finish: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for reply in replies:
        if isinstance(reply, str):
            message["content"] = (message["content"] or "") + reply
        elif isinstance(reply, Thought):
            message["reasoning_content"] = reply.text
        else:
            function = {"name": reply.name, "arguments": reply.json}
            message.setdefault("tool_calls", []).append({"id": reply.id, "type": "function", "function": function})
    reason = finish or ("tool_calls" if "tool_calls" in message else "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1-2025",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": _OPENAI_USAGE,
    }


_OPENAI_USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 10,
    "total_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


def _chunks(replies: Iterable[Said], finish: str) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    calls = 0
    for reply in replies:
        if isinstance(reply, str):
            deltas += [{"content": piece} for piece in _halves(reply)]
        elif isinstance(reply, Thought):
            deltas += [{"reasoning_content": piece} for piece in _halves(reply.text)]
        else:
            started = {
                "index": calls,
                "id": reply.id,
                "type": "function",
                "function": {"name": reply.name, "arguments": ""},
            }
            deltas.append({"tool_calls": [started]})
            deltas += [
                {"tool_calls": [{"index": calls, "function": {"arguments": piece}}]} for piece in _halves(reply.json)
            ]
            calls += 1
    bodies = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    bodies.append(_chunk([{"index": 0, "delta": {}, "finish_reason": finish or ("tool_calls" if calls else "stop")}]))
    bodies.append(_chunk([]) | {"usage": _OPENAI_USAGE})
    return [b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies] + [b"data: [DONE]\n\n"]


def _chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    envelope = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1-2025"}
    return {**envelope, "choices": choices}


def check_openai(body: dict[str, Any]) -> None:
    """The types, and the rules of turns.

    `reasoning_content` is DeepSeek's word and not OpenAI's: a server that has said it wants it back.
    """
    messages = [
        {name: value for name, value in message.items() if name != "reasoning_content"} for message in body["messages"]
    ]
    _as_typed(_openai_types(bool(body.get("stream"))), body | {"messages": messages})
    check_openai_turns(body["messages"])


@cache
def _openai_types(stream: bool) -> TypeAdapter[Any]:
    params = completion_create_params
    return TypeAdapter(params.CompletionCreateParamsStreaming if stream else params.CompletionCreateParamsNonStreaming)


# ---- Anthropic


def _message(replies: Iterable[Said], finish: str) -> dict[str, Any]:
    blocks = [_block(reply) for reply in replies]
    return _begun() | {"content": blocks, "stop_reason": finish or _stopped(blocks), "usage": _ANTHROPIC_USAGE}


_ANTHROPIC_USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 8,
    "cache_creation_input_tokens": 2,
    "output_tokens": 10,
    "output_tokens_details": {"thinking_tokens": 4},
}


def _begun() -> dict[str, Any]:
    envelope = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1-2025", "content": []}
    return {**envelope, "stop_reason": None, "stop_sequence": None, "usage": _ANTHROPIC_USAGE | {"output_tokens": 1}}


def _block(item: Said) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, Thought):
        return {"type": "thinking", "thinking": item.text, "signature": "c2lnbmVk"}
    return {"type": "tool_use", "id": item.id, "name": item.name, "input": item.args}


def _stopped(blocks: list[dict[str, Any]]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def _message_events(replies: Iterable[Said], finish: str) -> list[bytes]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": _begun()}, {"type": "ping"}]
    replies = list(replies)
    for index, reply in enumerate(replies):
        events.append({"type": "content_block_start", "index": index, "content_block": _empty(reply)})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in _deltas(reply)]
        events.append({"type": "content_block_stop", "index": index})
    reason = finish or _stopped([_block(reply) for reply in replies])
    delta = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": _ANTHROPIC_USAGE})
    events.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def _empty(item: Said) -> dict[str, Any]:
    block = _block(item)
    return block | {name: type(block[name])() for name in ("text", "thinking", "signature", "input") if name in block}


def _deltas(item: Said) -> Iterator[dict[str, Any]]:
    if isinstance(item, str):
        yield from ({"type": "text_delta", "text": piece} for piece in _halves(item))
    elif isinstance(item, Thought):
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in _halves(item.text))
        yield {"type": "signature_delta", "signature": "c2lnbmVk"}
    else:
        yield {"type": "input_json_delta", "partial_json": ""}
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in _halves(item.json))


def check_anthropic(body: dict[str, Any]) -> None:
    """The types, and the rules of turns.

    Two settings are in the reference of the API, for its older models, and no longer in the package's types.
    """
    typed = {name: value for name, value in body.items() if name not in ("temperature", "top_p")}
    _as_typed(_anthropic_types(bool(body.get("stream"))), typed)
    check_anthropic_turns(body["messages"])
    assert body["max_tokens"] > 0


@cache
def _anthropic_types(stream: bool) -> TypeAdapter[Any]:
    params = message_create_params
    return TypeAdapter(params.MessageCreateParamsStreaming if stream else params.MessageCreateParamsNonStreaming)


# ---- Gemini


def _generated(replies: Iterable[Said], finish: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [_part(reply) for reply in replies]}
    return _candidate({"content": content, "finishReason": finish or "STOP"}) | {"usageMetadata": _GEMINI_USAGE}


_GEMINI_USAGE = {
    "promptTokenCount": 20,
    "cachedContentTokenCount": 8,
    "candidatesTokenCount": 6,
    "thoughtsTokenCount": 4,
    "totalTokenCount": 30,
}


def _candidate(candidate: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"index": 0} | candidate], "modelVersion": "m-1-2025"}


def _part(item: Said) -> dict[str, Any]:
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, Thought):
        return {"text": item.text, "thought": True}
    return {"functionCall": {"id": item.id, "name": item.name, "args": item.args}}


def _generated_pieces(replies: Iterable[Said], finish: str) -> list[bytes]:
    pieces: list[Said] = []
    for reply in replies:
        if isinstance(reply, Call):
            pieces.append(reply)
        elif isinstance(reply, Thought):
            pieces += [Thought(half) for half in _halves(reply.text)]
        else:
            pieces += _halves(reply)
    bodies = [_candidate({"content": {"role": "model", "parts": [_part(piece)]}}) for piece in pieces]
    bodies.append(_candidate({"finishReason": finish or "STOP"}) | {"usageMetadata": _GEMINI_USAGE})
    return [b"data: " + json.dumps(body).encode() + b"\r\n\r\n" for body in bodies]


def check_gemini(body: dict[str, Any]) -> None:
    """The types, and the rules of turns."""
    for name, value in body.items():
        _gemini_type(name).validate_python(value)
    check_gemini_turns(body["contents"])


_GEMINI_TYPES: dict[str, Any] = {
    "contents": list[types.Content],
    "systemInstruction": types.Content,
    "tools": list[types.Tool],
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
    "safetySettings": list[types.SafetySetting],
    "cachedContent": str,
    "labels": dict[str, str],
}
"""Of a request's body, whose keys these all are; google-genai's models take no key that they do not know."""


@cache
def _gemini_type(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_GEMINI_TYPES[name])


def _as_typed(adapter: TypeAdapter[Any], body: dict[str, Any]) -> None:
    """`body` is of the adapter's type, and no key of it is one that the type does not know."""
    assert _walked(adapter.validate_python(body)) == body


def _walked(value: Any) -> Any:
    """`value`, with the lists that pydantic only checks when they are walked through."""
    if isinstance(value, dict):
        return {key: _walked(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [_walked(item) for item in value]


OPENAI = Vendor(
    name="openai",
    kind=OpenAILlm,
    prefix="",
    whole=_completion,
    events=_chunks,
    refusal=lambda kind, message: {"error": {"type": kind, "message": message, "code": None, "param": None}},
    check=check_openai,
)
ANTHROPIC = Vendor(
    name="anthropic",
    kind=Claude,
    prefix="",
    whole=_message,
    events=_message_events,
    refusal=lambda kind, message: {"type": "error", "error": {"type": kind, "message": message}},
    check=check_anthropic,
    cut_off="max_tokens",
    ended=b'"stop_reason": "tool_use"',
)
GEMINI = Vendor(
    name="gemini",
    kind=Gemini,
    prefix="",
    whole=_generated,
    events=_generated_pieces,
    refusal=lambda kind, message: {"error": {"code": 400, "status": kind, "message": message, "details": []}},
    check=check_gemini,
    cut_off="MAX_TOKENS",
    ended=b'"finishReason": "STOP"',
    begun=2,
)
LITELLM = Vendor(
    name="litellm",
    kind=LiteLlm,
    prefix="openai/",
    whole=_completion,
    events=_chunks,
    refusal=OPENAI.refusal,
    check=check_openai,
)
needs_litellm = pytest.mark.skipif(
    importlib.util.find_spec("litellm") is None, reason="litellm is not installed; make litellm"
)
VENDORS = [
    pytest.param(OPENAI, id="openai"),
    pytest.param(ANTHROPIC, id="anthropic"),
    pytest.param(GEMINI, id="gemini"),
    pytest.param(LITELLM, id="litellm", marks=[needs_litellm, pytest.mark.filterwarnings("default")]),
]
