"""The settings `otlp`, `otlp_content` and `otlp_conventions`: spans over OTLP."""

import sys
from typing import Any

from adk_nb.telemetry.instrumentation import check_endpoint, instrument, uninstrument

_endpoints: dict[str, str] = {}
"""Address without its password, as the setting has it -> with it."""


def check_address(address: str | None) -> str:
    """Return the address without its password.

    Raises:
        UserError: It is none, or the packages of the extra are not installed.
    """
    endpoint = (address or "").strip()
    if not endpoint or endpoint in _endpoints:
        return endpoint
    safe = check_endpoint(endpoint)
    _endpoints[safe] = endpoint
    return safe


def send_spans(settings: Any, name: str, old: Any) -> None:
    """Send spans as the settings say from now on."""
    if settings.otlp:
        content = settings.otlp_content or None  # the variable of other instrumentations may ask for it, too
        instrument(_endpoints[settings.otlp], content=content, conventions=settings.otlp_conventions)
    elif name == "otlp":
        uninstrument()
        sys.stdout.write(f"spans are no longer sent to {old}\n")


def stop(host: Any) -> None:
    """Send no spans until the settings are applied again."""
    if host.settings.otlp:
        uninstrument()
