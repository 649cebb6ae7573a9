"""The part of an MCP server that its tools share: connections, headers and credential."""

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
from adk_nb.tools.auth.exchange import renew_credential
from adk_nb.tools.mcp_tool.connection_params import StdioConnectionParams, server_label
from adk_nb.tools.mcp_tool.mcp_connection import UnauthorizedError
from adk_nb.tools.mcp_tool.mcp_session_manager import McpSessionManager
from adk_nb.tools.openapi_tool.credential import with_credential
from adk_nb.tools.openapi_tool.operation import with_headers

HeaderProvider = Callable[[ReadonlyContext], Any]
"""`(context) -> dict[str, str]`, sync or async: headers of the connection, which the model never sees."""


class McpServer:
    """A server with its headers and its credential."""

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
        """The server's name in messages."""
        return server_label(self.sessions.params)

    async def call(
        self, tool_context: ToolContext, work: Callable[[Any], Awaitable[dict[str, Any]]], **options: Any
    ) -> dict[str, Any]:
        """Run `work` through `McpSessionManager.use`; renew a rejected credential once.

        Returns:
            The result of `work`, or a placeholder while the user is asked for another credential.
        """
        config, credential = self.auth_config, tool_context.auth_credential
        try:
            return await self.sessions.use(await self._headers(tool_context, credential), work, **options)
        except UnauthorizedError:
            if config is None or credential is None or credential == config.raw_auth_credential:
                raise
        tool_context.auth_credential = await renew_credential(config, credential, tool_context)
        if tool_context.auth_credential is None:
            tool_context.request_credential(config)
            return placeholder()
        return await self.sessions.use(await self._headers(tool_context, tool_context.auth_credential), work, **options)

    async def list_offers(
        self, ctx: ReadonlyContext | None, work: Callable[[Any], Awaitable[Any]], **options: Any
    ) -> Any:
        """List tools or resources through `McpSessionManager.cached`."""
        config, credential = self.auth_config, None
        if config:
            credential = (ctx and ctx.get_credential(config.credential_key)) or config.raw_auth_credential
        return await self.sessions.cached(await self._headers(ctx, credential), work, **options)

    async def _headers(self, ctx: ReadonlyContext | None, credential: AuthCredential | None) -> dict[str, str]:
        """Headers of the provider (inside a run), overridden by those of the credential."""
        headers: dict[str, str] = {}
        if self.header_provider and ctx:
            provided = self.header_provider(ctx)
            headers = dict(await provided if inspect.isawaitable(provided) else provided)
            remember_named(headers)
        if self.auth_config is None:
            return headers
        credential_headers = with_credential({"headers": {}, "params": []}, self.auth_config.auth_scheme, credential)[
            "headers"
        ]
        return with_headers(headers, credential_headers)


def _check(config: AuthConfig, sessions: McpSessionManager) -> None:
    scheme = config.auth_scheme
    if isinstance(sessions.params, StdioConnectionParams):
        raise ConfigurationError(
            "auth_scheme is for an MCP server on the web; pass credentials to a program with "
            "StdioServerParameters(env={...})"
        )
    if isinstance(scheme, APIKey) and scheme.in_ is APIKeyIn.query:
        raise ConfigurationError(
            f"an MCP server gets its API key {scheme.name!r} in a header or a cookie; for a key in the "
            "URL, write it into the url of the connection_params"
        )
