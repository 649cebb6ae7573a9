"""Gemini through google-genai: the Gemini API with a key, or Vertex AI with Google Cloud credentials."""

import json
import os
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

import httpx2
from google import genai
from google.auth.exceptions import GoogleAuthError
from google.genai.errors import APIError, UnknownApiResponseError
from pydantic import Field, PrivateAttr, ValidationError

from adk_nb import types
from adk_nb.errors import (
    AdkNbError,
    ConfigurationError,
    MissingKeyError,
    UnexpectedModelAnswer,
)
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.connections import PerLoop, tls, transport_of_page
from adk_nb.models.default_model import uses_vertex
from adk_nb.models.google_live import GoogleConnection, LiveSession, WithoutRedirects, live_errors, live_settings
from adk_nb.models.google_requests import (
    Caches,
    ContextCache,
    prepare_contents,
    with_contents_as_json,
    with_json_schema,
)
from adk_nb.models.http_address import redacted_excerpt, redirect_hint
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.pipeline import Assembler, Limits, Payload, WholeAnswer, convert_errors, run
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.retrying import seconds_of
from adk_nb.models.service_llm import Refusal, VendorLlm
from adk_nb.models.vendor_facts import GEMINI_SERVICE_TOOLS, GOOGLE, VERTEX_SERVICE_TOOLS, gemini_family
from adk_nb.redaction import remember_named, remember_url
from adk_nb.wire import field_errors

T = TypeVar("T")
_GOOGLE_VARIABLES = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_API_VERSION")
_NO_AUTOMATIC_CALLS = types.AutomaticFunctionCallingConfig(disable=True)


