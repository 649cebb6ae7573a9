"""What OpenAI's chat completions answer, whole or in pieces, as LlmResponses."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import UnexpectedModelAnswer
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.signatures import chat_signature
from adk_nb.redaction import hidden

_REASONS = {
    "stop": types.FinishReason.STOP,
    "tool_calls": types.FinishReason.STOP,
    "function_call": types.FinishReason.STOP,
    "eos": types.FinishReason.STOP,
    "length": types.FinishReason.MAX_TOKENS,
    "content_filter": types.FinishReason.SAFETY,
}
_THOUGHT_FIELDS = ("reasoning_content", "reasoning")
"""Where servers of open models put what the model thought; OpenAI's own does not tell it."""


_SIGNED_ID = "__thought__"
"""In an id of litellm's, before the signature that Gemini gave the call. Source: litellm's
`litellm_core_utils/prompt_templates/factory.py`, THOUGHT_SIGNATURE_SEPARATOR."""


async def as_chunks(stream: Any, model: str, read: Callable[..., Any]) -> Any:
    """`stream`, openai's; of a server that does not stream the one answer that it gave.

    Args:
        stream: Not yet begun.
        model: Named in errors.
        read: From the fields of a whole answer to what openai makes of them.

    Raises:
        UnexpectedModelAnswer: What came is neither.
    """
    kind = stream.response.headers.get("content-type", "")
    if "json" not in kind and "html" not in kind:
        return stream
    body = await stream.response.aread()
    if body.lstrip().startswith((b"data:", b"event:", b":")):  # a stream by another name
        return stream
    try:
        answer: Any = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise _no_answer(model, f"{kind}: {body[:4_000].decode('utf-8', 'replace')!r}")
    return _single_chunk(check(read(**cast(dict[str, Any], answer)), model))


async def _single_chunk(chunk: Any) -> AsyncGenerator[Any, None]:
    yield chunk


def check(completion: Any, model: str) -> Any:
    """`completion`. Raises UnexpectedModelAnswer if there is no answer in it."""
    if error := getattr(completion, "error", None):  # of gateways, with HTTP 200
        raise UnexpectedModelAnswer(
            f"the service of model {model!r} gave no answer; it said: {hidden(str(error))[:500]}"
        )
    if not isinstance(getattr(completion, "choices", None), list):
        answer = completion.to_json(indent=None, warnings=False) if hasattr(completion, "to_json") else completion
        raise _no_answer(model, repr(answer))
    return completion


def _no_answer(model: str, answer: str) -> UnexpectedModelAnswer:
    return UnexpectedModelAnswer(
        f"what came from the service of model {model!r} is no answer of its API, but {hidden(answer)[:200]}; "
        "look at its address"
    )


