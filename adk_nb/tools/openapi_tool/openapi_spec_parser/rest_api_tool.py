"""ADK's path to RestApiTool."""

from adk_nb.tools.openapi_tool.rest_api_tool import RestApiTool

__all__ = ["RestApiTool"]
