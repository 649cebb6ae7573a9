"""OpenAI's models, and those of all servers that speak its chat completions: Ollama, vLLM, llama.cpp and more."""

import os
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar

from pydantic import Field

from adk_nb.errors import ModelError
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.http_address import public_url
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.ollama import ollama_url
from adk_nb.models.openai_answers import ChatReader, as_chunks, check
from adk_nb.models.openai_messages import adapt_to_family, chat_arguments
from adk_nb.models.pipeline import Payload
from adk_nb.models.sdk_llm import HttpSdkLlm, closing
from adk_nb.models.vendor_facts import OPENAI, openai_family
from adk_nb.redaction import remember_url

_SERVER_URL = re.compile(r"(https?://[^#]+/v1)/?(?:#(.+))?")
"""An address in place of a model's name, and behind a `#` which of the server's models."""


class OpenAILlm(HttpSdkLlm):
    """A model of OpenAI's: `LlmAgent(name="guide", model="openai:gpt-6-luna")`. Or of a server that speaks as OpenAI's.

    `OpenAILlm(model="qwen3", base_url="http://127.0.0.1:8000/v1")` asks vLLM, llama.cpp's server, LM Studio, or any
    other; no key is needed then. So does `model="http://127.0.0.1:8000/v1"`, the first model that the server lists, and
    `model="http://127.0.0.1:8000/v1#qwen3"`, and OPENAI_API_KEY is not sent there. Without an address it is that of
    OPENAI_BASE_URL in the environment, or OpenAI.
    """

    model: str = OPENAI.default_model
    extra_body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """JSON that is sent beside what a request says: what your server knows and others do not, such as `top_k`."""

    PACKAGE: ClassVar[str] = "openai"
    KEY_VARIABLES: ClassVar[tuple[str, ...]] = OPENAI.key_variables
    KEY_PAGE: ClassVar[str] = OPENAI.key_page

    @classmethod
    def supported_models(cls) -> list[str]:
        return list(OPENAI.patterns)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        if self._server_url:
            remember_url(self.model)

    @property
    def _server_url(self) -> re.Match[str] | None:
        return _SERVER_URL.fullmatch(self.model)

    @property
    def capabilities(self) -> LlmCapabilities:
        # OpenAI itself takes a schema beside tools; of the servers that speak like it few do.
        return super().capabilities.model_copy(update={"output_schema_and_tools": not (self.address() or self.lacks)})

    def _client_class(self) -> Any:
        return self._package().AsyncOpenAI

    @property
    def advice(self) -> str:
        return "look whether a server runs there" if self._server_url else super().advice

    def address(self) -> str | None:
        url = self._server_url[1] if self._server_url else None
        return self.base_url or url or os.environ.get("OPENAI_BASE_URL", "").strip() or None

    def _key(self) -> str | None:
        return super()._key() if self.api_key or not self._server_url else None

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        arguments = chat_arguments(request, model, server=self._server, parallel_calls=self.capabilities.parallel_calls)
        if (limit := request.config.max_output_tokens) is not None:
            # OpenAI's newer models refuse the older word, and some servers know no other.
            arguments["max_tokens" if self.address() else "max_completion_tokens"] = limit
        if self.extra_body:
            arguments["extra_body"] = self.extra_body
        return adapt_to_family(arguments, openai_family(model))

    @property
    def _server(self) -> str:
        return public_url(self.address() or "openai")

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        client = await self._client()
        payload = await _with_model_name(client, payload)
        if not stream:
            yield check(await client.chat.completions.create(**payload), payload["model"])
            return
        answer = await client.chat.completions.create(**payload, stream=True, stream_options={"include_usage": True})
        answer = await as_chunks(answer, payload["model"], self._package().types.chat.ChatCompletion.construct)
        async with aclosing(closing(answer)) as chunks:
            async for chunk in chunks:
                yield chunk

    def assembler(self, payload: Payload, /, *, stream: bool) -> ChatReader:
        return ChatReader(payload["model"], self._server)


class OllamaLlm(OpenAILlm):
    """A model that Ollama runs on this machine, or where OLLAMA_HOST says: `model="ollama:llama3.2"`."""

    model: str = "llama3.2"

    KEY_VARIABLES: ClassVar[tuple[str, ...]] = ("OLLAMA_API_KEY",)

    @classmethod
    def supported_models(cls) -> list[str]:
        return []

    @property
    def advice(self) -> str:
        return "start it: ollama serve, or say in OLLAMA_HOST where it is"

    def address(self) -> str:
        return self.base_url or ollama_url()


async def _with_model_name(client: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """`question` to a model by its own name."""
    match = _SERVER_URL.fullmatch(arguments["model"])
    if not match:
        return arguments
    if match[2]:
        return arguments | {"model": match[2]}
    models = (await client.models.list()).data
    if not models:
        raise ModelError(f"the server at {match[1]!r} lists no models; name one: {match[1]}#NAME")
    return arguments | {"model": models[0].id}
