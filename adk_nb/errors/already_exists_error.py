"""ADK's path to the error of an id that is taken."""

from adk_nb.errors import AlreadyExistsError

__all__ = ["AlreadyExistsError"]
