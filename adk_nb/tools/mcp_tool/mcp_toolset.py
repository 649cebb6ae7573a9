"""The tools of an MCP server."""

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from adk_nb import types
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.approvals import RESERVED
from adk_nb.runtime.context import ReadonlyContext, ToolContext
from adk_nb.tools import set_model_response_tool
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.conditions import Condition, parse_condition
from adk_nb.tools.mcp_tool.connection_params import (
    ConnectionParams,
    SseConnectionParams,
    StdioConnectionParams,
    StdioServerParameters,
    StreamableHTTPConnectionParams,
)
from adk_nb.tools.mcp_tool.content import clean_text, convert_resource
from adk_nb.tools.mcp_tool.elicitation import ElicitationCallback
from adk_nb.tools.mcp_tool.mcp_server import HeaderProvider, McpServer
from adk_nb.tools.mcp_tool.mcp_session_manager import McpSessionManager
from adk_nb.tools.mcp_tool.mcp_tool import McpTool, ProgressCallback

_MAX_DESCRIBED_RESOURCES = 100
"""Limit of resources in the tool's description."""


class LoadMcpResourceTool(BaseTool):
    """Reads one of the resources that the server listed."""

    effect = "pure"

    def __init__(self, resources: Sequence[Any], server: McpServer) -> None:
        """`resources`: the server's listing. `server`: shared, so not closed here."""
        lines = [
            clean_text(f"{resource.uri}: {resource.description or resource.title or resource.name}")[:200]
            for resource in resources[:_MAX_DESCRIBED_RESOURCES]
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
        # A model must not read what the server did not list, such as a file by its URI.
        if uri not in self._uris:
            return {"error": f"there is no resource {uri!r}; there is: {', '.join(sorted(self._uris)) or 'none'}"}

        async def read(client: Any) -> dict[str, Any]:
            """Read on the connection's loop."""
            return convert_resource(await client.read_resource(uri))

        try:
            return await self._server.call(tool_context, read, again=True)
        except Exception as error:  # as for any tool of the server
            return {"error": f"{self.name}: {str(error) or type(error).__name__}"}


logger = logging.getLogger(__name__)

MAX_TOOLS = 1_000
"""Limit of offered tools; a filter selects among all that the server has."""
_MAX_LISTED = 10_000
"""Limit of tools or resources that are read from a server's list."""
_MAX_PAGES = 100
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_RESERVED_NAMES = ("transfer_to_agent", set_model_response_tool.NAME)
"""Names with a meaning for the runtime."""


class McpToolset(BaseToolset):
    """The tools of an MCP server. The connection stays open until `close`.

    The server's tools are listed at each invocation; if the server announces changes, only after such an announcement.
    An approval is valid only for the schema and description it was given for. Works from any thread and any event loop:
    connections live on the package's background loop.

    Args:
        connection_params: The server to connect to; `StdioServerParameters`, ours or those of `mcp`, are accepted. A
            program is started without a shell and with few variables of this process; naming it here authorizes it.
        auth_scheme: The authentication scheme of a server on the web.
        auth_credential: The credential, or the client to get one with. If needed, the user is asked before the tools
            are listed; each user has their own connection.
        credential_key: The key under which a user's credential is stored; see `AuthConfig`.
        require_confirmation: Ask the user before a tool is called: True, or a condition on the arguments, as for
            FunctionTool. For a tool that lacks an argument of an expression the user is always asked.
        header_provider: Returns headers for the connection, such as a user's token; other headers use another
            connection.
        progress_callback: Receives the progress of calls, in addition to the events.
        elicitation_callback: Answers questions to the user while a tool runs. None: ask by `input()` if a cell waits
            for the run; otherwise the question is declined, with an event.
        sampling_callback: Answers requests to a model, as in `mcp.Client`. None: they are refused.
        sampling_capabilities: What of sampling the callback can do, as in `mcp.Client`, such as tools; the server is
            told.
        tool_list_cache_ttl_seconds: Do not list the tools again for so long, unless the server announces a change.
            None: list them at each invocation, if the server announces no changes.
        propagate_grounding_metadata: Give the model's answer the grounding that a result has in its
            `_meta.adk_grounding_metadata`.
        use_mcp_resources: Add a tool that reads the server's resources.

    Raises:
        ConfigurationError: `connection_params` or the condition is invalid, or the credential does not suit the server.
        MissingExtraError: The package `mcp` is not installed.
    """

    external_names = True

    def __init__(
        self,
        *,
        connection_params: ConnectionParams | StdioServerParameters | Any,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
        auth_scheme: AuthScheme | Any = None,
        auth_credential: AuthCredential | None = None,
        credential_key: str | None = None,
        require_confirmation: Condition = False,
        header_provider: HeaderProvider | None = None,
        progress_callback: ProgressCallback | None = None,
        elicitation_callback: ElicitationCallback | None = None,
        sampling_callback: Any = None,
        sampling_capabilities: Any = None,
        tool_list_cache_ttl_seconds: float | None = None,
        propagate_grounding_metadata: bool = False,
        use_mcp_resources: bool = False,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        config = None
        if auth_scheme is not None:
            key = credential_key or ""
            config = AuthConfig(auth_scheme=auth_scheme, raw_auth_credential=auth_credential, credential_key=key)
        if tool_list_cache_ttl_seconds is not None and tool_list_cache_ttl_seconds <= 0:
            raise ConfigurationError(
                f"tool_list_cache_ttl_seconds={tool_list_cache_ttl_seconds:g} must be more than 0; write None to list "
                "the tools at each invocation"
            )
        if sampling_capabilities is not None and sampling_callback is None:
            raise ConfigurationError("sampling_capabilities needs a sampling_callback, which answers the requests")
        client_options: dict[str, Any] = {}
        if sampling_callback:
            client_options = {
                "sampling_callback": sampling_callback,
                "sampling_capabilities": sampling_capabilities,
            }
        sessions = McpSessionManager(connection_params_of(connection_params), **client_options)
        self._server = McpServer(sessions, header_provider=header_provider, auth_config=config)
        self.require_confirmation = parse_condition(require_confirmation, type(self).__name__, None)
        self._tool_options: dict[str, Any] = {
            "require_confirmation": self.require_confirmation,
            "progress_callback": progress_callback,
            "elicitation_callback": elicitation_callback,
            "propagate_grounding_metadata": propagate_grounding_metadata,
        }
        self._keep_seconds = tool_list_cache_ttl_seconds
        self._use_resources = use_mcp_resources
        self._reported: set[str] = set()

    def get_auth_config(self) -> AuthConfig | None:
        """The credential that the server needs. None: none is configured."""
        return self._server.auth_config

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The server's tools, by name.

        Raises:
            ConnectionError: The server was not reached.
            CredentialError: It demands a credential, or another one.
            TimeoutError: It did not list its tools in time.
        """
        refresh = readonly_context is not None and _is_answer(readonly_context)
        tools: list[BaseTool] = await self._server.list_offers(
            readonly_context, self._list_tools, refresh=refresh, keep_seconds=self._keep_seconds
        )
        selected = [tool for tool in tools if self._is_tool_selected(tool, readonly_context)]
        if len(selected) > MAX_TOOLS:
            self._warn_once(
                f"{len(selected)} tools", f"are over the limit of {MAX_TOOLS}: the rest is left out; use tool_filter"
            )
        return selected[:MAX_TOOLS]

    async def close(self) -> None:
        """Close the connections to the server."""
        await self._server.sessions.close()

    async def _list_tools(self, client: Any) -> list[BaseTool]:
        by_name: dict[str, BaseTool] = {}
        for definition in await _pages(client.list_tools, "tools"):
            if reason := _rejection(definition, by_name):
                self._warn_once(f"the tool {definition.name[:128]!r}", f"is left out: {reason}")
                continue
            try:
                by_name[definition.name] = McpTool(definition, self._server, **self._tool_options)
            except ValueError as error:
                self._warn_once(f"the tool {definition.name!r}", f"is left out: {error}")
        # Sorted: vendors cache prompts by prefix, and servers list in any order.
        tools = [by_name[name] for name in sorted(by_name)]
        if self._use_resources:
            tools.append(LoadMcpResourceTool(await _pages(client.list_resources, "resources"), self._server))
        return tools

    def _warn_once(self, subject: str, reason: str) -> None:
        if subject not in self._reported and len(self._reported) < MAX_TOOLS:
            self._reported.add(subject)
            logger.warning("of the MCP server %s, %s %s", self._server.name, subject, reason)

    @classmethod
    async def from_server(
        cls, *, connection_params: ConnectionParams | StdioServerParameters | Any, **options: Any
    ) -> tuple[list[BaseTool], AsyncExitStack]:
        """Connect; return the tools, and a stack that closes the connection. ADK's older interface."""
        toolset = cls(connection_params=connection_params, **options)
        stack = AsyncExitStack()
        stack.push_async_callback(toolset.close)
        return await toolset.get_tools_with_prefix(), stack


MCPToolset = McpToolset


def connection_params_of(params: Any) -> ConnectionParams:
    """Normalize the connection parameters.

    Raises:
        ConfigurationError: They are of another type, or name a program, and Python runs in a browser.
    """
    if IN_A_BROWSER and (command := getattr(getattr(params, "server_params", params), "command", None)):
        raise ConfigurationError(
            f"McpToolset starts {command!r}, which a browser cannot; name a server on the web, as "
            "StreamableHTTPConnectionParams(url=...), or open the notebook in JupyterLab on your machine"
        )
    if isinstance(params, StdioConnectionParams | SseConnectionParams | StreamableHTTPConnectionParams):
        return params
    if hasattr(params, "command"):
        return StdioConnectionParams(server_params=StdioServerParameters.model_validate(params, from_attributes=True))
    raise ConfigurationError(
        "connection_params must be StdioConnectionParams(...), "
        f"StreamableHTTPConnectionParams(...) or SseConnectionParams(...), got {type(params).__name__}"
    )


def _rejection(definition: Any, by_name: Mapping[str, BaseTool]) -> str | None:
    """The reason why a tool cannot be offered. None: it can."""
    name: str = definition.name
    if not _NAME.fullmatch(name):
        return "a model cannot call it by that name"
    # Else a server could answer approvals, or replace an agent's transfer.
    if name.startswith(RESERVED) or name in _RESERVED_NAMES:
        return "the name is reserved"
    return "there are two of that name" if name in by_name else None


def _is_answer(ctx: ReadonlyContext) -> bool:
    """True if the message answers an interrupt: then the tools are listed anew, as they are now."""
    parts = (ctx.user_content and ctx.user_content.parts) or []
    return any(part.function_response for part in parts)


async def _pages(fetch: Any, field: str) -> list[Any]:
    items, cursor = list[Any](), None
    for _ in range(_MAX_PAGES):  # a server may send cursors without end
        page = await fetch(cursor=cursor)
        items += getattr(page, field)
        # MCP: cursors are opaque; no cursor means the last page.
        cursor = page.next_cursor
        if not cursor or len(items) >= _MAX_LISTED:
            break
    return items[:_MAX_LISTED]
