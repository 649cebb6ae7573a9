"""Evaluate agents on cases, and answer tables with them."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
