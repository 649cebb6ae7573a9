"""ADK's path to ReadonlyContext."""

from adk_nb.runtime.context import ReadonlyContext

__all__ = ["ReadonlyContext"]
