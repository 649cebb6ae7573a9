"""Claude, called through the package anthropic: the client, and the assembly of answers."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, cast

from adk_nb import types
from adk_nb.models.adaptation import adapt_request, claude_signature
from adk_nb.models.anthropic_messages import SENT_AS, message_arguments, why_unsent
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.json_schemas import close_objects, output_schema
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.openai_chat import call_part
from adk_nb.models.pipeline import Payload
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.retrying import BUSY
from adk_nb.models.sdk_llm import HttpSdkLlm, close_after
from adk_nb.models.vendor_facts import ANTHROPIC

_REASONS = {
    "end_turn": types.FinishReason.STOP,
    "stop_sequence": types.FinishReason.STOP,
    "tool_use": types.FinishReason.STOP,
    "max_tokens": types.FinishReason.MAX_TOKENS,
    "model_context_window_exceeded": types.FinishReason.MAX_TOKENS,
    "refusal": types.FinishReason.SAFETY,
}


class MessageAssembler:
    """Assembles the events of one answer; its calls are in the complete answer only.

    Source: https://docs.anthropic.com/en/docs/build-with-claude/streaming.
    """

    def __init__(self, model: str) -> None:
        self._stream = ResponseStream(model)
        self._block: Any = None
        self._fragments: list[str] = []
        """Deltas of the open block: text, or JSON."""
        self._signature = ""
        self._usage: dict[str, int | None] = {}
        self._refusal_message: str | None = None
        """The service's explanation of a refusal."""
        self._reason: types.FinishReason | None = None

    def add(self, event: Any) -> LlmResponse | None:
        """Add an event, or a complete message; returns the part of it that can be shown already."""
        match event.type:
            case "message":
                self._begin(event)
                for block in event.content:
                    args: Any = getattr(block, "input", None)
                    self._add_block(block, cast(dict[str, Any], args) if isinstance(args, dict) else None)
                self._end(event)
            case "message_start":
                self._begin(event.message)
            case "content_block_start":
                self._block, self._fragments, self._signature = event.content_block, [], ""
                if self._block.type == "text":
                    return self._stream.add_parts([types.Part(text=self._block.text)])
            case "content_block_delta":
                return self._add_delta(event.delta)
            case "content_block_stop":
                # Its text was added delta by delta.
                block, text = self._block, "".join(self._fragments)
                self._block = None
                match block and block.type:
                    case "thinking":
                        # A streamed block begins empty; its text and its signature follow as deltas.
                        block.thinking, block.signature = block.thinking + text, block.signature + self._signature
                        self._add_block(block)
                    case "tool_use":
                        self._stream.add_parts([call_part(block.id, block.name, text)])
                    case "redacted_thinking":
                        self._add_block(block)
                    case _:
                        pass
            case "message_delta":
                self._end(event.delta, event.usage)
            case _:  # `ping`, `message_stop`; Anthropic may add event types, to be ignored
                pass
        return None

    def _begin(self, message: Any) -> None:
        """Read the model and the token counts of a message."""
        self._stream.set_fields(model_version=message.model or None)
        self._count(message.usage)

    def _end(self, message: Any, usage: Any = None) -> None:
        """Read the stop reason and the explanation of a refusal."""
        self._count(usage)
        if message.stop_reason:
            self._reason = _REASONS.get(message.stop_reason, types.FinishReason.OTHER)
        details = getattr(message, "stop_details", None)
        if explanation := getattr(details, "explanation", None):
            self._refusal_message = explanation

    def _add_block(self, block: Any, args: dict[str, Any] | None = None) -> None:
        """Add a complete block; blocks of unknown types are ignored."""
        match block.type:
            case "text":
                part = types.Part(text=block.text)
            case "thinking":
                part = types.Part(
                    text=block.thinking, thought=True, thought_signature=claude_signature(block.signature)
                )
            case "redacted_thinking":
                # Encrypted: it has no text, and goes back with the next request.
                part = types.Part(thought=True, thought_signature=claude_signature(block.data))
            case "tool_use":
                part = types.Part(function_call=types.FunctionCall(id=block.id, name=block.name, args=args or {}))
            case _:
                return
        self._stream.add_parts([part])

    def complete(self) -> LlmResponse:
        """The complete answer.

        Raises:
            UnexpectedModelAnswer: The events ended before the answer did.
        """
        self._stream.set_fields(
            finish_reason=self._reason,
            error_message=self._refusal_message,
            usage_metadata=_usage_metadata(self._usage),
        )
        answer = self._stream.complete()
        if answer.content and answer.error_code:  # after `max_tokens` the last call may be cut off
            parts = [part for part in answer.parts if not part.function_call]
            answer.content = types.Content(role="model", parts=parts) if parts else None
        return answer

    def counts(self) -> LlmResponse | None:
        """The token counts that came so far, as a partial response."""
        if self._usage:
            self._stream.set_fields(usage_metadata=_usage_metadata(self._usage))
        return self._stream.counts()

    def broken_message(self, reason: str) -> str:
        """The error message for an answer that broke off."""
        return self._stream.broken_message(reason)

    def _add_delta(self, delta: Any) -> LlmResponse | None:
        match delta.type:
            case "text_delta":
                return self._stream.add_parts([types.Part(text=delta.text)])
            case "thinking_delta":
                self._fragments.append(delta.thinking)
                part = types.Part(text=delta.thinking, thought=True)
                return LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
            case "signature_delta":
                # It must go back unchanged: Anthropic verifies it.
                self._signature += delta.signature
            case "input_json_delta":
                self._fragments.append(delta.partial_json)
            case _:
                pass
        return None

    def _count(self, usage: Any) -> None:
        """Update the token counts. Anthropic's are cumulative, and an event may lack some of them."""
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            if (value := getattr(usage, name, None)) is not None:
                self._usage[name] = value
        details = getattr(usage, "output_tokens_details", None)
        if (thoughts := getattr(details, "thinking_tokens", None)) is not None:
            self._usage["thoughts"] = thoughts


