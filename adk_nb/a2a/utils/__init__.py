"""`to_a2a`, under ADK's import path."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__, {"to_a2a": "adk_nb.a2a.utils.agent_to_a2a"})
