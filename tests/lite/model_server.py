"""A server of models on loopback, as a page may ask it: CORS, and answers that stream, a piece at a time.

Sources: https://fetch.spec.whatwg.org/#http-cors-protocol, https://platform.openai.com/docs/api-reference/chat-streaming,
https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECES = ("It is ", "raining.")
WAIT = 60
"""Seconds until the second piece goes out by itself."""


class ModelServer:
    """Answers every question with `PIECES`; the second waits until `rest` is set. `redirects_to`: or sends it there."""

    def __init__(self, redirects_to: "ModelServer | None" = None) -> None:
        self.redirects_to = redirects_to
        self.asked = False
        """True after any request, those for permission included."""
        self.headers: list[dict[str, str]] = []
        """Of each question, with names in lower case."""
        self.rest = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"models": self}))
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    @contextmanager
    def running(self) -> Iterator["ModelServer"]:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        yield self
        self.rest.set()
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    models: ModelServer

    def do_OPTIONS(self) -> None:
        self.models.asked = True
        self._begin(204)

    def do_POST(self) -> None:
        self.models.asked = True
        self.rfile.read(int(self.headers["Content-Length"]))
        self.models.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.models.redirects_to:
            self._begin(307)
            return
        self._begin(200)
        for number, text in enumerate(PIECES):
            if number:
                self.models.rest.wait(WAIT)
            self._send(_openai(text) if self.path.startswith("/v1/chat") else _gemini(text, number))
        if self.path.startswith("/v1/chat"):
            self._send("[DONE]")

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _begin(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Methods", "POST")
        self.send_header("Access-Control-Allow-Headers", self.headers.get("Access-Control-Request-Headers", "*"))
        self.send_header("Content-Type", "text/event-stream")
        if status == 307 and self.models.redirects_to:
            self.send_header("Location", f"{self.models.redirects_to.url}{self.path}")
        self.end_headers()

    def _send(self, data: Any) -> None:
        self.wfile.write(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
        self.wfile.flush()


def _openai(text: str) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    if text == PIECES[-1]:
        choice["finish_reason"] = "stop"
    return {"id": "a1", "object": "chat.completion.chunk", "created": 1, "model": "local", "choices": [choice]}


def _gemini(text: str, number: int) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
    if number:
        candidate["finishReason"] = "STOP"
    return {"candidates": [candidate], "modelVersion": "gemini-local"}
