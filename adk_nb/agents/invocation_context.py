"""ADK's path to InvocationContext."""

from adk_nb.errors import LlmCallsLimitExceededError
from adk_nb.runtime.invocation_context import InvocationContext

__all__ = ["InvocationContext", "LlmCallsLimitExceededError"]
