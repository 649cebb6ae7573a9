"""ADK's path to the error of an unknown name or id."""

from adk_nb.errors import NotFoundError

__all__ = ["NotFoundError"]
