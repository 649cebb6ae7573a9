"""ADK's path to inject_session_state, for functions that give an instruction."""

from adk_nb.runtime.instructions import inject_session_state

__all__ = ["inject_session_state"]
