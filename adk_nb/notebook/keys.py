"""Where a key may be found: the environment, the secrets of Colab and Kaggle, a `.env` file, the keyring, a person."""

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
from adk_nb.models.vendor_facts import ANTHROPIC, GOOGLE, OPENAI
from adk_nb.redaction import hidden, redacted, remember

PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ANTHROPIC.key_variables,
    "claude": ANTHROPIC.key_variables,
    "gemini": GOOGLE.key_variables,
    "google": GOOGLE.key_variables,
    "openai": OPENAI.key_variables,
}
"""Whose key -> the variables of the environment that hold it; the first is set."""
SERVICE = "adk_nb"
"""Under this the keyring keeps keys."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_ABSENT = ("SecretNotFoundError", "BackendError")
"""What Colab and Kaggle raise for a secret that is not there."""


@dataclass(frozen=True)
class Found:
    """A key, and where it was. It is shown nowhere."""

    value: str
    where: str

    def __repr__(self) -> str:
        return f"Found(where={self.where!r})"


def variables_of(provider: str, *, meant: str = "") -> Sequence[str]:
    """The variables that hold a provider's key; a name in capitals is one itself.

    Args:
        provider: As it was typed.
        meant: The first word of the line: if `provider` is a key, that may say whose.

    Raises:
        InputError: There is no such provider, or it is a key.
    """
    known = PROVIDERS.get(provider.lower())
    is_behind_one = meant not in ("", provider) and not known and not _VARIABLE.fullmatch(provider)
    if redacted(provider) != provider or "=" in provider or is_behind_one:
        name, _, value = provider.partition("=")
        remember(provider if redacted(provider) != provider else None, value)
        named = [name] if value.strip("=") else []  # else what stands there ends in =, as keys may
        whose = next((one for one in (*named, meant) if one.lower() in PROVIDERS or _VARIABLE.fullmatch(one)), "gemini")
        raise InputError(
            "%key takes no key: what is typed in a cell stays in the notebook; take it out of the cell, type "
            f"%key {whose}, and paste the key into the field that opens"
        )
    if known:
        return known
    if _VARIABLE.fullmatch(provider):
        return (provider,)
    if provider.lower() == "ollama":
        raise InputError(
            'Ollama needs no key; start it (ollama serve) and type: %config AdkNb.model = "ollama:llama3.2"'
        )
    near = closest(provider, PROVIDERS)
    hint = f"did you mean {near}?" if near else f"there is {', '.join(PROVIDERS)};"
    is_a_word = provider.isalpha() and len(provider) < 16  # else it may be a key of a kind that nobody knows
    told = repr(provider) if is_a_word else "such provider"
    raise InputError(f"%key knows no {told}; {hint} any other is named by its variable: %key TAVILY_API_KEY")


def find(names: Sequence[str], folder: Path, place: str | None) -> Found:
    """The first key of these names, in the environment, then in each of `PLACES`, then asked of a person.

    Args:
        names: Of variables, the first before others.
        folder: Of the notebook; `.env` is looked for in it and in those above.
        place: Look there alone.

    Raises:
        InputError: It is not there, cannot be read, or nobody can be asked.
        MissingExtraError: What reads that place is not installed.
    """
    looked = [place] if place else [one for one in PLACES if one != "ask"]
    for one in looked:
        for name in names:
            value = (PLACES[one].look(name, folder, place is not None) or "").strip()
            if value:
                return Found(_checked(value, name), PLACES[one].in_words)
    if place and place != "ask":
        raise InputError(
            f"%key: {' or '.join(names)} is not in {PLACES[place].in_words}; {PLACES[place].how(names[0])}"
        )
    return Found(_checked(_asked(names[0], folder, True), names[0]), PLACES["ask"].in_words)


def use(name: str, found: Found) -> None:
    """Put a key into the environment of this process, where all that need it look; from now on it is hidden."""
    remember(found.value)
    os.environ[name] = found.value


def _checked(value: str, name: str) -> str:
    remember(value)
    if value.split() != [value] or value[0] in "'\"":
        raise InputError(f"%key: what was given for {name} is no key: it has blanks or quotes; give the key alone")
    return value


# ---- the places


@dataclass(frozen=True)
class Place:
    """One of them."""

    in_words: str
    look: Callable[[str, Path, bool], str | None]
    """`(name, folder, it alone is wanted) -> the value`; None or empty: not there."""
    next: str
    """How the key gets there; `{}` is its name."""

    def how(self, name: str) -> str:
        return self.next.format(name)


def _in_environment(name: str, folder: Path, wanted: bool) -> str | None:
    return os.environ.get(name)


def _in_colab(name: str, folder: Path, wanted: bool) -> str | None:
    if not wanted and "google.colab" not in sys.modules:
        return None
    if not _is_there("google.colab"):
        raise InputError("%key: this is not Colab; type %key without --from")
    return _handed_out(require("google.colab.userdata", package="google-colab").get, name, "Colab")


def _in_kaggle(name: str, folder: Path, wanted: bool) -> str | None:
    if not wanted and "KAGGLE_KERNEL_RUN_TYPE" not in os.environ:
        return None
    if not _is_there("kaggle_secrets"):
        raise InputError("%key: this is not Kaggle; type %key without --from")
    secrets = require("kaggle_secrets", package="kaggle-secrets").UserSecretsClient()
    return _handed_out(secrets.get_secret, name, "Kaggle")


def _in_dotenv(name: str, folder: Path, wanted: bool) -> str | None:
    file = next((one / ".env" for one in (folder, *folder.parents) if (one / ".env").is_file()), None)
    if file is None or not (wanted or _is_there("dotenv")):
        return None
    return require("dotenv", package="'adk-nb[keys]'").dotenv_values(file, interpolate=False).get(name)


def _in_keyring(name: str, folder: Path, wanted: bool) -> str | None:
    if not (wanted or _is_there("keyring")):
        return None
    keyring = require("keyring", package="'adk-nb[keys]'")
    try:
        return keyring.get_password(SERVICE, name)
    except require("keyring.errors", package="'adk-nb[keys]'").KeyringError as error:
        if not wanted:
            return None  # this machine has none
        raise InputError(f"%key: the keyring does not answer: {type(error).__name__}; take another place") from None


def _asked(name: str, folder: Path, wanted: bool) -> str:
    try:
        return getpass.getpass(f"{name} (it is not shown): ").strip() or _nothing(name)
    except (EOFError, OSError, NotImplementedError) as error:
        raise InputError(
            f"%key: {name} is set nowhere, and nobody can be asked here; set it before the kernel starts, or write it "
            "into .env"
        ) from error


def _nothing(name: str) -> str:
    raise InputError(f"%key: nothing was typed; {name} stays as it was")


def _handed_out(get: Callable[[str], Any], name: str, whose: str) -> str | None:
    try:
        return get(name)
    except Exception as error:  # theirs, of modules that are nowhere else
        if type(error).__name__ in _ABSENT:
            return None
        told = hidden(f"{type(error).__name__}: {error}")
        raise InputError(
            f"%key: {whose} does not hand {name} out: {told:.300}; let this notebook read it in the list of secrets"
        ) from None


def _is_there(module: str) -> bool:
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


PLACES: Mapping[str, Place] = {
    "env": Place("the environment", _in_environment, "set it before the kernel starts"),
    "colab": Place(
        "Colab's secrets", _in_colab, "add {} with the key symbol at the left, and let this notebook read it"
    ),
    "kaggle": Place("Kaggle's secrets", _in_kaggle, "add {} under Add-ons, Secrets"),
    "dotenv": Place(".env", _in_dotenv, "add a line {}=... to .env beside the notebook, and keep that out of git"),
    "keyring": Place("the keyring", _in_keyring, f"type in a terminal: keyring set {SERVICE} {{}}"),
    "ask": Place("what you typed", _asked, "type it"),
}
"""Where keys are looked for, in this order."""
