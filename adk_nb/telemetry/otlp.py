"""Send spans over OTLP; a slow or failing endpoint neither slows nor fails the runs."""

import atexit
import logging
import os
import threading
import time
from collections.abc import Sequence
from contextvars import Context, copy_context
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from adk_nb.redaction import hidden

logger = logging.getLogger("adk_nb.telemetry")

SEND_SECONDS = 1.0
"""Interval of the batches: a user looks for a run as soon as it has ended."""
_PAUSE_SECONDS = 10.0
"""After a failed batch, those of the next seconds are dropped: a queue that fills up would slow the runs."""
_TIMEOUT = 5.0
"""Seconds for a batch, with its retries; at the end of the process there are none."""

_sending = threading.local()


class Destination(SpanProcessor):
    """Sends spans in batches to one endpoint.

    It closes by itself, since a provider of the user's keeps its processors for good.
    """

    def __init__(self, endpoint: str, safe_endpoint: str) -> None:
        """`safe_endpoint`: without credentials, for messages."""
        self._exporter = _QuietExporter(endpoint, safe_endpoint)
        self._batches = BatchSpanProcessor(self._exporter, schedule_delay_millis=SEND_SECONDS * 1_000)
        self._is_closed = False
        atexit.register(self.shutdown)

    def on_start(self, span: Span, parent_context: object = None) -> None:
        """Do nothing: a span is sent when it ends."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span."""
        if not self._is_closed:
            self._exporter.note_run()
            self._batches.on_end(span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what is queued."""
        return self._is_closed or self._batches.force_flush(timeout_millis)

    def shutdown(self) -> None:
        """Send what is queued, if the endpoint has answered lately, and close."""
        if self._is_closed:
            return
        self._is_closed = True
        atexit.unregister(self.shutdown)
        self._exporter.end_retries()
        self._batches.shutdown()


class _QuietExporter(SpanExporter):
    """Sends spans, and logs one warning when an endpoint begins to fail."""

    def __init__(self, endpoint: str, safe_endpoint: str) -> None:
        self._exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_TIMEOUT)
        self._safe_endpoint = safe_endpoint
        self._run: Context | None = None
        """The context of the first span that is queued; output in it belongs to the cell of its run."""
        self._place = copy_context()
        """The context of the first span in the present batch."""
        self._reason = ""
        """Why the present batch failed first."""
        self._has_warned = False
        self._failed_at: float | None = None
        self._is_ending = False
        self._is_closed = False

    def end_retries(self) -> None:
        """Try the batches that are left once, or not at all if the last one failed."""
        self._is_ending = True
        if self._failed_at is not None:
            self.shutdown()

    def note_run(self) -> None:
        """Note the current context as that of a span which is queued now."""
        if self._run is None:
            self._run = copy_context()

    def note(self, record: logging.LogRecord) -> None:
        """Note what the exporter logs; it logs each failed attempt before it waits for the next."""
        arguments, late = record.args or (), f"no answer within {_TIMEOUT:g} s"
        # The errors of requests are OSErrors; the exporter also logs batches that it cannot encode.
        error = next((argument for argument in arguments if isinstance(argument, OSError)), None)
        status = next((argument for argument in arguments if isinstance(argument, int)), None)
        if error is not None:
            name = type(error).__name__
            details = "" if name == "ConnectionError" else f" ({name})"
            reason = late if "Timeout" in name else f"no connection{details}"
        elif "timeout" in record.getMessage():  # the end of the retries, of which none has said why
            reason = late
        else:
            reason = f"HTTP {status}" if status else hidden(record.getMessage())[:200]
        self._reason = self._reason or reason
        # A busy service may take the next attempt; one that nobody has started is worth a word at once.
        if error:
            self._warn()
        if self._is_ending:
            self.shutdown()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._place, self._run = self._run or self._place, None
        if self._is_closed or (self._failed_at is not None and time.monotonic() < self._failed_at + _PAUSE_SECONDS):
            return SpanExportResult.FAILURE
        self._reason, _sending.exporter = "", self
        try:
            result = self._exporter.export(spans)
        finally:
            _sending.exporter = None
        if result is SpanExportResult.SUCCESS:
            self._failed_at, self._has_warned = None, False
            return result
        self._warn()
        self._failed_at = time.monotonic()
        return result

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            parts, hint = urlsplit(self._safe_endpoint), ""
            if parts.port == 4317:
                hint = "; port 4317 takes gRPC, and OTLP over HTTP has 4318"
            elif parts.port is None and parts.scheme == "http":
                hint = "; without a port it is 80, and OTLP over HTTP has 4318"
            warning = "no spans reach %s: %s%s; runs go on without them"
            # The thread of the batches has no cell: what it prints would be below the cell that runs by then.
            self._place.run(logger.warning, warning, self._safe_endpoint, self._reason, hint)

    def shutdown(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._exporter.shutdown()


def _is_from_others(record: logging.LogRecord) -> bool:
    """False for what OTLPSpanExporter logs of this module's own batches: the warning says it once."""
    exporter: _QuietExporter | None = getattr(_sending, "exporter", None)
    if exporter:
        exporter.note(record)
    return exporter is None


logging.getLogger(OTLPSpanExporter.__module__).addFilter(_is_from_others)


def new_provider() -> TracerProvider:
    """A provider of this package's own; the environment may name the service."""
    is_named = OTEL_SERVICE_NAME in os.environ or f"{SERVICE_NAME}=" in os.environ.get(OTEL_RESOURCE_ATTRIBUTES, "")
    resource = Resource.create() if is_named else Resource.create({SERVICE_NAME: "adk_nb"})
    return TracerProvider(resource=resource, shutdown_on_exit=False)
