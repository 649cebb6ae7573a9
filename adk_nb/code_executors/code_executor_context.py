"""ADK's path to CodeExecutorContext."""

from adk_nb.runtime.code_execution import CodeExecutorContext

__all__ = ["CodeExecutorContext"]
