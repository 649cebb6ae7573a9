"""The model of agents that name none."""

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
"""Of the environment; `%config AdkNb.model` sets it."""


@dataclass(frozen=True, kw_only=True)
class DefaultModel:
    """A model, and why it is that one."""

    name: str
    reason: str
    extra: str = ""
    """The extra of this package that the model needs, if it is not installed."""

    @property
    def install(self) -> str:
        """The line that installs what is missing; empty if nothing is."""
        return f"%pip install 'adk-nb[{self.extra}]'" if self.extra else ""


def default_model() -> str:
    """The name of the model of agents that name none."""
    return find_default_model().name


def find_default_model() -> DefaultModel:
    """ADK_NB_DEFAULT_MODEL; else that of the first of Gemini, OpenAI, Anthropic whose key is set; else Ollama's; else
    `offline`.
    """
    if named := os.environ.get(MODEL_VARIABLE, "").strip():
        return DefaultModel(name=named, reason=f"{MODEL_VARIABLE} or %config AdkNb.model names it")
    if uses_vertex() and not _key_variable(GOOGLE.key_variables):
        return DefaultModel(name=GOOGLE.default_model, reason="Vertex AI is set up")
    for vendor in VENDORS:
        if variable := _key_variable(vendor.key_variables):
            return DefaultModel(name=vendor.default_model, reason=f"{variable} is set", extra=_missing(vendor.package))
    if not _missing("openai") and (served := importlib.import_module("adk_nb.models.ollama").first_model()):
        return DefaultModel(name=f"ollama:{served}", reason="Ollama answers, and no key is set")
    return DefaultModel(name="offline", reason="no key is set")


def vendor_model(variable: str) -> str:
    """The default model of the vendor whose key `variable` holds; empty if it is none of theirs."""
    return next((vendor.default_model for vendor in VENDORS if variable in vendor.key_variables), "")


def uses_vertex() -> bool:
    """True if google-genai is told to go through Vertex AI, which takes Google Cloud credentials instead of a key."""
    word = next((value for name in _VERTEX_VARIABLES if (value := os.environ.get(name)) is not None), "")
    return word.lower() in ("true", "1")


def _key_variable(names: tuple[str, ...]) -> str:
    """The first of `names` that is set; its key is hidden from now on."""
    found = next((name for name in names if os.environ.get(name, "").strip()), "")
    remember(os.environ.get(found, "").strip())
    return found


def _missing(package: str) -> str:
    return package if package and importlib.util.find_spec(package) is None else ""
