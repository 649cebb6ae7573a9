"""Claude, asked through anthropic."""

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar

from adk_nb.models.adaptation import adapt_request
from adk_nb.models.anthropic_answers import MessageReader
from adk_nb.models.anthropic_messages import message_arguments
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.json_schemas import close_objects, output_schema
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.pipeline import Payload
from adk_nb.models.retrying import BUSY
from adk_nb.models.sdk_llm import HttpSdkLlm, closing
from adk_nb.models.vendor_facts import ANTHROPIC

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
"""Of an error that comes within a stream, after a 200. Source: https://docs.anthropic.com/en/api/errors."""


class Claude(HttpSdkLlm):
    """A Claude model of Anthropic's: `LlmAgent(name="guide", model="claude-sonnet-5")`.

    Thoughts are asked for with `thinking_config`, and sent back as Claude signed them. With a ContextCacheConfig
    Anthropic keeps the tools, the static instruction and the conversation from call to call.
    """

    model: str = ANTHROPIC.default_model
    max_tokens: int = 8192
    """Of an answer, thoughts included, where the agent's `max_output_tokens` does not say."""

    PACKAGE: ClassVar[str] = "anthropic"
    KEY_VARIABLES: ClassVar[tuple[str, ...]] = ANTHROPIC.key_variables
    KEY_PAGE: ClassVar[str] = ANTHROPIC.key_page
    PASSING_STATUSES: ClassVar[tuple[int, ...]] = (*BUSY, 529)

    @classmethod
    def supported_models(cls) -> list[str]:
        return list(ANTHROPIC.patterns)

    def _client_class(self) -> Any:
        return self._package().AsyncAnthropic

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        schema = output_schema(request.config)
        if schema is not None and close_objects(schema) is None:  # keys of its own: told in words
            request, schema = adapt_request(request, LlmCapabilities(output_schema=False)), None
        arguments = message_arguments(
            request, model, max_tokens=self.max_tokens, parallel_calls=self.capabilities.parallel_calls
        )
        if schema is not None:
            output_format = {"type": "json_schema", "schema": self._package().transform_schema(schema)}
            arguments["output_config"] = arguments.get("output_config", {}) | {"format": output_format}
        return arguments

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        messages = (await self._client()).messages
        if not stream:
            yield await messages.create(**payload)
            return
        async with aclosing(closing(await messages.create(**payload, stream=True))) as events:
            async for event in events:
                yield event

    def assembler(self, payload: Payload, /, *, stream: bool) -> MessageReader:
        return MessageReader(payload["model"])

    def _status(self, error: Any) -> int | None:
        status = super()._status(error)
        if status != 200:
            return status
        try:
            return _STATUSES.get(error.body["error"]["type"])
        except (TypeError, LookupError):
            return None

    def address(self) -> str | None:
        return self.base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or None
