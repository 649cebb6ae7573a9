"""`to_a2a`: an agent as a web application that other agents call."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from adk_nb.a2a.protocol import EXTRA
from adk_nb.a2a.server import A2aServer
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.lazy import require
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.runners import Runner
from adk_nb.sessions.in_memory_session_service import InMemorySessionService


def to_a2a(
    agent: Any,
    *,
    host: str = "localhost",
    port: int = 8000,
    protocol: str = "http",
    agent_card: Any = None,
    runner: Runner | None = None,
    token: str | None = None,
    task_store: Any = None,
    push_config_store: Any = None,
    security_schemes: Mapping[str, Any] | None = None,
) -> Any:
    """An agent, or a graph, as a Starlette application, for `uvicorn.run(to_a2a(agent, port=8001), port=8001)`.

    The address in the agent card is made of `protocol`, `host` and `port`: pass what clients reach.

    Args:
        agent: The agent.
        host: Host of the address in the card.
        port: Port of that address.
        protocol: `http` or `https`.
        agent_card: An AgentCard, or the path of its JSON. None: made of the agent.
        runner: Runs the agent. None: one with services in memory.
        token: What clients must send; `RemoteA2aAgent(token=...)` does. None: everyone who reaches the port may call.
        task_store: A TaskStore of a2a-sdk. None: tasks are kept in memory.
        push_config_store: As of A2aServer: keeps the addresses to which clients want news of a task.
        security_schemes: As of A2aServer: schemes for the card.

    Raises:
        ConfigurationError: `agent` is not an agent, or `agent_card` not a card.
        MissingExtraError: a2a-sdk is not installed.
    """
    url = f"{protocol}://{host}:{port}/"
    server = A2aServer(
        runner
        or Runner(
            node=agent,
            session_service=InMemorySessionService(),
            artifact_service=InMemoryArtifactService(),
            memory_service=InMemoryMemoryService(),
        ),
        url,
        agent_card=agent_card,
        token=token,
        task_store=task_store,
        push_config_store=push_config_store,
        security_schemes=security_schemes,
    )

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None, None]:
        yield
        await server.aclose()

    starlette = require("starlette.applications", package=EXTRA)
    return starlette.Starlette(routes=server.routes, lifespan=lifespan)
