"""Web services with an OpenAPI document as tools, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
