"""Runs of an agent under the paths of ADK's server: `/list-apps`, `/run` and `/run_sse`.

Source: google-adk 2.13, `cli/api_server.py`.
"""

import json
import platform
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.metadata import version
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.serving.adk_sessions import check_app
from adk_nb.serving.agent_service import AgentService, Call, refuse_reserved
from adk_nb.serving.http_bodies import (
    GONE,
    always,
    answer_error,
    error_text,
    json_list,
    json_of,
    parsed,
    plain_json,
    sse_response,
    status_of,
    unless_gone,
)
from adk_nb.wire import WireModel, copy_model


class RunBody(WireModel):
    """The body of `/run` and `/run_sse`."""

    app_name: str | None = None
    """None: the only one."""
    user_id: str
    session_id: str
    new_message: types.Content | None = None
    streaming: bool = False
    state_delta: dict[str, Any] | None = None
    function_call_event_id: str | None = None
    """Of a page that answers a long-running call: it wants each event in one piece."""
    invocation_id: str | None = None
    custom_metadata: dict[str, Any] | None = None


class AdkRuns:
    """The handlers of these paths."""

    def __init__(self, service: AgentService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [
            Route("/list-apps", self._list, methods=["GET"]),
            Route("/health", always({"status": "ok"}), methods=["GET"]),
            Route("/version", self._version, methods=["GET"]),
            Route("/run", self._run, methods=["POST"]),
            Route("/run_sse", self._run_sse, methods=["POST"]),
        ]

    async def _version(self, request: Request) -> Response:
        python = platform.python_version()
        return plain_json({"version": version("adk-nb"), "language": "python", "language_version": python})

    async def _list(self, request: Request) -> Response:
        if request.query_params.get("detailed", "").lower() not in ("true", "1"):
            return plain_json([self._service.name])
        agent = self._service.agent
        app = {
            "name": self._service.name,
            "rootAgentName": agent.name,
            "description": getattr(agent, "description", ""),
            "language": "python",
            "isComputerUse": False,
        }
        return plain_json({"apps": [app]})

    async def _run(self, request: Request) -> Response:
        call = await self._call(request, streaming=False)

        async def collected() -> list[Event]:
            async with aclosing(self._service.events(call)) as events:
                return [event async for event in events if event.author != "user"]

        try:
            events = await unless_gone(request, collected())
        except Exception as error:  # of the agent, not of this server, whose log gets no traceback of it
            return answer_error(request, error)
        return Response(status_code=GONE) if events is None else json_list(events)

    async def _run_sse(self, request: Request) -> Response:
        body = await parsed(request, RunBody)
        call = await self._call(request, streaming=body.streaming)
        try:
            return await sse_response(self._lines(call, body))
        except Exception as error:  # the dev UI reads the lines of the stream, whatever the status is
            line = json.dumps({"error": error_text(error), "detail": error_text(error)})
            return Response(f"data: {line}\n\n", status_of(error), media_type="text/event-stream")

    async def _lines(self, call: Call, body: RunBody) -> AsyncGenerator[str, None]:
        has_begun = False
        try:
            async with aclosing(self._service.events(call)) as events:
                async for event in events:
                    if not has_begun:
                        has_begun = True
                        yield ""  # the message is stored: the answer is a stream from here on
                    if event.author == "user":
                        continue
                    has_content = event.content and event.content.parts
                    # ADK's page draws a file twice if its event has content, too: it gets them as two events.
                    if event.actions.artifact_delta and has_content and not body.function_call_event_id:
                        yield json_of(copy_model(event, actions=copy_model(event.actions, artifact_delta={})))
                        event = copy_model(event, content=None)
                    yield json_of(event)
        except Exception as error:
            if not has_begun:
                raise
            details = {"error_type": type(error).__name__, "error_message": error_text(error), "timestamp": clock.now()}
            yield json.dumps({"error": f"{type(error).__name__}: {error_text(error)}", "error_details": details})

    async def _call(self, request: Request, *, streaming: bool) -> Call:
        body = await parsed(request, RunBody)
        check_app(self._service, body.app_name or self._service.name)
        refuse_reserved(body.custom_metadata or {}, "the run")
        if not await self._service.has_session(body.user_id, body.session_id):
            raise HTTPException(404, f"Session not found: {body.session_id}")
        return Call(
            user_id=body.user_id,
            session_id=body.session_id,
            message=body.new_message,
            state_delta=body.state_delta or {},
            invocation_id=body.invocation_id,
            custom_metadata=body.custom_metadata,
            streaming=streaming,
            creates_session=False,
        )
