"""ADK's path to the list of skills in an instruction."""

from adk_nb.skills.catalog import format_skills_as_xml

__all__ = ["format_skills_as_xml"]
