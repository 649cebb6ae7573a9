"""The default model: which one answers for agents that name none, and which models servers on this machine have."""

import importlib.util
import json
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.lazy import install_line, is_at_hand
from adk_nb.models.http_address import is_loopback
from adk_nb.models.vendor_facts import GOOGLE, VENDORS
from adk_nb.redaction import remember

USUAL_PORTS = {"llama.cpp": 8080, "vLLM": 8000, "LM Studio": 1234}
"""Program -> the port at which its server listens unless told otherwise; Ollama's is in `ollama_url`.

Sources: llama.cpp's tools/server/README.md, vLLM's `vllm serve --help`, https://lmstudio.ai/docs/developer.
"""
_PORT = re.compile(r":[^:\]]*$")
_CONNECT_SECONDS = 0.25
_ANSWER_SECONDS = 1.0
_CACHE_SECONDS = 10.0
"""Lifetime of cached names: agents look up their model before every call."""
_cached_models: dict[str, tuple[float, list[str]]] = {}
"""URL -> time of the request, names of the models."""


@dataclass(frozen=True)
class LocalServer:
    """A server that answers on this machine."""

    program: str
    """The program whose port it has."""
    url: str
    models: Sequence[str]
    """Names of its chat models; at least one."""

    def __str__(self) -> str:
        port = "" if self.program == "Ollama" else f"'s port {urlsplit(self.url).port}"
        return f"{self.program}{port}"

    @property
    def names(self) -> list[str]:
        """What to write as an agent's model, for each of its models."""
        if self.program == "Ollama":
            return [f"ollama:{name}" for name in self.models]
        # Without a name the server's first, and on the line of a magic a name has no space.
        others = [f"{self.url}#{name}" for name in self.models[1:] if not re.search(r"\s", name)]
        return [self.url, *others]


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
    return next(iter(served_models(ollama_url())), "")


def running_servers() -> list[LocalServer]:
    """The servers that answer at the usual ports; each is asked once, in a short connection, and remembered shortly."""
    if IN_A_BROWSER:
        return []
    urls = _usual_urls()
    with ThreadPoolExecutor(len(urls)) as threads:  # where a closed port does not refuse, each takes the whole time
        found = threads.map(served_models, urls.values())
        return [LocalServer(*each) for each in zip(urls, urls.values(), found, strict=True) if each[2]]


def servers_seen() -> list[LocalServer]:
    """The servers that answered when they were last asked; asks none."""
    seen = {url: models for url, (_, models) in _cached_models.items()}
    return [LocalServer(program, url, seen[url]) for program, url in _usual_urls().items() if seen.get(url)]


def _usual_urls() -> dict[str, str]:
    return {"Ollama": ollama_url()} | {program: f"http://127.0.0.1:{port}/v1" for program, port in USUAL_PORTS.items()}


def served_models(url: str) -> list[str]:
    """Names of the chat models at `url`; none if nothing answers there, or something else."""
    checked_at, names = _cached_models.get(url, (0.0, list[str]()))
    if not checked_at or time.monotonic() - checked_at > _CACHE_SECONDS:
        try:
            address = urlsplit(url)
            kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
            seconds = _CONNECT_SECONDS if is_loopback(url) else _ANSWER_SECONDS
            with closing(kind(address.hostname or "", address.port, timeout=seconds)) as connection:
                connection.connect()
                connection.sock.settimeout(_ANSWER_SECONDS)
                connection.request("GET", f"{address.path.rstrip('/')}/models")
                answer: Any = json.loads(connection.getresponse().read(1_000_000))
            listed = [str(model["id"]) for model in answer["data"] or ()]
            names = [name for name in listed if "embed" not in name and name.isprintable()]
        except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
            names = []  # no server, or one of another kind
        # A missing server is cached, too: else each call of each agent would wait for the timeout.
        _cached_models[url] = time.monotonic(), names
    return names


GEMINI_MODEL = GOOGLE.default_model
_VERTEX_VARIABLES = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")

MODEL_VARIABLE = "ADK_NB_DEFAULT_MODEL"
"""Environment variable of the default model; `%config AdkNb.model` sets it."""


@dataclass(frozen=True, kw_only=True)
class DefaultModel:
    """The default model, and the reason for it."""

    name: str
    reason: str
    model: Any = None
    """The BaseLlm itself, where one was given instead of a name."""
    is_of_code: bool = False
    """`LlmAgent.set_default_model` set it, which stands above keys and settings."""
    extra: str = ""
    """The extra of this package to install for the model; empty if it is installed."""

    @property
    def install(self) -> str:
        """The line that installs the missing extra; empty if none is missing."""
        return install_line(f"adk-nb[{self.extra}]") if self.extra else ""

    def __str__(self) -> str:
        return f"{self.name} ({self.reason}{f'; type: {self.install}' if self.install else ''})"


_of_code: list[Any] = []
"""The model of `set_default_model`, or nothing. Models are not imported here: %load_ext has to be fast."""


def set_default_model(model: Any) -> None:
    """Set the default model, a BaseLlm or a name, above keys and settings; None: follow those again."""
    _of_code[:] = [] if model is None else [model]


def model_of_code() -> Any:
    """The model of `set_default_model`, or its name; empty if there is none."""
    return _of_code[0] if _of_code else ""


def default_model() -> str:
    """Name of the model for agents without one."""
    return find_default_model().name


def find_default_model() -> DefaultModel:
    """Find the default model.

    That of `set_default_model`; else ADK_NB_DEFAULT_MODEL; else the default of Gemini, OpenAI or Anthropic, the first
    whose key is set; else the first model at OPENAI_BASE_URL; else Ollama's newest; else `offline`.
    """
    if model := model_of_code():
        name, llm = (model, None) if isinstance(model, str) else (model.model, model)
        return DefaultModel(name=name, reason="LlmAgent.set_default_model set it", model=llm, is_of_code=True)
    if name := os.environ.get(MODEL_VARIABLE, "").strip():
        return DefaultModel(name=name, reason=f"{MODEL_VARIABLE} or %config AdkNb.model names it")
    if uses_vertex() and not _key_variable(GOOGLE.key_variables):
        return DefaultModel(name=GOOGLE.default_model, reason="Vertex AI is set up")
    for vendor in VENDORS:
        if variable := _key_variable(vendor.key_variables):
            return DefaultModel(
                name=vendor.default_model, reason=f"{variable} is set", extra=_missing_package(vendor.package)
            )
    if importlib.util.find_spec("openai") is not None:
        url = os.environ.get("OPENAI_BASE_URL", "").strip()
        if url and (models := served_models(url)):
            return DefaultModel(name=f"openai:{models[0]}", reason="OPENAI_BASE_URL answers, and no key is set")
        if ollama_model := newest_ollama_model():
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
    return package if package and not is_at_hand(package) else ""