class Gemini(VendorLlm):
    """A Gemini model.

    The key is `api_key`, or GOOGLE_API_KEY or GEMINI_API_KEY of the environment when a request is sent. Vertex AI,
    which takes no key, is used if GOOGLE_GENAI_USE_VERTEXAI is true, if the model's name starts with `projects/`, or
    with `client_kwargs={"vertexai": True, "project": ..., "location": ...}`.
    """

    model: str = GOOGLE.default_model
    client_kwargs: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """Arguments of google-genai's `Client`: `vertexai`, `project`, `location`, `credentials`; they override the
    environment."""
    http_options: types.HttpOptions | None = Field(default=None, repr=False)
    """google-genai's own settings: headers, API version, arguments of the HTTP client."""
    SECRET_FIELDS: ClassVar[tuple[str, ...]] = ("api_key", "http_options", "client_kwargs")
    KEY_VARIABLES: ClassVar[tuple[str, ...]] = GOOGLE.key_variables
    KEY_NAME: ClassVar[str] = GOOGLE.name
    KEY_PAGE: ClassVar[str] = GOOGLE.key_page
    _connections: PerLoop["_Connection"] = PrivateAttr(default_factory=PerLoop["_Connection"])

    def model_post_init(self, context: Any, /) -> None:
        """Register the secrets of the options for redaction."""
        super().model_post_init(context)
        options = self._options
        remember_url(options.base_url)
        for arguments in (options.client_args, options.async_client_args):
            remember_named(arguments)
            remember_named((arguments or {}).get("headers"))
        remember_named(options.headers)
        remember_named(self.client_kwargs)

    @classmethod
    def supported_models(cls) -> list[str]:
        """Names such as `gemini-3.5-flash-lite`, and Vertex AI's paths."""
        return list(GOOGLE.patterns)

    @property
    def api_client(self) -> genai.Client:
        """A new client of google-genai with these settings; a subclass may override it."""
        return self._connect(self._vertex(), self._key()).client

    @property
    def capabilities(self) -> LlmCapabilities:
        """Capabilities of the model's family and of its service."""
        family, vertex = gemini_family(self.model), self._vertex()
        tools = (*GEMINI_SERVICE_TOOLS, *(VERTEX_SERVICE_TOOLS if vertex else ()))
        return LlmCapabilities(
            # Only on Vertex AI. Source: google-adk 2.13.
            output_schema_and_tools=vertex and bool(re.search(r"(^|/)gemini-", self.model)),
            code_execution=family.service_tools,
            media_in_results=family.media_in_results,
            service_tools=tools if family.service_tools else (),
            **dict.fromkeys(self.lacks, False),
        )

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        """Arguments of google-genai's `generate_content`; its automatic calls are off: agents run the tools."""
        config = with_json_schema(request.config)
        return {
            "model": model,
            "contents": prepare_contents(request.contents),
            "config": config.model_copy(update={"automatic_function_calling": _NO_AUTOMATIC_CALLS}),
        }

    async def _answers(self, request: LlmRequest, payload: Payload, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        send = partial(run, self, stream=stream)
        if request.cache_config:
            caches = cast(Caches, (await self._client(payload["model"])).aio.caches)
            answers = ContextCache(caches, request).generate(payload, send)
        else:
            answers = send(payload)
        async with aclosing(answers) as responses:
            async for response in responses:
                yield response

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        """Send the request; yield the chunks of a stream, or the response."""
        models: Any = (await self._client(payload["model"])).aio.models
        sent = with_contents_as_json(payload, self._options)
        if not stream:
            yield await models.generate_content(**sent)
            return
        async with aclosing(await models.generate_content_stream(**sent)) as chunks:
            async for chunk in chunks:
                yield chunk

    def assembler(self, payload: Payload, /, *, stream: bool) -> Assembler:
        """Create an assembler for chunks, or for the single response."""
        model = payload["model"]
        if stream:
            return _ChunkAssembler(model)

        def read(answer: types.GenerateContentResponse) -> LlmResponse:
            """Convert the response, which has content or a reason why not."""
            response = LlmResponse.create(answer)
            if not (response.parts or response.finish_reason or response.error_code):
                raise UnexpectedModelAnswer(f"the service of model {model!r} sent an empty response; ask again")
            if (reason := response.finish_reason) and reason != types.FinishReason.STOP:  # as ResponseStream does
                response.error_code = reason.value
            return response

        return WholeAnswer(read)

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[GoogleConnection, None]:
        """Open a live conversation; see `BaseLlm`."""
        model = llm_request.model or self.model
        live: Any = (await self._client(model)).aio.live
        settings = live_settings(llm_request, self._options, vertex=self._vertex())
        async with AsyncExitStack() as stack:
            with convert_errors(self, {"model": model}), live_errors(model):
                session = await stack.enter_async_context(live.connect(model=model, config=settings))
            yield GoogleConnection(cast(LiveSession, session), model)

    @property
    def _options(self) -> types.HttpOptions:
        """`http_options`, over those within `client_kwargs`."""
        given: Any = self.client_kwargs.get("http_options")
        if given is None:
            return self.http_options or types.HttpOptions()
        try:
            options = types.HttpOptions.model_validate(given)
        except ValidationError as error:
            problems = field_errors(error, types.HttpOptions.model_fields, got=False)
            # Not chained: pydantic's own message may quote a key.
            raise ConfigurationError(f"Gemini: client_kwargs['http_options']: {problems}") from None
        if self.http_options is None:
            return options
        own = {name: getattr(self.http_options, name) for name in self.http_options.model_fields_set}
        headers = {**(options.headers or {}), **(self.http_options.headers or {})}
        return options.model_copy(update=own | ({"headers": headers} if headers else {}))

    def _vertex(self) -> bool:
        setting = self.client_kwargs.get("vertexai", self.client_kwargs.get("enterprise"))
        return bool(setting) if setting is not None else self.model.startswith("projects/") or uses_vertex()

    async def _client(self, model: str) -> genai.Client:
        """The client of a subclass that overrides `api_client`, else this loop's."""
        if type(self).api_client is not Gemini.api_client:
            return self.api_client
        return (await self._connection(model)).client

    async def _connection(self, model: str) -> "_Connection":
        """This loop's client for the current key and settings."""
        vertex, key = self._vertex(), self._key()
        if not vertex and not key:
            raise self._missing_key(model)
        settings = (
            vertex,
            key,
            self.base_url,
            self.connect_timeout,
            *(os.environ.get(name) for name in _GOOGLE_VARIABLES),
        )
        # Not shared with other models: a shared client is found by the hash of its settings, and these have none.
        connections = self._connections if self.http_options or self.client_kwargs else _shared_connections
        with convert_errors(self, {"model": model}):
            return await connections.get(settings, lambda: self._connect(vertex, key))

    def _connect(self, vertex: bool, key: str | None) -> "_Connection":
        options = self._options
        # google-genai picks one of three installed HTTP libraries, each with its own errors: always give it httpx2.
        arguments: dict[str, Any] = options.async_client_args or {}
        # No redirects: httpx2 would send `x-goog-api-key` on to another host.
        defaults: dict[str, Any] = {"follow_redirects": False, "transport": transport_of_page(), "verify": tls()}
        try:
            http = httpx2.AsyncClient(**defaults | arguments)
        except TypeError as error:
            raise ConfigurationError(
                f"Gemini: http_options.async_client_args: {redacted_excerpt(str(error))}"
            ) from None
        # A timeout in `http_options` limits the connection, too.
        if not options.timeout:

            async def limit_connecting(request: httpx2.Request) -> None:
                """Set the connect timeout: google-genai has only one limit for the whole request."""
                limits = request.extensions.get("timeout", {})
                request.extensions["timeout"] = {**limits, "connect": self.connect_timeout}

            http.event_hooks["request"].append(limit_connecting)
        own_tls = arguments.get("verify")  # for websockets google-genai takes it as `ssl`
        own_key = self.api_key.get_secret_value() if self.api_key else None
        changes = {
            "base_url": self.base_url or options.base_url,
            "httpx_async_client": options.httpx_async_client or http,
            "client_args": {"verify": tls()} | (options.client_args or {}),
            "async_client_args": {
                "ssl": own_tls if isinstance(own_tls, ssl.SSLContext) else tls(),
                "create_connection": WithoutRedirects,
                **arguments,
            },
            "retry_options": None,  # google-genai's retries ignore Retry-After
        }
        client_arguments: dict[str, Any] = {
            "vertexai": vertex,
            # Vertex AI takes credentials, or a key of its own: GEMINI_API_KEY of the environment is for the Gemini API.
            "api_key": own_key if vertex else key,
            **self.client_kwargs,
            "http_options": options.model_copy(update=changes),
        }
        try:
            client = genai.Client(**client_arguments)
        except (TypeError, AttributeError, LookupError) as error:
            raise ConfigurationError(f"Gemini: client_kwargs: {redacted_excerpt(str(error))}") from None
        return _Connection(client, http)

    @property
    def limits(self) -> Limits:
        """Time limits from the fields; attempts also from `http_options.retry_options`."""
        return replace(super().limits, retry_options=self.retry_options or self._options.retry_options)

    def address(self) -> str | None:
        """`base_url`, else that of `http_options`."""
        return self.base_url or self._options.base_url or None

    def refusal(self, error: Exception, /) -> Refusal | AdkNbError | None:
        """Convert google-genai's errors for refusals, missing credentials and invalid requests."""
        if isinstance(error, APIError) and not isinstance(error, UnknownApiResponseError):
            untyped = cast(Any, error)
            details, response = json.dumps(untyped.details), untyped.response
            body = ": ".join(str(text) for text in (error.status, error.message) if text)
            return Refusal(
                status=error.code,
                body=redacted_excerpt(body or details),
                retry_after=_retry_after(response, details),
                is_quota_error=error.code == 429 and bool(_DAILY_QUOTA.search(details)),
                # Gemini refuses a wrong key with HTTP 400, not 401; the reason is in the details.
                wrong_key="API_KEY_INVALID" in details,
                hint=redirect_hint(response),
            )
        if isinstance(error, GoogleAuthError):
            return MissingKeyError(
                f"Vertex AI refused your credentials for model {self.model!r} "
                f"({redacted_excerpt(str(error))}); type in a terminal: gcloud auth application-default login"
            )
        # google-genai checks the request with plain ValueErrors, before it is sent.
        if isinstance(error, ValueError) and not isinstance(error, _ANSWER_ERRORS):
            return ConfigurationError(
                f"model {self.model!r} does not take this request: {redacted_excerpt(str(error))}"
            )
        return None


class _Connection:
    """A client and its connection pool."""

    def __init__(self, client: genai.Client, http: httpx2.AsyncClient) -> None:
        self.client = client
        self._http = http

    async def aclose(self) -> None:
        """Close both."""
        # google-genai closes no HTTP client that was passed to it.
        self.client.close()
        await self._http.aclose()


_shared_connections: PerLoop[_Connection] = PerLoop()
"""Shared by all models with the same settings: many agents have a model object each."""


_ANSWER_ERRORS = (UnknownApiResponseError, json.JSONDecodeError, ValidationError)
"""ValueErrors of google-genai for a malformed answer; its other ValueErrors are for the request."""
_DAILY_QUOTA = re.compile(r'"quotaId": "[^"]*PerDay')
"""The refusal names a daily quota. Source: https://ai.google.dev/gemini-api/docs/rate-limits."""
_RETRY_DELAY = re.compile(r'"retryDelay": "(\d+(?:\.\d+)?)s"')
"""Delay in google.rpc.RetryInfo. Source: https://cloud.google.com/apis/design/errors."""


class _ChunkAssembler(ResponseStream):
    """Assembles the chunks of google-genai."""

    def add(self, piece: Any) -> LlmResponse | None:
        """Add a GenerateContentResponse; returns the part of it that can be shown already."""
        return super().add(LlmResponse.create(piece))


def _retry_after(response: Any, details: str) -> float | None:
    """Seconds to wait, from the Retry-After header, else from the body."""
    headers: Any = getattr(response, "headers", None) or {}
    # The Gemini API sends the delay in the body alone; gateways before it send the header.
    if (header := headers.get("retry-after")) and (seconds := seconds_of(header)) is not None:
        return seconds
    match = _RETRY_DELAY.search(details)
    return float(match[1]) if match else None
