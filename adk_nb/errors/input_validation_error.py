"""ADK's path to the error of an invalid argument, name or message."""

from adk_nb.errors import InputError as InputValidationError

__all__ = ["InputValidationError"]
