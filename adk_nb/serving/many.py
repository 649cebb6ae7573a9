"""Several agents behind one address, each under its name, as google-adk serves a folder of them."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from adk_nb.errors import AdkNbError
from adk_nb.serving.access import Access
from adk_nb.serving.http_bodies import always, answer_error

_UNDER_NAMES = ("apps", "a2a")
"""First parts of paths whose second is an agent."""
_OF_ALL = ("", "health", "version", "dev-ui", "config")
"""First parts of paths that are the same for every agent: the page for all of them is among them."""
_IN_BODIES = ("run", "run_sse")


def app_of_many(apps: Mapping[str, Starlette], token: str) -> Starlette:
    """An app for agents by name; a path or a body that names none of them is answered with 404.

    AG-UI and MCP name no agent, so they are served for a single one only.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for one in apps.values():
                await stack.enter_async_context(one.router.lifespan_context(one))
            yield

    chosen = _ByName(apps)
    handlers: dict[Any, Any] = dict.fromkeys((HTTPException, AdkNbError, ClientDisconnect, Exception), answer_error)
    return Starlette(
        routes=[
            Route("/list-apps", always([*apps]), methods=["GET"]),
            WebSocketRoute("/{path:path}", chosen),
            Route("/{path:path}", chosen),
        ],
        middleware=[Middleware(Access, token=token)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )


class _ByName:
    """Hands a request to the app of the agent that it names."""

    def __init__(self, apps: Mapping[str, Starlette]) -> None:
        self._apps = apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].strip("/").removeprefix("dev/")  # what the page asks is at /dev/apps/NAME
        first, _, rest = path.partition("/")
        if len(self._apps) == 1 or first in _OF_ALL:
            name = next(iter(self._apps))
        elif first in _UNDER_NAMES:
            name = rest.partition("/")[0]
        elif first in _IN_BODIES and scope["type"] == "http":
            body = await Request(scope, receive).body()
            name, receive = _name_in(body), _again(body, receive)
        else:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            name = next(iter(query.get("app_name", query.get("app", ()))), "")
        if name not in self._apps:
            raise HTTPException(404, f"no agent {name[:80]!r} here; there is: {', '.join(self._apps)}")
        # Routes of the app match the whole path.
        await self._apps[name]({**scope, "root_path": "", "path_params": {}}, receive, send)


def _name_in(body: bytes) -> str:
    try:
        fields: Any = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise HTTPException(422, "the body is not a JSON object")
    named = cast(Mapping[str, Any], fields)
    return str(named.get("appName") or named.get("app_name") or "")


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` for a body that was read."""
    is_given = False

    async def receive_again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
