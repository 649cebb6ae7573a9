"""`%key`: put a key into the environment, and into nothing else."""

import os
from typing import Any

from adk_nb.errors import InputError, closest
from adk_nb.models.default_model import find_default_model, vendor_model
from adk_nb.notebook import keys
from adk_nb.notebook.place import folder_of

_PUBLIC = "BINDER_SERVICE_HOST"
"""Set where a notebook runs on Binder."""


def run(shell: Any, settings: Any, asked: Any) -> list[str]:
    """Set, forget or list keys.

    Returns:
        What to say of it, a line each; never the key.

    Raises:
        InputError: As `keys.find`; the line says what cannot be.
    """
    words: list[str] = asked.provider
    if not words:
        return [*_all(), _default_model(settings)]
    for word in words:
        keys.variables_of(word, meant=words[0])  # a key is refused before anything repeats it
    if len(words) > 1:
        raise InputError(f"%key takes one provider at a time, and no key; write %key {words[0]}")
    names = keys.variables_of(words[0])
    if asked.forget:
        return [_forgotten(names), *([_default_model(settings)] if vendor_model(names[0]) else [])]
    place: str | None = getattr(asked, "from")
    if place is not None and place not in keys.PLACES:
        near = closest(place, keys.PLACES)
        hint = f"did you mean {near}?" if near else f"there is {', '.join(keys.PLACES)}"
        raise InputError(f"%key cannot look in {place!r}; {hint}")
    warned = [_warning(names[0])] if _PUBLIC in os.environ and place in (None, "ask") else []
    found = keys.find(names, folder_of(shell), place)
    name = next((one for one in names if os.environ.get(one, "").strip() == found.value), names[0])
    keys.use(name, found)
    return [f"{name} is set, from {found.where}", *_answered_by(vendor_model(name), settings), *warned]


def _all() -> list[str]:
    """Which are set, by name."""
    names = dict.fromkeys(name for each in keys.PROVIDERS.values() for name in each)
    told = [f"{name} is set" for name in names if os.environ.get(name, "").strip()]
    return told or ["no key is set; type %key gemini, %key openai or %key anthropic, or work without one: -m offline"]


def _default_model(settings: Any) -> str:
    return f"agents that name no model: {settings.model_in_words}"


def _answered_by(model: str, settings: Any) -> list[str]:
    """Whether agents that name no model ask `model`, whose key was set just now, and what to type if they do not."""
    if not model:
        return []
    found = find_default_model()
    if found.name == model:
        return [f"agents that name no model ask {model}", *([f"first type: {found.install}"] if found.install else [])]
    way = '%config AdkNb.model = ""' if settings.model else f'%config AdkNb.model = "{model}"'
    why = f'%config AdkNb.model = "{settings.model}"' if settings.model else found.reason
    return [f"agents that name no model ask {found.name} still ({why}); to ask {model}, type: {way}"]


def _forgotten(names: Any) -> str:
    gone = [name for name in names if os.environ.pop(name, None) is not None]
    if not gone:
        return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} not set"
    return f"{' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} not set any more in this kernel"


def _warning(name: str) -> str:
    return f"this runs on a public Binder, whose keeper could read {name}: use a key that you can throw away"
