"""What a cell shows of a turn; one that ended with an error can fail its cell, so that Run All and CI stop there."""

from typing import Any

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.errors import TurnFailedError
from adk_nb.notebook.error_hints import first_clause
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.plain_text import one_line

_MOST = 500
"""Characters of an error that its cell fails with; the reply has all of them."""


def what_came(told: Any, *, silent: bool, raises: bool) -> Any:
    """What the cell has as its result.

    Args:
        told: What a magic did; a turn is a Reply.
        silent: The cell shows nothing.
        raises: A turn that ended with an error fails the cell, which shows it all the same.

    Raises:
        TurnFailedError: It did.
    """
    if raises and isinstance(told, Reply) and told.status == "error":
        if not silent:
            display(told)
        why = one_line(told.error or "the run failed", _MOST)
        if not silent:  # all of it stands above
            kind, colon, message = why.partition(": ")
            why = kind + colon + first_clause(message)
        raise TurnFailedError(f"the turn of {told.agent!r} failed: {why}")
    return None if silent else told
