"""The tools of an MCP server."""

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.approvals import RESERVED
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools import set_model_response_tool
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
from adk_nb.tools.mcp_tool.elicitation import Elicits
from adk_nb.tools.mcp_tool.load_mcp_resource_tool import LoadMcpResourceTool
from adk_nb.tools.mcp_tool.mcp_server import HeaderProvider, McpServer
from adk_nb.tools.mcp_tool.mcp_session_manager import McpSessionManager
from adk_nb.tools.mcp_tool.mcp_tool import McpTool, ProgressCallback

logger = logging.getLogger(__name__)

MAX_TOOLS = 1_000
"""That are offered; a filter chooses among those that a server has."""
_MAX_LISTED = 10_000
_MAX_PAGES = 100
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_NOT_THEIRS = ("transfer_to_agent", set_model_response_tool.NAME)
"""Names by which a model speaks to the runtime."""


class McpToolset(BaseToolset):
    """What an MCP server offers. The connection stays open until `close`.

    The server is asked what it has at each invocation, and after that only when it says that this has changed, if it
    has promised to. An approval holds for a tool as it was shown: with another schema or description it does not.
    Works from any thread and any event loop: connections live on the package's own.

    Args:
        connection_params: How the server is reached; `StdioServerParameters`, ours or those of `mcp`, will do. A
            program is started without a shell and with few variables of this process; whoever writes it here has
            agreed to run it.
        auth_scheme: How a server on the web wants to be shown a credential.
        auth_credential: What is shown, or what it is got with. A person is asked before the tools are known, if need
            be; each user has their own connection.
        credential_key: Under this name a user's credential is kept; see `AuthConfig`.
        require_confirmation: Ask a person before a tool is called: True, or a condition on the arguments, as for
            FunctionTool. Before a tool that has not all that an expression names, a person is always asked.
        header_provider: Gives headers for the connection, such as a user's token; who has other headers has a
            connection of their own.
        progress_callback: Told what a tool says of its progress, besides the events that tell of it.
        elicitation_callback: Answers what the server asks a person while a tool runs. None: they are asked by
            `input()` where a cell waits for the run; where none does, the question is declined, and an event says so.
        sampling_callback: Answers what the server asks a model, as `mcp.Client` has it. None: that is refused.
        use_mcp_resources: Also offer a tool that reads the server's resources.

    Raises:
        ConfigurationError: `connection_params` is none of these; the condition is none; the
            credential cannot be shown to such a server.
        MissingExtraError: The package `mcp` is not installed.
    """

    named_outside = True

    def __init__(
        self,
        *,
        connection_params: ConnectionParams | StdioServerParameters | Any,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
        auth_scheme: AuthScheme | Any = None,
        auth_credential: AuthCredential | None = None,
        credential_key: str | None = None,
        require_confirmation: Decides = False,
        header_provider: HeaderProvider | None = None,
        progress_callback: ProgressCallback | None = None,
        elicitation_callback: Elicits | None = None,
        sampling_callback: Any = None,
        use_mcp_resources: bool = False,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        config = None
        if auth_scheme is not None:
            key = credential_key or ""
            config = AuthConfig(auth_scheme=auth_scheme, raw_auth_credential=auth_credential, credential_key=key)
        more = {"sampling_callback": sampling_callback} if sampling_callback else {}
        sessions = McpSessionManager(connection_params_of(connection_params), **more)
        self._server = McpServer(sessions, header_provider=header_provider, auth_config=config)
        self.require_confirmation = as_condition(require_confirmation, type(self).__name__, None)
        self._of_each: dict[str, Any] = {
            "require_confirmation": self.require_confirmation,
            "progress_callback": progress_callback,
            "elicitation_callback": elicitation_callback,
        }
        self._use_resources = use_mcp_resources
        self._left_out: set[str] = set()

    def get_auth_config(self) -> AuthConfig | None:
        return self._server.auth_config

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The server's tools, by name.

        Raises:
            ConnectionError: The server was not reached.
            CredentialError: It wants to be shown a credential, or another one.
            TimeoutError: It does not tell what it has.
        """
        anew = readonly_context is not None and _answers(readonly_context)
        tools: list[BaseTool] = await self._server.listed(readonly_context, self._listed, anew=anew)
        chosen = [tool for tool in tools if self._is_tool_selected(tool, readonly_context)]
        if len(chosen) > MAX_TOOLS:
            self._say_once(
                f"{len(chosen)} tools", f"are over the limit of {MAX_TOOLS}: the rest is left out; use tool_filter"
            )
        return chosen[:MAX_TOOLS]

    async def close(self) -> None:
        await self._server.sessions.close()

    async def _listed(self, client: Any) -> list[BaseTool]:
        made: dict[str, BaseTool] = {}
        for one in await _pages(client.list_tools, "tools"):
            if why := _unfit(one, made):
                self._say_once(f"the tool {one.name[:128]!r}", f"is left out: {why}")
                continue
            try:
                made[one.name] = McpTool(one, self._server, **self._of_each)
            except ValueError as error:
                self._say_once(f"the tool {one.name!r}", f"is left out: {error}")
        tools = [made[name] for name in sorted(made)]
        if self._use_resources:
            tools.append(LoadMcpResourceTool(await _pages(client.list_resources, "resources"), self._server))
        return tools

    def _say_once(self, what: str, why: str) -> None:
        if what not in self._left_out and len(self._left_out) < MAX_TOOLS:
            self._left_out.add(what)
            logger.warning("of the MCP server %s, %s %s", self._server.name, what, why)

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


def connection_params_of(given: Any) -> ConnectionParams:
    """How a server is reached, from what an author wrote.

    Raises:
        ConfigurationError: It does not say.
    """
    if isinstance(given, StdioConnectionParams | SseConnectionParams | StreamableHTTPConnectionParams):
        return given
    if hasattr(given, "command"):
        return StdioConnectionParams(server_params=StdioServerParameters.model_validate(given, from_attributes=True))
    raise ConfigurationError(
        "an MCP server is reached as told by connection_params=StdioConnectionParams(...), "
        f"StreamableHTTPConnectionParams(...) or SseConnectionParams(...), and not by {type(given).__name__}"
    )


def _unfit(declared: Any, made: Mapping[str, BaseTool]) -> str | None:
    """Why a tool cannot be offered. None: it can."""
    name: str = declared.name
    if not _NAME.fullmatch(name):
        return "a model cannot call it by that name"
    if name.startswith(RESERVED) or name in _NOT_THEIRS:
        return "the name is reserved"
    return "there are two of that name" if name in made else None


def _answers(ctx: ReadonlyContext) -> bool:
    """Whether the message answers something: what a person was asked about is looked at as it is now."""
    parts = (ctx.user_content and ctx.user_content.parts) or []
    return any(part.function_response for part in parts)


async def _pages(ask: Any, of: str) -> list[Any]:
    found, cursor = list[Any](), None
    for _ in range(_MAX_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, of)
        cursor = page.next_cursor
        if not cursor or len(found) >= _MAX_LISTED:
            break
    return found[:_MAX_LISTED]
