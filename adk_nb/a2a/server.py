"""An agent as an A2A service: its routes, its card, and who may call it."""

import logging
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from adk_nb.a2a import gate
from adk_nb.a2a.agent_card import build_card, load_card
from adk_nb.a2a.agent_executor import Executor
from adk_nb.a2a.protocol import CARD_PATH, EXTRA, MAX_BYTES
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.models.http_address import is_loopback
from adk_nb.redaction import remember
from adk_nb.runners import Runner

_NEWS_SECONDS = 10.0
_TOO_LARGE = f"a message has at most {MAX_BYTES:,} bytes"


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
        agent_executor: Any = None,
        token: str | None = None,
        task_store: Any = None,
        push_config_store: Any = None,
        security_schemes: Mapping[str, Any] | None = None,
        default_skill_security: list[dict[str, list[str]]] | None = None,
    ) -> None:
        """Make the routes; nothing is served yet.

        Args:
            runner: Runs the agent. A function is called for each message and for the card, so that an agent that was
                redefined answers from then on.
            url: Address of the endpoint, as clients reach it; it ends with a slash.
            agent_card: An AgentCard, or the path of its JSON. None: made of the agent.
            agent_executor: An AgentExecutor of a2a-sdk that answers the messages. None: the runner does.
            token: What a client must send as `Authorization: Bearer`. None: everyone who reaches the port may call.
            task_store: A TaskStore of a2a-sdk. None: tasks are kept in memory.
            push_config_store: A PushNotificationConfigStore of a2a-sdk, which keeps the addresses that clients name:
                news of a task is sent there. Addresses of this machine and its network are refused, unless `url` is
                one of this machine itself. None: no news is sent.
            security_schemes: Name -> SecurityScheme of a2a-sdk, for the card. Only `token` is checked.
            default_skill_security: Which of them the skills in the card need, as `[{"oauth2": ["agent.read"]}]`; a tool
                says so for itself in `custom_metadata["security"]`.
        """
        if not url.endswith("/"):
            raise ConfigurationError(f"the url of an A2A server ends with a slash; write url={url + '/'!r}")
        self.url = url
        self._runner_of: Callable[[], Runner] = runner if callable(runner) else lambda: runner
        self._own_card = load_card(agent_card) if agent_card is not None else None
        self._token = token
        self._news = _News(push_config_store, url) if push_config_store is not None else None
        self._security: dict[str, Any] = {
            "security_schemes": dict(security_schemes or {}), "default_skill_security": default_skill_security
        }  # fmt: skip
        for name, value in self._security.items():
            if self._own_card is not None and value:
                raise ConfigurationError(f"{name} is for a card that is made here; write it into agent_card")
        # a2a-sdk logs every malformed request with a traceback, which without a handler would be written to stderr.
        if not (sdk_logger := logging.getLogger("a2a")).handlers:
            sdk_logger.addHandler(logging.NullHandler())
        # From now on errors and logs hide it.
        remember(token)
        handlers = require("a2a.server.request_handlers", package=EXTRA)
        tasks = require("a2a.server.tasks", package=EXTRA)
        self._handler = handlers.DefaultRequestHandler(
            agent_executor=agent_executor or Executor(self._runner_of),
            task_store=task_store or tasks.InMemoryTaskStore(),
            agent_card=self.card(),
            **(self._news.handler_options if self._news else {}),
        )
        self.routes: list[Any] = self._routes()
        """Starlette routes: the endpoint at `/`, and the card below it."""

    @property
    def card_url(self) -> str:
        """Address of the agent card."""
        return urljoin(self.url, CARD_PATH.lstrip("/"))

    def card(self) -> Any:
        """The agent card, of the agent as it is now."""
        return self._own_card or build_card(
            self._runner_of().agent,
            self.url,
            has_token=self._token is not None,
            sends_news=self._news is not None,
            **self._security,
        )

    async def aclose(self) -> None:
        """Stop the runs under way."""
        await self._handler.aclose()
        if self._news:
            await self._news.client.aclose()

    def _routes(self) -> list[Any]:
        routes = require("a2a.server.routes", package=EXTRA)
        routing = require("starlette.routing", package=EXTRA)
        requests = require("starlette.requests", package=EXTRA)
        responses = require("starlette.responses", package=EXTRA)
        http_error = require("starlette.exceptions", package=EXTRA).HTTPException
        [rpc] = routes.create_jsonrpc_routes(self._handler, "/", enable_v0_3_compat=True)

        async def endpoint(request: Any) -> Any:
            headers = request.headers
            late = f"no message came within {gate.BODY_SECONDS:g} seconds"
            bounded = requests.Request(
                request.scope, gate.bounded(request.receive, MAX_BYTES, http_error, late, _TOO_LARGE)
            )
            try:
                if reason := self._why_foreign(headers):
                    raise http_error(403, reason)
                if self._token is not None and not gate.is_same(gate.sent_token(headers), self._token):
                    reason = "send the token of this server as 'Authorization: Bearer ...'"
                    raise http_error(401, reason, {"WWW-Authenticate": "Bearer"})
                # A page in a browser can send other types to this machine without asking.
                if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                    raise http_error(415, "send application/json")
                if gate.is_too_long(headers, MAX_BYTES):
                    raise http_error(413, _TOO_LARGE)
                await bounded.body()
            except http_error as error:
                return responses.JSONResponse({"error": error.detail}, error.status_code, error.headers)
            except requests.ClientDisconnect:
                return responses.Response(status_code=400)  # nobody reads it
            return await rpc.endpoint(bounded)

        async def current_card(_: Any) -> Any:
            return self.card()

        [card] = routes.create_agent_card_routes(self.card(), card_modifier=current_card, card_url=CARD_PATH)

        async def card_endpoint(request: Any) -> Any:
            if reason := self._why_foreign(request.headers):
                return responses.JSONResponse({"error": reason}, 403)
            return await card.endpoint(request)

        return [
            routing.Route(CARD_PATH, card_endpoint, methods=["GET"]),
            routing.Route("/", endpoint, methods=["POST"]),
        ]

    def _why_foreign(self, headers: Any) -> str:
        """Why a request to a server on this machine may come from a web page of elsewhere; empty if it does not."""
        parts = urlsplit(self.url)
        if not is_loopback(self.url):
            return ""
        if not gate.is_for_this_machine(headers):
            return f"this server only answers requests for {parts.netloc}"
        origin = gate.foreign_page(headers, parts.scheme)
        return f"a page of {origin} may not call this" if origin else ""


class _News:
    """Sends news of tasks to the addresses that clients name."""

    def __init__(self, config_store: Any, url: str) -> None:
        """`url`: of the server; one on this machine may send news to this machine, too."""
        validate = require("a2a.utils.push_url_validator", package=EXTRA).validate_push_notification_url

        async def is_allowed(address: str) -> bool:
            return is_loopback(url) or await validate(address)

        httpx, tasks = require("httpx", package=EXTRA), require("a2a.server.tasks", package=EXTRA)
        # Kept connections would outlive a server that was never closed.
        self.client = httpx.AsyncClient(timeout=_NEWS_SECONDS, limits=httpx.Limits(max_keepalive_connections=0))
        self.handler_options = {
            "push_config_store": config_store,
            "push_sender": tasks.BasePushNotificationSender(self.client, config_store, push_url_validator=is_allowed),
            "push_url_validator": is_allowed,
        }
