"""The default model."""

import importlib
import importlib.util
import os
from dataclasses import dataclass

from adk_nb.models.vendor_facts import ANTHROPIC, GOOGLE, OPENAI, VENDORS
from adk_nb.redaction import remember

GEMINI_MODEL = GOOGLE.default_model
OPENAI_MODEL = OPENAI.default_model
CLAUDE_MODEL = ANTHROPIC.default_model
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
    if not _missing_package("openai") and (
        ollama_model := importlib.import_module("adk_nb.models.ollama").first_model()
    ):
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
