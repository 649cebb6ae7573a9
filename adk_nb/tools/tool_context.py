"""ADK's path to ToolContext."""

from adk_nb.runtime.context import ToolContext

__all__ = ["ToolContext"]
