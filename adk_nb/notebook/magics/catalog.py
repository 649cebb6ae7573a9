"""The magics by name. The file of each holds its grammar and its function, and is loaded when first needed."""

import importlib
from typing import Any

from adk_nb.notebook.magics.grammar import Grammar

MODULES = {
    "agent": "agent",
    "workflow": "agent",
    "tool": "tool",
    "chat": "chat",
    "agents": "agents",
    "tools": "tool",
    "state": "state",
    "session": "session",
    "trace": "trace",
    "rewind": "rewind",
    "confirm": "confirm",
    "record": "record",
    "replay": "record",
    "key": "key",
    "doctor": "doctor",
    "export": "export",
}
"""A magic -> the module beside this one that holds `NAME`, its grammar, and `name`, its function."""


def load(module: str) -> Any:
    """A module beside this one."""
    return importlib.import_module(f"adk_nb.notebook.magics.{module}")


def function(name: str) -> Any:
    """What the magic does: called with the host, the line, and the cell below it or None."""
    return getattr(load(MODULES[name]), name)


def grammar(name: str) -> Grammar:
    """What may be typed on the magic's line."""
    return getattr(load(MODULES[name]), name.upper())


def grammars() -> dict[str, Grammar]:
    """All of them by name, in an order to read them in."""
    return {name: grammar(name) for name in MODULES}
