"""Helpers, under ADK's import path."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__, {"instructions_utils": "adk_nb.utils.instructions_utils"})
