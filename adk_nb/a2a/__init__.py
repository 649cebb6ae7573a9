"""Agents of other processes, by the A2A protocol: serve one, call one."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
