"""For those who operate a server: probes that need no token, and logs that a program reads."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any
from urllib.parse import quote

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adk_nb import clock, sync
from adk_nb.redaction import hidden
from adk_nb.runners import Runner

ALIVE, READY = "/livez", "/readyz"
"""Paths of the probes."""
_READY_SECONDS = 3.0
_OF_HANDSHAKES = {"websocket.accept": 101, "websocket.close": 403}
"""Message that answers the handshake of a WebSocket -> its status."""
logger = logging.getLogger("adk_nb.serving.requests")


class Operated:
    """An app with probes before it, and a log line after each request: method, path, status, milliseconds.

    The path is logged without its query, in which a token may be. Blocking calls run in worker threads.

    Args:
        app: Gets all other requests.
        ready: Raises if requests cannot be answered now, as without the database of the sessions.
    """

    def __init__(self, app: ASGIApp, ready: Callable[[], Awaitable[Any]]) -> None:
        self._app = app
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in (ALIVE, READY):
            await (await self._probe(scope["path"]))(scope, receive, send)
            return
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        status, began = 0, monotonic()

        async def counted(message: Message) -> None:
            nonlocal status
            status = status or message.get("status") or _OF_HANDSHAKES.get(message["type"], 0)
            await send(message)

        try:
            with sync.in_workers():
                await self._app(scope, receive, counted)
        finally:
            fields = {
                "method": scope.get("method", "WEBSOCKET"),
                "path": quote(scope["path"], safe="/:@"),  # a line break in it would begin a line of the log
                "status": status,
                "ms": round(1000 * (monotonic() - began)),
                "client": (scope.get("client") or ("",))[0],
            }
            logger.info("%(method)s %(path)s %(status)s", fields, extra={"fields": fields})

    async def _probe(self, path: str) -> JSONResponse:
        if path == READY:
            try:
                async with asyncio.timeout(_READY_SECONDS):
                    await self._ready()
            except Exception as error:
                logger.warning("not ready: %s: %s", type(error).__name__, error)
                return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ok"})


def sessions_answer(runner: Runner) -> Callable[[], Awaitable[Any]]:
    """A check that the sessions of a runner can be read."""
    return lambda: runner.session_service.get_session(app_name=runner.app_name, user_id="adk_nb", session_id="readyz")


class WithoutQueries(logging.Filter):
    """Leaves out uvicorn's own lines about WebSockets, which have the query; `Operated` writes one for each."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False for such a line."""
        return not (record.name == "uvicorn.error" and '"WebSocket ' in str(record.msg))


class JsonLines(logging.Formatter):
    """Each record as a line of JSON, without known secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, Any] = {
            "time": round(clock.now(), 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": hidden(record.getMessage()),
            "process": record.process,
            **getattr(record, "fields", {}),
        }
        if record.exc_info or record.exc_text:
            line["error"] = hidden(record.exc_text or self.formatException(record.exc_info or (None, None, None)))
        return hidden(json.dumps(line, ensure_ascii=False, default=str))


def log_settings(*, as_json: bool, level: str) -> dict[str, Any]:
    """Settings of `logging` for a server: all to the error output."""
    lines = {"()": f"{__name__}.JsonLines"} if as_json else {"format": "%(asctime)s %(levelname)s %(message)s"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": lines},
        "filters": {"queries": {"()": f"{__name__}.WithoutQueries"}},
        "handlers": {"errors": {"class": "logging.StreamHandler", "formatter": "lines", "filters": ["queries"]}},
        "root": {"handlers": ["errors"], "level": "WARNING"},
        "loggers": {name: {"level": level.upper()} for name in ("adk_nb", "uvicorn.error")},
    }
