"""The magics by name. The file of each holds its grammar and its function, and is loaded when first needed."""

import importlib
from typing import Any

from adk_nb.notebook.magics.grammar import Grammar

MAGICS = (
    "agent", "workflow", "tool", "chat", "agents", "tools", "state", "session", "trace", "rewind", "confirm",
    "eval", "map", "record", "replay", "serve", "key", "doctor", "export",
)  # fmt: skip
"""In the order of the reference page."""
_SHARED_FILES = {"agents": "agent", "workflow": "agent", "tools": "tool", "replay": "record", "rewind": "session"}
_EXTENSIONS = {
    "eval": "evaluation", "map": "evaluation", "record": "recording", "serve": "serving", "key": "keys",
    "export": "export",
}  # fmt: skip


def _module(name: str) -> Any:
    file = _SHARED_FILES.get(name, name)
    room = f"extensions.{_EXTENSIONS[file]}" if file in _EXTENSIONS else "magics"
    return importlib.import_module(f"adk_nb.notebook.{room}.{file}")


def function(name: str) -> Any:
    """Return the magic's function, which takes the host, the line, and the cell below it or None."""
    return getattr(_module(name), name)


def grammar(name: str) -> Grammar:
    """Return the grammar of a magic's line, the constant named like it in capitals."""
    return getattr(_module(name), name.upper())


def grammars() -> dict[str, Grammar]:
    """Return all grammars by name."""
    return {name: grammar(name) for name in MAGICS}
