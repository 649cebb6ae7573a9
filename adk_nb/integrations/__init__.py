"""Tools and models of other kits, under ADK's import path."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "crewai": "adk_nb.integrations.crewai",
        "langchain": "adk_nb.integrations.langchain",
        "openai": "adk_nb.integrations.openai",
    },
)
