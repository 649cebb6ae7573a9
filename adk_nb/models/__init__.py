"""Ask a model. Its names load on first use."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
