"""A warning stands at the author's line, however deep in the package it was found."""

import sys
import warnings

_OF_OURS = {"adk_nb", "pydantic"}


def warn(told: str) -> None:
    """Warn whoever called into this package."""
    frame, level = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OF_OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(told, stacklevel=level)
