"""Extend the notebook: magics, settings, panels, options, checks and metrics of a package, or of a cell."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
