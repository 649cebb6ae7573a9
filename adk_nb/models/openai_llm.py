"""Models with OpenAI's chat completions API: OpenAI, Ollama, vLLM, llama.cpp and more."""

import json
import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, cast

from pydantic import Field

from adk_nb import types
from adk_nb.errors import ConfigurationError, ModelError, UnexpectedModelAnswer
from adk_nb.models.adaptation import chat_signature
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.http_address import api_url, public_url
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import MODEL_NOTE, WRITTEN_AS_TEXT, LlmResponse
from adk_nb.models.local_servers import ollama_url
from adk_nb.models.openai_messages import (
    SAMPLING_SETTINGS,
    SENT_AS,
    adapt_to_family,
    call_part,
    chat_arguments,
    effort_of,
)
from adk_nb.models.openai_responses import SERVICE_TOOLS, ResponseAssembler, response_arguments
from adk_nb.models.pipeline import Payload
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.sdk_llm import HttpSdkLlm, close_after
from adk_nb.models.vendor_facts import OPENAI, openai_family
from adk_nb.models.written_calls import TextReader
from adk_nb.redaction import hidden, remember_named, remember_url

logger = logging.getLogger(__name__)

_REASONS = {
    "stop": types.FinishReason.STOP,
    "tool_calls": types.FinishReason.STOP,
    "function_call": types.FinishReason.STOP,
    "eos": types.FinishReason.STOP,
    "length": types.FinishReason.MAX_TOKENS,
    "content_filter": types.FinishReason.SAFETY,
}
_THOUGHT_FIELDS = ("reasoning_content", "reasoning")
"""Fields for thoughts in answers of servers of open models; OpenAI's own API has none."""
_LLAMA_CPP = re.compile(r"b\d+-\w+")
"""The `system_fingerprint` of llama.cpp's server: its build and commit."""
_PROPS_SECONDS = 2.0
_UNREADABLE_PROPS = (TypeError, LookupError, ValueError)
_tells_of_tools: dict[tuple[str, str], bool] = {}
"""Address and model of a llama.cpp server -> False if its template leaves tools out; asked once."""
_SIGNED_ID = "__thought__"
"""Separator in litellm's call ids, before Gemini's signature of the call.

Source: litellm's `litellm_core_utils/prompt_templates/factory.py`, THOUGHT_SIGNATURE_SEPARATOR.
"""

LIKE_A_CALL = (
    "The answer looks like a call of a tool, written as text: no tool was called. A larger model, or the server's "
    "template for tools (llama-server --jinja), may help"
)


async def ensure_chunks(stream: Any, model: str, read: Callable[..., Any]) -> Any:
    """Return openai's stream; for a server that answers without streaming, a stream of its one answer.

    Args:
        stream: The response, not yet read.
        model: Name for errors.
        read: Creates openai's ChatCompletion from its fields.

    Raises:
        UnexpectedModelAnswer: The body is neither a stream nor an answer.
    """
    kind = stream.response.headers.get("content-type", "")
    # A stream is text/event-stream; some servers send no content type.
    if "json" not in kind and "html" not in kind:
        return stream
    body = await stream.response.aread()
    if body.lstrip().startswith((b"data:", b"event:", b":")):  # a stream with a wrong content type
        return stream
    try:
        answer: Any = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise _no_answer(model, f"{kind}: {body[:4_000].decode('utf-8', 'replace')!r}")
    return _single_chunk(check_completion(read(**cast(dict[str, Any], answer)), model))


async def _single_chunk(chunk: Any) -> AsyncGenerator[Any, None]:
    yield chunk


def check_completion(completion: Any, model: str) -> Any:
    """Return `completion`; raises UnexpectedModelAnswer if it has no choices."""
    if error := getattr(completion, "error", None):  # OpenRouter and other gateways report errors with HTTP 200
        raise UnexpectedModelAnswer(
            f"the service of model {model!r} answered with an error: {hidden(str(error))[:500]}"
        )
    if not isinstance(getattr(completion, "choices", None), list):
        answer = completion.to_json(indent=None, warnings=False) if hasattr(completion, "to_json") else completion
        raise _no_answer(model, repr(answer))
    return completion


def _no_answer(model: str, answer: str) -> UnexpectedModelAnswer:
    return UnexpectedModelAnswer(
        f"the service of model {model!r} did not answer with a chat completion, but with {hidden(answer)[:200]}; "
        "check its address"
    )


