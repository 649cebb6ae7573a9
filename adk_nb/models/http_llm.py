"""A model that is a JSON service of your own."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar, Literal

import httpx2
from pydantic import Field

from adk_nb import types
from adk_nb.errors import ConfigurationError, InvalidResponse, ServiceRefused, ServiceUnreachable
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.connections import (
    HEADER_NAME,
    HEADER_VALUE,
    PerLoop,
    check_url,
    isolated_client,
    own_tls,
    parse_url,
    transport_of_page,
)
from adk_nb.models.http_address import public_url, redirect_hint
from adk_nb.models.http_messages import ASK_A_PERSON, TemplateValues, check_template, parse_response, request_body
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.pipeline import Assembler, Failure, Payload, WholeAnswer, run
from adk_nb.models.retrying import seconds_of
from adk_nb.models.service_llm import Refusal, ServiceLlm
from adk_nb.redaction import hidden, remember, remember_named, remember_url

MAX_BYTES = 8 * 1024 * 1024
"""Maximum size of a decompressed answer."""
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
"""Accepted encodings: others, or several at once, could decompress to more than the memory."""
_IN_WORKFLOWS = {"timeout": "startToCloseTimeout", "total_timeout": "scheduleToCloseTimeout"}
_HINTS = {
    401: "check its headers, and the secret in them",
    404: "check its url",
    405: "check its method",
    429: "call it less often, or raise the attempts and delays of retry_options",
}


class HttpLlm(ServiceLlm):
    """A model that is a service of your own: `LlmAgent(name="guide", model=HttpLlm("http://127.0.0.1:8000/chat"))`.

    A request is JSON with `messages`, `tools` and `state`, the session's. The answer is JSON with any of `content`,
    `toolCalls`, `exitFlow`, `escalate`, `hitlRequest` and `waitForUserInput`; plain text is content. After one of the
    last four the service is not called again in this turn. Answers are not streamed.

    Proxies, certificates and passwords of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE`, `.netrc`) are not used: a
    conversation is sent to `url` only.

    In `url`, `headers` and `body`, `{{$secret('name')}}` is replaced by one of `secrets` or of the environment, and
    `{{state.key}}` by a value of the session's state, when a request is sent.

    Raises:
        ConfigurationError: A field is unknown, missing or invalid.
    """

    model: str = ""
    """Name for errors. Empty: host and path of `url`."""
    url: str
    """URL of the service. Redirects are not followed."""
    method: Literal["POST", "GET", "PUT", "PATCH", "DELETE"] = "POST"
    """With `GET` the JSON is in the query, as `payload`."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    body: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """Additional fields of the request."""
    secrets: dict[str, str] = Field(default_factory=dict[str, str], repr=False, exclude=True)
    """Name -> value of `{{$secret('name')}}`."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds for one attempt, to the end of the answer."""
    total_timeout: float = Field(default=300.0, gt=0)
    """Seconds for all attempts and the waits between them."""
    retry_options: types.HttpRetryOptions | None = None
    """After a lost connection, a timeout, or HTTP 408, 425, 429 or 5xx: 3 attempts, after 1 s and then twice as long,
    or as `Retry-After` asks. The service must be idempotent: it may get a request twice."""
    expose_system_state: bool = False
    """Send the engine's own state keys, too."""

    ATTEMPTS: ClassVar[int] = 3
    TEMPORARY_STATUSES: ClassVar[tuple[int, ...]] = (408, 425, 429, *range(500, 1000))
    SECRET_FIELDS: ClassVar[tuple[str, ...]] = ("secrets", "headers")

    def __init__(self, url: str | None = None, /, **fields: Any) -> None:
        try:
            super().__init__(**({"url": url} if url is not None else {}), **fields)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; write HttpLlm('https://.../chat', method='POST')") from None
        remember(*self.secrets.values())
        remember_named(self.headers)
        remember_url(self.url)
        owner = f"HttpLlm {hidden(self.url)[:200]!r}"
        check_url(self.url, owner)
        check_template([self.url, self.headers, self.body], owner)
        for name in self.headers:
            if not HEADER_NAME.fullmatch(name):
                raise ConfigurationError(f"{owner}: the header name {name!r:.80} has an invalid character")
        self.model = self.model or public_url(self.url).rpartition("://")[2]

    @classmethod
    def from_name(cls, model: str) -> "HttpLlm":
        """Create the model for a URL."""
        return cls(model)

    @property
    def _label(self) -> str:
        """URL, and the name if there is one, for errors."""
        url = public_url(self.url)
        return url if url.rpartition("://")[2] == self.model else f"{self.model} at {url}"

    @property
    def capabilities(self) -> LlmCapabilities:
        """The defaults, without tools that a service runs itself."""
        return LlmCapabilities()

    def unsent_settings(self, llm_request: LlmRequest) -> dict[str, str]:
        """All settings: the service gets messages, tools and state."""
        config = llm_request.config
        names = type(config).model_fields.keys() - {"system_instruction", "tools", "automatic_function_calling"}
        reason = "the service gets messages, tools and state alone"
        return {name: reason for name in sorted(names) if getattr(config, name) not in (None, [], {})}

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer with one complete response.

        Raises:
            ServiceRefused: The service answered with an HTTP error.
            ServiceUnreachable: The service did not answer, or not in time.
            InvalidResponse: The answer breaks the contract.
        """
        async with aclosing(run(self, self.payload(llm_request, self.model), stream=False)) as answers:
            async for response in answers:
                asks = any(call.name == ASK_A_PERSON for call in response.get_function_calls())
                if asks and ASK_A_PERSON not in llm_request.tools_dict:
                    raise self._invalid(
                        "it sent a hitlRequest, and its agent has no tool to ask the user; "
                        "write LlmAgent(tools=[ask_a_person], ...), from adk_nb.graph_compose"
                    )
                yield response

    # ---- the service's part

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        """Arguments of httpx2's `stream`, with all placeholders replaced.

        Raises:
            ConfigurationError: A replaced header or URL is invalid.
            MissingKeyError: A secret is missing.
        """
        values = TemplateValues(request.session_state or {}, self.secrets)
        headers = {name: values.text(value) for name, value in self.headers.items()}
        remember_named(headers)
        for name, value in headers.items():
            if not HEADER_VALUE.fullmatch(value):
                raise ConfigurationError(
                    f"model {self._label!r}: the value of header {name!r} has an invalid character, maybe a line break"
                )
        body = values.json(self.body) | request_body(request, system_state=self.expose_system_state)
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        arguments: Payload = {"model": model, "method": self.method, "url": values.url(self.url)}
        remember_url(arguments["url"])
        url = parse_url(arguments["url"], f"model {self._label!r}")
        # httpx2 would offer brotli and zstd, too, which `_read` refuses.
        defaults = {"Accept": "application/json", "Accept-Encoding": "gzip, deflate"}
        if self.method == "GET":
            try:
                arguments["url"] = str(url.copy_merge_params({"payload": content.decode()}))
            except httpx2.InvalidURL:
                raise ConfigurationError(
                    f"model {self._label!r}: {len(content.decode()):,} characters are too many for the query of a URL; "
                    "write method='POST'"
                ) from None
            return arguments | {"headers": defaults | headers}
        return arguments | {"headers": defaults | {"Content-Type": "application/json"} | headers, "content": content}

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[tuple[bytes, str], None]:
        """Send the request; yield the body of a success and its media type."""
        client = await _clients.get(None, _client)
        async with client.stream(**{name: value for name, value in payload.items() if name != "model"}) as response:
            body = await _read(response)
        # Only now: the body says why the service refused.
        if not response.is_success:
            text = hidden(body[:8_000].decode("utf-8", "replace")) or response.reason_phrase
            raise httpx2.HTTPStatusError(text, request=response.request, response=response)
        if len(body) > MAX_BYTES:
            raise self._invalid(f"the answer has more than {MAX_BYTES:,} bytes")
        yield body, response.headers.get("content-type", "")

    def assembler(self, payload: Payload, /, *, stream: bool) -> Assembler:
        """Create an assembler for the body."""
        return WholeAnswer(self._response)

    def address(self) -> str:
        """`url`."""
        return self.url

    def refusal(self, error: Exception, /) -> Refusal | InvalidResponse | None:
        """Convert an error status, and a body that cannot be decompressed."""
        if isinstance(error, httpx2.DecodingError):
            return self._invalid(f"the answer cannot be decompressed: {hidden(str(error))}")
        if not isinstance(error, httpx2.HTTPStatusError):
            return None
        response = error.response
        return Refusal(
            status=response.status_code,
            body=str(error),
            retry_after=seconds_of(response.headers.get("retry-after", "")),
            hint=_hint(response),
        )

    def refused(self, refusal: Refusal, /, *_: object) -> Failure:
        """The failure for an error status."""
        status, retry_after = refusal.status or 0, refusal.retry_after
        error = ServiceRefused(status, refusal.body, self._label, hint=refusal.hint)
        error.retry_after = retry_after
        return Failure(error=error, is_temporary=self.is_busy(status), retry_after=retry_after)

    def timed_out(self, error: Exception, /, *_: object) -> Failure:
        """The failure for a timeout; the service is idempotent, so it is asked again."""
        limit, seconds = self.limits.until_first_chunk
        message = f"it did not answer within {seconds:g} s; raise {limit}, in a workflow {_IN_WORKFLOWS[limit]}"
        return Failure(error=self._unreachable(message), is_temporary=True)

    def unreached(self, error: Exception, /, *_: object) -> ServiceUnreachable:
        """The error for a connection that broke or was not made."""
        reason = hidden(str(error)) or "the connection broke"
        return self._unreachable(f"{type(error).__name__}: {reason}; check that it runs, and its url")

    def _response(self, answer: tuple[bytes, str]) -> LlmResponse:
        try:
            return parse_response(*answer)
        except InvalidResponse as error:
            raise self._invalid(hidden(str(error))) from None

    def _unreachable(self, reason: str) -> ServiceUnreachable:
        return ServiceUnreachable(f"the service of model {self._label!r} did not answer: {reason}")

    def _invalid(self, problem: str) -> InvalidResponse:
        return InvalidResponse(f"the service of model {self._label!r} sent an invalid answer: {problem}")


async def _read(response: httpx2.Response) -> bytes:
    """The body, at most one byte more than `MAX_BYTES`."""
    if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
        raise httpx2.DecodingError("its encoding is neither gzip nor deflate")
    pieces, capacity = list[bytes](), MAX_BYTES + 1
    async for piece in response.aiter_bytes():
        pieces.append(piece[:capacity])
        capacity -= len(piece)
        if capacity <= 0:
            break
    return b"".join(pieces)


def _hint(response: httpx2.Response) -> str:
    """The next step after a refusal."""
    status, url = response.status_code, response.request.url
    if status in (404, 405) and url.path in ("", "/"):
        guess = public_url(str(url)).rstrip("/")
        return f"{_HINTS[status]}; did you mean {guess}/v1, a server with OpenAI's API?"
    if redirected := redirect_hint(response):
        return redirected
    if status >= 500:
        return "see the log of the service"
    return _HINTS.get(status, "") or (_HINTS[401] if status == 403 else "check the request against its message")


_clients: PerLoop[httpx2.AsyncClient] = PerLoop()
"""Shared by all models: agents of one service share its connections."""


def _client() -> httpx2.AsyncClient:
    """A client without a timeout: the pipeline limits each attempt."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    transport = transport_of_page()
    return isolated_client(transport or httpx2.AsyncHTTPTransport(verify=own_tls(), trust_env=False, limits=limits))
