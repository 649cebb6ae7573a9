"""The HTTP client of remote agents, and the translation of its errors."""

import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from adk_nb.a2a.protocol import EXTRA, MAX_BYTES
from adk_nb.errors import A2AClientError, A2AConnectionError
from adk_nb.lazy import require
from adk_nb.models.http_address import public_url, redacted_excerpt, redirect_hint
from adk_nb.redaction import hidden

CONNECT_SECONDS = 10.0


def new_client(token: str | None, seconds: float | None) -> Any:
    """A client for the author's address, private networks included, that a2a-sdk uses.

    It follows no redirects, uses no proxy of the environment, and reads no more than `MAX_BYTES` of a reply.

    Args:
        token: Sent as `Authorization: Bearer`.
        seconds: The longest wait for the next bytes. None: no limit.
    """
    # Uncompressed, so that the limit counts the bytes of the content.
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})
    return _httpx().AsyncClient(
        headers=headers,
        timeout=_httpx().Timeout(seconds, connect=CONNECT_SECONDS),
        transport=_bounded_transport()(),
        # A proxy of the environment would see the token.
        trust_env=False,
        # A redirect would take the token to another server.
        follow_redirects=False,
    )


def _httpx() -> ModuleType:
    return require("httpx", package=EXTRA)


@cache
def _certificates() -> ssl.SSLContext:
    """Cached: loading them takes longer than a request."""
    return _httpx().create_ssl_context(trust_env=False)


@cache
def _bounded_transport() -> type[Any]:
    """The class of transports whose replies are bounded."""

    class BoundedStream(_httpx().AsyncByteStream):
        def __init__(self, stream: Any, *, is_packed: bool) -> None:
            self._stream = stream
            self._is_packed = is_packed

        async def __aiter__(self) -> AsyncGenerator[bytes, None]:
            """The chunks; raises an error after `MAX_BYTES`, or if the reply is compressed."""
            if self._is_packed:
                raise _httpx().DecodingError("the reply is compressed, which was not requested, so its size is unknown")
            remaining = MAX_BYTES
            async for chunk in self._stream:
                remaining -= len(chunk)
                if remaining < 0:
                    raise _httpx().DecodingError(f"the reply has more than {MAX_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    class BoundedTransport(_httpx().AsyncBaseTransport):
        def __init__(self) -> None:
            self._transport = _httpx().AsyncHTTPTransport(verify=_certificates(), trust_env=False)

        async def handle_async_request(self, request: Any) -> Any:
            response = await self._transport.handle_async_request(request)
            is_packed = "content-encoding" in response.headers
            response.stream = BoundedStream(response.stream, is_packed=is_packed)
            return response

        async def aclose(self) -> None:
            await self._transport.aclose()

    return BoundedTransport


@contextmanager
def translated_errors(url: str, seconds: float) -> Generator[None, None, None]:
    """Raise errors of httpx and a2a-sdk as errors of adk_nb.

    Raises:
        A2AConnectionError: The connection broke, or there was no answer in time.
        A2AClientError: The agent refused.
    """
    a2a_error = require("a2a.utils.errors", package=EXTRA).A2AError
    parse_error = require("google.protobuf.json_format", package=EXTRA).ParseError
    httpx = _httpx()
    try:
        yield
    except (a2a_error, parse_error, httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
        raise _error_of(error, public_url(url), seconds) from error


def _error_of(error: BaseException, url: str, seconds: float) -> A2AClientError:
    httpx = _httpx()
    # a2a-sdk wraps httpx's errors: the cause has the status.
    cause: Any = error
    while cause is not None and not isinstance(cause, httpx.HTTPError | httpx.InvalidURL | TimeoutError):
        cause = cause.__cause__
    cause = error if cause is None else cause
    reason = hidden(" ".join(str(cause).split()))[:300] or type(cause).__name__
    if isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
        if status in (401, 403):
            return A2AClientError(f"{url!r} refused access: HTTP {status}; RemoteA2aAgent(token=...) sends a token")
        try:
            body = redacted_excerpt(cause.response.text)
        except httpx.StreamError:  # not read
            body = ""
        details = "; ".join(filter(None, (" ".join(body.split())[:200], redirect_hint(cause.response))))
        return A2AClientError(f"{url!r} answered HTTP {status}" + (f": {details}" if details else ""))
    if isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.InvalidURL | httpx.UnsupportedProtocol):
        return A2AConnectionError(f"{url!r} was not reached: {reason}; is the server of that agent running there?")
    if isinstance(cause, httpx.TimeoutException | TimeoutError):
        message = f"{url!r} sent nothing for {seconds:g} seconds; RemoteA2aAgent(timeout=...) waits longer"
        return A2AConnectionError(message)
    if isinstance(cause, httpx.TransportError):
        return A2AConnectionError(f"the connection to {url!r} was lost: {reason}")
    return A2AClientError(f"{url!r} answered: {reason}")
