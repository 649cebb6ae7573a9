"""Modules of others that load when a test first asks for a name in them: collecting a file need not wait for them."""

import importlib
from typing import Any


class Late:
    """A module that is imported as soon as one of its names is wanted."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__file__":  # asked by pytest, of all that a file holds
            raise AttributeError(name)
        return getattr(importlib.import_module(self._module), name)


def late(module: str) -> Any:
    """`pandas = late("pandas")` in place of `import pandas`, where no name of it is wanted at the top of the file."""
    return Late(module)
