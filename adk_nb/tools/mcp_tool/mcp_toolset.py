"""The tools of an MCP server."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from adk_nb.errors import ConfigurationError
from adk_nb.runtime.approvals import RESERVED
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.conditions import Decides, as_condition
from adk_nb.tools.mcp_tool.connection_params import (
    ConnectionParams,
    SseConnectionParams,
    StdioConnectionParams,
    StdioServerParameters,
    StreamableHTTPConnectionParams,
)
from adk_nb.tools.mcp_tool.load_mcp_resource_tool import LoadMcpResourceTool
from adk_nb.tools.mcp_tool.mcp_session_manager import McpSessionManager
from adk_nb.tools.mcp_tool.mcp_tool import HeaderProvider, McpTool, ProgressCallback, headers_of

logger = logging.getLogger(__name__)

MAX_TOOLS = 1_000
_MAX_PAGES = 100


class McpToolset(BaseToolset):
    """What an MCP server offers, asked anew at each invocation. The connection stays open until `close`.

    Works from any thread and any event loop: connections live on the package's own.

    Args:
        connection_params: How the server is reached; `StdioServerParameters`, ours or those of `mcp`, will do.
        require_confirmation: Ask a person before a tool is called: True, or a condition on the arguments, as for
            FunctionTool. Before a tool that has not all that an expression names, a person is always asked.
        header_provider: Gives headers for the connection, such as a user's token; who has other headers has a
            connection of their own.
        progress_callback: Told what a tool says of its progress, on the package's background loop.
        use_mcp_resources: Also offer a tool that reads the server's resources.

    Raises:
        ConfigurationError: `connection_params` is none of these; the condition is none.
        MissingExtraError: The package `mcp` is not installed.
    """

    def __init__(
        self,
        *,
        connection_params: ConnectionParams | StdioServerParameters | Any,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
        require_confirmation: Decides = False,
        header_provider: HeaderProvider | None = None,
        progress_callback: ProgressCallback | None = None,
        use_mcp_resources: bool = False,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        self._sessions = McpSessionManager(_params(connection_params))
        self.require_confirmation = as_condition(require_confirmation, type(self).__name__, None)
        self._header_provider = header_provider
        self._of_each: dict[str, Any] = {
            "require_confirmation": self.require_confirmation,
            "header_provider": header_provider,
            "progress_callback": progress_callback,
        }
        self._use_resources = use_mcp_resources
        self._refused: set[str] = set()

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The server's tools, by name.

        Raises:
            ConnectionError: The server was not reached.
        """
        headers = await headers_of(self._header_provider, readonly_context)
        listed, resources = await self._sessions.use(headers, self._listed, again=True)
        tools: list[BaseTool] = [
            McpTool(one, self._sessions, **self._of_each) for one in listed if self._can_be_named(one)
        ]
        if self._use_resources:
            tools.append(LoadMcpResourceTool(resources, self._sessions, self._header_provider))
        return [
            tool for tool in sorted(tools, key=lambda one: one.name) if self._is_tool_selected(tool, readonly_context)
        ]

    async def close(self) -> None:
        await self._sessions.close()

    async def _listed(self, client: Any) -> tuple[list[Any], list[Any]]:
        tools = await _pages(client.list_tools, "tools")
        return tools, await _pages(client.list_resources, "resources") if self._use_resources else []

    def _can_be_named(self, declared: Any) -> bool:
        """Whether a tool has a name that a server may give; said once if not."""
        name = declared.name
        if not name.startswith(RESERVED):
            return True
        if name not in self._refused:
            self._refused.add(name)
            logger.warning("the MCP tool %r is left out: names that start with %r are reserved", name, RESERVED)
        return False

    @classmethod
    async def from_server(
        cls, *, connection_params: ConnectionParams | StdioServerParameters | Any, **options: Any
    ) -> tuple[list[BaseTool], AsyncExitStack]:
        """Connect, and return the tools, and what closes the connection: ADK's older way."""
        toolset = cls(connection_params=connection_params, **options)
        stack = AsyncExitStack()
        stack.push_async_callback(toolset.close)
        return await toolset.get_tools_with_prefix(), stack


MCPToolset = McpToolset


def _params(given: Any) -> ConnectionParams:
    if isinstance(given, StdioConnectionParams | SseConnectionParams | StreamableHTTPConnectionParams):
        return given
    if hasattr(given, "command"):
        return StdioConnectionParams(server_params=StdioServerParameters.model_validate(given, from_attributes=True))
    raise ConfigurationError(
        "an McpToolset is told how to reach its server by connection_params=StdioConnectionParams(...), "
        f"StreamableHTTPConnectionParams(...) or SseConnectionParams(...), and not by {type(given).__name__}"
    )


async def _pages(ask: Any, of: str) -> list[Any]:
    found, cursor = list[Any](), None
    for _ in range(_MAX_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, of)
        cursor = page.next_cursor
        if not cursor or len(found) >= MAX_TOOLS:
            break
    return found[:MAX_TOOLS]
