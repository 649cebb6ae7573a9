"""ADK's path to the tool that reads resources of an MCP server."""

from adk_nb.tools.mcp_tool.mcp_toolset import LoadMcpResourceTool

__all__ = ["LoadMcpResourceTool"]
