"""An LlmRequest as JSON to a service of one's own, which answers what to say and which tools to call."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ssl import SSLContext
from typing import Any, Literal, SupportsIndex

import httpx2
from pydantic import Field

from adk_nb import types
from adk_nb.errors import ConfigurationError, InvalidResponse, ServiceRefused, ServiceUnreachable
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.connections import PerLoop, check_url, parsed
from adk_nb.models.http_address import public_url, redirect_hint
from adk_nb.models.http_messages import ASK_A_PERSON, body_of, response_of
from adk_nb.models.http_template import Filling, check_template
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.pipeline import Assembler, Failure, Limits, Payload, WholeAnswer, run
from adk_nb.models.retrying import seconds_of
from adk_nb.redaction import hidden, refuse_pickle, remember, remember_named, remember_url, without_known

MAX_BYTES = 8 * 1024 * 1024
"""Of an answer, unpacked."""
ATTEMPTS = 3
_HEADER = re.compile(r"[\t\x20-\x7e]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
"""Of others, or of several, a small piece could be unpacked to more than there is memory."""
_IN_WORKFLOWS = {"timeout": "startToCloseTimeout", "total_timeout": "scheduleToCloseTimeout"}
_HINTS = {
    401: "look at its headers, and at the secret in them",
    404: "look at its url",
    405: "look at its method",
    429: "ask it less often, or let it be asked again more often, and later",
}


class HttpLlm(BaseLlm):
    """A model that is a service of your own: `LlmAgent(name="guide", model=HttpLlm("http://127.0.0.1:8000/chat"))`.

    Each request is JSON with `messages`, `tools` and `state`, the session's. The answer is JSON with any of `content`,
    `toolCalls`, `exitFlow`, `escalate`, `hitlRequest` and `waitForUserInput`; plain text is content. After one of the
    last four the service is not asked again in this turn. What it answers is not streamed.

    It is asked directly: proxies, certificates and passwords of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE`,
    `.netrc`) are not used, so that a conversation goes nowhere that `url` does not say.

    In `url`, `headers` and `body`, `{{$secret('name')}}` stands for one of `secrets` or of the environment, and
    `{{state.key}}` for what the session's state holds; both are looked up when a request is sent.

    Raises:
        ConfigurationError: A field is unknown, missing or wrong.
    """

    model: str = ""
    """What errors call it. Empty: the host and path of `url`."""
    url: str
    """Where it is. Redirects are not followed."""
    method: Literal["POST", "GET", "PUT", "PATCH", "DELETE"] = "POST"
    """`GET`: the request's JSON is the query's `payload`."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    body: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """JSON that is sent beside `messages`, `tools` and `state`."""
    secrets: dict[str, str] = Field(default_factory=dict[str, str], repr=False, exclude=True)
    """Name -> what `{{$secret('name')}}` stands for."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds for one attempt, to the end of the answer."""
    total_timeout: float = Field(default=300.0, gt=0)
    """Seconds for all attempts and the waits between them."""
    retry_options: types.HttpRetryOptions | None = None
    """After a lost connection, a timeout, or HTTP 408, 425, 429 or 5xx: 3 attempts, 1 s and then twice as long each, or
    as long as `Retry-After` asks for. A service that has done its work twice must be able to bear that."""
    expose_system_state: bool = False
    """The service is also told the engine's own state keys."""

    def __init__(self, url: str | None = None, /, **fields: Any) -> None:
        try:
            super().__init__(**({"url": url} if url is not None else {}), **fields)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; write HttpLlm('https://.../chat', method='POST')") from None
        self._check()
        self.model = self.model or public_url(self.url).rpartition("://")[2]

    @classmethod
    def named(cls, model: str) -> "HttpLlm":
        return cls(model)

    @property
    def _label(self) -> str:
        """In errors: where it is, and its name if it has one."""
        url = public_url(self.url)
        return url if url.rpartition("://")[2] == self.model else f"{self.model} at {url}"

    def _check(self) -> None:
        remember(*self.secrets.values())
        remember_named(self.headers)
        remember_url(self.url)
        owner = f"HttpLlm {hidden(self.url)[:200]!r}"
        check_url(self.url, owner)
        check_template([self.url, self.headers, self.body], owner)
        for name in self.headers:
            if not _HEADER_NAME.fullmatch(name):
                raise ConfigurationError(f"{owner}: header {name!r:.80} has a character that no header's name can have")

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.secrets or self.headers:
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return without_known(super().__repr__())

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async with aclosing(run(self, self.payload(llm_request, self.model), stream=False)) as answers:
            async for response in answers:
                if any(call.name == ASK_A_PERSON for call in response.get_function_calls()):
                    self._check_can_ask(llm_request)
                yield response

    # ---- an adapter's part

    @property
    def limits(self) -> Limits:
        return Limits(
            timeout=self.timeout,
            total_timeout=self.total_timeout,
            retry_seconds=self.total_timeout,
            retry_options=self.retry_options,
            attempts=ATTEMPTS,
            address=self.url,
        )

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        filling = Filling(request.session_state or {}, self.secrets)
        headers = {name: filling.text(value) for name, value in self.headers.items()}
        remember_named(headers)
        for name, value in headers.items():
            if not _HEADER.fullmatch(value):
                raise ConfigurationError(
                    f"model {self._label!r}: the value of header {name!r} has a character that none can have, such as "
                    "a line break"
                )
        body = filling.json(self.body) | body_of(request, system_state=self.expose_system_state)
        sent = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        arguments: Payload = {"model": model, "method": self.method, "url": filling.url(self.url)}
        remember_url(arguments["url"])
        url = parsed(arguments["url"], f"model {self._label!r}")
        defaults = {"Accept": "application/json", "Accept-Encoding": "gzip, deflate"}
        if self.method == "GET":
            arguments["url"] = self._with_payload(url, sent.decode())
            return arguments | {"headers": defaults | headers}
        return arguments | {"headers": defaults | {"Content-Type": "application/json"} | headers, "content": sent}

    def _with_payload(self, url: httpx2.URL, payload: str) -> str:
        try:
            return str(url.copy_merge_params({"payload": payload}))
        except httpx2.InvalidURL:
            raise ConfigurationError(
                f"model {self._label!r}: {len(payload):,} characters are too many for the query of an address; "
                "write method='POST'"
            ) from None

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[tuple[bytes, str], None]:
        """The body of a success, and its media type."""
        client = await _clients.get(None, _client)
        async with client.stream(**{name: value for name, value in payload.items() if name != "model"}) as response:
            body = await _read(response)
        if not response.is_success:
            text = hidden(body[:8_000].decode("utf-8", "replace")) or response.reason_phrase
            refused = ServiceRefused(response.status_code, text, self._label, hint=_hint(response))
            refused.retry_after = seconds_of(response.headers.get("retry-after", ""))
            raise refused
        if len(body) > MAX_BYTES:
            raise self._invalid(f"the answer has more than {MAX_BYTES:,} bytes")
        yield body, response.headers.get("content-type", "")

    def assembler(self, payload: Payload, /, *, stream: bool) -> Assembler:
        return WholeAnswer(self._response)

    def failure(self, error: Exception, payload: Payload, started: Assembler | None, /) -> Failure:
        if isinstance(error, ServiceRefused):
            codes = self.retry_options and self.retry_options.http_status_codes
            passes = error.status in codes if codes else error.status in (408, 425, 429) or error.status >= 500
            return Failure(error=error, passes=passes, retry_after=error.retry_after)
        if isinstance(error, httpx2.TimeoutException | TimeoutError):
            limit, seconds = self.limits.first
            message = f"it did not answer within {seconds:g} s; raise its {limit}, in a workflow {_IN_WORKFLOWS[limit]}"
            return Failure(error=self._unreachable(message), passes=True)
        if isinstance(error, httpx2.DecodingError):
            return Failure(error=self._invalid(f"the answer cannot be unpacked: {hidden(str(error))}"))
        if isinstance(error, httpx2.HTTPError):
            reason = f"{type(error).__name__}: {hidden(str(error)) or 'the connection broke'}"
            unreachable = self._unreachable(f"{reason}; look whether it runs, and at its url")
            return Failure(
                error=unreachable, passes=isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError)
            )
        return Failure(error=error)

    def _response(self, answer: tuple[bytes, str]) -> LlmResponse:
        try:
            return response_of(*answer)
        except InvalidResponse as error:
            raise self._invalid(hidden(str(error))) from None

    def _check_can_ask(self, request: LlmRequest) -> None:
        if ASK_A_PERSON not in request.tools_dict:
            raise self._invalid(
                "it sent a hitlRequest, and its agent has no way to ask a person; "
                "write LlmAgent(tools=[ask_a_person], ...), from adk_nb.graph_compose"
            )

    def _unreachable(self, reason: str) -> ServiceUnreachable:
        return ServiceUnreachable(f"the service of model {self._label!r} gave no answer: {reason}")

    def _invalid(self, problem: str) -> InvalidResponse:
        return InvalidResponse(f"the service of model {self._label!r} answered what cannot be used: {problem}")


async def _read(response: httpx2.Response) -> bytes:
    """The body, or its first `MAX_BYTES` and one more."""
    if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
        raise httpx2.DecodingError("it is packed in another way than gzip or deflate")
    pieces, capacity = list[bytes](), MAX_BYTES + 1
    async for piece in response.aiter_bytes():
        pieces.append(piece[:capacity])
        capacity -= len(piece)
        if capacity <= 0:
            break
    return b"".join(pieces)


def _hint(response: httpx2.Response) -> str:
    """What to do about a refusal."""
    status, url = response.status_code, response.request.url
    if status in (404, 405) and url.path in ("", "/"):
        guess = public_url(str(url)).rstrip("/")
        return f"{_HINTS[status]}; did you mean {guess}/v1, a server that speaks as OpenAI's does?"
    if redirected := redirect_hint(response):
        return redirected
    if status >= 500:
        return "look at what the service itself logged"
    return _HINTS.get(status, "") or (_HINTS[401] if status == 403 else "look at what it says it wants")


_clients: PerLoop[httpx2.AsyncClient] = PerLoop()
"""One for all models: they have the same settings, and agents of one service share its connections."""


def _client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=httpx2.AsyncHTTPTransport(
            verify=_certificates(),
            trust_env=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        ),
        timeout=None,  # each attempt has a limit of its own
        follow_redirects=False,
        trust_env=False,
        # A client sends on what a server has set, and it is shared by all who talk to an agent.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


@cache
def _certificates() -> SSLContext:
    """Read once: that takes longer than a request."""
    return httpx2.create_ssl_context(trust_env=False)
