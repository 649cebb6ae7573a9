"""ADK's path to Context."""

from adk_nb.runtime.context import Context

__all__ = ["Context"]
