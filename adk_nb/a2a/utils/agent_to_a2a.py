"""`to_a2a`: an agent as a web application that other agents call."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
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
    rpc_path: str = "",
    agent_card: Any = None,
    runner: Runner | None = None,
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
    agent_executor_factory: Callable[[Runner], Any] | None = None,
    token: str | None = None,
    task_store: Any = None,
    push_config_store: Any = None,
    security_schemes: Mapping[str, Any] | None = None,
    default_skill_security: list[dict[str, list[str]]] | None = None,
) -> Any:
    """An agent, or a graph, as a Starlette application, for `uvicorn.run(to_a2a(agent, port=8001), port=8001)`.

    The address in the agent card is made of `protocol`, `host`, `port` and `rpc_path`: pass what clients reach.

    Args:
        agent: The agent.
        host: Host of the address in the card.
        port: Port of that address.
        protocol: `http` or `https`.
        rpc_path: Where the endpoint and the card stand, as `agents/planner`. Empty: at the root. The address in a card
            of your own stays what it is.
        agent_card: An AgentCard, or the path of its JSON. None: made of the agent.
        runner: Runs the agent. None: one with services in memory.
        lifespan: As Starlette's, entered with the application before the first request, and left after the last run.
        agent_executor_factory: Gets the runner, and returns an AgentExecutor of a2a-sdk that answers the messages.
        token: What clients must send; `RemoteA2aAgent(token=...)` does. None: everyone who reaches the port may call.
        task_store: A TaskStore of a2a-sdk. None: tasks are kept in memory.
        push_config_store: As of A2aServer: keeps the addresses to which clients want news of a task.
        security_schemes: As of A2aServer: schemes for the card.
        default_skill_security: As of A2aServer: which of them the skills in the card need.

    Raises:
        ConfigurationError: `agent` is not an agent, or `agent_card` not a card.
        MissingExtraError: a2a-sdk is not installed.
    """
    path = "".join(f"/{part}" for part in rpc_path.split("/") if part)
    runner = runner or Runner(
        node=agent,
        session_service=InMemorySessionService(),
        artifact_service=InMemoryArtifactService(),
        memory_service=InMemoryMemoryService(),
    )
    server = A2aServer(
        runner,
        f"{protocol}://{host}:{port}{path}/",
        agent_executor=agent_executor_factory(runner) if agent_executor_factory else None,
        agent_card=agent_card,
        token=token,
        task_store=task_store,
        push_config_store=push_config_store,
        security_schemes=security_schemes,
        default_skill_security=default_skill_security,
    )

    @asynccontextmanager
    async def whole_life(app: Any) -> AsyncGenerator[Any, None]:
        async with lifespan(app) if lifespan else nullcontext() as state:
            yield state
            await server.aclose()

    starlette = require("starlette.applications", package=EXTRA)
    routes = [require("starlette.routing", package=EXTRA).Mount(path, routes=server.routes)] if path else server.routes
    return starlette.Starlette(routes=routes, lifespan=whole_life)
