"""What `%key` does: a key gets into the environment, and into nothing else."""

import os
from typing import Any

from adk_nb.errors import InputError, closest
from adk_nb.notebook import keys
from adk_nb.notebook.place import folder_of

_PUBLIC = "BINDER_SERVICE_HOST"
"""Set where a notebook runs on Binder."""


def key(shell: Any, asked: Any) -> list[str]:
    """What there is to say, a line each; never the key.

    Raises:
        InputError: As `keys.find`; the line says what cannot be.
    """
    words: list[str] = asked.provider
    if not words:
        return _all()
    for word in words:
        keys.variables_of(word, meant=words[0])  # a key is refused before anything repeats it
    if len(words) > 1:
        raise InputError(f"%key takes one provider at a time, and no key; write %key {words[0]}")
    names = keys.variables_of(words[0])
    if asked.forget:
        return [_forgotten(names)]
    place: str | None = getattr(asked, "from")
    if place is not None and place not in keys.PLACES:
        near = closest(place, keys.PLACES)
        hint = f"did you mean {near}?" if near else f"there is {', '.join(keys.PLACES)}"
        raise InputError(f"%key cannot look in {place!r}; {hint}")
    warned = [_warning(names[0])] if _PUBLIC in os.environ and place in (None, "ask") else []
    found = keys.find(names, folder_of(shell), place)
    name = next((one for one in names if os.environ.get(one, "").strip() == found.value), names[0])
    keys.use(name, found)
    return [f"{name} is set, from {found.where}", *warned]


def _all() -> list[str]:
    """Which are set, by name."""
    names = dict.fromkeys(name for each in keys.PROVIDERS.values() for name in each)
    told = [f"{name} is set" for name in names if os.environ.get(name, "").strip()]
    return told or ["no key is set; type %key gemini, or work without one: -m offline"]


def _forgotten(names: Any) -> str:
    gone = [name for name in names if os.environ.pop(name, None) is not None]
    if not gone:
        return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} not set"
    return f"{' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} not set any more in this kernel"


def _warning(name: str) -> str:
    return f"this runs on a public Binder, whose keeper could read {name}: use a key that you can throw away"
