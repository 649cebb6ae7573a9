"""The client of OpenAI, and of servers with the same API: Ollama, vLLM, llama.cpp and more."""

import logging
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

from pydantic import Field

from adk_nb.errors import ConfigurationError, ModelError
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.default_model import ollama_url
from adk_nb.models.http_address import api_url, public_url
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import MODEL_NOTE, LlmResponse
from adk_nb.models.openai_chat import (
    SAMPLING_SETTINGS,
    SENT_AS,
    ChatAssembler,
    adapt_to_family,
    chat_arguments,
    check_completion,
    effort_of,
    ensure_chunks,
    single_chunk,
)
from adk_nb.models.openai_responses import SERVICE_TOOLS, ResponseAssembler, response_arguments
from adk_nb.models.pipeline import Payload
from adk_nb.models.sdk_llm import HttpSdkLlm, close_after
from adk_nb.models.vendor_facts import OPENAI, openai_family
from adk_nb.redaction import remember_named, remember_url

logger = logging.getLogger(__name__)

_LLAMA_CPP = re.compile(r"b\d+-\w+")
"""The `system_fingerprint` of llama.cpp's server: its build and commit."""
_PROPS_SECONDS = 2.0
_UNREADABLE_PROPS = (TypeError, LookupError, ValueError)
_tells_of_tools: dict[tuple[str, str], bool] = {}
"""Address and model of a llama.cpp server -> False if its template leaves tools out; asked once."""


_SERVER_URL = re.compile(r"(https?://[^#]+/v1)/?(?:#(.+))?")
"""A URL in place of a model's name; after a `#` the name of one of the server's models."""


