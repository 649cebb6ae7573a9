"""The magics by name. The file of each holds its grammar and its function, and is loaded when first needed."""

import importlib
from typing import Any

from adk_nb.errors import UserError
from adk_nb.notebook.magics.grammar import Grammar
from adk_nb.notebook.registry import CORE_MAGICS, registry

_SHARED_FILES = {"agents": "agent", "tools": "tool", "rewind": "session"}


def _module(name: str) -> Any:
    return importlib.import_module(f"adk_nb.notebook.magics.{_SHARED_FILES.get(name, name)}")


def function(name: str) -> Any:
    """Return the magic's function, which takes the host, the line, and the cell below it or None.

    Raises:
        ConfigurationError: The extension that brings it cannot be used.
    """
    return getattr(_module(name), name) if name in CORE_MAGICS else registry.of_magic(name, "function")


def grammar(name: str) -> Grammar:
    """Return the grammar of a magic's line. Raises as `function`."""
    return getattr(_module(name), name.upper()) if name in CORE_MAGICS else registry.of_magic(name, "grammar", Grammar)


def help_of(name: str) -> tuple[str, str]:
    """Return the text of `%name?`: its beginning, and the rest, which a page folds."""
    try:
        return grammar(name).help_parts
    except UserError as error:
        return str(error), ""


def grammars() -> dict[str, Grammar]:
    """Return the grammars of this package by name, in the order of the page of magics."""
    outside = {magic.name for extension in registry.outside for magic in extension.magics}
    return {name: grammar(name) for name in registry.magic_names if name not in outside}
