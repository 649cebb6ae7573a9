"""Warn at the line of the caller's code, however deep in the package the warning is raised."""

import sys
import warnings

_OF_OURS = {"adk_nb", "pydantic"}


def warn(message: str) -> None:
    """Issue a warning at the nearest frame outside this package."""
    frame, level = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OF_OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
