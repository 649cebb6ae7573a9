"""Shortcuts for the credentials of web services, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__, {"auth_helpers": "adk_nb.tools.openapi_tool.auth.auth_helpers"})
