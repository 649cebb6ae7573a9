"""An agent as an A2A service: its routes, its card, and who may call it."""

import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin, urlsplit

from adk_nb.a2a.agent_card import build_card, load_card
from adk_nb.a2a.executor import Executor
from adk_nb.a2a.protocol import CARD_PATH, EXTRA, MAX_BYTES
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.models.http_address import is_loopback
from adk_nb.redaction import remember
from adk_nb.runners import Runner


class A2aServer:
    """The routes of an agent that speaks A2A 1.0 and 0.3, JSON-RPC over HTTP with server-sent events.

    Mount `routes` where `url` says, and await `aclose` when the server ends.

    Raises:
        ConfigurationError: `agent_card` is no card.
        MissingExtraError: a2a-sdk is not installed.
    """

    def __init__(
        self,
        runner: Runner | Callable[[], Runner],
        url: str,
        *,
        agent_card: Any = None,
        token: str | None = None,
        task_store: Any = None,
    ) -> None:
        """Make the routes; nothing is served yet.

        Args:
            runner: Runs the agent. A function is called for each message and for the card, so that an agent that was
                redefined answers from then on.
            url: Address of the endpoint, as clients reach it; it ends with a slash.
            agent_card: An AgentCard, or the path of its JSON. None: made of the agent.
            token: What a client must send as `Authorization: Bearer`. None: everyone who reaches the port may call.
            task_store: A TaskStore of a2a-sdk. None: tasks are kept in memory.
        """
        if not url.endswith("/"):
            raise ConfigurationError(f"the url of an A2A server ends with a slash; write url={url + '/'!r}")
        self.url = url
        self._runner_of: Callable[[], Runner] = runner if callable(runner) else lambda: runner
        self._own_card = load_card(agent_card) if agent_card is not None else None
        self._token = token
        # From now on errors and logs hide it.
        remember(token)
        handlers = require("a2a.server.request_handlers", package=EXTRA)
        tasks = require("a2a.server.tasks", package=EXTRA)
        self._handler = handlers.DefaultRequestHandler(
            agent_executor=Executor(self._runner_of),
            task_store=task_store or tasks.InMemoryTaskStore(),
            agent_card=self.card(),
        )
        self.routes: list[Any] = self._routes()
        """Starlette routes: the endpoint at `/`, and the card below it."""

    @property
    def card_url(self) -> str:
        """Address of the agent card."""
        return urljoin(self.url, CARD_PATH.lstrip("/"))

    def card(self) -> Any:
        """The agent card, of the agent as it is now."""
        return self._own_card or build_card(self._runner_of().agent, self.url, has_token=self._token is not None)

    async def aclose(self) -> None:
        """Stop the runs under way."""
        await self._handler.aclose()

    def _routes(self) -> list[Any]:
        routes = require("a2a.server.routes", package=EXTRA)
        routing = require("starlette.routing", package=EXTRA)
        responses = require("starlette.responses", package=EXTRA)
        [rpc] = routes.create_jsonrpc_routes(self._handler, "/", enable_v0_3_compat=True)

        async def endpoint(request: Any) -> Any:
            if refusal := self._refusal(request):
                status, message = refusal
                # RFC 9110: a 401 must name the scheme.
                headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
                return responses.JSONResponse({"error": message}, status, headers)
            return await rpc.endpoint(request)

        async def current_card(_: Any) -> Any:
            return self.card()

        cards = routes.create_agent_card_routes(self.card(), card_modifier=current_card, card_url=CARD_PATH)
        return [*cards, routing.Route("/", endpoint, methods=["POST"])]

    def _refusal(self, request: Any) -> tuple[int, str] | None:
        """HTTP status and reason, if a request is not let in."""
        headers = request.headers
        if self._token is not None:
            scheme, _, sent = headers.get("authorization", "").partition(" ")
            # Compared in constant time; RFC 9110: the name of a scheme has no case.
            if scheme.lower() != "bearer" or not secrets.compare_digest(sent.strip().encode(), self._token.encode()):
                return 401, "send the token of this server as 'Authorization: Bearer ...'"
        # A page in a browser can send other types to this machine without asking.
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "send application/json"
        # A page whose name was rebound to this machine sends its own host.
        if self._token is None and is_loopback(self.url) and not is_loopback(f"http://{headers.get('host', '')}"):
            return 403, f"this server only answers requests for {urlsplit(self.url).netloc}"
        if int(headers.get("content-length") or 0) > MAX_BYTES:
            return 413, f"a message has at most {MAX_BYTES} bytes"
        return None
