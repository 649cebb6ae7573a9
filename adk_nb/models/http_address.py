"""The address of a service: what may be one, and what of it may be told."""

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

import httpx2

from adk_nb.errors import ConfigurationError
from adk_nb.models.meant_address import as_address
from adk_nb.redaction import hidden

_HOST = re.compile(rb"[0-9A-Za-z.:_-]+")
_BEGINS = re.compile(r"https?://[^/]|\{\{\s*\$")


def check_url(url: str, what: str) -> None:
    """Look at an address before it is filled, as `http_template` does it.

    Raises:
        ConfigurationError: It cannot be one; `what` is named.
    """
    if not _BEGINS.match(url):
        raise ConfigurationError(
            f"{what}: its url starts with http:// or https:// and a host, and {hidden(url)[:200]!r} does not"
            + (f"; write {hidden(meant)[:200]}" if (meant := as_address(url)) else "")
        )
    if "{{" not in url:
        parsed(url, what)


def parsed(url: str, what: str) -> httpx2.URL:
    """An address that can be asked.

    Raises:
        ConfigurationError: It names nothing that could be asked; `what` is named.
    """
    try:
        place = httpx2.URL(url)
        if place.scheme in ("http", "https") and _HOST.fullmatch(place.raw_host) and (place.port or 80) < 65_536:
            return place
        why = "it has no scheme, host and port that could be asked"
    except httpx2.InvalidURL as error:
        why = hidden(str(error))
    raise ConfigurationError(f"{what}: its url cannot be used: {why}; write http://127.0.0.1:8000/chat, or the like")


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


def shown_text(text: str) -> str:
    """`text` of a service, cut, without secrets, and without the queries of its URLs."""
    return re.sub(r"(https?://[^\s?\"']+)\?[^\s\"']*", r"\1", hidden(text))[:500]


def place_of(url: str) -> str:
    """An address without what may be a secret: user, password, query."""
    scheme, mark, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
