"""Agents and graphs that are written in YAML, under ADK's import path."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "ALLOW_CONFIG_STDIO_SERVERS_ENV_VAR": "adk_nb.yaml_agents",
        "from_config": "adk_nb.yaml_agents",
        "resolve_agent_reference": "adk_nb.yaml_agents",
        "resolve_callbacks": "adk_nb.yaml_agents",
        "resolve_code_reference": "adk_nb.yaml_agents",
        "resolve_fully_qualified_name": "adk_nb.yaml_agents",
    },
)
