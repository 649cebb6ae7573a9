"""A local stand-in for the Gemini API, so that google-genai's own client talks real HTTP to it.

Paths and bodies are those of https://ai.google.dev/api/generate-content: `models.generateContent`,
`models.streamGenerateContent` with `alt=sse`, of https://ai.google.dev/api/caching: `cachedContents.create` and
`.delete`, and https://cloud.google.com/apis/design/errors for refusals.
"""

import json
import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

USAGE = {"promptTokenCount": 4, "candidatesTokenCount": 6, "thoughtsTokenCount": 2, "totalTokenCount": 12}


def answer(*parts: str | dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A GenerateContentResponse with one candidate; strings are text parts."""
    candidate: dict[str, Any] = {"index": 0}
    if parts:
        spelled = [{"text": part} if isinstance(part, str) else part for part in parts]
        candidate["content"] = {"role": "model", "parts": spelled}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate | more.pop("candidate", {})], "modelVersion": "gemini-2.5-flash", **more}


def calls(name: str, **args: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}}


def refusal(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def sse(*bodies: dict[str, Any]) -> bytes:
    """As the service frames a stream: one `data:` line a piece, an empty line after it."""
    return b"".join(b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\r\n\r\n" for body in bodies)


def chunked(body: bytes, *, ended: bool = True) -> bytes:
    """HTTP's framing of a body whose length is not known beforehand: one chunk a line."""
    framed = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in body.splitlines(keepends=True))
    return framed + (b"0\r\n\r\n" if ended else b"")


@dataclass
class Reply:
    """What is sent for one request."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    framing: str = "length"
    """`length`, `chunked`, or `close`: the body ends where the connection does."""
    cut: int | None = None
    """Bytes of the framed body that are sent before the connection is closed."""
    then_wait: bool = False
    """Whether the connection is left open, silent, after the body, until the client goes."""


@dataclass
class Request:
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: dict[str, Any]


class GeminiServer:
    """Answers in order, and keeps what it was asked."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.requests: list[Request] = []
        self.connections = 0
        self.open_sockets: set[socket.socket] = set()
        self.client_left = threading.Event()
        self.silent = threading.Event()
        """Set when it has sent what it has to send, and leaves the connection open."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"at": self}))
        self._http.daemon_threads = False  # closing waits until every connection was let go
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def say(self, *bodies: dict[str, Any], **more: Any) -> None:
        """Answer the next request: whole with one body, as a stream with several or with `stream=True`."""
        if more.pop("stream", len(bodies) > 1):
            headers = {"Content-Type": "text/event-stream"}
            self.replies.append(Reply(sse(*bodies), headers=headers, **{"framing": "chunked"} | more))
        else:
            self.replies.append(Reply(json.dumps(bodies[0]).encode(), **more))

    def __enter__(self) -> "GeminiServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        for connection in [*self.open_sockets]:  # a client keeps one for its next request
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        self._http.server_close()
        self._thread.join(30)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5  # a connection that a client forgets is a failing test, not a hanging one
    at: GeminiServer

    def setup(self) -> None:
        super().setup()
        self.at.connections += 1
        self.at.open_sockets.add(self.connection)

    def finish(self) -> None:
        self.at.open_sockets.discard(self.connection)
        super().finish()

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.at.requests.append(Request(url.path, parse_qs(url.query), headers, body))
        self._send(self.at.replies.popleft())

    def do_DELETE(self) -> None:
        self._without_body("DELETE")

    def do_GET(self) -> None:
        self._without_body("GET")

    def _without_body(self, method: str) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.at.requests.append(Request(f"{method} {urlsplit(self.path).path}", {}, headers, {}))
        self._send(self.at.replies.popleft())

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        body = reply.body
        if reply.framing == "length":
            self.send_header("Content-Length", str(len(body)))
        elif reply.framing == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            body = chunked(body, ended=not reply.then_wait)
        self.end_headers()
        self.wfile.write(body[: reply.cut])
        self.wfile.flush()
        if reply.then_wait:
            self.at.silent.set()
        if reply.then_wait and self._client_leaves():
            self.at.client_left.set()
        self.close_connection = reply.then_wait or reply.framing == "close" or reply.cut is not None

    def _client_leaves(self) -> bool:
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:  # it left before it had read all
            return True

    def log_message(self, format: str, *args: Any) -> None:
        pass
