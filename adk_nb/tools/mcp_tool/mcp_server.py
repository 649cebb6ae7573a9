"""What the tools of one MCP server share: how it is reached, with which headers, and what happens if it says no."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_schemes import APIKey, APIKeyIn
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.redaction import remember_named
from adk_nb.runtime.context import ReadonlyContext, ToolContext
from adk_nb.runtime.credentials import placeholder
from adk_nb.tools.auth.exchange import renewed
from adk_nb.tools.mcp_tool.connection_params import StdioConnectionParams, place_of
from adk_nb.tools.mcp_tool.mcp_connection import NotLetInError
from adk_nb.tools.mcp_tool.mcp_session_manager import McpSessionManager
from adk_nb.tools.openapi_tool.credential import with_credential

HeaderProvider = Callable[[ReadonlyContext], Any]
"""`(context) -> dict[str, str]`, sync or async: headers of the connection, which the model never sees."""


class McpServer:
    """A server, and with what it is asked."""

    def __init__(
        self,
        sessions: McpSessionManager,
        *,
        header_provider: HeaderProvider | None = None,
        auth_config: AuthConfig | None = None,
    ) -> None:
        if auth_config:
            _check(auth_config, sessions)
        self.sessions = sessions
        self.header_provider = header_provider
        self.auth_config = auth_config

    @property
    def name(self) -> str:
        """What people are told of it."""
        return place_of(self.sessions.params)

    async def ask(
        self, tool_context: ToolContext, work: Callable[[Any], Awaitable[dict[str, Any]]], **how: Any
    ) -> dict[str, Any]:
        """What `work` gives, as `McpSessionManager.use` tells; a credential that the server rejects is renewed once.

        Returns:
            Instead, what stands for it while a person is asked for another credential.
        """
        config, shown = self.auth_config, tool_context.auth_credential
        try:
            return await self.sessions.use(await self._headers(tool_context, shown), work, **how)
        except NotLetInError:
            if config is None or shown is None or shown == config.raw_auth_credential:
                raise
        tool_context.auth_credential = await renewed(config, shown, tool_context)
        if tool_context.auth_credential is None:
            tool_context.request_credential(config)
            return placeholder()
        return await self.sessions.use(await self._headers(tool_context, tool_context.auth_credential), work, **how)

    async def listed(self, ctx: ReadonlyContext | None, work: Callable[[Any], Awaitable[Any]], *, anew: bool) -> Any:
        """What the server offers, as `McpSessionManager.kept` tells."""
        config, shown = self.auth_config, None
        if config:
            shown = (ctx and ctx.get_credential(config.credential_key)) or config.raw_auth_credential
        return await self.sessions.kept(await self._headers(ctx, shown), work, anew=anew)

    async def _headers(self, ctx: ReadonlyContext | None, shown: AuthCredential | None) -> dict[str, str]:
        """Those of the provider, if anything runs, and those that show the credential, which go before."""
        given: dict[str, str] = {}
        if self.header_provider and ctx:
            said = self.header_provider(ctx)
            given = dict(await said if inspect.isawaitable(said) else said)
            remember_named(given)
        if self.auth_config is None:
            return given
        own = with_credential({"headers": {}, "params": []}, self.auth_config.auth_scheme, shown)["headers"]
        taken = {name.lower() for name in own}
        return {name: value for name, value in given.items() if name.lower() not in taken} | own


def _check(config: AuthConfig, sessions: McpSessionManager) -> None:
    scheme = config.auth_scheme
    if isinstance(sessions.params, StdioConnectionParams):
        raise ConfigurationError(
            "auth_scheme is for an MCP server on the web; a program gets what it needs by "
            "StdioServerParameters(env={...})"
        )
    if isinstance(scheme, APIKey) and scheme.in_ is APIKeyIn.query:
        raise ConfigurationError(
            f"an MCP server is shown its API key {scheme.name!r} in a header or a cookie; where it has to stand in the "
            "address, write it into the url of the connection_params"
        )
