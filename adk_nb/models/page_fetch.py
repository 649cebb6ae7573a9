"""HTTP by the `fetch` of the page, for Python in a browser."""

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Any

import httpx2

from adk_nb.concurrency.single_thread import IN_A_BROWSER
from adk_nb.lazy import require

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
