"""Lines of the user's code: the notebook cell of an error, and the line that a warning is about."""

import sys
import traceback
import warnings
from types import FrameType
from typing import Any

_SKIPPED_PACKAGES = {"adk_nb", "pydantic"}


def cell_location(error: BaseException | None) -> str | None:
    """The innermost cell line in the traceback of `error` or its cause, as `In[7] line 4`. None: no cell.

    The line of a magic is line 1 of its cell. A cell that was run twice has the later number.
    """
    seen = set[int]()
    while error and id(error) not in seen:
        seen.add(id(error))
        locations = [(cell, line) for frame, line in traceback.walk_tb(error.__traceback__) if (cell := cell_of(frame))]
        if locations:
            cell, line = locations[-1]
            return f"{cell} line {line}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def cell_of(frame: FrameType) -> str | None:
    """The cell of a frame, as IPython names it: `In[7]`. None: not a cell.

    The shell is found in the frame's globals, since several shells may exist.
    """
    shell: Any = getattr(frame.f_globals.get("get_ipython"), "__self__", None)
    format_name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    match = format_name(frame.f_code.co_filename) if format_name else None
    return match[1] if match else None


def warn(message: str) -> None:
    """Issue a warning at the nearest frame outside this package."""
    frame, level = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _SKIPPED_PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
