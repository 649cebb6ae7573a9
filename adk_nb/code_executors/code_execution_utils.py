"""ADK's path to what goes into an executor and what comes out."""

from adk_nb.runtime.code import CodeExecutionInput, CodeExecutionResult, File

__all__ = ["CodeExecutionInput", "CodeExecutionResult", "File"]
