"""Live conversations: text and audio in both directions, while the user may speak at any time."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
