"""`load_mcp_resource`: the model reads resources of an MCP server."""

from collections.abc import Sequence
from typing import Any

from adk_nb import types
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.mcp_tool.content import clean_text, convert_resource
from adk_nb.tools.mcp_tool.mcp_server import McpServer

_MAX_LISTED = 100
"""Limit of resources in the description."""


class LoadMcpResourceTool(BaseTool):
    """Reads one of the resources that the server listed."""

    effect = "pure"

    def __init__(self, resources: Sequence[Any], server: McpServer) -> None:
        """`resources`: the server's listing. `server`: shared, so not closed here."""
        lines = [
            clean_text(f"{resource.uri}: {resource.description or resource.title or resource.name}")[:200]
            for resource in resources[:_MAX_LISTED]
        ]
        super().__init__(
            name="load_mcp_resource",
            description="Reads a resource of the server. There is:\n" + ("\n".join(lines) or "none"),
        )
        self._uris = {str(resource.uri) for resource in resources}
        self._server = server
        self.auth_config = server.auth_config
        self.bound_to = server.sessions.server

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]}
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Read the resource `uri`."""
        uri = args.get("uri")
        if uri not in self._uris:
            return {"error": f"there is no resource {uri!r}; there is: {', '.join(sorted(self._uris)) or 'none'}"}

        async def read(client: Any) -> dict[str, Any]:
            """Read on the connection's loop."""
            return convert_resource(await client.read_resource(uri))

        try:
            return await self._server.call(tool_context, read, again=True)
        except Exception as error:  # as for any tool of the server
            return {"error": f"{self.name}: {str(error) or type(error).__name__}"}
