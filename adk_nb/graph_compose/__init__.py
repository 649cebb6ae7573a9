"""Workflows of agents that are HTTP services, in the notation of Graph Compose."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
