"""Names of the variables that the notebook's user has made."""

from collections.abc import Iterable

_IPYTHON_NAMES = frozenset({"In", "Out", "exit", "quit", "open", "get_ipython"})
"""IPython puts them into the user's namespace."""


def user_variables(names: Iterable[str]) -> list[str]:
    """The `names` in a namespace that are neither private nor IPython's."""
    return [name for name in names if not name.startswith("_") and name not in _IPYTHON_NAMES]