def _usage_metadata(usage: dict[str, int | None]) -> types.GenerateContentResponseUsageMetadata:
    """Convert token counts. Anthropic's `input_tokens` exclude those read from its cache and written to it."""
    cache_reads, cache_writes = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    # Gemini's prompt count includes cached tokens.
    prompt = (usage.get("input_tokens") or 0) + (cache_reads or 0) + (cache_writes or 0)
    answer, thoughts = usage.get("output_tokens") or 0, usage.get("thoughts")
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=prompt,
        candidates_token_count=answer - (thoughts or 0),
        thoughts_token_count=thoughts,
        cached_content_token_count=cache_reads,
        total_token_count=prompt + answer,
    )


_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status for the type of an error within a stream, which follows a 200.

Source: https://docs.anthropic.com/en/api/errors.
"""


class Claude(HttpSdkLlm):
    """A Claude model: `LlmAgent(name="guide", model="claude-sonnet-5")`.

    `thinking_config` turns thinking on; thoughts are sent back with Claude's signatures. With a ContextCacheConfig
    Anthropic caches the tools, the static instruction and the conversation.
    """

    model: str = ANTHROPIC.default_model
    max_tokens: int = 8192
    """Default for the agent's `max_output_tokens`, thoughts included; Anthropic requires a limit."""

    PACKAGE: ClassVar[str] = "anthropic"
    KEY_VARIABLES: ClassVar[tuple[str, ...]] = ANTHROPIC.key_variables
    KEY_PAGE: ClassVar[str] = ANTHROPIC.key_page
    SENT_AS: ClassVar[Mapping[str, tuple[str, ...]] | None] = SENT_AS
    TEMPORARY_STATUSES: ClassVar[tuple[int, ...]] = (*BUSY, 529)

    @classmethod
    def supported_models(cls) -> list[str]:
        """Names such as `claude-sonnet-5`."""
        return list(ANTHROPIC.patterns)

    def _client_class(self) -> Any:
        return self._package().AsyncAnthropic

    def why_unsent(self, setting: str, model: str) -> str:
        """Why a setting is not sent to `model`."""
        return why_unsent(setting, model) or super().why_unsent(setting, model)

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        """Arguments of `messages.create`; a schema with free keys, which Anthropic refuses, goes into the instruction.

        Source: https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations".
        """
        schema = output_schema(request.config)
        # Anthropic requires additionalProperties: false in every object.
        if schema is not None and close_objects(schema) is None:
            request, schema = adapt_request(request, LlmCapabilities(output_schema=False)), None
        arguments = message_arguments(
            request, model, max_tokens=self.max_tokens, parallel_calls=self.capabilities.parallel_calls
        )
        if schema is not None:
            output_format = {"type": "json_schema", "schema": self._package().transform_schema(schema)}
            arguments["output_config"] = arguments.get("output_config", {}) | {"format": output_format}
        return arguments

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        """Send the request; yield the events of a stream, or the message."""
        client, sdk = await self._client(), self._package().types
        answer = await self._post(
            client, "/v1/messages", payload, sdk.Message, sdk.RawMessageStreamEvent, stream=stream
        )
        if not stream:
            yield answer
            return
        async with aclosing(close_after(answer)) as events:
            async for event in events:
                yield event

    def assembler(self, payload: Payload, /, *, stream: bool) -> MessageAssembler:
        """Create an assembler for events."""
        return MessageAssembler(payload["model"])

    def _status(self, error: Any) -> int | None:
        status = super()._status(error)
        # A streamed answer starts with 200: the status of a later error is only in its event.
        if status != 200:
            return status
        try:
            return _STATUSES.get(error.body["error"]["type"])
        except (TypeError, LookupError):
            return None

    def address(self) -> str | None:
        """`base_url`, else ANTHROPIC_BASE_URL of the environment, as in Anthropic's own client."""
        return self.base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or None
