"""A service on this machine that answers as it is told, path by path, and keeps what it was asked."""

import json
import os
import socket
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """What is sent for one request."""

    body: Any = None
    """Bytes as they are; anything else as JSON."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cut: int | None = None
    """Bytes after which the connection is closed, though more were promised."""
    silent: bool = False
    """Nothing is sent until the server is closed, or the client has gone."""
    drip: bool = False
    """The body comes byte by byte, 5 ms each, until the client has gone."""
    reset: bool = False
    """After `cut` bytes the connection is torn down, as when the server is killed."""


Answers = Callable[[Request], Any]


class Service:
    """Answers each path in order, or with what a function makes of the request."""

    def __init__(self, port: int = 0) -> None:
        """`port`: 0 for a free one."""
        self.asked: list[Request] = []
        self._answers: dict[str, deque[Any]] = defaultdict(deque)
        self._makers: dict[str, Answers] = {}
        self._closed = threading.Event()
        self._came = threading.Condition()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (_Handler,), {"at": self}))
        self._http.daemon_threads = False
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def say(self, path: str, *answers: Any) -> None:
        """Answer the next requests to a path: a dict with status 200, or an `Answer`."""
        self._answers[path] += answers

    def say_now(self, path: str, *answers: Any) -> None:
        """The same, and nothing that was yet to be said."""
        self._answers[path] = deque(answers)

    def make(self, path: str, answer: Answers) -> None:
        self._makers[path] = answer

    def bodies(self, path: str) -> list[Any]:
        """What was asked at a path, oldest first."""
        return [one.body for one in self.asked if one.path == path]

    def once_asked(self, path: str, answer: Any) -> Answers:
        """For `make`: `answer`, but not before somebody has asked at `path`."""

        def wait(_: Request) -> Any:
            with self._came:
                assert self._came.wait_for(lambda: self.bodies(path), 30), f"nobody asked at {path}"
            return answer

        return wait

    def answer(self, asked: Request) -> Answer:
        with self._came:
            self.asked.append(asked)
            self._came.notify_all()
        if self._answers[asked.path]:
            said = self._answers[asked.path].popleft()
        elif asked.path in self._makers:
            said = self._makers[asked.path](asked)
        else:
            said = Answer({"error": f"nothing is left to say at {asked.path}"}, 410)
        return said if isinstance(said, Answer) else Answer(said)

    def wait(self, seconds: float = 5) -> bool:
        """Until it is closed: True."""
        return self._closed.wait(seconds)

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._http.shutdown()
            self._http.server_close()
            self._thread.join(30)

    def __enter__(self) -> "Service":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    at: Service

    def _do(self) -> None:
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Request(self.command, url.path, dict(parse_qsl(url.query)), headers, json.loads(raw) if raw else None)
        self._send(self.at.answer(asked))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do

    def _send(self, answer: Answer) -> None:
        self.close_connection = True  # no connection outlives its request: the server closes at once
        if answer.silent:
            self.at.wait()
            return
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", "Connection": "close", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if answer.drip:
            self._drip(body)
            return
        self.wfile.write(body[: answer.cut])
        if answer.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())  # at once, and not after what is to be said

    def _drip(self, body: bytes) -> None:
        with suppress(OSError):  # the client has gone
            for at in range(len(body)):
                self.wfile.write(body[at : at + 1])
                if self.at.wait(0.005):
                    return

    def log_message(self, format: str, *args: Any) -> None: ...
