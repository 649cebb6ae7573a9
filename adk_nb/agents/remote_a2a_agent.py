"""Agents of other processes, under ADK's import path."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "A2AClientError": "adk_nb.errors",
        "AGENT_CARD_WELL_KNOWN_PATH": "adk_nb.a2a.protocol",
        "AgentCardResolutionError": "adk_nb.errors",
        "DEFAULT_TIMEOUT": "adk_nb.a2a.remote_a2a_agent",
        "RemoteA2aAgent": "adk_nb.a2a.remote_a2a_agent",
    },
)
