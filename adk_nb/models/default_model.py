"""The model of agents that name none."""

import importlib
import importlib.util
import os
from dataclasses import dataclass

from adk_nb.models.google_access import KEY_VARIABLES, key_from_environment, uses_vertex

GEMINI_MODEL = "gemini-3.5-flash-lite"
OPENAI_MODEL = "gpt-6-luna"
CLAUDE_MODEL = "claude-sonnet-5"
"""What is asked where a key alone is given: a small stable model that takes tools through the API of our adapter. Docs
and tutorials name the same ones.

Sources, as of November 2026, with the shutdown of what stood here before:
https://ai.google.dev/gemini-api/docs/deprecations (gemini-2.5-flash: 1 December 2026, routed to gemini-3.5-flash-lite
at the same price); https://developers.openai.com/api/docs/deprecations (gpt-5-mini: 11 December 2026; gpt-6-luna takes
tools in chat completions, see openai_families); https://platform.claude.com/docs/en/about-claude/model-deprecations
(claude-sonnet-4-5: 30 November 2026). claude-sonnet-5-5 costs the same as claude-sonnet-5 and refuses a forced tool,
and thoughts behind an instruction that changed: .../build-with-claude/preserved-thinking.
"""

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


@dataclass(frozen=True, kw_only=True)
class _Vendor:
    variables: tuple[str, ...]
    """Those of the environment that hold its key."""
    model: str
    package: str = ""
    """The module that asks it, which is also the extra that brings it."""


_GEMINI = _Vendor(variables=KEY_VARIABLES, model=GEMINI_MODEL)
_VENDORS = (
    _GEMINI,
    _Vendor(variables=("OPENAI_API_KEY",), model=OPENAI_MODEL, package="openai"),
    _Vendor(variables=("ANTHROPIC_API_KEY",), model=CLAUDE_MODEL, package="anthropic"),
)
"""In the order in which their keys count."""


def default_model() -> str:
    """The name of the model of agents that name none."""
    return find_default_model().name


def find_default_model() -> DefaultModel:
    """ADK_NB_DEFAULT_MODEL; else that of the first of Gemini, OpenAI, Anthropic whose key is set; else Ollama's; else
    `offline`.
    """
    if named := os.environ.get(MODEL_VARIABLE, "").strip():
        return DefaultModel(name=named, reason=f"{MODEL_VARIABLE} or %config AdkNb.model names it")
    if uses_vertex() and not key_from_environment():
        return DefaultModel(name=_GEMINI.model, reason="Vertex AI is set up")
    for vendor in _VENDORS:
        if found := next((name for name in vendor.variables if os.environ.get(name, "").strip()), ""):
            return DefaultModel(name=vendor.model, reason=f"{found} is set", extra=_missing(vendor.package))
    if not _missing("openai") and (served := importlib.import_module("adk_nb.models.ollama").first_model()):
        return DefaultModel(name=f"ollama:{served}", reason="Ollama answers, and no key is set")
    return DefaultModel(name="offline", reason="no key is set")


def vendor_model(variable: str) -> str:
    """The default model of the vendor whose key `variable` holds; empty if it is none of theirs."""
    return next((vendor.model for vendor in _VENDORS if variable in vendor.variables), "")


def _missing(package: str) -> str:
    return package if package and importlib.util.find_spec(package) is None else ""
