"""Start and stop making spans; OpenTelemetry is imported only then."""

import os
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from adk_nb.errors import ConfigurationError
from adk_nb.lazy import late, require
from adk_nb.redaction import remember_url
from adk_nb.runtime import observer
from adk_nb.telemetry.conventions import CONVENTIONS, VERSIONS, Version

PACKAGE = "adk-nb[otel]"
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Environment variable that asks all GenAI instrumentations for content."""
_SIGNAL_PATH = re.compile(r"/v1(/(traces|metrics|logs))?$")
"""The end of a path that names a signal, or the version alone. Source: OTLP 1.10, "OTLP/HTTP Request"."""
_ADDRESS_LIKE = re.compile(
    r"(?:(?P<scheme>[a-z]*)(?::/+|//))?(?P<login>[^@/\s]*@)?(?P<host>\[[^\]]*\]|[^:/?#\s\[]*)"
    r"(?::(?P<port>\d+))?(?P<path>/[^\s?#]*)?.*",
    re.IGNORECASE,
)
_SECRET_PARTS = re.compile(r"(?:(?<=://)|^)[^@/]*@|(?<==)[^&#]+")

_late = late(
    {
        "Destination": "adk_nb.telemetry.otlp",
        "new_provider": "adk_nb.telemetry.otlp",
        "Recorder": "adk_nb.telemetry.recorder",
        "SpanObserver": "adk_nb.telemetry.spans",
    },
)
_close: Callable[[], None] | None = None
"""Closes the connection to the present endpoint."""
_provider: Any = None
"""Makes the spans at present. None: nothing does."""


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
        tracer_provider: An `opentelemetry.trace.TracerProvider`. With an endpoint it has to be one that takes
            processors, as that of `opentelemetry.sdk.trace` does: the endpoint gets all of its spans.
        content: Add messages, instructions, arguments, results and the texts of errors, without known secrets. None:
            only if OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it.
        conventions: Version of the names: the latest, or 1.36 for what was built on `gen_ai.system`.

    Raises:
        ConfigurationError: The endpoint is not an address, the provider is none or takes no processors, or there is
            no such version.
        MissingExtraError: OpenTelemetry is not installed.
    """
    global _close, _provider
    if conventions not in VERSIONS:
        raise ConfigurationError(
            f"conventions={conventions!r} is not a version of the conventions; write one of {VERSIONS}"
        )
    api: Any = require("opentelemetry.trace", package=PACKAGE)
    provider = api.get_tracer_provider() if tracer_provider is None else tracer_provider
    destination = None
    if tracer_provider is not None:
        if not hasattr(provider, "get_tracer") or isinstance(provider, type):
            raise ConfigurationError(
                f"tracer_provider={provider!r:.80} is not a TracerProvider; write "
                "opentelemetry.sdk.trace.TracerProvider()"
            )
        if endpoint and not hasattr(provider, "add_span_processor"):
            raise ConfigurationError(
                f"no endpoint can be added to a {type(provider).__name__}, it takes no span processors; leave out "
                "tracer_provider, or pass an opentelemetry.sdk.trace.TracerProvider()"
            )
    if endpoint:
        safe = check_endpoint(endpoint)
        # The interface alone has no processors: nobody has set a provider.
        if not hasattr(provider, "add_span_processor"):
            provider = _late("new_provider")()
        destination = _late("Destination")(traces_address(endpoint), safe)
        provider.add_span_processor(destination)
    uninstrument()
    _close = destination.shutdown if destination else None
    _provider = provider
    tracer = api.get_tracer("adk_nb", tracer_provider=provider)
    asked = os.environ.get(CONTENT_VARIABLE, "").strip().lower() in ("true", "1", "span_only", "span_and_event")
    has_content = asked if content is None else content
    recorder = _late("Recorder")(tracer, CONVENTIONS[conventions], has_content=has_content)
    observer.registered = _late("SpanObserver")(recorder)


def uninstrument() -> None:
    """Make no more spans, after sending those that have ended. Does nothing without `instrument`."""
    global _close, _provider
    observer.registered = _provider = None
    close, _close = _close, None
    if close:
        close()


def provider() -> Any:
    """The `TracerProvider` that makes spans of runs at present. None: nothing does."""
    return _provider


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
    parts = _parse(text)
    if parts is None:
        safe = without_credentials(text)[:100]
        raise ConfigurationError(f"{safe!r} is not an address for OTLP over HTTP; write {_guess(safe)!r}")
    path = _SIGNAL_PATH.sub("", parts.path.rstrip("/")) + "/v1/traces"
    return parts._replace(path=path, fragment="").geturl()


def _parse(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if is_address and not re.search(r"\s", address) else None


def _guess(text: str) -> str:
    """An address that may be meant by what is none."""
    match = _ADDRESS_LIKE.fullmatch(text)
    if not match or not (match["host"] or "").strip("0123456789"):
        return "http://localhost:4318"
    scheme, login, host, port, path = match.group("scheme", "login", "host", "port", "path")
    if port and not 0 < int(port) < 65_536:
        port = "4318"
    if (scheme or "").lower() in ("grpc", "grpcs"):
        port = "4318"  # gRPC has a port of its own, 4317
    if not port and "." in host.strip("0123456789."):  # a service of the net, not a program of this network
        return f"https://{login or ''}{host}{path or ''}"
    return f"http://{login or ''}{host}:{port or 4318}{path or ''}"


def without_credentials(address: str) -> str:
    """An address to be shown: with `***` for user, password and the values of its query."""
    return _SECRET_PARTS.sub(lambda match: "***@" if match[0].endswith("@") else "***", address)
