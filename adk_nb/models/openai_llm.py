"""OpenAI's models, and those of all servers that speak its chat completions: Ollama, vLLM, llama.cpp and more."""

import os
import re
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import httpx2
from pydantic import Field

from adk_nb.errors import ModelError
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.default_model import OPENAI_MODEL
from adk_nb.models.http_address import check_url, place_of
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.ollama import ollama_url
from adk_nb.models.openai_answers import ChatReader, as_chunks, chat_response
from adk_nb.models.openai_families import as_taken
from adk_nb.models.openai_messages import chat_question
from adk_nb.models.per_loop import PerLoop
from adk_nb.models.vendor_llm import VendorLlm, extra, http_client
from adk_nb.redaction import remember_url

_NO_KEY = "none"
"""What a server of one's own is sent where openai insists on a key."""
_SPELLED = re.compile(r"(https?://[^#]+/v1)/?(?:#(.+))?")
"""An address in place of a model's name, and behind a `#` which of the server's models."""


class OpenAILlm(VendorLlm):
    """A model of OpenAI's: `LlmAgent(name="guide", model="openai:gpt-6-luna")`. Or of a server that speaks as OpenAI's.

    `OpenAILlm(model="qwen3", base_url="http://127.0.0.1:8000/v1")` asks vLLM, llama.cpp's server, LM Studio, or any
    other; no key is needed then. So does `model="http://127.0.0.1:8000/v1"`, the first model that the server lists, and
    `model="http://127.0.0.1:8000/v1#qwen3"`, and OPENAI_API_KEY is not sent there. Without an address it is that of
    OPENAI_BASE_URL in the environment, or OpenAI.
    """

    model: str = OPENAI_MODEL
    extra_body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """JSON that is sent beside what a request says: what your server knows and others do not, such as `top_k`."""

    KEY_VARIABLE: ClassVar[str] = "OPENAI_API_KEY"

    @classmethod
    def supported_models(cls) -> list[str]:
        return [r"gpt-.*", r"chatgpt-.*", r"o\d.*", _SPELLED.pattern]

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        if self._spelled:
            remember_url(self.model)

    @property
    def _spelled(self) -> re.Match[str] | None:
        return _SPELLED.fullmatch(self.model)

    @property
    def capabilities(self) -> LlmCapabilities:
        # OpenAI itself takes a schema beside tools; of the servers that speak like it few do.
        return super().capabilities.model_copy(update={"output_schema_and_tools": not (self._address() or self.lacks)})

    def _load(self) -> Any:
        return extra("openai", "openai")

    @property
    def _if_gone(self) -> str:
        return "look whether a server runs there" if self._spelled else super()._if_gone

    def _address(self) -> str | None:
        spelled = self._spelled[1] if self._spelled else None
        return self.base_url or spelled or os.environ.get("OPENAI_BASE_URL", "").strip() or None

    def _key(self) -> str | None:
        return super()._key() if self.api_key or not self._spelled else None

    def _question(self, request: LlmRequest, model: str) -> dict[str, Any]:
        question = chat_question(request, model, server=self._server, parallel_calls=self.capabilities.parallel_calls)
        if (limit := request.config.max_output_tokens) is not None:
            # OpenAI's newer models refuse the older word, and some servers know no other.
            question["max_tokens" if self._address() else "max_completion_tokens"] = limit
        if self.extra_body:
            question["extra_body"] = self.extra_body
        return as_taken(question)

    @property
    def _server(self) -> str:
        return place_of(self._address() or "openai")

    async def _ask(self, question: dict[str, Any]) -> LlmResponse:
        client = await self._client()
        completion = await client.chat.completions.create(**await _named(client, question))
        return chat_response(completion, question["model"], self._server)

    async def _begin(self, question: dict[str, Any]) -> AsyncIterator[Any]:
        client, usage = await self._client(), {"include_usage": True}
        question = await _named(client, question)
        stream = await client.chat.completions.create(**question, stream=True, stream_options=usage)
        return await as_chunks(stream, question["model"], self._load().types.chat.ChatCompletion.construct)

    def _reader(self, model: str) -> ChatReader:
        return ChatReader(model, self._server)

    async def _client(self) -> Any:
        key, address = self._key(), self._address()
        if not key and not address:
            raise self._no_key("https://platform.openai.com/api-keys")
        client = await _clients.get(
            (key, address, self.connect_timeout), lambda: self._connect(key or _NO_KEY, address)
        )
        return client.openai

    def _connect(self, key: str, address: str | None) -> "_Client":
        if address:
            check_url(address, f"model {self.model!r}")
        limit = httpx2.Timeout(None, connect=self.connect_timeout)
        return _Client(
            self._load().AsyncOpenAI(
                api_key=key, base_url=address, max_retries=0, timeout=limit, http_client=http_client()
            )
        )


class OllamaLlm(OpenAILlm):
    """A model that Ollama runs on this machine, or where OLLAMA_HOST says: `model="ollama:llama3.2"`."""

    model: str = "llama3.2"

    KEY_VARIABLE: ClassVar[str] = "OLLAMA_API_KEY"

    @classmethod
    def supported_models(cls) -> list[str]:
        return []

    @property
    def _if_gone(self) -> str:
        return "start it: ollama serve, or say in OLLAMA_HOST where it is"

    def _address(self) -> str:
        return self.base_url or ollama_url()


async def _named(client: Any, question: dict[str, Any]) -> dict[str, Any]:
    """`question` to a model by its own name."""
    spelled = _SPELLED.fullmatch(question["model"])
    if not spelled:
        return question
    if spelled[2]:
        return question | {"model": spelled[2]}
    listed = (await client.models.list()).data
    if not listed:
        raise ModelError(f"the server at {spelled[1]!r} lists no models; name one: {spelled[1]}#NAME")
    return question | {"model": listed[0].id}


class _Client:
    """openai's client, closed as others are."""

    def __init__(self, openai: Any) -> None:
        self.openai = openai

    async def aclose(self) -> None:
        await self.openai.close()


_clients: PerLoop[_Client] = PerLoop()
"""For all models with the same settings: an agent often has a model object of its own."""
