"""An authorization server on this machine, for tests: authorize, token, refresh, discovery. It checks its requests."""

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

CLIENT, CLIENT_SECRET = "the-client", "the-clients-secret"
REDIRECT = "http://localhost/callback"


class AuthServer:
    """What it knows, and what it was asked; `url` is where it is."""

    def __init__(self) -> None:
        self.codes: dict[str, dict[str, str]] = {}
        self.refresh_tokens: set[str] = set()
        self.access_tokens: set[str] = set()
        self.asked: list[dict[str, str]] = []
        """What token requests held, oldest first."""
        self.lives = 3600
        """Seconds that an access token holds."""
        self.url = ""
        self.broken = False
        """True: it answers 500 to every request for a token."""
        self.issuer = ""
        self.discovery: Any = None
        """What it sends in place of its discovery document, if it is not None."""
        self.names_itself = False
        """True: it says that each of its answers has an `iss`."""
        self.arrived = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        """Cleared: token requests wait until it is set."""

    def let_in(self, uri: str) -> str:
        """What a person's browser is sent to after they said yes at `uri`."""
        request = {key: value[0] for key, value in parse_qs(urlsplit(uri).query).items()}
        assert request["response_type"] == "code" and request["client_id"] == CLIENT, request
        code = secrets.token_urlsafe(16)
        self.codes[code] = request
        return f"{request.get('redirect_uri', REDIRECT)}?{urlencode({'code': code, 'state': request['state']})}"

    def tokens(self, *, refresh: bool = True) -> dict[str, Any]:
        access = "access-" + secrets.token_urlsafe(16)
        self.access_tokens.add(access)
        values: dict[str, Any] = {"access_token": access, "token_type": "Bearer", "expires_in": self.lives}
        if refresh:
            values["refresh_token"] = "refresh-" + secrets.token_urlsafe(16)
            self.refresh_tokens.add(values["refresh_token"])
        return values

    def answer(self, query: dict[str, str], client: str | None) -> tuple[int, dict[str, Any]]:
        self.asked.append(query)
        self.arrived.set()
        assert self.go_on.wait(30)
        if self.broken:
            return 500, {}
        grant = query.get("grant_type")
        if grant == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            return (200, self.tokens(refresh=False)) if query.get("assertion") else (400, {"error": "invalid_grant"})
        if client not in (f"{CLIENT}:{CLIENT_SECRET}", f"{CLIENT}:"):
            return 401, {"error": "invalid_client", "error_description": f"unknown client {client}"}
        if grant == "client_credentials" and client == f"{CLIENT}:{CLIENT_SECRET}":
            return 200, self.tokens(refresh=False)
        if grant == "refresh_token" and (old := query.get("refresh_token", "")) in self.refresh_tokens:
            self.refresh_tokens.remove(old)
            return 200, self.tokens()
        if grant == "authorization_code" and self._is_good(query):
            return 200, self.tokens()
        return 400, {"error": "invalid_grant"}

    def _is_good(self, query: dict[str, str]) -> bool:
        value = self.codes.pop(query.get("code", ""), None)
        if value is None or value.get("redirect_uri") != query.get("redirect_uri"):
            return False
        digest = hashlib.sha256(query.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return value["code_challenge_method"] == "S256" and value["code_challenge"] == challenge


@contextmanager
def auth_server() -> Iterator[AuthServer]:
    server = AuthServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            request = {key: value[0] for key, value in parse_qs(body).items()}
            authorization = self.headers.get("Authorization", "")
            client = base64.b64decode(authorization[6:]).decode() if authorization.startswith("Basic ") else None
            self._say(
                *server.answer(request, client or f"{request.get('client_id')}:{request.get('client_secret', '')}")
            )

        def do_GET(self) -> None:
            if self.path.startswith("/authorize?"):
                return self._send_back()
            url = server.url
            result = {"authorization_endpoint": f"{url}/authorize", "token_endpoint": f"{url}/token"}
            names_itself = {"authorization_response_iss_parameter_supported": server.names_itself}
            document = {"issuer": server.issuer or url, **result, **names_itself}
            self._say(200, document if server.discovery is None else server.discovery)

        def _send_back(self) -> None:
            self.send_response(302)
            self.send_header("Location", server.let_in(f"{server.url}{self.path}"))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _say(self, status: int, response: Any) -> None:
            data = json.dumps(response).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
