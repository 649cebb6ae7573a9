"""The HTTP client of remote agents, and what its errors mean."""

from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from adk_nb.a2a.protocol import EXTRA, MAX_BYTES
from adk_nb.errors import A2AClientError
from adk_nb.lazy import require
from adk_nb.models.http_address import public_url, redacted_excerpt, redirect_hint
from adk_nb.redaction import hidden

CONNECT_SECONDS = 10.0


class LostError(A2AClientError):
    """The connection broke, or nothing came for too long: the task may still go on."""


def new_client(token: str | None, seconds: float) -> Any:
    """A client for the author's address, private networks included, that a2a-sdk uses.

    It follows no redirects, uses no proxy of the environment, and reads no more than `MAX_BYTES` of a reply.

    Args:
        token: Sent as `Authorization: Bearer`.
        seconds: The longest wait for the next bytes.
    """
    httpx = _httpx()
    # Uncompressed, so that the limit counts the bytes of the content.
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})
    return httpx.AsyncClient(
        headers=headers,
        timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
        transport=_bounded_transport(httpx),
        trust_env=False,
        follow_redirects=False,
    )


def _httpx() -> ModuleType:
    return require("httpx", package=EXTRA)


def _bounded_transport(httpx: ModuleType) -> Any:
    """A transport that aborts replies which are too long."""

    class BoundedStream(httpx.AsyncByteStream):
        def __init__(self, stream: Any, *, is_packed: bool) -> None:
            self._stream = stream
            self._is_packed = is_packed

        async def __aiter__(self) -> AsyncGenerator[bytes, None]:
            if self._is_packed:
                raise httpx.DecodingError("the reply is compressed, which was not requested, so its size is unknown")
            remaining = MAX_BYTES
            async for chunk in self._stream:
                remaining -= len(chunk)
                if remaining < 0:
                    raise httpx.DecodingError(f"the reply has more than {MAX_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    transport = httpx.AsyncHTTPTransport(trust_env=False)

    class BoundedTransport(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            response = await transport.handle_async_request(request)
            response.stream = BoundedStream(response.stream, is_packed="content-encoding" in response.headers)
            return response

        async def aclose(self) -> None:
            await transport.aclose()

    return BoundedTransport()


@contextmanager
def explained(url: str, seconds: float) -> Generator[None, None, None]:
    """Raise errors of httpx and a2a-sdk as ours.

    Raises:
        LostError: The connection broke, or there was no answer in time.
        A2AClientError: The agent refused.
    """
    a2a_error = require("a2a.utils.errors", package=EXTRA).A2AError
    try:
        yield
    except (a2a_error, _httpx().HTTPError, _httpx().InvalidURL, TimeoutError) as error:
        raise _error_of(error, public_url(url), seconds) from error


def _error_of(error: BaseException, url: str, seconds: float) -> A2AClientError:
    httpx = _httpx()
    cause: Any = error
    while cause.__cause__ and not isinstance(cause, httpx.HTTPError):
        cause = cause.__cause__
    reason = hidden(" ".join(str(cause).split()))[:300] or type(cause).__name__
    if isinstance(cause, httpx.HTTPStatusError):
        return A2AClientError(_status_message(cause.response, url))
    if isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.InvalidURL | httpx.UnsupportedProtocol):
        return LostError(f"{url!r} was not reached: {reason}; is the server of that agent running there?")
    if isinstance(cause, httpx.TimeoutException | TimeoutError):
        return LostError(f"{url!r} sent nothing for {seconds:g} seconds; RemoteA2aAgent(timeout=...) is longer")
    if isinstance(cause, httpx.TransportError):
        return LostError(f"the connection to {url!r} was lost: {reason}")
    return A2AClientError(f"{url!r} answered: {reason}")


def _status_message(response: Any, url: str) -> str:
    status = response.status_code
    if status in (401, 403):
        return f"{url!r} does not let this in: HTTP {status}; RemoteA2aAgent(token=...) sends a token"
    try:
        body = redacted_excerpt(response.text)
    except _httpx().StreamError:  # not read
        body = ""
    details = "; ".join(filter(None, (" ".join(body.split())[:200], redirect_hint(response))))
    return f"{url!r} answered HTTP {status}" + (f": {details}" if details else "")
