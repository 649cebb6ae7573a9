"""Agents of other processes, by the A2A protocol: serve one, call one."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "A2aServer": "adk_nb.a2a.server",
        "RemoteA2aAgent": "adk_nb.a2a.remote_a2a_agent",
        "to_a2a": "adk_nb.a2a.utils.agent_to_a2a",
    },
)
