"""Input and result of code executors, under ADK's import path."""

from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult, File

__all__ = ["CodeExecutionInput", "CodeExecutionResult", "File"]
