"""The model behind a name: its class, imported when a name first needs it, or the tap that takes its place."""

import importlib
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from adk_nb.errors import InputError, ModelNotFoundError, closest
from adk_nb.lazy import late
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.http_address import api_url, guess_url, public_url
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


# ---- in place of models

_late = late({"ReplayTap": "adk_nb.models.recorded_llm"})
REPLAY_VARIABLE = "ADK_NB_REPLAY"
REPLAY_MODES = ("auto", "record", "replay")
"""Values of the variable for the cassette of a notebook."""


class ModelTap(Protocol):
    """Replaces the models of agents."""

    def model(self, model: str | BaseLlm, agent: str = "", /) -> BaseLlm:
        """The model to call instead of `model`, or of the model of that name (empty: the default), for an agent."""
        ...


_installed: list[ModelTap] = []
"""Of the process, at most one: widgets and threads run agents outside of cells."""
_turn_tap: ContextVar[ModelTap | None] = ContextVar("adk_nb_model_tap", default=None)


def install_tap(tap: ModelTap | None) -> None:
    """Install `tap` for this process; None: remove it."""
    _installed[:] = [tap] if tap else []


def current_tap() -> ModelTap | None:
    """The tap of this turn, else that of the process."""
    return _turn_tap.get() or (_installed[0] if _installed else None)


@contextmanager
def use_tap(tap: ModelTap) -> Generator[None]:
    """Use `tap` in this block, and in the tasks that it starts."""
    token = _turn_tap.set(tap)
    try:
        yield
    finally:
        _turn_tap.reset(token)


def tap_of_environment() -> ModelTap | None:
    """The tap of `ADK_NB_REPLAY`, or None.

    Raises:
        InputError: Its value is not a cassette.
    """
    cassette = replay_cassette()
    return _replay_tap(cassette) if cassette else None


def replay_cassette() -> Path | None:
    """The cassette of `ADK_NB_REPLAY`; None if it is not set, empty, `off`, or a mode of the notebook's own cassette.

    Raises:
        InputError: Its value is a missing file, a notebook, or a mode outside of a notebook.
    """
    value = os.environ.get(REPLAY_VARIABLE, "").strip()
    if value.lower() in ("", "off"):
        return None
    if value.lower() in REPLAY_MODES:
        if current_tap() is not None:
            return None
        raise InputError(
            f"{REPLAY_VARIABLE}={value} is for notebooks, and no notebook's cassette is in use; run %load_ext adk_nb, "
            "or set it to the path of a cassette, or to off"
        )
    path = Path(value)
    if not path.is_file():
        raise InputError(
            f"{REPLAY_VARIABLE} names {value!r}, which is not a file; set it to the path of a cassette, or to off"
        )
    if path.suffix == ".ipynb":
        raise InputError(
            f"{REPLAY_VARIABLE} names the notebook {value!r}; set it to replay, to use each notebook's own recordings, "
            "or to the path of a cassette"
        )
    return path


@cache
def _replay_tap(cassette: Path) -> ModelTap:
    """One tap for all models of this process: equal requests of several models share the recorded order."""
    return _late("ReplayTap")(cassette)
