"""The default model: which one answers for agents that name none."""

import importlib.util
import os
from dataclasses import dataclass
from typing import Any

from adk_nb.models.local_servers import newest_ollama_model, served_models
from adk_nb.models.vendor_facts import GOOGLE, VENDORS
from adk_nb.redaction import remember

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
        return f"%pip install 'adk-nb[{self.extra}]'" if self.extra else ""

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
    if not _missing_package("openai"):
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
    return package if package and importlib.util.find_spec(package) is None else ""
