"""The history an agent sees of its session."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
