"""An OTLP collector on loopback: what reaches it, decoded."""

import base64
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """Keeps spans, and what came with them."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.logins: set[str] = set()
        self.status = 200
        self.has_request = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.take(self.path, self.headers.get("Authorization", ""), body)
                outer.has_request.set()
                outer.may_answer.wait()
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def take(self, path: str, authorization: str, body: bytes) -> None:
        self.paths.append(path)
        if authorization:
            self.logins.add(base64.b64decode(authorization.removeprefix("Basic ")).decode())
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            fields = {field.key: field.value.string_value for field in resource.resource.attributes}
            self.services.add(fields.get("service.name", ""))
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def collecting() -> Generator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.serve, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.close()
        thread.join()
