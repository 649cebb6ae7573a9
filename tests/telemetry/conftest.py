"""Spans of runs, kept in this process."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adk_nb import telemetry


class Spans:
    """What was exported since the last look."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def taken(self) -> list[ReadableSpan]:
        """In the order in which they began."""
        spans = sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        self._exporter.clear()
        return spans

    def tree(self) -> list[str]:
        """Names, indented below their parents."""
        return tree(self.taken())

    def one(self, name: str) -> ReadableSpan:
        [span] = [span for span in self.taken() if span.name == name]
        return span


def tree(spans: list[ReadableSpan]) -> list[str]:
    known = {span.context.span_id for span in spans if span.context}

    def below(parent: int | None, depth: int) -> Iterator[str]:
        for span in spans:
            above = span.parent.span_id if span.parent and span.parent.span_id in known else None
            if above == parent and span.context:
                yield "  " * depth + span.name
                yield from below(span.context.span_id, depth + 1)

    return list(below(None, 0))


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRACEPARENT", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "OTEL_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def spans() -> Iterator[Spans]:
    kept = Spans()
    telemetry.instrument(tracer_provider=kept.provider)
    yield kept
    telemetry.uninstrument()
    kept.provider.shutdown()
