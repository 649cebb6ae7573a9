"""A tool of an MCP server."""

import inspect
from collections.abc import Callable
from typing import Any

from adk_nb import types
from adk_nb.runtime.context import ReadonlyContext, ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.conditions import Decides, is_asked, with_defaults
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.mcp_tool.content import plain, result_of
from adk_nb.tools.mcp_tool.mcp_session_manager import EXTRA, McpSessionManager

HeaderProvider = Callable[[ReadonlyContext], Any]
"""`(context) -> dict[str, str]`, sync or async: headers of the connection, which the model never sees."""
ProgressCallback = Callable[[float, float | None, str | None], Any]
"""`(progress, total, message)`, sync or async, on the package's background loop."""


class McpTool(BaseTool):
    """Calls a tool on its server, and hands back the result: `content`, `structuredContent`, `isError`.

    Pictures and sound go to the model beside the result. A server that is gone, does not answer in time or refuses the
    call is `{"error": ...}`; the next call connects anew.
    """

    def __init__(
        self,
        declared: Any,
        sessions: McpSessionManager,
        *,
        require_confirmation: Decides = False,
        header_provider: HeaderProvider | None = None,
        progress_callback: ProgressCallback | None = None,
    ) -> None:
        """`declared`: the `mcp.Tool` that the server has told of; `sessions`: shared, and not this tool's own."""
        hints = declared.annotations.model_dump(exclude_none=True, by_alias=True) if declared.annotations else None
        super().__init__(
            name=declared.name, description=plain(declared.description or declared.title or ""), custom_metadata=hints
        )
        self.require_confirmation = require_confirmation
        self.header_provider = header_provider
        self.progress_callback = progress_callback
        self.bound_to = f"{declared.name} of {sessions.server}"
        self._called = declared.name
        self._schema: dict[str, Any] = declared.input_schema
        self._sessions = sessions
        self._arguments = JsonArguments(self._schema, EXTRA)

    def __repr__(self) -> str:
        return f"McpTool({self.name})"

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = self._schema if self._schema.get("properties") else None
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    def check(self, args: dict[str, Any]) -> str | None:
        if wrong := self._arguments.wrong(args):
            return f"{self.name}() was not called: wrong arguments: {wrong}. Call it again with arguments that fit."
        return None

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        if not self.require_confirmation or self.check(args):
            return False  # wrong arguments go back to the model; nothing will run
        return await is_asked(self.require_confirmation, with_defaults(self._schema, args), tool_context)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        headers = await headers_of(self.header_provider, tool_context)

        async def call(client: Any) -> Any:
            return await client.call_tool(self._called, args, progress_callback=self._progress())

        try:
            return result_of(await self._sessions.use(headers, call))
        except Exception as error:  # whatever goes wrong between here and there: the model is told, and may go on
            return {"error": f"{self.name}: {str(error) or type(error).__name__}"}

    def _progress(self) -> Any:
        if not (heard := self.progress_callback):
            return None

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            answer = heard(progress, total, message)
            if inspect.isawaitable(answer):
                await answer

        return tell


async def headers_of(provider: HeaderProvider | None, ctx: ReadonlyContext | None) -> dict[str, str] | None:
    """The headers that `provider` gives; None without one, or where nothing runs."""
    if provider is None or ctx is None:
        return None
    given = provider(ctx)
    return await given if inspect.isawaitable(given) else given
