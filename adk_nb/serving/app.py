"""The ASGI app that serves an agent: ADK's paths, AG-UI, A2A and MCP behind one token."""

import secrets
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Mount

from adk_nb.a2a.server import A2aServer
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import AdkNbError, ConfigurationError
from adk_nb.runners import Runner
from adk_nb.serving.access import Access
from adk_nb.serving.adk_debug import AdkDebug
from adk_nb.serving.adk_live import AdkLive
from adk_nb.serving.adk_runs import AdkRuns
from adk_nb.serving.adk_sessions import AdkSessions
from adk_nb.serving.ag_ui import AgUi
from adk_nb.serving.agent_service import AgentService, new_runner
from adk_nb.serving.http_bodies import answer_error
from adk_nb.serving.mcp_tool import McpTool
from adk_nb.sessions.base_session_service import BaseSessionService

_SHORTEST_TOKEN = 16
_CLOSE_SECONDS = 5.0


def new_token() -> str:
    """A random token of 32 bytes."""
    return secrets.token_urlsafe(32)


def create_app(
    agent: BaseAgent | App | Runner,
    *,
    token: str,
    name: str | None = None,
    session_service: BaseSessionService | None = None,
    url: str = "http://127.0.0.1:8000",
    hosts: Collection[str] = (),
) -> Starlette:
    """An ASGI app that serves an agent, for uvicorn or another server: `uvicorn.run(create_app(agent, token=...))`.

    It answers requests to a loopback name alone, and to `hosts`; for other machines, put a proxy that ends TLS before
    it, or `adk-nb serve`.
    Runs of a session wait for each other. Clients answer approvals, too: whoever has the token may approve.

    Args:
        agent: The agent, its app, or a runner, whose services keep sessions and files.
        token: The secret that callers send; 16 characters or more. See `secrets.token_urlsafe`.
        name: The name that callers use. None: that of the app or the agent.
        session_service: Keeps the sessions of an agent or an app. None: this process's memory.
        url: The address of the server, for the agent card of A2A.
        hosts: Names of hosts that requests may be for, as `shop.example`, beside this machine's own.

    Raises:
        ConfigurationError: An argument is of another kind, or the token is too short.
    """
    if not isinstance(agent, BaseAgent | App | Runner):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"create_app takes an agent, an app or a runner, got {agent!r:.60}")
    if isinstance(agent, Runner) and session_service is not None:
        raise ConfigurationError("a runner has its own session service; leave out session_service")
    if len(token) < _SHORTEST_TOKEN:
        raise ConfigurationError(
            f"the token has {len(token)} characters, and needs {_SHORTEST_TOKEN}; write token=secrets.token_urlsafe()"
        )
    runner = agent if isinstance(agent, Runner) else new_runner(agent, session_service)
    default_name = agent.name if isinstance(agent, App | BaseAgent) else None
    return app_of(AgentService(runner, name or default_name), token, url, hosts)


def app_of(service: AgentService, token: str, url: str, hosts: Collection[str] = ()) -> Starlette:
    """The app for a service."""
    mcp = McpTool(service)
    a2a = A2aServer(service.task_runner, f"{url}{a2a_path(service.name)}/", token=token)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with mcp.run():
            try:
                yield
            finally:
                await a2a.aclose()
                await service.close(_CLOSE_SECONDS)

    handlers: dict[Any, Any] = dict.fromkeys((HTTPException, AdkNbError, ClientDisconnect, Exception), answer_error)
    return Starlette(
        routes=[*_routes(service), *mcp.routes(), Mount(a2a_path(service.name), routes=a2a.routes)],
        middleware=[Middleware(Access, token=token, hosts=hosts)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )


def a2a_path(name: str) -> str:
    """The path of the agent card and the endpoint of A2A, as ADK's server has it."""
    return f"/a2a/{name}"


def paths(name: str) -> str:
    """The protocols that are served, with their paths, in a line."""
    return f"ADK: /run, /run_sse · AG-UI: /ag-ui · MCP: /mcp · A2A: {a2a_path(name)}"


def _routes(service: AgentService) -> Sequence[BaseRoute]:
    debug = AdkDebug(service)
    adk = *AdkRuns(service).routes(), *AdkLive(service).routes(), *AdkSessions(service).routes()
    return [*adk, *AgUi(service).routes(), *debug.routes()]
