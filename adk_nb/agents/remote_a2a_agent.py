"""Agents of other processes, under ADK's import path."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
