"""ADK's path to tools written for CrewAI."""

from adk_nb.tools.crewai_tool import CrewaiTool

__all__ = ["CrewaiTool"]
