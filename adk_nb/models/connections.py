"""Validation of URLs; connection pools, one for each event loop, closed with it; what their clients share; and a page's
own connections.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Hashable
from contextlib import contextmanager
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Generic, Protocol, TypeVar

import httpx2

from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.models.http_address import guess_url
from adk_nb.redaction import hidden

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Source: RFC 9110, 5.6.2, token."""
HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
"""Source: RFC 9110, 5.5, field-value, without its obsolete bytes above ASCII."""
_HOST = re.compile(rb"[0-9A-Za-z.:_-]+")
_URL_START = re.compile(r"https?://[^/]|\{\{\s*\$")


class Closable(Protocol):
    """A resource with an async `aclose`."""

    async def aclose(self) -> None:
        """Close the resource."""
        ...


T = TypeVar("T", bound=Closable)


class PerLoop(Generic[T]):
    """Resources of the running loop: opened on first use, then shared by later calls on the same loop.

    They are closed when the loop ends through `asyncio.run` or `loop.shutdown_asyncgens()`, or when nothing refers to
    the PerLoop any more. A copy starts empty.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[asyncio.AbstractEventLoop, Hashable], tuple[AsyncGenerator[T, None], T]] = {}

    def __reduce__(self) -> tuple[type["PerLoop[T]"], tuple[()]]:
        return type(self), ()

    async def get(self, settings: Hashable, make: Callable[[], T]) -> T:
        """The resource of this loop for `settings`.

        Args:
            settings: Settings of the resource; each has its own.
            make: Called on the first use.
        """
        key = (asyncio.get_running_loop(), settings)
        if key not in self._open:
            for loop, old_settings in list(self._open):
                # A loop that was closed without `shutdown_asyncgens` left its resources here.
                if loop.is_closed():
                    self._open.pop((loop, old_settings), None)
            # `anext` returns without waiting, so no other task opens the same resource meanwhile.
            holder = _hold_open(make())
            self._open[key] = holder, await anext(holder)
        return self._open[key][1]


async def _hold_open(resource: T) -> AsyncGenerator[T, None]:
    """Yield the resource, then wait: a loop closes its open generators before it ends, which closes the resource."""
    try:
        yield resource
    finally:
        await resource.aclose()


@cache
def tls() -> ssl.SSLContext | bool:
    """The TLS context of all connections: reading the certificates takes 70 ms. In a browser, that of the page."""
    if IN_A_BROWSER:
        return True
    return httpx2.create_ssl_context()


def http_client() -> httpx2.AsyncClient:
    """A connection pool for a vendor's package.

    It follows no redirect: to another host, httpx2 drops `Authorization`, but no other header that holds a key.
    """
    return httpx2.AsyncClient(transport=transport_of_page(), verify=tls(), follow_redirects=False, timeout=None)


@cache
def own_tls() -> ssl.SSLContext:
    """The TLS context of isolated clients, without certificates of the environment; reading takes 70 ms."""
    return httpx2.create_ssl_context(trust_env=False)


def isolated_client(transport: httpx2.AsyncBaseTransport, timeout: httpx2.Timeout | None = None) -> httpx2.AsyncClient:
    """A client that takes no proxies from the environment, follows no redirects and keeps no cookies."""
    return httpx2.AsyncClient(
        transport=transport,
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        # The client is shared by all users of an agent: cookies of one must not be sent for another.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


def check_url(url: str, owner: str) -> None:
    """Check the start of a URL whose placeholders may not be filled yet.

    Args:
        url: The URL, or a template of one (see `http_messages.TemplateValues`).
        owner: What the URL belongs to, for errors.

    Raises:
        ConfigurationError: It cannot be an http URL.
    """
    if not _URL_START.match(url):
        raise ConfigurationError(
            f"{owner}: its url must start with http:// or https:// and a host, got {hidden(url)[:200]!r}"
            + (f"; write {hidden(guess)[:200]}" if (guess := guess_url(url)) else "")
        )
    if "{{" not in url:
        parse_url(url, owner)


def parse_url(url: str, owner: str) -> httpx2.URL:
    """Parse a URL that requests are sent to.

    Args:
        url: The URL, filled.
        owner: What the URL belongs to, for errors.

    Raises:
        ConfigurationError: It has no valid scheme, host or port.
    """
    try:
        address = httpx2.URL(url)
        if address.scheme in ("http", "https") and _HOST.fullmatch(address.raw_host) and (address.port or 80) < 65_536:
            return address
        reason = "its scheme, host or port is invalid"
    except httpx2.InvalidURL as error:
        reason = hidden(str(error))
    raise ConfigurationError(f"{owner}: its url is invalid: {reason}; write for example http://127.0.0.1:8000/chat")


# ---- in a browser


_REFUSED_HEADERS = frozenset(["accept-encoding", "connection", "content-length", "host", "user-agent"])
"""Set by the browser itself. Source: https://fetch.spec.whatwg.org/#forbidden-request-header; `user-agent` may be sent,
but few servers allow it to a page."""
_REDIRECT = 302
"""Stands for every status of a redirect: a page is told neither that nor its target. Source:
https://fetch.spec.whatwg.org/#concept-filtered-response-opaque-redirect."""
_UNREACHED = "no server answers there, or it does not allow this page to ask (CORS)"
"""A page is not told which of them. Source: https://fetch.spec.whatwg.org/#concept-network-error."""


