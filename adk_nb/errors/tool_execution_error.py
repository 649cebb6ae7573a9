"""ADK's path to the error of a tool that failed."""

from adk_nb.errors import ToolErrorType, ToolExecutionError

__all__ = ["ToolErrorType", "ToolExecutionError"]
