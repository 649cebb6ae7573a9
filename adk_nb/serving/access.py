"""Access control: requests need the token, this machine's own name as host, and a body of a bounded size."""

import re
from collections.abc import Collection
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.authentication import AuthCredentials, SimpleUser
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from adk_nb.a2a import gate
from adk_nb.redaction import remember

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request, files in it included."""
USER = "user"
"""The owner of the sessions of protocols that know no users: whoever has the token."""
_PAGE_SCHEMES = {"ws": "http", "wss": "https"}
"""Scheme of a WebSocket -> that of the page that opens it, in its header `Origin`."""
_PORT = re.compile(r":\d+$")
_COOKIE_SECONDS = 12 * 3600
_NO_TOKEN = "no valid token; send it as the header 'Authorization: Bearer TOKEN'"


class Access:
    """Lets in requests with the token, in `Authorization: Bearer`, or in the cookie that a page got for it.

    A page cannot send the header: its address may end in `?token=...` once, which is answered with a cookie and a
    redirect to the address without it.

    Args:
        app: Gets what is let in.
        token: The secret; hidden in errors and logs from now on.
        max_body: Bytes of a request.
        hosts: Names that requests may be for, beside those of this machine.
    """

    def __init__(self, app: ASGIApp, token: str, max_body: int = MAX_BODY, hosts: Collection[str] = ()) -> None:
        remember(token)
        self._hosts = {name.lower() for name in hosts}
        self._app = app
        self._token = token
        self._max_body = max_body
        self._too_large = f"the request is larger than {max_body:,} bytes; send less"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if (refusal := self._refusal(scope, headers)) is not None:
            await refusal(scope, receive, send)
            return
        scope["user"], scope["auth"] = SimpleUser(USER), AuthCredentials()
        if scope["type"] == "websocket":  # the server bounds its messages
            await self._app(scope, receive, send)
            return
        late = f"no body came within {gate.BODY_SECONDS:g} seconds; send it"
        await self._app(scope, gate.bounded(receive, self._max_body, HTTPException, late, self._too_large), send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The error response to a request that is not let in; None: the request is let in."""
        scheme = str(scope.get("scheme", "http"))
        if not (gate.is_for_this_machine(headers) or self._is_for_named(headers)):
            hosts = ", ".join(headers.getlist("host"))
            return problem(403, f"host {hosts[:80]!r} is not this machine; call http://127.0.0.1")
        if origin := gate.foreign_page(headers, _PAGE_SCHEMES.get(scheme, scheme)):
            return problem(403, f"a page of {origin} may not call this; open it from its own address")
        sent = gate.sent_token(headers)
        if not headers.get("authorization"):
            if (led_on := self._exchange(scope)) is not None:
                return led_on  # with the cookie, too: the token does not stay in the address
            cookies: SimpleCookie = SimpleCookie()
            with suppress(CookieError):
                cookies.load(headers.get("cookie", ""))
                cookie = cookies.get(_cookie_name(scope))
                sent = str(cookie.value) if cookie else None
        if not gate.is_same(sent, self._token):
            return problem(401, _NO_TOKEN, {"WWW-Authenticate": "Bearer"})
        if gate.is_too_long(headers, self._max_body):
            return problem(413, self._too_large)
        return None

    def _is_for_named(self, headers: Headers) -> bool:
        named = [host.rpartition(":")[0] if _PORT.search(host) else host for host in headers.getlist("host")]
        return len(named) == 1 and named[0].lower() in self._hosts

    def _exchange(self, scope: Scope) -> Response | None:
        """The redirect that turns the token in a page's address into a cookie; None: there is no valid token."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        sent = [value for name, value in query if name == "token"]
        if scope.get("method") not in ("GET", "HEAD") or len(sent) != 1 or not gate.is_same(sent[0], self._token):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope["path"].lstrip("/\\")  # `//elsewhere` would be the address of another machine
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(
            _cookie_name(scope), self._token, max_age=_COOKIE_SECONDS, path="/", httponly=True, samesite="strict",
            secure=scope.get("scheme") == "https",
        )  # fmt: skip
        return answer


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An error in the format of FastAPI, and so of ADK's server: `{"detail": ...}`."""
    return JSONResponse({"detail": detail}, status, headers)


def _cookie_name(scope: Scope) -> str:
    server = scope.get("server") or ("", "")
    # Browsers send a cookie to every port of its host (RFC 6265, 8.5), so each server needs its own name.
    return f"adk_nb_{server[1]}"
