"""URLs of services: redaction for errors, and guesses at mistyped ones."""

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from adk_nb.redaction import hidden

_METHOD = re.compile(
    r"(https?://[^?#]+?)(?:/chat/completions|(?<=/v1)/(?:completions|responses|embeddings|models))/?(?:\?[^#]*)?(#.+)?",
    re.IGNORECASE,
)
"""A URL of one method of a server with OpenAI's API, with the name of a model after a `#`."""
_HOST = re.compile(r"(?:[\w.-]+:\d{2,5}|localhost|(?:\d+\.){3}\d+)(?:/.*)?")


def redirect_hint(response: Any) -> str:
    """Hint for an HTTP response that redirects; empty for others, and for None."""
    if response is None or not 300 <= response.status_code < 400:
        return ""
    location = hidden(response.headers.get("location", ""))[:300]
    if not location:  # a page is not told where to
        return "it redirects, and redirects are not followed; write the address it redirects to as the url"
    return f"it redirects to {location!r}, and redirects are not followed; write that address as the url"


def is_loopback(url: str | None) -> bool:
    """True for a URL on this machine."""
    try:
        host = urlsplit(url or "").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or no URL at all
        return False


def names_this_machine(authority: str) -> bool:
    """True if `authority` (`HOST` or `HOST:PORT`) is this machine by a name that no other server can give it."""
    try:
        parts = urlsplit(f"//{authority}")
        _ = parts.port  # one that is no number raises
    except ValueError:
        return False
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return False
    return is_loopback(f"//{authority}")


def redacted_excerpt(text: str) -> str:
    """At most 500 characters of a service's text, without secrets and queries of URLs."""
    return re.sub(r"(https?://[^\s?\"']+)\?[^\s\"']*", r"\1", hidden(text))[:500]


def public_url(url: str) -> str:
    """A URL without user, password and query, which may be secret."""
    scheme, mark, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def api_url(url: str) -> str:
    """The URL of a server's API, for the URL of one of its methods such as `/v1/chat/completions`; empty for others."""
    method = _METHOD.fullmatch(url)
    return f"{method[1].rstrip('/')}{method[2] or ''}" if method else ""


def guess_url(text: str) -> str | None:
    """The URL for `text` without a scheme, or with a mistyped one; None if it does not look like a URL."""
    scheme, _, rest = text.rpartition("://")
    return f"http{'s' * scheme.endswith('s')}://{rest}" if _HOST.fullmatch(rest) else None