class ChatAssembler:
    """Assembles the chunks of one answer; its calls are in the complete answer only.

    Fields that `server` requires in the next request are stored as the signatures of thoughts and calls.
    """

    def __init__(self, payload: Payload, server: str) -> None:
        # Where the answer is to be JSON, an object is the answer.
        takes_calls = payload.get("tool_choice") != "none" and "response_format" not in payload
        offered: list[dict[str, Any]] = [tool["function"] for tool in payload.get("tools") or ()]
        self._tools: dict[str, dict[str, Any]] = {tool["name"]: tool.get("parameters") or {} for tool in offered}
        self._stream = ResponseStream(payload["model"])
        self._text = TextReader(self._tools if takes_calls else {})
        self._server = server
        self._has_reasoning_content = False
        """Thoughts came in the field `reasoning_content`."""
        self._blocks: list[dict[str, Any]] = []
        """litellm's `thinking_blocks`, the fragments of each joined."""
        self._calls: list[_Call] = []
        self._reason: types.FinishReason | None = None

    def add(self, chunk: Any) -> LlmResponse | None:
        """Add a chunk, or a complete answer; returns the part of it that can be shown already."""
        usage = getattr(chunk, "usage", None)
        self._stream.set_fields(model_version=chunk.model or None, usage_metadata=usage and _usage(usage))
        for choice in chunk.choices or ():
            # Only the first choice: more than one is never requested.
            if not choice.index and (message := getattr(choice, "delta", None)):
                return self._add_message(message, choice.finish_reason, is_whole=False)
            if message := getattr(choice, "message", None):  # not streamed
                # It is complete, even if the server gives no reason.
                return self._add_message(message, choice.finish_reason or "stop", is_whole=True)
        return None

    def _add_message(self, message: Any, finish_reason: str | None, *, is_whole: bool) -> LlmResponse | None:
        """Add a message or a delta; returns the text and thoughts that can be shown already."""
        if finish_reason:
            self._reason = _REASONS.get(finish_reason, types.FinishReason.OTHER)
        # Each entry of a complete message is a call; the entries of deltas are pieces, which their index tells apart.
        for position, call in enumerate(message.tool_calls or ()):
            self._add_call(call, position if is_whole else getattr(call, "index", None))
        thought = next((text for name in _THOUGHT_FIELDS if (text := getattr(message, name, None))), None)
        is_blank = is_whole and isinstance(thought, str) and not thought.strip()  # `<think>` was taken out on the way
        self._has_reasoning_content |= not is_blank and bool(getattr(message, _THOUGHT_FIELDS[0], None))
        for block in getattr(message, "thinking_blocks", None) or ():
            self._add_thinking_block(dict(block))
        parts: list[types.Part] = []
        if isinstance(thought, str):
            parts += [] if is_blank else [types.Part(text=thought, thought=True)]
            self._text.after_thought()
        # OpenAI puts a refusal into a field of its own, beside an empty content.
        for text in (message.content, getattr(message, "refusal", None)):
            parts += self._text.add(text) if text else []
        return self._stream.add_parts(parts)

    def complete(self) -> LlmResponse:
        """The complete answer.

        Raises:
            UnexpectedModelAnswer: The chunks ended before the answer did.
        """
        # After another reason, such as the limit of tokens, a call may be cut off.
        is_finished = self._reason == types.FinishReason.STOP
        calls = [call for call in self._calls if not call.is_empty] if is_finished else []
        written = self._text.calls() if is_finished and not calls else []
        self._stream.add_parts(self._text.rest())
        self._stream.add_parts(types.Part(function_call=call) for call in written)
        for call in calls:
            part = call_part(call.own_id, call.name(self._tools), call.arguments)
            part.thought_signature = chat_signature(self._server, call.fields)
            self._stream.add_parts([part])
        self._stream.set_fields(finish_reason=self._reason)
        answer = self._stream.complete()
        if written:
            answer.custom_metadata = {WRITTEN_AS_TEXT: True}
        elif not calls and self._text.is_like_call():
            answer.custom_metadata = {MODEL_NOTE: LIKE_A_CALL}
        return self._with_signature(answer)

    def counts(self) -> LlmResponse | None:
        """The token counts that came so far, as a partial response."""
        return self._stream.counts()

    def broken_message(self, reason: str) -> str:
        """The error message for an answer that broke off."""
        return self._stream.broken_message(reason)

    def _with_signature(self, answer: LlmResponse) -> LlmResponse:
        """Store the message's own fields in the signature of its first thought; without one, of an empty thought."""
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
        """Add a thinking block of litellm, or a fragment of one: the text comes first, the signature last."""
        last = self._blocks[-1] if self._blocks else None
        if last is None or "thinking" not in last or "thinking" not in block or last.get("signature"):
            self._blocks.append(block)
            return
        last["thinking"] = (last["thinking"] or "") + (block["thinking"] or "")
        last["signature"] = block.get("signature")

    def _add_call(self, fragment: Any, index: int | None) -> None:
        """Add a call, or the next fragment of one. Some servers give all calls the index 0, and each its own id."""
        function = fragment.function
        # Among calls with one index the newest: some servers use an index again.
        current = next((call for call in reversed(self._calls) if index is None or call.index == index), None)
        has_new_id = fragment.id and current and current.id and fragment.id != current.id
        if current is None or (has_new_id and function and function.name) or (index is None and fragment.id):
            current = _Call(index)
            self._calls.append(current)
        current.id = fragment.id or current.id
        if extra := getattr(fragment, "extra_content", None):
            current.extra |= extra
        if function:
            current.names += [function.name] if function.name else []
            arguments = function.arguments or ""
            # Some servers send the object itself.
            current.fragments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))


