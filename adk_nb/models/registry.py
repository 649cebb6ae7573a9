"""The registry of model classes by model name; a class is imported when a name first needs it."""

import importlib
import re
from dataclasses import dataclass
from functools import cache
from typing import cast

from adk_nb.errors import ModelNotFoundError, closest
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.http_address import api_url, guess_url, public_url
from adk_nb.models.recorded_llm import tap_of_environment
from adk_nb.models.vendor_facts import ANTHROPIC, GOOGLE, OPENAI, Vendor


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A model class, or the module to import it from."""

    name: str
    patterns: tuple[str, ...]
    cls: type[BaseLlm] | None = None
    module: str = ""
    suggestions: tuple[str, ...] = ()
    """Model names to suggest for a mistyped one."""
    provider: str = ""
    """A prefix that selects the class, as its own name does: `gemini` in `gemini:NAME`."""

    def load(self) -> type[BaseLlm]:
        """Import the class."""
        return self.cls or cast(type[BaseLlm], getattr(importlib.import_module(self.module), self.name))


def _vendor_entry(name: str, module: str, vendor: Vendor) -> _Entry:
    suggestions = (vendor.default_model, *vendor.proposed)
    return _Entry(name=name, module=module, patterns=vendor.patterns, suggestions=suggestions, provider=vendor.name)


_BUILT_IN = [
    _vendor_entry("Gemini", "adk_nb.models.google_llm", GOOGLE),
    _vendor_entry("OpenAILlm", "adk_nb.models.openai_llm", OPENAI),
    _Entry(name="OllamaLlm", module="adk_nb.models.openai_llm", patterns=(), suggestions=("ollama:llama3.2",)),
    _Entry(name="LocalLlm", module="adk_nb.models.local_llm", patterns=(), provider="gguf"),
    _vendor_entry("Claude", "adk_nb.models.anthropic_llm", ANTHROPIC),
    _Entry(name="HttpLlm", module="adk_nb.models.http_llm", patterns=(r"https?://.+",)),
    _Entry(name="OfflineLlm", module="adk_nb.models.offline_llm", patterns=("offline",), suggestions=("offline",)),
    # Last: its pattern matches any `vendor/name`.
    _Entry(name="LiteLlm", module="adk_nb.models.lite_llm", patterns=(r"[\w.-]+/.+",)),
]
_registered: list[_Entry] = []


class LLMRegistry:
    """The model classes by model name."""

    @staticmethod
    def register(llm_cls: type[BaseLlm]) -> None:
        """Register `llm_cls` for its `supported_models()`, before all classes that were registered earlier."""
        patterns = tuple(llm_cls.supported_models())
        suggestions = tuple(pattern for pattern in patterns if re.escape(pattern).replace(r"\-", "-") == pattern)
        _registered.insert(0, _Entry(name=llm_cls.__name__, patterns=patterns, cls=llm_cls, suggestions=suggestions))
        _find.cache_clear()

    @staticmethod
    def resolve(model: str) -> type[BaseLlm]:
        """Find the class for `model`.

        Raises:
            ModelNotFoundError: There is none; a ValueError, as in ADK.
            MissingExtraError: The class needs a package that is not installed.
        """
        return _find(model)[0]

    @staticmethod
    def check(model: str) -> None:
        """Raise ModelNotFoundError if no class supports `model`; imports nothing."""
        _entry_of(model)

    @staticmethod
    def own_name(model: str) -> str:
        """The name of `model` without a provider prefix; `model` itself if no class supports it."""
        try:
            return _entry_of(model)[1]
        except ModelNotFoundError:
            return model

    @staticmethod
    def new_llm(model: str) -> BaseLlm:
        """Create a model. In `provider:name`, the provider selects the class.

        While the environment variable ADK_NB_REPLAY names a cassette, the model replays its recorded answers.
        """
        if tap := tap_of_environment():
            return tap.model(LLMRegistry.own_name(model))
        cls, name = _find(model)
        return cls.from_name(name)


def suggested_names() -> list[str]:
    """Model names to suggest for a mistyped one."""
    return [name for entry in (*_registered, *_BUILT_IN) for name in entry.suggestions]


@cache
def _find(model: str) -> tuple[type[BaseLlm], str]:
    """The class, and the model's name without a provider prefix."""
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
    # A provider's prefix first: it chooses the class, whatever the name looks like.
    provider, _, rest = model.partition(":")
    if provider and rest and not rest.startswith("//"):
        for entry in entries:
            if provider.lower() in (entry.name.lower(), entry.name.removesuffix("Llm").lower(), entry.provider):
                return entry, rest
    if api := public_url(api_url(model)):
        is_name = re.search(r"/v1(#.+)?$", api)  # another path cannot be in a name
        hint = "a server is named by the address of its API, not of a method" if is_name else ""
        hint = hint or f'write OpenAILlm(model="NAME", base_url="{api}")'
        raise ModelNotFoundError("model", public_url(model), [api] if is_name else [], hint=hint)
    for entry in entries:
        if any(re.fullmatch(pattern, model) for pattern in entry.patterns):
            return entry, model
    names = suggested_names()
    family, dash, rest = model.partition("-")
    family_match = closest(family, [name.partition("-")[0] for name in names if "-" in name]) if dash else None
    if family_match not in (None, family):
        names.append(f"{family_match}-{rest}")  # the registry lists only a few models of a family
    if address := guess_url(model):
        names.append(address if address.count("/") > 2 else f"{address}/v1")
    hint = "" if closest(model, names) else _hint(model)
    raise ModelNotFoundError("model", model, names, hint=hint)
