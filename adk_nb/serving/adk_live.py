"""Live conversations under the path of ADK's server: a WebSocket at `/run_live`.

Source: google-adk 2.13, `cli/api_server.py`.
"""

import asyncio
from contextlib import aclosing, suppress
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from adk_nb import types
from adk_nb.redaction import hidden
from adk_nb.runtime.live_request_queue import LiveRequest, LiveRequestQueue
from adk_nb.runtime.run_config import RunConfig
from adk_nb.serving.access import problem
from adk_nb.serving.adk_sessions import check_app
from adk_nb.serving.agent_service import CLIENT, AgentService, Call
from adk_nb.serving.http_bodies import error_text, json_of
from adk_nb.wire import field_errors

_AVATAR = "Kai"
"""Of a conversation with video, as ADK's server has it."""
_END_SECONDS = 5.0
"""From the end of a client to the end of its run: tools that still work are waited for."""
_MAX_REASON = 123
"""Bytes of the reason of a close (RFC 6455, 5.5)."""
_NO_SESSION, _BAD_MESSAGE, _FAILED = 1002, 1007, 1011
"""Codes of a close (RFC 6455, 7.4.1); the first and the last are those of ADK's server."""


class LiveQuery(BaseModel):
    """The query of the address."""

    user_id: str
    session_id: str
    app_name: str | None = None
    """None: the only one."""
    modalities: list[Literal["TEXT", "AUDIO", "VIDEO"]] = Field(default=["AUDIO"])
    proactive_audio: bool | None = None
    enable_affective_dialog: bool | None = None
    enable_session_resumption: bool | None = None
    save_live_blob: bool = False
    explicit_vad_signal: bool | None = None

    def run_config(self) -> RunConfig:
        """The settings of the conversation."""
        proactive, resumption = self.proactive_audio, self.enable_session_resumption
        return RunConfig(
            response_modalities=[types.Modality(modality) for modality in self.modalities],
            proactivity=None if proactive is None else types.ProactivityConfig(proactive_audio=proactive),
            enable_affective_dialog=self.enable_affective_dialog,
            session_resumption=None if resumption is None else types.SessionResumptionConfig(transparent=resumption),
            save_live_blob=self.save_live_blob,
            explicit_vad_signal=self.explicit_vad_signal,
            avatar_config=types.AvatarConfig(avatar_name=_AVATAR) if "VIDEO" in self.modalities else None,
        )


class AdkLive:
    """The handler of this path."""

    def __init__(self, service: AgentService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        """The route."""
        return [WebSocketRoute("/run_live", self._run_live)]

    async def _run_live(self, websocket: WebSocket) -> None:
        """Hold a conversation: JSON of a `LiveRequest` comes in, JSON of an `Event` goes out, each in one message."""
        query = _query(websocket)
        if isinstance(query, Response):
            await websocket.send_denial_response(query)
            return
        try:
            check_app(self._service, query.app_name or self._service.name)
            session = await self._service.session(query.user_id, query.session_id)
        except HTTPException as error:
            await websocket.send_denial_response(problem(error.status_code, error.detail))
            return
        except ValueError as error:
            await websocket.send_denial_response(problem(400, error_text(error)))
            return
        await websocket.accept()
        if session is None:
            await _close(websocket, _NO_SESSION, "Session not found")
            return
        requests = LiveRequestQueue()
        call = Call(
            user_id=query.user_id,
            session_id=query.session_id,
            live_requests=requests,
            run_config=query.run_config(),
            client=CLIENT,
            creates_session=False,
        )
        sending = asyncio.create_task(self._send(websocket, call))
        receiving = asyncio.create_task(self._receive(websocket, call))
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():  # the client is gone, or sent what cannot be: the run ends with its open calls
                requests.close()
                await asyncio.wait({sending}, timeout=_END_SECONDS)
            refused = receiving.exception() if receiving.done() else None
            failed = sending.exception() if sending.done() else None
        finally:
            for task in (sending, receiving):
                task.cancel()
            await asyncio.wait({sending, receiving})
        if isinstance(refused, Exception):
            await _close(websocket, _BAD_MESSAGE, error_text(refused))
        elif isinstance(failed, Exception):
            await _close(websocket, _FAILED, error_text(failed))
        else:
            await _close(websocket, 1000, "")

    async def _send(self, websocket: WebSocket, call: Call) -> None:
        """Send the events of the run; to a client that is gone, none of them."""
        is_gone = False
        async with aclosing(self._service.events(call)) as events:
            async for event in events:
                try:
                    if not is_gone:
                        await websocket.send_text(json_of(event))
                except (WebSocketDisconnect, RuntimeError):
                    is_gone = True

    async def _receive(self, websocket: WebSocket, call: Call) -> None:
        """Put the messages of the client into the conversation, until it goes.

        Raises:
            ValueError: A message is no `LiveRequest`, or the client may not send it.
        """
        while (message := await websocket.receive())["type"] == "websocket.receive":
            try:
                request = LiveRequest.model_validate_json(message.get("text") or message.get("bytes") or b"")
            except ValidationError as error:
                raise ValueError(f"no LiveRequest: {field_errors(error, LiveRequest.model_fields)}") from None
            await self._service.say(call, request)


def _query(websocket: WebSocket) -> LiveQuery | Response:
    """The query, or the refusal of one that is not valid, as FastAPI has it."""
    given: dict[str, Any] = dict(websocket.query_params)
    if modalities := websocket.query_params.getlist("modalities"):
        given["modalities"] = modalities
    try:
        return LiveQuery.model_validate(given)
    except ValidationError as error:
        return problem(422, hidden(field_errors(error, LiveQuery.model_fields)))


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):  # the client was faster
        await websocket.close(code, reason.encode()[:_MAX_REASON].decode("utf-8", "ignore"))
