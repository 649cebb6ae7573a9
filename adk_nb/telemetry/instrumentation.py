"""Begin and end to make spans. Imports OpenTelemetry only when asked."""

import os
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from adk_nb.errors import ConfigurationError
from adk_nb.lazy import face, require
from adk_nb.redaction import remember_url
from adk_nb.runtime import observer
from adk_nb.telemetry.conventions import CONVENTIONS, VERSIONS, Version

PACKAGE = "'adk-nb[otel]'"
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Asks for content, also of other instrumentations."""
_PATH = "/v1/traces"
_SECRET_PARTS = re.compile(r"(?<=://)[^@/]*@|(?<==)[^&#]+")

_late, _ = face(
    __name__,
    {
        "Destination": "adk_nb.telemetry.otlp",
        "new_provider": "adk_nb.telemetry.otlp",
        "Recorder": "adk_nb.telemetry.recorder",
        "SpanObserver": "adk_nb.telemetry.spans",
    },
)
_close: Callable[[], None] | None = None
"""Closes the way to the present endpoint."""


def instrument(
    endpoint: str | None = None,
    *,
    tracer_provider: Any = None,
    content: bool | None = None,
    conventions: Version = "latest",
) -> None:
    """Make spans of all runs of this process from now on; a second call replaces the first.

    A span's parent is the span that is current where the run begins, else the one that TRACEPARENT names in the
    environment. Spans are made by `tracer_provider`, else by the provider that the program has set for OpenTelemetry
    as a whole, else by one of this package's own.

    Args:
        endpoint: Send spans over OTLP to this address, such as `http://localhost:4318`. Headers, such as a key, are
            those of OTEL_EXPORTER_OTLP_HEADERS. None: the providers' own processors send them.
        tracer_provider: An `opentelemetry.trace.TracerProvider`.
        content: Add messages, instructions, arguments, results and the texts of errors, without known secrets. None:
            only if OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it.
        conventions: Version of the names: the latest, or 1.36 for what was built on `gen_ai.system`.

    Raises:
        ConfigurationError: The endpoint is not an address, or there is no such version.
        MissingExtraError: OpenTelemetry is not installed.
    """
    global _close
    if conventions not in VERSIONS:
        raise ConfigurationError(
            f"conventions={conventions!r} is not a version of the conventions; write one of {VERSIONS}"
        )
    api: Any = require("opentelemetry.trace", package=PACKAGE)
    destination = None
    if endpoint:
        safe = check_endpoint(endpoint)
        destination = _late("Destination")(traces_address(endpoint), safe)
    provider = tracer_provider or api.get_tracer_provider()
    if destination:
        # The interface alone has no processors: nobody has set a provider.
        if not hasattr(provider, "add_span_processor"):
            provider = _late("new_provider")()
        provider.add_span_processor(destination)
    uninstrument()
    _close = destination.shutdown if destination else None
    tracer = api.get_tracer("adk_nb", tracer_provider=provider)
    has_content = _asks_for_content() if content is None else content
    recorder = _late("Recorder")(tracer, CONVENTIONS[conventions], has_content=has_content)
    observer.registered = _late("SpanObserver")(recorder)


def uninstrument() -> None:
    """Make no more spans; those that have ended are sent. Harmless without `instrument`."""
    global _close
    observer.registered = None
    close, _close = _close, None
    if close:
        close()


def check_endpoint(endpoint: str) -> str:
    """The endpoint without its credentials, to be shown; they become known secrets.

    Raises:
        ConfigurationError: It is no http or https address.
        MissingExtraError: OpenTelemetry is not installed.
    """
    address = traces_address(endpoint)
    # Another package may have brought OpenTelemetry's interface alone.
    require("opentelemetry.sdk.trace", package=PACKAGE)
    require("opentelemetry.exporter.otlp.proto.http.trace_exporter", package=PACKAGE)
    remember_url(address)
    return without_credentials(endpoint.strip())


def traces_address(endpoint: str) -> str:
    """The address that takes spans at an endpoint.

    Raises:
        ConfigurationError: It is no http or https address.
    """
    text = endpoint.strip()
    safe = without_credentials(text)[:100]
    parts = _parse(text)
    if parts is None:
        rest = re.sub(r"^[a-z+.-]*:/+", "", safe, flags=re.IGNORECASE)
        guess = f"http://{rest or 'localhost:4318'}"
        raise ConfigurationError(f"{safe!r} is not an address for OTLP over HTTP; write {guess!r}")
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(_PATH) else path + _PATH, fragment="").geturl()


def _parse(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if is_address else None


def without_credentials(address: str) -> str:
    """An address to be shown: with `***` for user, password and the values of its query."""
    return _SECRET_PARTS.sub(lambda match: "***@" if match[0].endswith("@") else "***", address)


def _asks_for_content() -> bool:
    return os.environ.get(CONTENT_VARIABLE, "").strip().lower() in ("true", "1", "span_only", "span_and_event")