class OpenAILlm(HttpSdkLlm):
    """A model of OpenAI, or of a server with the same API: `LlmAgent(name="guide", model="openai:gpt-6-luna")`.

    `OpenAILlm(model="qwen3", base_url="http://127.0.0.1:8000/v1")` calls vLLM, llama.cpp's server, LM Studio, or any
    other; no key is needed then. `model="http://127.0.0.1:8000/v1"` is the first model that the server lists,
    `model="http://127.0.0.1:8000/v1#qwen3"` the named one; OPENAI_API_KEY is not sent there. The default URL is
    OPENAI_BASE_URL of the environment, else OpenAI's.
    """

    model: str = OPENAI.default_model
    extra_body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Additional fields of the request, such as `top_k`, for servers that take them."""
    responses: bool | None = None
    """Ask through the Responses API. None: for OpenAI's own models that take tools beside reasoning only there."""

    PACKAGE: ClassVar[str] = "openai"
    KEY_VARIABLES: ClassVar[tuple[str, ...]] = OPENAI.key_variables
    KEY_PAGE: ClassVar[str] = OPENAI.key_page
    SENT_AS: ClassVar[Mapping[str, tuple[str, ...]] | None] = SENT_AS

    @classmethod
    def supported_models(cls) -> list[str]:
        """Names such as `gpt-6-luna`, and URLs that end with `/v1`."""
        return list(OPENAI.patterns)

    def model_post_init(self, context: Any, /) -> None:
        """Register the secrets of a URL and of `extra_body` for redaction."""
        super().model_post_init(context)
        remember_named(self.extra_body)
        if self._server_url:
            remember_url(self.model)
        address = self.address() or ""
        if api := public_url(api_url(address)):
            problem = f"base_url {public_url(address)!r} is the address of a method; write that of the API, {api!r}"
            raise ConfigurationError(f"{type(self).__name__}: {problem}, here or in OPENAI_BASE_URL")

    @property
    def _server_url(self) -> re.Match[str] | None:
        return _SERVER_URL.fullmatch(self.model)

    @property
    def capabilities(self) -> LlmCapabilities:
        """Capabilities of the model; only OpenAI itself takes an output schema beside tools."""
        update: dict[str, Any] = {"output_schema_and_tools": not (self.address() or self.lacks)}
        if self._uses_responses(self.model):
            update |= {"service_tools": SERVICE_TOOLS, "code_execution": True, "media_in_results": True}
        return super().capabilities.model_copy(update=update)

    @property
    def is_open_server(self) -> bool:
        """True where it is not OpenAI itself that is asked."""
        return bool(self.address())

    def _uses_responses(self, model: str) -> bool:
        if self.responses is not None:
            return self.responses
        # Another server may not have it.
        return not self.address() and openai_family(model).responses

    def _client_class(self) -> Any:
        return self._package().AsyncOpenAI

    @property
    def connection_hint(self) -> str:
        """The next step if no server answers."""
        return "start the server, or check the URL" if self._server_url else super().connection_hint

    def address(self) -> str | None:
        """`base_url`, else the URL in `model`, else OPENAI_BASE_URL of the environment, as in OpenAI's own client."""
        url = self._server_url[1] if self._server_url else None
        return self.base_url or url or os.environ.get("OPENAI_BASE_URL", "").strip() or None

    def _key(self) -> str | None:
        # OpenAI's key must not go to a server that a model's name points to.
        return super()._key() if self.api_key or not self._server_url else None

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        """Arguments of `chat.completions.create` or `responses.create`, without settings that the model refuses."""
        parallel_calls, family = self.capabilities.parallel_calls, openai_family(model)
        if self._uses_responses(model):
            arguments = response_arguments(request, model, family, server=self._server, parallel_calls=parallel_calls)
            return arguments | ({"extra_body": self.extra_body} if self.extra_body else {})
        arguments = chat_arguments(request, model, server=self._server, parallel_calls=parallel_calls)
        if (limit := request.config.max_output_tokens) is not None:
            # OpenAI's reasoning models refuse `max_tokens`, and some servers do not know the newer name.
            # Source: https://platform.openai.com/docs/api-reference/chat/create, `max_tokens`.
            arguments["max_tokens" if self.address() else "max_completion_tokens"] = limit
        if self.extra_body:
            arguments["extra_body"] = self.extra_body
        return adapt_to_family(arguments, family)

    def unsent_settings(self, llm_request: LlmRequest) -> dict[str, str]:
        """As of every service, and an effort that the model takes no tools beside."""
        model, unsent = llm_request.model or self.model, super().unsent_settings(llm_request)
        effort = effort_of(llm_request.config)
        if effort not in (None, "none") and self.payload(llm_request, model).get("reasoning_effort") == "none":
            unsent["thinking_config"] = _no_effort(model, effort)
        return unsent

    def why_unsent(self, setting: str, model: str) -> str:
        """Why a setting is not sent to `model`."""
        if setting in SAMPLING_SETTINGS and openai_family(model).sampling != "always":
            return f"model {model!r} takes it only without reasoning"
        return super().why_unsent(setting, model)

    async def _answers(self, request: LlmRequest, payload: Payload, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        effort = effort_of(request.config)
        if effort not in (None, "none") and payload.get("reasoning_effort") == "none":
            logger.warning(_no_effort(payload["model"], effort))
        is_first = all(content.role == "user" for content in request.contents)
        async with aclosing(super()._answers(request, payload, stream)) as responses:
            async for response in responses:
                name = payload["model"]
                is_told = _tells_of_tools.get((self.address() or "", name), True)
                # An instruction may tell of them, too.
                if is_first and not (response.partial or is_told or any(part.function_call for part in response.parts)):
                    note = self.without_tools(name) if "tools" in payload else None
                    response.custom_metadata = (response.custom_metadata or {}) | ({MODEL_NOTE: note} if note else {})
                yield response

    @property
    def _server(self) -> str:
        return public_url(self.address() or "openai")

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        """Send the request; yield the chunks of a stream, or the completion."""
        client, asked = await self._client(), payload
        # A URL stands for a model of the server there.
        if server := _SERVER_URL.fullmatch(payload["model"]):
            name = server[2]
            if not name:
                models = (await client.models.list()).data
                if not models:
                    raise ModelError(f"the server at {server[1]!r} lists no models; name one: {server[1]}#NAME")
                name = models[0].id
            payload = payload | {"model": name}
        if "input" in payload:
            responses = self._package().types.responses
            answer = await self._post(
                client, "/responses", payload, responses.Response, responses.ResponseStreamEvent, stream=stream
            )
            async with aclosing(close_after(answer) if stream else single_chunk(answer)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        chat = self._package().types.chat
        # Without include_usage a stream has no token counts; they come in a last chunk without choices.
        options = {"stream_options": {"include_usage": True}} if stream else {}
        answer = await self._post(
            client,
            "/chat/completions",
            payload | options,
            chat.ChatCompletion,
            chat.ChatCompletionChunk,
            stream=stream,
        )
        if not stream:
            completion = check_completion(answer, payload["model"])
            await self._check_template(asked, completion)
            yield completion
            return
        answer = await ensure_chunks(answer, payload["model"], chat.ChatCompletion.construct)
        async with aclosing(close_after(answer)) as chunks:
            async for chunk in chunks:
                if chunk is not None and chunk.choices:
                    await self._check_template(asked, chunk)
                yield chunk

    async def _check_template(self, payload: Payload, chunk: Any) -> None:
        """Ask llama.cpp's server once, with its first answer to a request with tools, if it tells the model of them."""
        key = self.address() or "", payload["model"]
        is_llama_cpp = bool(_LLAMA_CPP.fullmatch(str(getattr(chunk, "system_fingerprint", None) or "")))
        if "tools" in payload and is_llama_cpp and key not in _tells_of_tools:
            _tells_of_tools[key] = True
            _tells_of_tools[key] = await self.tells_of_tools() is not False

    async def tells_of_tools(self) -> bool | None:
        """False if the server is llama.cpp's, and its template leaves tools out. None: it does not say.

        Source: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md, `GET /props`.
        """
        if not (address := self.address()):
            return None
        client = await self._client()
        url = f"{address.rstrip('/').removesuffix('/v1')}/props"
        try:
            props: Any = await client.get(url, cast_to=object, options={"timeout": _PROPS_SECONDS})
            return bool(props["chat_template_caps"]["supports_tools"])
        except (*self.connection_errors, *self.timeout_errors, self._errors.APIError, *_UNREADABLE_PROPS):
            return None

    def without_tools(self, model: str) -> str:
        """What to tell the user of a model whose server tells it of no tools."""
        return (
            f"The server at {public_url(self.address() or '')} does not tell model {model!r} of any tool: its chat "
            "template has no place for them, so the model can only invent. Take a model whose template has tools, or "
            "start llama-server with --jinja --chat-template-file"
        )

    def assembler(self, payload: Payload, /, *, stream: bool) -> ChatAssembler | ResponseAssembler:
        """Create an assembler for chunks."""
        if "input" in payload:
            return ResponseAssembler(payload["model"], self._server)
        return ChatAssembler(payload, self._server)


class OllamaLlm(OpenAILlm):
    """A model of Ollama, on this machine or at OLLAMA_HOST: `model="ollama:llama3.2"`."""

    model: str = "llama3.2"

    KEY_VARIABLES: ClassVar[tuple[str, ...]] = ("OLLAMA_API_KEY",)

    @classmethod
    def supported_models(cls) -> list[str]:
        """None: the prefix `ollama:` selects this class."""
        return []

    @property
    def connection_hint(self) -> str:
        """The next step if Ollama does not answer."""
        return "type in a terminal: ollama serve, or set OLLAMA_HOST to its address"

    def address(self) -> str:
        """`base_url`, else Ollama's URL."""
        return self.base_url or ollama_url()


def _no_effort(model: str, effort: str | None) -> str:
    return f"model {model!r} takes no tools beside the effort {effort!r} and does not reason now"
