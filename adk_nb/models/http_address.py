"""The address of a service: which is meant, and the part that may be shown."""

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from adk_nb.redaction import hidden

_HOST = re.compile(r"(?:[\w.-]+:\d{2,5}|localhost|(?:\d+\.){3}\d+)(?:/.*)?")


def redirect_hint(response: Any) -> str:
    """What to do about an HTTP response that redirects; empty for others, and without a response."""
    if response is None or not 300 <= response.status_code < 400:
        return ""
    location = hidden(response.headers.get("location", ""))[:300]
    return f"it redirects to {location!r}, and redirects are not followed; write that address as its url"


def is_loopback(url: str | None) -> bool:
    """True for an address on this machine."""
    host = urlsplit(url or "").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def redacted_excerpt(text: str) -> str:
    """`text` of a service, cut, without secrets, and without the queries of its URLs."""
    return re.sub(r"(https?://[^\s?\"']+)\?[^\s\"']*", r"\1", hidden(text))[:500]


def public_url(url: str) -> str:
    """An address without what may be a secret: user, password, query."""
    scheme, mark, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def guess_url(text: str) -> str | None:
    """The address meant by `text`, which lacks a scheme or has a mistyped one; None if it looks like none."""
    scheme, _, rest = text.rpartition("://")
    return f"http{'s' * scheme.endswith('s')}://{rest}" if _HOST.fullmatch(rest) else None