class _Call:
    """A call whose name and arguments come in fragments."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id: str | None = None
        self.names: list[str] = []
        self.fragments: list[str] = []
        self.extra: dict[str, Any] = {}
        """`extra_content`: Gemini's OpenAI-compatible API has the signature of a call there.

        Source: https://ai.google.dev/gemini-api/docs/thought-signatures, "OpenAI compatibility".
        """

    @property
    def own_id(self) -> str | None:
        """The id without a signature."""
        return (self.id or "").partition(_SIGNED_ID)[0] or None

    @property
    def arguments(self) -> str:
        """The arguments as JSON."""
        return "".join(self.fragments)

    @property
    def is_empty(self) -> bool:
        """True for an object that some servers send beside calls: without a name and arguments."""
        return not self.names and self.arguments.strip() in ("", "{}", "null")

    def name(self, tools: Collection[str]) -> str:
        """The name: some servers send it in pieces, others send it whole with every fragment."""
        joined, first = "".join(self.names), self.names[0] if self.names else ""
        is_repeated = first in tools or all(name == first for name in self.names)
        return first if is_repeated and joined not in tools else joined

    @property
    def fields(self) -> dict[str, Any]:
        """Fields to send back with the call: its extra content, and the suffix of its id."""
        _, mark, signature = (self.id or "").partition(_SIGNED_ID)
        return ({"extra_content": self.extra} if self.extra else {}) | ({"id_end": mark + signature} if mark else {})


def _usage(usage: Any) -> types.GenerateContentResponseUsageMetadata:
    """Convert token counts. OpenAI's `completion_tokens` include thoughts."""
    thoughts = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    answer = usage.completion_tokens
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=usage.prompt_tokens,
        # Gemini counts thoughts beside the candidates.
        candidates_token_count=answer - (thoughts or 0) if answer is not None else None,
        thoughts_token_count=thoughts,
        cached_content_token_count=cached,
        total_token_count=usage.total_tokens,
    )


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
        payload = await _with_model_name(client, payload)
        if "input" in payload:
            answer = await client.responses.create(**payload, stream=stream)
            async with aclosing(close_after(answer) if stream else _single_chunk(answer)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        if not stream:
            completion = check_completion(await client.chat.completions.create(**payload), payload["model"])
            await self._check_template(asked, completion)
            yield completion
            return
        # Without include_usage a stream has no token counts; they come in a last chunk without choices.
        answer = await client.chat.completions.create(**payload, stream=True, stream_options={"include_usage": True})
        answer = await ensure_chunks(answer, payload["model"], self._package().types.chat.ChatCompletion.construct)
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


async def _with_model_name(client: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Replace a URL in `model` by the name of a model at that server."""
    match = _SERVER_URL.fullmatch(arguments["model"])
    if not match:
        return arguments
    if match[2]:
        return arguments | {"model": match[2]}
    models = (await client.models.list()).data
    if not models:
        raise ModelError(f"the server at {match[1]!r} lists no models; name one: {match[1]}#NAME")
    return arguments | {"model": models[0].id}
