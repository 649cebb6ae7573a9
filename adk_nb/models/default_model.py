"""The default model, and the models of a local Ollama."""

import importlib.util
import json
import os
import re
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from adk_nb.models.vendor_facts import GOOGLE, VENDORS
from adk_nb.redaction import remember

_PORT = re.compile(r":[^:\]]*$")
_CONNECT_SECONDS = 0.25
_ANSWER_SECONDS = 1.0
_CACHE_SECONDS = 10.0
"""Lifetime of a cached name: agents look up their model before every call."""
_cached_models: dict[str, tuple[float, str]] = {}
"""URL -> time of the request, name of the model."""


def ollama_url() -> str:
    """URL of Ollama's chat completions API, from OLLAMA_HOST; by default on this machine.

    Source: https://github.com/ollama/ollama/blob/main/docs/openai.md and docs/faq.md.
    """
    host = os.environ.get("OLLAMA_HOST", "").strip() or "127.0.0.1"
    # The server listens at OLLAMA_HOST, too: 0.0.0.0 is all addresses there, and no address to connect to on Windows.
    host = host.replace("0.0.0.0", "127.0.0.1")
    if "://" not in host:
        name, slash, path = host.partition("/")
        # Ollama's port, unless a scheme asks for its own. Source: ollama's envconfig/config.go, `Host`.
        host = f"http://{name}{'' if _PORT.search(name) else ':11434'}{slash}{path}"
    return host.rstrip("/") + "/v1"


def newest_ollama_model() -> str:
    """Name of Ollama's newest chat model; empty if there is none, or no server.

    Ollama lists its models by modification time, the newest first. Source: ollama's server/routes.go, `ListHandler`.
    """
    url = ollama_url()
    checked_at, name = _cached_models.get(url, (0.0, ""))
    if not checked_at or time.monotonic() - checked_at > _CACHE_SECONDS:
        try:
            name = _first_chat_model(_list_models(url))
        except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
            name = ""  # no server, or one that is not Ollama
        # A missing server is cached, too: else each call of each agent would wait for the timeout.
        _cached_models[url] = time.monotonic(), name
    return name


def _list_models(url: str) -> Any:
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


def _first_chat_model(listing: Any) -> str:
    names = [str(model["id"]) for model in listing["data"] or ()]
    return next((name for name in names if "embed" not in name), "")


GEMINI_MODEL = GOOGLE.default_model
_VERTEX_VARIABLES = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")

MODEL_VARIABLE = "ADK_NB_DEFAULT_MODEL"
"""Environment variable of the default model; `%config AdkNb.model` sets it."""


@dataclass(frozen=True, kw_only=True)
class DefaultModel:
    """The default model, and the reason for it."""

    name: str
    reason: str
    extra: str = ""
    """The extra of this package to install for the model; empty if it is installed."""

    @property
    def install(self) -> str:
        """The line that installs the missing extra; empty if none is missing."""
        return f"%pip install 'adk-nb[{self.extra}]'" if self.extra else ""


def default_model() -> str:
    """Name of the model for agents without one."""
    return find_default_model().name


def find_default_model() -> DefaultModel:
    """Find the default model.

    ADK_NB_DEFAULT_MODEL; else the default of Gemini, OpenAI or Anthropic, the first whose key is set; else Ollama's
    newest; else `offline`.
    """
    if name := os.environ.get(MODEL_VARIABLE, "").strip():
        return DefaultModel(name=name, reason=f"{MODEL_VARIABLE} or %config AdkNb.model names it")
    if uses_vertex() and not _key_variable(GOOGLE.key_variables):
        return DefaultModel(name=GOOGLE.default_model, reason="Vertex AI is set up")
    for vendor in VENDORS:
        if variable := _key_variable(vendor.key_variables):
            return DefaultModel(
                name=vendor.default_model, reason=f"{variable} is set", extra=_missing_package(vendor.package)
            )
    if not _missing_package("openai") and (ollama_model := newest_ollama_model()):
        return DefaultModel(name=f"ollama:{ollama_model}", reason="Ollama answers, and no key is set")
    return DefaultModel(name="offline", reason="no key is set")


def vendor_model(variable: str) -> str:
    """The default model of the vendor whose key variable is `variable`; empty if there is none."""
    return next((vendor.default_model for vendor in VENDORS if variable in vendor.key_variables), "")


def uses_vertex() -> bool:
    """True if google-genai uses Vertex AI, which takes Google Cloud credentials instead of a key."""
    flags = [value for name in _VERTEX_VARIABLES if (value := os.environ.get(name)) is not None]
    return bool(flags) and flags[0].lower() in ("true", "1")


def _key_variable(names: tuple[str, ...]) -> str:
    """The first of `names` that is set; its value is redacted from now on."""
    variable = next((name for name in names if os.environ.get(name, "").strip()), "")
    remember(os.environ.get(variable, "").strip())
    return variable


def _missing_package(package: str) -> str:
    return package if package and importlib.util.find_spec(package) is None else ""
