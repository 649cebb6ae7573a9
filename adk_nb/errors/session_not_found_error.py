"""ADK's path to the error of an unknown session."""

from adk_nb.errors import SessionNotFoundError

__all__ = ["SessionNotFoundError"]
