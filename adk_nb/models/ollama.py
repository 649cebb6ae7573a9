"""The Ollama server of this machine: its address, and the models that it has."""

import json
import os
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

_CONNECT_SECONDS = 0.25
_ANSWER_SECONDS = 1.0
_REMEMBERED_SECONDS = 10.0
"""For how long an answer counts: agents look for their model before every call."""
_remembered: dict[str, tuple[float, str]] = {}
"""Address -> when it was asked, and the model that it named."""


def ollama_url() -> str:
    """Where OLLAMA_HOST says, else this machine.

    Source: https://github.com/ollama/ollama/blob/main/docs/openai.md and docs/faq.md.
    """
    host = os.environ.get("OLLAMA_HOST", "").strip() or "127.0.0.1:11434"
    host = host.replace("0.0.0.0", "127.0.0.1")
    return f"{host if '://' in host else f'http://{host}'}".rstrip("/") + "/v1"


def first_model() -> str:
    """The name of the newest model that Ollama has and that can talk; empty if it does not answer or has none."""
    url = ollama_url()
    asked_at, name = _remembered.get(url, (0.0, ""))
    if not asked_at or time.monotonic() - asked_at > _REMEMBERED_SECONDS:
        try:
            name = _talking_model(_models(url))
        except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
            name = ""  # no server, or one that is not Ollama
        _remembered[url] = time.monotonic(), name
    return name


def _models(url: str) -> Any:
    address = urlsplit(url)
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=_CONNECT_SECONDS)
    try:
        connection.connect()
        connection.sock.settimeout(_ANSWER_SECONDS)
        connection.request("GET", f"{address.path}/models")
        return json.loads(connection.getresponse().read(1_000_000))
    finally:
        connection.close()


def _talking_model(listing: Any) -> str:
    names = [str(model["id"]) for model in listing["data"] or ()]
    return next((name for name in names if "embed" not in name), "")
