"""Input and result of code executors, under ADK's import path."""

from adk_nb.runtime.code import CodeExecutionInput, CodeExecutionResult, File

__all__ = ["CodeExecutionInput", "CodeExecutionResult", "File"]
