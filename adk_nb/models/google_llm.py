"""Gemini, asked through google-genai: the Gemini API with a key, or Vertex AI with Google Cloud credentials."""

import asyncio
import json
import os
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from functools import cache, partial
from typing import Any, Protocol, SupportsIndex, TypeVar, cast

import httpx2
from google import genai
from google.auth.exceptions import GoogleAuthError
from google.genai.errors import APIError, UnknownApiResponseError
from pydantic import Field, PrivateAttr, ValidationError

from adk_nb import types
from adk_nb.errors import (
    ConfigurationError,
    MissingKeyError,
    ModelError,
    ModelHTTPError,
    ModelTimeoutError,
    UnexpectedModelAnswer,
)
from adk_nb.models.attempts import Attempt, told
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.call_ids import all_as_sent
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.models.fitting import fitted
from adk_nb.models.google_access import GEMINI_NAMES, KEY_VARIABLES, key_from_environment, uses_vertex
from adk_nb.models.google_cache import Caches, Caching, Question
from adk_nb.models.google_live import GoogleConnection, Session, WithoutRedirects, live_errors, live_settings
from adk_nb.models.google_schema import with_readable_schema
from adk_nb.models.http_address import redirect_hint
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.own_task import OwnTask
from adk_nb.models.per_loop import PerLoop
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.retrying import BUSY, OUT_OF_QUOTA, ask_again, for_as_long, seconds_of
from adk_nb.models.service_llm import ServiceLlm
from adk_nb.redaction import refuse_pickle, remember_named, remember_url

T = TypeVar("T")
_READ_BY_GOOGLE = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_API_VERSION")
_SEARCHES = ("google_search", "url_context", "google_maps")
_VERTEX_SEARCHES = ("enterprise_web_search", "retrieval")
"""What google-genai refuses to send to the Gemini API."""
_NO_FUNCTIONS_OF_ITS_OWN = types.AutomaticFunctionCallingConfig(disable=True)