class PageFetch(httpx2.AsyncBaseTransport):
    """httpx2's transport for a browser: bodies stream, and a request ends when its reader leaves.

    It follows no redirect, as the page's own `fetch` would: to another host that drops `Authorization` and cookies, but
    no other header that holds a key. A redirect has the status 302 here, and no `location`.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; its response streams."""
        js, ffi = require("js", package="pyodide-py"), require("pyodide.ffi", package="pyodide-py")
        body = await request.aread()
        abort = js.AbortController.new()
        options = {
            "method": request.method,
            "headers": [[name, text] for name, text in request.headers.items() if name not in _REFUSED_HEADERS],
            "body": body or None,
            "signal": abort.signal,
            "redirect": "manual",
            "credentials": "omit",
        }
        with _errors_of_page(request, _seconds(request, "connect"), abort, httpx2.ConnectTimeout, httpx2.ConnectError):
            response = await js.fetch(str(request.url), ffi.to_js(options, dict_converter=js.Object.fromEntries))
        if response.type == "opaqueredirect":
            return httpx2.Response(_REDIRECT, request=request)
        # Without that of its encoding, which the page has undone.
        headers = [(name, text) for name, text in response.headers.entries() if name != "content-encoding"]
        return httpx2.Response(response.status, headers=headers, stream=_Body(request, response.body, abort))


class _Body(httpx2.AsyncByteStream):
    """The bytes of a response, as they come."""

    def __init__(self, request: httpx2.Request, body: Any, abort: Any) -> None:
        self._request = request
        self._reader = body and body.getReader()  # null for a status without a body
        self._abort = abort

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seconds = _seconds(self._request, "read")
        while self._reader:
            with _errors_of_page(self._request, seconds, self._abort, httpx2.ReadTimeout, httpx2.ReadError):
                piece = await self._reader.read()
            if piece.done:
                return
            yield piece.value.to_bytes()

    async def aclose(self) -> None:
        """End the request, if it has not ended."""
        self._abort.abort()


def _seconds(request: httpx2.Request, part: str) -> float | None:
    """The limit of a part of the request; None or 0: there is none."""
    limits: dict[str, float | None] = request.extensions.get("timeout") or {}
    return limits.get(part)


@contextmanager
def _errors_of_page(
    request: httpx2.Request,
    seconds: float | None,
    abort: Any,
    timeout_error: type[httpx2.TimeoutException],
    broken_error: type[httpx2.TransportError],
) -> Generator[None]:
    """Abort after `seconds`; raise the page's errors as httpx2's, and abort when the task is cancelled."""
    js_error: Any = require("pyodide.ffi", package="pyodide-py").JsException
    timer = asyncio.get_running_loop().call_later(seconds, abort.abort) if seconds else None
    try:
        yield
    except asyncio.CancelledError:
        abort.abort()
        raise
    except js_error as error:
        if error.name == "AbortError":
            raise timeout_error(f"no answer in {seconds or 0:g} s", request=request) from error
        raise broken_error(_UNREACHED, request=request) from error
    finally:
        if timer:
            timer.cancel()


def transport_of_page() -> PageFetch | None:
    """The transport for a client; None where sockets exist, and httpx2 chooses."""
    return PageFetch() if IN_A_BROWSER else None
