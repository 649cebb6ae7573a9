"""ADK's path to CodeExecutorContext."""

from adk_nb.runtime.code_executor_context import CodeExecutorContext

__all__ = ["CodeExecutorContext"]