class Gemini(ServiceLlm):
    """A Gemini model.

    The key is `api_key`, or GOOGLE_API_KEY, or GEMINI_API_KEY from the environment, when a question is asked. Vertex AI
    needs none, and is asked when GOOGLE_GENAI_USE_VERTEXAI is true, when the model's name begins with `projects/`, and
    with `client_kwargs={"vertexai": True, "project": ..., "location": ...}`.
    """

    model: str = GEMINI_MODEL
    client_kwargs: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """Arguments of google-genai's `Client`: `vertexai`, `project`, `location`, `credentials`. They stand above what the
    environment says."""
    http_options: types.HttpOptions | None = Field(default=None, repr=False)
    """google-genai's own settings: headers, API version, arguments of the HTTP client."""
    _connections: PerLoop["_Connection"] = PrivateAttr(default_factory=PerLoop["_Connection"])

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        options = self.http_options or types.HttpOptions()
        remember_url(options.base_url)
        for arguments in (options.client_args, options.async_client_args):
            remember_named(arguments)
            remember_named((arguments or {}).get("headers"))
        remember_named(options.headers)
        remember_named(self.client_kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.http_options or self.client_kwargs:
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)

    @classmethod
    def supported_models(cls) -> list[str]:
        return list(GEMINI_NAMES)

    @property
    def api_client(self) -> genai.Client:
        """A client of google-genai with these settings, a new one each time. A subclass may bring its own."""
        return self._connect(self._vertex(), self._key()).client

    @property
    def capabilities(self) -> LlmCapabilities:
        # An output schema beside tools: only on Vertex AI, as google-adk 2.13 has it.
        number = re.search(r"gemini-(\d+)", self.model)
        second, vertex = not number or int(number[1]) >= 2, self._vertex()
        # Else the service answers 400: "`function_response.parts` is not supported for this model".
        third = not number or int(number[1]) >= 3
        return LlmCapabilities(
            output_schema_and_tools=vertex and bool(re.search(r"(^|/)gemini-", self.model)),
            code_execution=second,
            media_in_results=third,
            service_tools=(*_SEARCHES, *(_VERTEX_SEARCHES if vertex else ())) if second else (),
            **dict.fromkeys(self.lacks, False),
        )

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        llm_request = fitted(llm_request, self.capabilities)
        client = (await self._client(llm_request)).aio
        question: Question = {
            "model": llm_request.model or self.model,
            "contents": all_as_sent(self.with_a_user_turn(llm_request)),
            "config": with_readable_schema(llm_request.config).model_copy(
                update={"automatic_function_calling": _NO_FUNCTIONS_OF_ITS_OWN}
            ),
        }
        ask = partial(self._streamed if stream else self._whole, cast(_Models, client.models))
        caching = llm_request.cache_config and Caching(cast(Caches, client.caches), llm_request, self._safe)
        asked = caching.answers(question, ask) if caching else ask(question)
        async with OwnTask(asked) if stream else aclosing(asked) as answers:
            async for answer in answers:
                yield answer

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[GoogleConnection, None]:
        model = llm_request.model or self.model
        live: Any = (await self._client(llm_request)).aio.live
        settings = live_settings(llm_request, self.http_options, vertex=self._vertex())
        async with AsyncExitStack() as stack:
            with self._our_errors(model), live_errors(model, self._safe):
                session = await stack.enter_async_context(live.connect(model=model, config=settings))
            yield GoogleConnection(cast(Session, session), model, self._safe)

    async def _whole(self, models: "_Models", question: Question) -> AsyncGenerator[LlmResponse, None]:
        async def ask() -> types.GenerateContentResponse:
            async with asyncio.timeout(self.timeout):
                return await models.generate_content(**question)

        tried: list[Attempt] = []
        with told(tried), self._our_errors(question["model"]):
            answer = await self._patiently(ask, question["model"], tried)
        response = LlmResponse.create(answer)
        if (reason := response.finish_reason) and reason != types.FinishReason.STOP:  # as of a stream
            response.error_code = reason.value
        response.attempts = tried or None
        yield response

    async def _streamed(self, models: "_Models", question: Question) -> AsyncGenerator[LlmResponse, None]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self.total_timeout
        stream = ResponseStream(question["model"])

        async def start() -> tuple[_Chunks, types.GenerateContentResponse | None]:
            async with asyncio.timeout_at(min(loop.time() + self.timeout, end)):
                chunks = cast(_Chunks, await models.generate_content_stream(**question))
                return chunks, await anext(chunks, None)

        tried: list[Attempt] = []
        with told(tried), self._our_errors(question["model"]):
            chunks, chunk = await self._patiently(start, question["model"], tried)
        async with aclosing(chunks):
            while chunk is not None:
                if piece := stream.add(LlmResponse.create(chunk)):
                    yield piece
                with self._our_errors(question["model"], stream):
                    async with asyncio.timeout_at(min(loop.time() + self.stall_timeout, end)):
                        chunk = await anext(chunks, None)
        whole = stream.whole()
        whole.attempts = tried or None
        yield whole

    def _key(self) -> str | None:
        return self.api_key.get_secret_value() if self.api_key else key_from_environment()

    def _vertex(self) -> bool:
        said = self.client_kwargs.get("vertexai", self.client_kwargs.get("enterprise"))
        return bool(said) if said is not None else self.model.startswith("projects/") or uses_vertex()

    async def _client(self, llm_request: LlmRequest) -> genai.Client:
        """The subclass's own client, else this loop's."""
        if type(self).api_client is not Gemini.api_client:
            return self.api_client
        return (await self._connection(llm_request)).client

    async def _connection(self, llm_request: LlmRequest) -> "_Connection":
        """This loop's client, for the key and the settings of this moment."""
        model, vertex, key = llm_request.model or self.model, self._vertex(), self._key()
        if not vertex and not key:
            raise MissingKeyError(
                f"model {model!r} needs a key, and neither {' nor '.join(KEY_VARIABLES)} is set; type: "
                "%key gemini, or, in a script, import os, getpass; "
                f"os.environ[{KEY_VARIABLES[0]!r}] = getpass.getpass() "
                '(https://aistudio.google.com/apikey makes one), or work without a key: model="offline", -m offline'
            )
        about = (vertex, key, self.base_url, self.connect_timeout, *(os.environ.get(name) for name in _READ_BY_GOOGLE))
        connections = self._connections if self.http_options or self.client_kwargs else _shared
        with self._our_errors(model):
            return await connections.get(about, lambda: self._connect(vertex, key))

    def _connect(self, vertex: bool, key: str | None) -> "_Connection":
        options = self.http_options or types.HttpOptions()
        # One HTTP library whatever else is installed: google-genai would pick among three, each with its own errors.
        arguments: dict[str, Any] = options.async_client_args or {}
        defaults: dict[str, Any] = {"follow_redirects": False, "verify": _tls()}  # `x-goog-api-key` would go along
        http = httpx2.AsyncClient(**defaults | arguments)
        if not options.timeout:
            http.event_hooks["request"].append(_connects_within(self.connect_timeout))
        own_tls = arguments.get("verify")  # for websockets too, which google-genai gives a context under another name
        own_key = self.api_key.get_secret_value() if self.api_key else None
        changed = {
            "base_url": self.base_url or options.base_url,
            "httpx_async_client": options.httpx_async_client or http,
            "client_args": {"verify": _tls()} | (options.client_args or {}),
            "async_client_args": {
                "ssl": own_tls if isinstance(own_tls, ssl.SSLContext) else _tls(),
                "create_connection": WithoutRedirects,
                **arguments,
            },
            "retry_options": None,  # google-genai's retries do not read Retry-After; ours do
        }
        given: dict[str, Any] = {"vertexai": vertex, "api_key": own_key if vertex else key} | self.client_kwargs
        client = genai.Client(**given, http_options=options.model_copy(update=changed))
        return _Connection(client, http)

    async def _patiently(self, ask: Callable[[], Awaitable[T]], model: str, tried: list[Attempt]) -> T:
        options = self.retry_options or (self.http_options and self.http_options.retry_options) or None
        statuses = (options and options.http_status_codes) or BUSY
        return await ask_again(
            ask,
            options,
            model=model,
            within=self.retry_seconds,
            passes=lambda error: (
                error.code in statuses and not _is_spent(error)
                if isinstance(error, APIError)
                else isinstance(error, _PASSING)
            ),
            asked_to_wait=lambda error: _asked_to_wait(error) if isinstance(error, APIError) else None,
            tried=tried,
            address=self.base_url or (self.http_options and self.http_options.base_url) or None,
        )

    @contextmanager
    def _our_errors(self, model: str, stream: ResponseStream | None = None) -> Generator[None, None, None]:
        """Turn what google-genai raises inside into this package's errors."""
        try:
            yield
        except APIError as error:
            raise self._refused(error, model) from self._cause(error)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise self._late(error, model, stream) from error
        except (httpx2.HTTPError, OSError) as error:
            why = f"{type(error).__name__}: {self._safe(str(error))}"
            said = stream.broken(why) if stream else f"the service of model {model!r} cannot be reached ({why})"
            raise ModelError(f"{said}; look at the network and at base_url") from self._cause(error)
        except GoogleAuthError as error:
            raise MissingKeyError(
                f"model {model!r} goes through Vertex AI, which refused your credentials ({self._safe(str(error))}); "
                "type in a terminal: gcloud auth application-default login"
            ) from error
        except _NO_ANSWER as error:
            sent = self._safe(f"{error}: {error.doc}" if isinstance(error, json.JSONDecodeError) else str(error))
            if stream:
                raise UnexpectedModelAnswer(stream.broken(f"what came is no answer: {sent}")) from self._cause(error)
            raise UnexpectedModelAnswer(
                f"the service of model {model!r} sent what is no answer of its API: {sent}; ask again"
            ) from self._cause(error)
        except ValueError as error:
            raise ConfigurationError(
                f"model {model!r} cannot be asked this: {self._safe(str(error))}"
            ) from self._cause(error)

    def _refused(self, error: APIError, model: str) -> ModelHTTPError:
        body = ": ".join(str(one) for one in (error.status, error.message) if one)
        wrong_key = error.code in (401, 403) or "API_KEY_INVALID" in json.dumps(_details(error))
        hint = f"look at {KEY_VARIABLES[0]}" if wrong_key else _NEXT.get(error.code, "")
        hint = OUT_OF_QUOTA if _is_spent(error) else redirect_hint(cast(Any, error).response) or hint
        hint = for_as_long(hint, _asked_to_wait(error))
        return ModelHTTPError(error.code, self._safe(body or json.dumps(_details(error))), model, hint=hint)

    def _late(self, error: Exception, model: str, stream: ResponseStream | None) -> ModelTimeoutError:
        if isinstance(error, httpx2.ConnectTimeout):
            within = f"within {self.connect_timeout:g} s"
            return ModelTimeoutError(f"no connection to the service of model {model!r} {within}; look at the network")
        if stream:
            said, limit = stream.broken("nothing more came in time"), f"stall_timeout={self.stall_timeout:g}"
            limit += f" or total_timeout={self.total_timeout:g}"
        else:
            said, limit = f"model {model!r} did not answer in time", f"timeout={self.timeout:g}"
        return ModelTimeoutError(f"{said}; raise Gemini({limit}) if it needs longer")

    def _cause(self, error: Exception) -> Exception | None:
        """The error, for the traceback; None when what it says is too long, or not to be shown."""
        return error if self._safe(str(error)) == str(error) else None

    def _safe(self, text: str) -> str:
        """`text`, cut, without the key and without what URLs carry after a question mark."""
        if key := self._key():
            text = text.replace(key, "***")
        return re.sub(r"(https?://[^\s?\"']+)\?[^\s\"']*", r"\1", text)[:500]


