"""Tools of MCP servers, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "MCPToolset": "adk_nb.tools.mcp_tool.mcp_toolset",
        "McpTool": "adk_nb.tools.mcp_tool.mcp_tool",
        "McpToolset": "adk_nb.tools.mcp_tool.mcp_toolset",
        "SseConnectionParams": "adk_nb.tools.mcp_tool.connection_params",
        "SseServerParams": "adk_nb.tools.mcp_tool.connection_params",
        "StdioConnectionParams": "adk_nb.tools.mcp_tool.connection_params",
        "StdioServerParameters": "adk_nb.tools.mcp_tool.connection_params",
        "StreamableHTTPConnectionParams": "adk_nb.tools.mcp_tool.connection_params",
    },
)
