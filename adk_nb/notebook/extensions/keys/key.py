"""`%key`: find an API key in the environment, a store of secrets or a field, and set it in this process alone."""

import getpass
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError, closest
from adk_nb.lazy import require
from adk_nb.models.default_model import find_default_model, vendor_model
from adk_nb.models.vendor_facts import ANTHROPIC, GOOGLE, OPENAI
from adk_nb.notebook.extensions.keys import extension
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, Output, text
from adk_nb.notebook.place import folder_of
from adk_nb.redaction import hidden, redacted, remember

KEY = Grammar(
    "key",
    "Set an API key in this kernel: from the environment, the secrets of Colab or Kaggle, .env, the keyring, or a "
    "field that you paste it into. The key is never displayed, and never saved in the notebook.",
    examples=["%key gemini", "%key openai --from keyring", "%key TAVILY_API_KEY", "%key gemini --forget"],
    arguments=[
        Argument(
            "PROVIDER",
            "gemini, openai, anthropic, or the name of the variable; left out: list the keys that are set",
            many=True,
            choices=("gemini", "openai", "anthropic"),
        )
    ],
    options=[
        Option(
            "--from PLACE",
            "look only there: env, colab, kaggle, dotenv, keyring; ask: type it again",
            choices=("env", "colab", "kaggle", "dotenv", "keyring", "ask"),
        ),
        Option("--forget", "remove it from this kernel"),
    ],
    twin='os.environ["GOOGLE_API_KEY"] = getpass.getpass()',
)

PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ANTHROPIC.key_variables,
    "claude": ANTHROPIC.key_variables,
    "gemini": GOOGLE.key_variables,
    "google": GOOGLE.key_variables,
    "openai": OPENAI.key_variables,
}
"""Provider -> environment variables that may hold its key; `%key` sets the first."""
_SERVICE = "adk_nb"
"""The service under which the keyring stores keys."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_NOT_FOUND = ("SecretNotFoundError", "BackendError")
"""Errors of Colab and of Kaggle for a secret that does not exist; their modules exist only there."""


def key(host: Host, line: str, cell: str | None) -> Output:
    """Set, forget or list keys, and never show one.

    Raises:
        InputError: The line does not parse or has a key in it, the key is not found, or nobody can be asked.
        MissingExtraError: The package that reads a place is not installed.
    """
    args, settings = KEY.parse(line, cell), host.settings
    providers: list[str] = args.provider
    if not providers:
        variables = dict.fromkeys(name for names in PROVIDERS.values() for name in names)
        known = [f"{name} is set" for name in variables if os.environ.get(name, "").strip()]
        none = "no key is set; type %key gemini, %key openai or %key anthropic, or work without: -m offline"
        return text(*(known or [none]), _default_model(settings))
    for provider in providers:
        _variables_of(provider, first=providers[0])  # a key has to be refused before a message repeats the line
    if len(providers) > 1:
        raise InputError(f"%key takes one provider, and never a key; type %key {providers[0]}")
    names = _variables_of(providers[0])
    if args.forget:
        return text(_forget(names), _default_model(settings) if vendor_model(names[0]) else "")
    place: str | None = getattr(args, "from")
    # Kubernetes sets it in the pods beside Binder's own service.
    is_public = "BINDER_SERVICE_HOST" in os.environ and place in (None, "ask")
    value, source = _find(names, folder_of(host.shell), place)
    name = next((name for name in names if os.environ.get(name, "").strip() == value), names[0])
    os.environ[name] = value
    lines = [f"{name} is set, from {source}", *_model_lines(vendor_model(name), settings)]
    if is_public:
        lines.append(f"this is a public Binder, whose operators could read {names[0]}: use a key that you can revoke")
    return text(*lines)


def _default_model(settings: Any) -> str:
    return f"default model: {settings.model_in_words}"


def _model_lines(model: str, settings: Any) -> list[str]:
    """The default model, and how to change it if it is not `model`, whose key was just set."""
    if not model:
        return []
    default = find_default_model()
    if default.name == model:
        install = [f"first type: {default.install}"] if default.install else []
        return [f"default model: {model}", *install]
    reason = default.reason
    change = f'%config AdkNb.model = "{model}"'
    if default.is_of_code:
        change = f'LlmAgent.set_default_model("{model}")'
    elif settings.model:
        change, reason = '%config AdkNb.model = ""', f'%config AdkNb.model = "{settings.model}"'
    return [f"default model: still {default.name} ({reason}); to use {model}, type: {change}"]


def _forget(names: Sequence[str]) -> str:
    removed = [name for name in names if os.environ.pop(name, None) is not None]
    if not removed:
        return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} not set"
    return f"{' and '.join(removed)} {'is' if len(removed) == 1 else 'are'} removed from this kernel"


def _variables_of(provider: str, *, first: str = "") -> Sequence[str]:
    """Return the environment variables for a provider, or for the name of a variable.

    Args:
        provider: A word of the line.
        first: The first word of the line; if `provider` is a key, it may name the provider.

    Raises:
        InputError: There is no such provider, or the word is a key.
    """
    names = PROVIDERS.get(provider.lower())
    follows_name = first not in ("", provider) and not names and not _VARIABLE.fullmatch(provider)
    if redacted(provider) != provider or "=" in provider or follows_name:
        name, _, value = provider.partition("=")
        # At once: the traceback of this very line would show it.
        remember(provider if redacted(provider) != provider else None, value)
        candidates = [name, first] if value.strip("=") else [first]  # a key itself may end in =
        valid = (name for name in candidates if name.lower() in PROVIDERS or _VARIABLE.fullmatch(name))
        raise InputError(
            "%key takes no key, as the notebook saves what a cell has: delete it from the cell, type "
            f"%key {next(valid, 'gemini')}, and paste the key into the field that opens"
        )
    if names:
        return names
    if _VARIABLE.fullmatch(provider):
        return (provider,)
    if provider.lower() == "ollama":
        raise InputError(
            'Ollama needs no key; start it (ollama serve) and type: %config AdkNb.model = "ollama:llama3.2"'
        )
    near = closest(provider, PROVIDERS)
    hint = f"did you mean {near}?" if near else f"use {', '.join(PROVIDERS)};"
    # A long word, or one with digits, may be a key in a format that redaction does not know.
    is_name = provider.isalpha() and len(provider) < 16
    unknown = f"unknown provider {provider!r}" if is_name else "unknown provider"
    raise InputError(f"%key: {unknown}; {hint} for any other key type its variable: %key TAVILY_API_KEY")


# ---- places


@dataclass(frozen=True)
class _Place:
    """A place where keys may be stored."""

    label: str
    look: Callable[[str, Path, bool], str | None]
    """`(name, folder of the notebook, only place to look)` -> the key; None or empty: it is not there."""
    advice: str
    """How to put a key there; `{}` stands for its name."""


def _find(names: Sequence[str], folder: Path, place: str | None) -> tuple[str, str]:
    """Find a key, ask for it if it is nowhere, and hide it from now on.

    Args:
        names: Variables, in the order of preference.
        folder: Of the notebook; `.env` is looked for in it and in its parents.
        place: The only place to look; None: all, in the order of `_PLACES`.

    Returns:
        The key, and the label of its place.

    Raises:
        InputError: The key is not there or cannot be read, or nobody can be asked.
        MissingExtraError: The package that reads `place` is not installed.
    """
    for key in [place] if place else [key for key in _PLACES if key != "ask"]:
        for name in names:
            # Stripped: a pasted key often ends with a line break, which no header may have.
            value = (_PLACES[key].look(name, folder, place is not None) or "").strip()
            if value:
                return _checked(value, name), _PLACES[key].label
    if place and place != "ask":
        advice = _PLACES[place].advice.format(names[0])
        raise InputError(f"%key: {' or '.join(names)} is not in {_PLACES[place].label}; {advice}")
    # Last: asking blocks the cell.
    return _checked(_ask(names[0], folder, True), names[0]), _PLACES["ask"].label


def _checked(value: str, name: str) -> str:
    remember(value)
    if value.split() != [value] or value[0] in "'\"":
        raise InputError(f"%key: the value for {name} is not a key: it has blanks or quotes; enter the key alone")
    return value


def _from_colab(name: str, folder: Path, only: bool) -> str | None:
    if not only and "google.colab" not in sys.modules:
        return None
    if not _is_installed("google.colab"):
        raise InputError("%key: this is not Colab; type %key without --from")
    return _read_secret(require("google.colab.userdata", package="google-colab").get, name, "Colab")


def _from_kaggle(name: str, folder: Path, only: bool) -> str | None:
    if not only and "KAGGLE_KERNEL_RUN_TYPE" not in os.environ:
        return None
    if not _is_installed("kaggle_secrets"):
        raise InputError("%key: this is not Kaggle; type %key without --from")
    secrets = require("kaggle_secrets", package="kaggle-secrets").UserSecretsClient()
    return _read_secret(secrets.get_secret, name, "Kaggle")


def _from_dotenv(name: str, folder: Path, only: bool) -> str | None:
    files = (parent / ".env" for parent in (folder, *folder.parents))
    file = next((file for file in files if file.is_file()), None)
    if file is None or not (only or _is_installed("dotenv")):
        return None
    return extension.require("dotenv").dotenv_values(file, interpolate=False).get(name)


def _from_keyring(name: str, folder: Path, only: bool) -> str | None:
    if not (only or _is_installed("keyring")):
        return None
    keyring = extension.require("keyring")
    try:
        return keyring.get_password(_SERVICE, name)
    except extension.require("keyring.errors").KeyringError as error:
        if not only:
            return None  # this machine has no keyring
        kind = type(error).__name__
        raise InputError(f"%key: the keyring does not answer: {kind}; name another place with --from") from None


def _ask(name: str, folder: Path, only: bool) -> str:
    try:
        value = getpass.getpass(f"{name} (hidden): ").strip()
    except (EOFError, OSError, NotImplementedError) as error:
        raise InputError(
            f"%key: {name} was not found, and nobody can be asked here; set it before the kernel starts, or write it "
            "into .env"
        ) from error
    if not value:
        raise InputError(f"%key: nothing was typed; {name} is unchanged")
    return value


def _read_secret(get: Callable[[str], Any], name: str, store: str) -> str | None:
    try:
        return get(name)
    except Exception as error:  # no common base class, and their modules exist only there
        if type(error).__name__ in _NOT_FOUND:
            return None
        reason = hidden(f"{type(error).__name__}: {error}")
        raise InputError(
            f"%key: {store} denies access to {name}: {reason:.300}; allow this notebook in the list of secrets"
        ) from None


def _is_installed(module: str) -> bool:
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


_PLACES: Mapping[str, _Place] = {
    "env": _Place(
        "the environment", lambda name, folder, only: os.environ.get(name), "set it before the kernel starts"
    ),
    "colab": _Place(
        "Colab's secrets", _from_colab, "add {} with the key symbol on the left, and give this notebook access"
    ),
    "kaggle": _Place("Kaggle's secrets", _from_kaggle, "add {} under Add-ons, Secrets"),
    "dotenv": _Place(".env", _from_dotenv, "add a line {}=... to .env beside the notebook, and keep .env out of git"),
    "keyring": _Place("the keyring", _from_keyring, f"type in a terminal: keyring set {_SERVICE} {{}}"),
    "ask": _Place("your input", _ask, "type it"),
}
"""In the order of the search."""
