"""Access control: requests need the token, this machine's own name as host, and a body of a bounded size."""

import asyncio
import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.authentication import AuthCredentials, SimpleUser
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adk_nb.models.http_address import names_this_machine
from adk_nb.redaction import remember

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request, files in it included."""
BODY_SECONDS = 10.0
"""From the headers of a request to the first byte of its body."""
USER = "user"
"""The owner of the sessions of protocols that know no users: whoever has the token."""
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
    """

    def __init__(self, app: ASGIApp, token: str, max_body: int = MAX_BODY) -> None:
        remember(token)
        self._app = app
        self._token = token
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": "no WebSocket is served here"})
            else:
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if (refusal := self._refusal(scope, headers)) is not None:
            await refusal(scope, receive, send)
            return
        scope["user"], scope["auth"] = SimpleUser(USER), AuthCredentials()
        await self._app(scope, self._bounded(receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The error response to a request that is not let in; None: the request is let in."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not names_this_machine(hosts[0]):
            return problem(403, f"host {', '.join(hosts)[:80]!r} is not this machine; call http://127.0.0.1")
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope.get('scheme', 'http')}://{hosts[0]}":
            return problem(403, f"a page of {origin[:80]!r} may not call this; open it from its own address")
        if not self._is_known(scope, headers):
            return self._exchange(scope) or problem(401, _NO_TOKEN, {"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._max_body:
            return problem(413, self._too_large)
        return None

    @property
    def _too_large(self) -> str:
        return f"the request is larger than {self._max_body:,} bytes; send less"

    def _is_known(self, scope: Scope, headers: Headers) -> bool:
        kind, _, sent = headers.get("authorization", "").partition(" ")
        if kind:
            return kind.lower() == "bearer" and self._is_token(sent.strip())
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        cookie = cookies.get(_cookie_name(scope))
        return cookie is not None and self._is_token(cookie.value)

    def _is_token(self, sent: str) -> bool:
        return hmac.compare_digest(sent.encode("utf-8", "replace"), self._token.encode())

    def _exchange(self, scope: Scope) -> Response | None:
        """The redirect that turns the token in a page's address into a cookie; None: there is no valid token."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        sent = [value for name, value in query if name == "token"]
        if scope["method"] not in ("GET", "HEAD") or len(sent) != 1 or not self._is_token(sent[0]):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope["path"].lstrip("/\\")  # `//elsewhere` would be the address of another machine
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(
            _cookie_name(scope), self._token, max_age=_COOKIE_SECONDS, path="/", httponly=True, samesite="strict"
        )
        return answer

    def _bounded(self, receive: Receive) -> Receive:
        count, is_first = 0, True

        async def bounded() -> Message:
            nonlocal count, is_first
            try:
                # The first is the beginning of the body; a later one may be the end of the connection.
                async with asyncio.timeout(BODY_SECONDS if is_first else None):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, f"no body came within {BODY_SECONDS:g} seconds; send it") from error
            is_first = False
            count += len(message.get("body", b""))
            if count > self._max_body:
                raise HTTPException(413, self._too_large)
            return message

        return bounded


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An error in the format of FastAPI, and so of ADK's server: `{"detail": ...}`."""
    return JSONResponse({"detail": detail}, status, headers)


def _cookie_name(scope: Scope) -> str:
    server = scope.get("server") or ("", "")
    # Browsers send a cookie to every port of its host (RFC 6265, 8.5), so each server needs its own name.
    return f"adk_nb_{server[1]}"
