"""Begin a span, keep it current while its work runs, and end it with its error."""

import os
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextvars import Token
from typing import Any, Protocol, TypeVar

from opentelemetry import trace
from opentelemetry.context import Context as Ambient
from opentelemetry.context import attach, detach, get_current
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from adk_nb.redaction import without_known
from adk_nb.telemetry import content
from adk_nb.telemetry.conventions import ERROR, Conventions, error_type

Item_contra = TypeVar("Item_contra", contravariant=True)
Item = TypeVar("Item")
Value = TypeVar("Value")


class Watch(Protocol[Item_contra]):
    """The span of a stream, which notes each item and the outcome."""

    def begin(self) -> Span:
        """Start the span."""
        ...

    def see(self, item: Item_contra, /) -> None:
        """Note an item."""
        ...

    def end(self) -> None:
        """Note the outcome; the span is still open."""
        ...


class Recorder:
    """The tracer, and the options of its spans."""

    def __init__(self, tracer: Tracer, conventions: Conventions, *, has_content: bool) -> None:
        """`has_content`: add messages, arguments, results and the texts of errors."""
        self._tracer = tracer
        self.conventions = conventions
        self.has_content = has_content
        self._process_context = _process_context()

    @property
    def has_content_attributes(self) -> bool:
        """True: content is added, as attributes."""
        return self.has_content and self.conventions.has_content_attributes

    def start(
        self,
        name: str,
        attributes: Mapping[str, Any],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: Ambient | None = None,
        links: Sequence[Link] = (),
    ) -> Span:
        """Start a span; known secrets are hidden.

        `parent`: by default the span that is current, else that of the surrounding process.
        """
        parent = self.parent() if parent is None else parent
        return self._tracer.start_span(without_known(name), parent, kind, without_known({**attributes}), links)

    def parent(self) -> Ambient | None:
        """The context of a new span. None: the current one."""
        if self._process_context is None or trace.get_current_span().get_span_context().is_valid:
            return None
        return self._process_context

    async def stream(self, watch: Watch[Item], items: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
        """Yield `items` in the span of `watch`.

        The span is current only while an item is computed, never while the reader has one: readers may go on in
        another task, and a token of one context cannot be given back in another.
        """
        span = watch.begin()
        context = trace.set_span_in_context(span, get_current())
        token: Token[Ambient] | None = attach(context)
        try:
            async for item in items:
                detach(token)
                token = None
                watch.see(item)
                yield item
                token = attach(context)
        except GeneratorExit:  # the reader left; that is no error
            raise
        except BaseException as error:
            self.fail(span, error)
            raise
        finally:
            token = token or attach(context)
            try:
                await items.aclose()
            finally:
                detach(token)
                if span.is_recording():
                    watch.end()
                span.end()

    async def result(self, span: Span, work: Awaitable[Value]) -> Value:
        """Await `work` in a span; the caller ends it."""
        token = attach(trace.set_span_in_context(span, get_current()))
        try:
            return await work
        except BaseException as error:
            self.fail(span, error)
            raise
        finally:
            detach(token)

    def fail(self, span: Span, error: BaseException) -> None:
        """Set the span's status and the type of its error. The message may hold anything, and counts as content."""
        span.set_attribute(ERROR, error_type(error))
        message = content.error_text(error) if self.has_content else None
        span.set_status(Status(StatusCode.ERROR, message))


def _process_context() -> Ambient | None:
    """The span of the surrounding process. None: the environment names none.

    Source: https://opentelemetry.io/docs/specs/otel/context/env-carriers/.
    """
    carrier = {name.lower(): os.environ[name] for name in ("TRACEPARENT", "TRACESTATE") if name in os.environ}
    context = TraceContextTextMapPropagator().extract(carrier)
    return context if trace.get_current_span(context).get_span_context().is_valid else None
