"""What Anthropic's messages answer, whole or in pieces, as LlmResponses.

Source: https://docs.anthropic.com/en/docs/build-with-claude/streaming.
"""

from typing import Any, cast

from adk_nb import types
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.openai_answers import parts_of
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.signatures import claude_signature

_REASONS = {
    "end_turn": types.FinishReason.STOP,
    "stop_sequence": types.FinishReason.STOP,
    "tool_use": types.FinishReason.STOP,
    "max_tokens": types.FinishReason.MAX_TOKENS,
    "model_context_window_exceeded": types.FinishReason.MAX_TOKENS,
    "refusal": types.FinishReason.SAFETY,
}


def _input_of(block: Any) -> dict[str, Any] | None:
    args: Any = getattr(block, "input", None)
    return cast(dict[str, Any], args) if isinstance(args, dict) else None


class MessageReader:
    """Adds up the events of one answer. Calls are told when the answer has ended as an answer should."""

    def __init__(self, model: str) -> None:
        self._stream = ResponseStream(model)
        self._block: Any = None
        self._fragments: list[str] = []
        """Of the block that is open: words, or JSON."""
        self._signature = ""
        self._usage: dict[str, int | None] = {}
        self._refusal_message: str | None = None
        """What the service says of a refusal."""
        self._malformed: str | None = None
        """What is wrong with a call."""
        self._reason: types.FinishReason | None = None

    def add(self, event: Any) -> LlmResponse | None:
        match event.type:
            case "message":
                self._add_whole(event)
            case "message_start":
                self._begin(event.message)
            case "content_block_start":
                return self._begin_block(event.content_block)
            case "content_block_delta":
                return self._add_delta(event.delta)
            case "content_block_stop":
                self._end_block()
            case "message_delta":
                self._end(event.delta, event.usage)
            case _:  # `ping`, `message_stop`, and what may come to be
                pass
        return None

    def _add_whole(self, message: Any) -> None:
        self._begin(message)
        for block in message.content:
            self._add_block(block, _input_of(block))
        self._end(message)

    def _begin(self, message: Any) -> None:
        """Keep what a message says beside its blocks."""
        self._stream.note(model_version=message.model or None)
        self._count(message.usage)

    def _end(self, message: Any, usage: Any = None) -> None:
        """Keep why it ended."""
        self._count(usage)
        if message.stop_reason:
            self._reason = _REASONS.get(message.stop_reason, types.FinishReason.OTHER)
        details = getattr(message, "stop_details", None)
        if explanation := getattr(details, "explanation", None):
            self._refusal_message = explanation

    def _add_block(self, block: Any, args: dict[str, Any] | None = None) -> None:
        """A block that is complete."""
        match block.type:
            case "text":
                part = types.Part(text=block.text)
            case "thinking":
                part = types.Part(
                    text=block.thinking, thought=True, thought_signature=claude_signature(block.signature)
                )
            case "redacted_thinking":
                part = types.Part(thought=True, thought_signature=claude_signature(block.data))
            case "tool_use":
                part = types.Part(function_call=types.FunctionCall(id=block.id, name=block.name, args=args or {}))
            case _:
                return
        self._stream.take([part])

    def whole(self) -> LlmResponse:
        """All of it.

        Raises:
            UnexpectedModelAnswer: The events ended before the answer did.
        """
        reason, error_message = self._reason, self._refusal_message
        if reason == types.FinishReason.STOP and self._malformed:
            reason, error_message = types.FinishReason.MALFORMED_FUNCTION_CALL, self._malformed
        self._stream.note(
            finish_reason=reason, error_message=error_message, usage_metadata=_usage_metadata(self._usage)
        )
        answer = self._stream.whole()
        if answer.content and answer.error_code:  # a call of a cut answer may be cut itself
            parts = [part for part in answer.parts if not part.function_call]
            answer.content = types.Content(role="model", parts=parts) if parts else None
        return answer

    def broken(self, reason: str) -> str:
        return self._stream.broken(reason)

    def _add_delta(self, delta: Any) -> LlmResponse | None:
        match delta.type:
            case "text_delta":
                return self._add_text(delta.text)
            case "thinking_delta":
                self._fragments.append(delta.thinking)
                part = types.Part(text=delta.thinking, thought=True)
                return LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
            case "signature_delta":
                self._signature += delta.signature
            case "input_json_delta":
                self._fragments.append(delta.partial_json)
            case _:
                pass
        return None

    def _add_text(self, text: str) -> LlmResponse | None:
        return self._stream.take([types.Part(text=text)])

    def _begin_block(self, block: Any) -> LlmResponse | None:
        self._block, self._fragments, self._signature = block, [], ""
        return self._add_text(block.text) if block.type == "text" else None

    def _end_block(self) -> None:
        """Its text was kept word by word; what else it is can be told now."""
        block, text = self._block, "".join(self._fragments)
        self._block = None
        match block and block.type:
            case "thinking":
                block.thinking, block.signature = block.thinking + text, block.signature + self._signature
                self._add_block(block)
            case "tool_use":
                calls, problem = parts_of([(block.id, block.name, text)])
                self._malformed = self._malformed or problem
                self._stream.take(calls)
            case "redacted_thinking":
                self._add_block(block)
            case _:
                pass

    def _count(self, usage: Any) -> None:
        """Counts are of the whole answer so far; what a later event does not tell, an earlier one has told."""
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            if (value := getattr(usage, name, None)) is not None:
                self._usage[name] = value
        details = getattr(usage, "output_tokens_details", None)
        if (thoughts := getattr(details, "thinking_tokens", None)) is not None:
            self._usage["thoughts"] = thoughts


def _usage_metadata(usage: dict[str, int | None]) -> types.GenerateContentResponseUsageMetadata:
    """Tokens. Anthropic counts what it read from its cache, and wrote to it, apart from the rest of the prompt."""
    cached, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    prompt = (usage.get("input_tokens") or 0) + (cached or 0) + (written or 0)
    answer, thoughts = usage.get("output_tokens") or 0, usage.get("thoughts")
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=prompt,
        candidates_token_count=answer - (thoughts or 0),
        thoughts_token_count=thoughts,
        cached_content_token_count=cached,
        total_token_count=prompt + answer,
    )
