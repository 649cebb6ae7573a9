"""ADK's path to CallbackContext."""

from adk_nb.runtime.context import CallbackContext

__all__ = ["CallbackContext"]
