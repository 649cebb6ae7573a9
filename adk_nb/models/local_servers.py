"""Servers with OpenAI's API, as Ollama's, on this machine or where the environment says: which models they have."""

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

from adk_nb.concurrency.single_thread import IN_A_BROWSER
from adk_nb.models.http_address import is_loopback

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