class _Connection:
    """A client, and the pool of connections it works with."""

    def __init__(self, client: genai.Client, http: httpx2.AsyncClient) -> None:
        self.client = client
        self._http = http

    async def aclose(self) -> None:
        self.client.close()
        await self._http.aclose()


_shared: PerLoop[_Connection] = PerLoop()
"""For all models with the same settings: an agent often has a model object of its own."""


class _Models(Protocol):
    """What is used of google-genai's AsyncModels, whose own types are not fully known."""

    async def generate_content(
        self, *, model: str, contents: list[types.Content], config: types.GenerateContentConfig
    ) -> types.GenerateContentResponse: ...

    async def generate_content_stream(
        self, *, model: str, contents: list[types.Content], config: types.GenerateContentConfig
    ) -> AsyncIterator[types.GenerateContentResponse]: ...


_Chunks = AsyncGenerator[types.GenerateContentResponse, None]
_NO_ANSWER = (UnknownApiResponseError, json.JSONDecodeError, ValidationError, TypeError, AttributeError, KeyError)
_NEXT = {404: "look at the model's name", 429: "wait, or look at your quota", 503: "wait, or take another model"}
_PASSING = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout)


@cache
def _tls() -> ssl.SSLContext:
    """One for all connections: reading the certificates takes 70 ms, and google-genai does it three times a client."""
    return httpx2.create_ssl_context()


def _connects_within(seconds: float) -> Callable[[httpx2.Request], Awaitable[None]]:
    """google-genai sends each request without a limit, unless it is given one for everything."""

    async def limit(request: httpx2.Request) -> None:
        request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "connect": seconds}

    return limit


def _asked_to_wait(error: APIError) -> float | None:
    """Seconds, from the Retry-After header or else from the body.

    Source: https://cloud.google.com/apis/design/errors, google.rpc.RetryInfo.
    """
    headers: Any = getattr(cast(Any, error).response, "headers", None) or {}
    if (said := headers.get("retry-after")) and (seconds := seconds_of(said)) is not None:
        return seconds
    found = re.search(r'"retryDelay": "(\d+(?:\.\d+)?)s"', json.dumps(_details(error)))
    return float(found[1]) if found else None


def _is_spent(error: APIError) -> bool:
    """True if the requests of a day are used up. Source: https://ai.google.dev/gemini-api/docs/rate-limits."""
    return error.code == 429 and bool(re.search(r'"quotaId": "[^"]*PerDay', json.dumps(_details(error))))


def _details(error: APIError) -> Any:
    """The body of the answer, as JSON values."""
    return cast(Any, error).details
