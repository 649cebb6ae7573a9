from adk_nb.tools.mcp_tool.connection_params import SseConnectionParams as SseConnectionParams
from adk_nb.tools.mcp_tool.connection_params import SseServerParams as SseServerParams
from adk_nb.tools.mcp_tool.connection_params import StdioConnectionParams as StdioConnectionParams
from adk_nb.tools.mcp_tool.connection_params import StdioServerParameters as StdioServerParameters
from adk_nb.tools.mcp_tool.connection_params import StreamableHTTPConnectionParams as StreamableHTTPConnectionParams
from adk_nb.tools.mcp_tool.mcp_tool import McpTool as McpTool
from adk_nb.tools.mcp_tool.mcp_toolset import MCPToolset as MCPToolset
from adk_nb.tools.mcp_tool.mcp_toolset import McpToolset as McpToolset
