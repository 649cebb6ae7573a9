"""Claude, asked through anthropic."""

import os
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import httpx2

from adk_nb.models.anthropic_answers import MessageReader, message_response
from adk_nb.models.anthropic_messages import message_question
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.default_model import CLAUDE_MODEL
from adk_nb.models.fitting import fitted
from adk_nb.models.http_address import check_url
from adk_nb.models.json_schemas import closed, output_schema_of
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.per_loop import PerLoop
from adk_nb.models.retrying import BUSY
from adk_nb.models.vendor_llm import VendorLlm, extra, http_client

_NO_KEY = "none"
"""What a server of one's own is sent where anthropic insists on a key."""
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


class Claude(VendorLlm):
    """A Claude model of Anthropic's: `LlmAgent(name="guide", model="claude-sonnet-5")`.

    Thoughts are asked for with `thinking_config`, and sent back as Claude signed them. With a ContextCacheConfig
    Anthropic keeps the tools, the static instruction and the conversation from call to call.
    """

    model: str = CLAUDE_MODEL
    max_tokens: int = 8192
    """Of an answer, thoughts included, where the agent's `max_output_tokens` does not say."""

    KEY_VARIABLE: ClassVar[str] = "ANTHROPIC_API_KEY"

    @classmethod
    def supported_models(cls) -> list[str]:
        return [r"claude-.*"]

    def _load(self) -> Any:
        return extra("anthropic", "anthropic")

    def _question(self, request: LlmRequest, model: str) -> dict[str, Any]:
        schema = output_schema_of(request.config)
        if schema is not None and closed(schema) is None:  # keys of its own: told in words
            request, schema = fitted(request, LlmCapabilities(output_schema=False)), None
        question = message_question(
            request, model, max_tokens=self.max_tokens, parallel_calls=self.capabilities.parallel_calls
        )
        if schema is not None:
            told = {"type": "json_schema", "schema": self._load().transform_schema(schema)}
            question["output_config"] = question.get("output_config", {}) | {"format": told}
        return question

    async def _ask(self, question: dict[str, Any]) -> LlmResponse:
        return message_response(await (await self._messages()).create(**question), question["model"])

    async def _begin(self, question: dict[str, Any]) -> AsyncIterator[Any]:
        return await (await self._messages()).create(**question, stream=True)

    def _reader(self, model: str) -> MessageReader:
        return MessageReader(model)

    def _status(self, error: Any) -> int | None:
        status = super()._status(error)
        if status != 200:
            return status
        try:
            return _STATUSES.get(error.body["error"]["type"])
        except (TypeError, LookupError):
            return None

    @property
    def _passing_statuses(self) -> tuple[int, ...]:
        return (*BUSY, 529)

    def _address(self) -> str | None:
        return self.base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or None

    async def _messages(self) -> Any:
        key, address = self._key(), self._address()
        if not key and not address:
            raise self._no_key("https://console.anthropic.com/settings/keys")
        about = (key, address, self.connect_timeout)
        client = await _clients.get(about, lambda: self._connect(key or _NO_KEY, address))
        return client.anthropic.messages

    def _connect(self, key: str, address: str | None) -> "_Client":
        if address:
            check_url(address, f"model {self.model!r}")
        limit = httpx2.Timeout(None, connect=self.connect_timeout)
        return _Client(
            self._load().AsyncAnthropic(
                api_key=key, base_url=address, max_retries=0, timeout=limit, http_client=http_client()
            )
        )


class _Client:
    """anthropic's client, closed as others are."""

    def __init__(self, anthropic: Any) -> None:
        self.anthropic = anthropic

    async def aclose(self) -> None:
        await self.anthropic.close()


_clients: PerLoop[_Client] = PerLoop()
"""For all models with the same settings: an agent often has a model object of its own."""
