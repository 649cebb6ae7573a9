"""Send spans over OTLP, without slowing or failing what they are about."""

import atexit
import logging
import os
import threading
import time
from collections.abc import Sequence

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
_END_SECONDS = 3.0
"""How long the end of the process waits for the last batch."""

_sending = threading.local()


class Destination(SpanProcessor):
    """Batches of spans to one endpoint. A provider of the user's keeps it for good, so it can be closed on its own."""

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
        if self._exporter.is_failing:
            self._exporter.shutdown()
        self._batches.shutdown()


class _QuietExporter(SpanExporter):
    """Sends spans, and logs one warning when an endpoint begins to fail."""

    def __init__(self, endpoint: str, safe_endpoint: str) -> None:
        self._exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_END_SECONDS)
        self._safe_endpoint = safe_endpoint
        self._failed_at: float | None = None
        self._is_closed = False

    @property
    def is_failing(self) -> bool:
        return self._failed_at is not None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._is_closed or (self._failed_at is not None and time.monotonic() < self._failed_at + _PAUSE_SECONDS):
            return SpanExportResult.FAILURE
        _sending.reasons = reasons = list[str]()
        try:
            result = self._exporter.export(spans)
        finally:
            _sending.reasons = None
        if result is SpanExportResult.SUCCESS:
            self._failed_at = None
            return result
        if self._failed_at is None and not self._is_closed:
            logger.warning("%s", self._warning(reasons))
        self._failed_at = time.monotonic()
        return result

    def _warning(self, reasons: list[str]) -> str:
        reason = hidden(reasons[0])[:200] if reasons else "no reason given"
        hint = "; port 4317 takes gRPC, and OTLP over HTTP has 4318" if ":4317/" in self._safe_endpoint else ""
        return f"no spans reach {self._safe_endpoint}: {reason}{hint}; runs go on without them"

    def shutdown(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._exporter.shutdown()


def _is_from_others(record: logging.LogRecord) -> bool:
    """False for what OTLPSpanExporter logs of this module's own batches: the warning says it once."""
    reasons: list[str] | None = getattr(_sending, "reasons", None)
    if reasons is None:
        return True
    reasons.append(record.getMessage())
    return False


logging.getLogger(OTLPSpanExporter.__module__).addFilter(_is_from_others)


def new_provider() -> TracerProvider:
    """A provider of this package's own; the environment may name the service."""
    is_named = OTEL_SERVICE_NAME in os.environ or f"{SERVICE_NAME}=" in os.environ.get(OTEL_RESOURCE_ATTRIBUTES, "")
    resource = Resource.create() if is_named else Resource.create({SERVICE_NAME: "adk_nb"})
    return TracerProvider(resource=resource, shutdown_on_exit=False)
