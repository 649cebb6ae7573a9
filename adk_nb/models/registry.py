"""From a model's name to the class that asks it; what a name needs is loaded when it is first used."""

import importlib
import re
from dataclasses import dataclass
from functools import cache
from typing import cast

from adk_nb.errors import ModelNotFoundError, closest
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.http_address import as_address
from adk_nb.models.tap import tap_of_environment
from adk_nb.models.vendor_facts import ANTHROPIC, GOOGLE, OPENAI, Vendor


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A class of models: itself, or the module it is in until it is needed."""

    name: str
    patterns: tuple[str, ...]
    found: type[BaseLlm] | None = None
    module: str = ""
    spelled: tuple[str, ...] = ()
    """Names of models to propose when one was mistyped."""
    provider: str = ""
    """What else than the class's own name stands before a colon."""

    def load(self) -> type[BaseLlm]:
        return self.found or cast(type[BaseLlm], getattr(importlib.import_module(self.module), self.name))


def _entry(name: str, module: str, vendor: Vendor) -> _Entry:
    proposed = (vendor.default_model, *vendor.proposed)
    return _Entry(name=name, module=module, patterns=vendor.patterns, spelled=proposed, provider=vendor.name)


_BUILT_IN = [
    _entry("Gemini", "adk_nb.models.google_llm", GOOGLE),
    _entry("OpenAILlm", "adk_nb.models.openai_llm", OPENAI),
    _Entry(name="OllamaLlm", module="adk_nb.models.openai_llm", patterns=(), spelled=("ollama:llama3.2",)),
    _entry("Claude", "adk_nb.models.anthropic_llm", ANTHROPIC),
    _Entry(name="HttpLlm", module="adk_nb.models.http_llm", patterns=(r"https?://.+",)),
    _Entry(name="OfflineLlm", module="adk_nb.models.offline_llm", patterns=("offline",), spelled=("offline",)),
    _Entry(name="LiteLlm", module="adk_nb.models.lite_llm", patterns=(r"[\w.-]+/.+",)),  # the last: others know theirs
]
_registered: list[_Entry] = []


class LLMRegistry:
    """The classes that answer to model names."""

    @staticmethod
    def register(llm_cls: type[BaseLlm]) -> None:
        """Let `llm_cls` answer to its `supported_models()`, before any class that was registered earlier."""
        patterns = tuple(llm_cls.supported_models())
        spelled = tuple(pattern for pattern in patterns if re.escape(pattern).replace(r"\-", "-") == pattern)
        _registered.insert(0, _Entry(name=llm_cls.__name__, patterns=patterns, found=llm_cls, spelled=spelled))
        _find.cache_clear()

    @staticmethod
    def resolve(model: str) -> type[BaseLlm]:
        """The class that answers to `model`.

        Raises:
            ModelNotFoundError: None does; a ValueError, as in ADK.
            MissingExtraError: The class is known, and the package it works with is not installed.
        """
        return _find(model)[0]

    @staticmethod
    def check(model: str) -> None:
        """Raise ModelNotFoundError if no class answers to `model`; loads none."""
        _entry_of(model)

    @staticmethod
    def own_name(model: str) -> str:
        """The name by which its class knows `model`; that as it is if no class answers to it."""
        try:
            return _entry_of(model)[1]
        except ModelNotFoundError:
            return model

    @staticmethod
    def new_llm(model: str) -> BaseLlm:
        """A model that can be asked. `provider:name` asks `name` of the class whose name is `provider`.

        While the environment variable ADK_NB_REPLAY names a cassette, its recorded answers are given instead.
        """
        if tap := tap_of_environment():
            return tap.model(LLMRegistry.own_name(model))
        found, name = _find(model)
        return found.named(name)


def proposed_names() -> list[str]:
    """Names of models to propose when one was mistyped."""
    return [name for entry in (*_registered, *_BUILT_IN) for name in entry.spelled]


@cache
def _find(model: str) -> tuple[type[BaseLlm], str]:
    """The class, and the name by which it knows the model."""
    entry, name = _entry_of(model)
    return entry.load(), name


def _hint(model: str) -> str:
    ollama = f"ollama:{model}" if re.fullmatch(r"[\w.-]+(:\w+)?", model) else "ollama:NAME"
    return (
        f"a model on your own machine is {ollama}, or its server's address, such as http://127.0.0.1:8080/v1; "
        "for one of your own, pass the model itself or LLMRegistry.register its class"
    )


def _entry_of(model: str) -> tuple[_Entry, str]:
    entries = [*_registered, *_BUILT_IN]
    provider, _, rest = model.partition(":")
    if provider and rest and not rest.startswith("//"):
        for entry in entries:
            if provider.lower() in (entry.name.lower(), entry.name.removesuffix("Llm").lower(), entry.provider):
                return entry, rest
    for entry in entries:
        if any(re.fullmatch(pattern, model) for pattern in entry.patterns):
            return entry, model
    known = proposed_names()
    family, dash, rest = model.partition("-")
    near = closest(family, [name.partition("-")[0] for name in known if "-" in name]) if dash else None
    if near not in (None, family):
        known.append(f"{near}-{rest}")  # of the many of a family only a few are among those
    if address := as_address(model):
        known.append(address if address.count("/") > 2 else f"{address}/v1")
    own = "" if closest(model, known) else _hint(model)
    raise ModelNotFoundError("model", model, known, hint=own)
