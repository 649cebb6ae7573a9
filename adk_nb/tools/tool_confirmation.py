"""ADK's path to ToolConfirmation."""

from adk_nb.events.tool_confirmation import ToolConfirmation

__all__ = ["ToolConfirmation"]
