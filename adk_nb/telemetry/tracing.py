"""ADK's path to the tracer, for spans of your own within those of a run."""

from typing import Any

from adk_nb.lazy import require
from adk_nb.telemetry import instrumentation


class PresentTracer:
    """Makes spans with the provider that `instrument` was given, else with that of the program."""

    def start_span(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Start a span, as an OpenTelemetry `Tracer` does."""
        return self._tracer().start_span(name, *args, **kwargs)

    def start_as_current_span(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Start a span that is current in a `with` block, as an OpenTelemetry `Tracer` does."""
        return self._tracer().start_as_current_span(name, *args, **kwargs)

    def _tracer(self) -> Any:
        api: Any = require("opentelemetry.trace", package=instrumentation.PACKAGE)
        return api.get_tracer("adk_nb", tracer_provider=instrumentation.provider())


tracer = PresentTracer()