class ChatReader:
    """Adds up the chunks of one streamed answer. A call is told when the answer has ended as an answer should.

    What has to go back to `server` with the next question is kept as the signatures of thoughts and calls.
    """

    def __init__(self, model: str, server: str) -> None:
        self._stream = ResponseStream(model)
        self._server = server
        self._has_reasoning_content = False
        """It tells thoughts as `reasoning_content`."""
        self._blocks: list[dict[str, Any]] = []
        """litellm's `thinking_blocks`, the pieces of each joined."""
        self._calls: list[_Call] = []
        self._reason: types.FinishReason | None = None

    def add(self, chunk: Any) -> LlmResponse | None:
        self.add_metadata(chunk)
        for choice in chunk.choices or ():
            if not choice.index and (message := getattr(choice, "delta", None)):
                return self.take(message, choice.finish_reason)
            if message := getattr(choice, "message", None):  # a whole answer
                return self.take(message, choice.finish_reason or "stop")
        return None

    def take(self, message: Any, finish_reason: str | None) -> LlmResponse | None:
        """Keep a message, or what is new in it; returns the words that came with it."""
        if finish_reason:
            self._reason = _REASONS.get(finish_reason, types.FinishReason.OTHER)
        for call in message.tool_calls or ():
            self._add_call(call)
        thought = next((text for name in _THOUGHT_FIELDS if (text := getattr(message, name, None))), None)
        self._has_reasoning_content = self._has_reasoning_content or bool(getattr(message, _THOUGHT_FIELDS[0], None))
        for block in getattr(message, "thinking_blocks", None) or ():
            self._add_thinking_block(dict(block))
        parts = [types.Part(text=thought, thought=True)] if isinstance(thought, str) else []
        parts += [types.Part(text=text) for text in (message.content, getattr(message, "refusal", None)) if text]
        return self._stream.take(parts)

    def add_metadata(self, chunk: Any) -> None:
        """Keep what it tells beside the answer."""
        usage = getattr(chunk, "usage", None)
        self._stream.note(model_version=chunk.model or None, usage_metadata=usage and _usage(usage))

    def whole(self) -> LlmResponse:
        """All of it.

        Raises:
            UnexpectedModelAnswer: The chunks ended before the answer did.
        """
        reason, parts, problem = self._reason, list[types.Part](), None
        if reason == types.FinishReason.STOP:
            parts, problem = parts_of(call.told() for call in self._calls)
            for part, call in zip(parts, self._calls, strict=False):
                part.thought_signature = chat_signature(self._server, call.fields)
        if problem:
            reason = types.FinishReason.MALFORMED_FUNCTION_CALL
        self._stream.take(parts)
        self._stream.note(finish_reason=reason, error_message=problem)
        return self._with_signature(self._stream.whole())

    def broken(self, reason: str) -> str:
        return self._stream.broken(reason)

    def _with_signature(self, answer: LlmResponse) -> LlmResponse:
        """`answer`, its first thought with what belongs to the whole message."""
        fields: dict[str, Any] = {_THOUGHT_FIELDS[0]: True} if self._has_reasoning_content else {}
        if self._blocks:
            fields["thinking_blocks"] = self._blocks
        if not fields:
            return answer
        answer.content = answer.content or types.Content(role="model", parts=[])
        thought = next((part for part in answer.parts if part.thought), None)
        if thought is None:
            thought = types.Part(text="", thought=True)
            answer.content.parts = [thought, *answer.parts]
        thought.thought_signature = chat_signature(self._server, fields)
        return answer

    def _add_thinking_block(self, block: dict[str, Any]) -> None:
        """A thought of Claude's, or the next piece of one: its text comes first, its signature at the end."""
        last = self._blocks[-1] if self._blocks else None
        if last is None or "thinking" not in last or "thinking" not in block or last.get("signature"):
            self._blocks.append(block)
            return
        last["thinking"] = (last["thinking"] or "") + (block["thinking"] or "")
        last["signature"] = block.get("signature")

    def _add_call(self, fragment: Any) -> None:
        """A call, or the next fragment of one. Some servers number all calls 0, and give each an id of its own."""
        index, function = getattr(fragment, "index", None), fragment.function
        current = next((call for call in reversed(self._calls) if index is None or call.index == index), None)
        own_id = fragment.id and current and current.id and fragment.id != current.id
        if current is None or (own_id and function and function.name) or (index is None and fragment.id):
            current = _Call(index)
            self._calls.append(current)
        current.id = fragment.id or current.id
        if extra := getattr(fragment, "extra_content", None):
            current.extra |= extra
        if function:
            current.name = current.name or function.name or ""
            current.arguments.append(function.arguments or "")


class _Call:
    """A call whose arguments come in fragments of JSON."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id: str | None = None
        self.name = ""
        self.arguments: list[str] = []
        self.extra: dict[str, Any] = {}
        """`extra_content`, where Gemini's OpenAI-compatible service puts the signature of a call. Source:
        https://ai.google.dev/gemini-api/docs/thought-signatures, "OpenAI compatibility"."""

    def told(self) -> tuple[str | None, str, str]:
        return (self.id or "").partition(_SIGNED_ID)[0] or None, self.name, "".join(self.arguments)

    @property
    def fields(self) -> dict[str, Any]:
        """What goes back beside the call: its extra content, and the rest of its id."""
        _, mark, signature = (self.id or "").partition(_SIGNED_ID)
        return ({"extra_content": self.extra} if self.extra else {}) | ({"id_end": mark + signature} if mark else {})


def parts_of(calls: Iterable[tuple[str | None, str, str]]) -> tuple[list[types.Part], str | None]:
    """Calls, each an id, a name and JSON, as parts; or none of them, and what is wrong with one."""
    parts: list[types.Part] = []
    for own_id, name, arguments in calls:
        try:
            args: Any = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            args = None
        if not name or not isinstance(args, dict):
            description = (
                f"{arguments[:200]!r}, which are no JSON object" if name else f"{arguments[:200]!r} and no name"
            )
            return [], f"the model called the tool {name!r} with the arguments {description}; ask again"
        call = types.FunctionCall(id=own_id or None, name=name, args=cast(dict[str, Any], args))
        parts.append(types.Part(function_call=call))
    return parts, None


def _usage(usage: Any) -> types.GenerateContentResponseUsageMetadata:
    """Tokens. OpenAI counts thoughts among those of the answer."""
    thoughts = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    answer = usage.completion_tokens
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=usage.prompt_tokens,
        candidates_token_count=answer - (thoughts or 0) if answer is not None else None,
        thoughts_token_count=thoughts,
        cached_content_token_count=cached,
        total_token_count=usage.total_tokens,
    )
