"""An agent as an A2A service: its routes, its card, and who may call it."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from adk_nb.a2a.agent_card import build_card, load_card
from adk_nb.a2a.agent_executor import Executor
from adk_nb.a2a.protocol import CARD_PATH, EXTRA, MAX_BYTES
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.models.http_address import is_loopback, names_this_machine
from adk_nb.redaction import remember
from adk_nb.runners import Runner

_NEWS_SECONDS = 10.0
BODY_SECONDS = 10.0
"""From the headers of a message to the first byte of its body."""


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
        push_config_store: Any = None,
        security_schemes: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the routes; nothing is served yet.

        Args:
            runner: Runs the agent. A function is called for each message and for the card, so that an agent that was
                redefined answers from then on.
            url: Address of the endpoint, as clients reach it; it ends with a slash.
            agent_card: An AgentCard, or the path of its JSON. None: made of the agent.
            token: What a client must send as `Authorization: Bearer`. None: everyone who reaches the port may call.
            task_store: A TaskStore of a2a-sdk. None: tasks are kept in memory.
            push_config_store: A PushNotificationConfigStore of a2a-sdk, which keeps the addresses that clients name:
                news of a task is sent there. Addresses of this machine and its network are refused, unless `url` is
                one of this machine itself. None: no news is sent.
            security_schemes: Name -> SecurityScheme of a2a-sdk, for the card. Only `token` is checked.
        """
        if not url.endswith("/"):
            raise ConfigurationError(f"the url of an A2A server ends with a slash; write url={url + '/'!r}")
        self.url = url
        self._runner_of: Callable[[], Runner] = runner if callable(runner) else lambda: runner
        self._own_card = load_card(agent_card) if agent_card is not None else None
        self._token = token
        self._sends_news = push_config_store is not None
        self._security_schemes = dict(security_schemes or {})
        if self._own_card is not None and security_schemes:
            raise ConfigurationError("security_schemes are for a card that is made here; write them into agent_card")
        # a2a-sdk logs every malformed request with a traceback, which without a handler would be written to stderr.
        if not (sdk_logger := logging.getLogger("a2a")).handlers:
            sdk_logger.addHandler(logging.NullHandler())
        # From now on errors and logs hide it.
        remember(token)
        handlers = require("a2a.server.request_handlers", package=EXTRA)
        tasks = require("a2a.server.tasks", package=EXTRA)
        self._handler = handlers.DefaultRequestHandler(
            agent_executor=Executor(self._runner_of),
            task_store=task_store or tasks.InMemoryTaskStore(),
            agent_card=self.card(),
            **self._news_options(push_config_store),
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
            sends_news=self._sends_news,
            security_schemes=self._security_schemes,
        )

    async def aclose(self) -> None:
        """Stop the runs under way."""
        await self._handler.aclose()
        if self._news_client:
            await self._news_client.aclose()

    def _news_options(self, store: Any) -> dict[str, Any]:
        """Options of the handler that sends news of tasks."""
        self._news_client: Any = None
        if store is None:
            return {}
        validator = require("a2a.utils.push_url_validator", package=EXTRA).validate_push_notification_url

        async def is_allowed(url: str) -> bool:
            return is_loopback(self.url) or await validator(url)

        httpx = require("httpx", package=EXTRA)
        # Kept connections would outlive a server that was never closed.
        self._news_client = httpx.AsyncClient(timeout=_NEWS_SECONDS, limits=httpx.Limits(max_keepalive_connections=0))
        sender = require("a2a.server.tasks", package=EXTRA).BasePushNotificationSender(
            self._news_client, store, push_url_validator=is_allowed
        )
        return {"push_config_store": store, "push_sender": sender, "push_url_validator": is_allowed}

    def _routes(self) -> list[Any]:
        routes = require("a2a.server.routes", package=EXTRA)
        routing = require("starlette.routing", package=EXTRA)
        requests = require("starlette.requests", package=EXTRA)
        responses = require("starlette.responses", package=EXTRA)
        http_error = require("starlette.exceptions", package=EXTRA).HTTPException
        [rpc] = routes.create_jsonrpc_routes(self._handler, "/", enable_v0_3_compat=True)

        async def endpoint(request: Any) -> Any:
            bounded = requests.Request(request.scope, _bounded(request.receive, http_error))
            try:
                self._check(request, http_error)
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
            try:
                self._check_origin(request.headers, http_error)
            except http_error as error:
                return responses.JSONResponse({"error": error.detail}, error.status_code)
            return await card.endpoint(request)

        return [
            routing.Route(CARD_PATH, card_endpoint, methods=["GET"]),
            routing.Route("/", endpoint, methods=["POST"]),
        ]

    def _check(self, request: Any, refusal: type[Exception]) -> None:
        """Raise a refusal, if a request is not let in."""
        headers = request.headers
        self._check_origin(headers, refusal)
        if self._token is not None:
            scheme, _, sent = headers.get("authorization", "").partition(" ")
            # Compared in constant time; RFC 9110: the name of a scheme has no case, and a 401 names the scheme.
            if scheme.lower() != "bearer" or not secrets.compare_digest(sent.strip().encode(), self._token.encode()):
                reason = "send the token of this server as 'Authorization: Bearer ...'"
                raise refusal(401, reason, {"WWW-Authenticate": "Bearer"})
        # A page in a browser can send other types to this machine without asking.
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise refusal(415, "send application/json")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BYTES:
            raise refusal(413, _TOO_LARGE)

    def _check_origin(self, headers: Any, refusal: type[Exception]) -> None:
        """Raise a refusal, if a web page may have sent a request to a server on this machine."""
        if not is_loopback(self.url):
            return
        hosts, origin = headers.getlist("host"), headers.get("origin")
        # A page whose name was rebound to this machine sends its own host.
        if len(hosts) != 1 or not names_this_machine(hosts[0]):
            raise refusal(403, f"this server only answers requests for {urlsplit(self.url).netloc}")
        if origin is not None and origin != f"{urlsplit(self.url).scheme}://{hosts[0]}":
            raise refusal(403, f"a page of {origin[:80]!r} may not call this")


_TOO_LARGE = f"a message has at most {MAX_BYTES:,} bytes"


def _bounded(receive: Callable[[], Awaitable[Any]], refusal: type[Exception]) -> Callable[[], Awaitable[Any]]:
    """`receive`, which raises a refusal if the body does not begin in time, or after `MAX_BYTES`: a body that comes in
    chunks tells no length before.
    """
    count, is_first = 0, True

    async def bounded() -> Any:
        nonlocal count, is_first
        try:
            async with asyncio.timeout(BODY_SECONDS if is_first else None):
                message = await receive()
        except TimeoutError as error:
            raise refusal(408, f"no message came within {BODY_SECONDS:g} seconds") from error
        is_first = False
        count += len(message.get("body", b""))
        if count > MAX_BYTES:
            raise refusal(413, _TOO_LARGE)
        return message

    return bounded
