"""`load_mcp_resource`: a model reads what an MCP server has to read."""

from collections.abc import Sequence
from typing import Any

from adk_nb import types
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.mcp_tool.content import contents_of, plain
from adk_nb.tools.mcp_tool.mcp_server import McpServer

_MAX_TOLD = 100
"""Resources that the model is told of."""


class LoadMcpResourceTool(BaseTool):
    """Reads one of the resources that the server had when it was asked."""

    effect = "pure"

    def __init__(self, resources: Sequence[Any], server: McpServer) -> None:
        """`resources`: as the server has told of them; `server`: shared, and not this tool's own."""
        told = [plain(f"{one.uri}: {one.description or one.title or one.name}")[:200] for one in resources[:_MAX_TOLD]]
        super().__init__(
            name="load_mcp_resource",
            description="Reads a resource of the server. There is:\n" + ("\n".join(told) or "none"),
        )
        self._known = {str(one.uri) for one in resources}
        self._server = server
        self.auth_config = server.auth_config
        self.bound_to = server.sessions.server

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]}
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        uri = args.get("uri")
        if uri not in self._known:
            return {"error": f"there is no resource {uri!r}; there is: {', '.join(sorted(self._known)) or 'none'}"}

        async def read(client: Any) -> dict[str, Any]:
            return contents_of(await client.read_resource(uri))

        try:
            return await self._server.ask(tool_context, read, again=True)
        except Exception as error:  # as for any tool of the server
            return {"error": f"{self.name}: {str(error) or type(error).__name__}"}
