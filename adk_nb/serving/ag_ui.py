"""The agent for clients of AG-UI 1.0: a run is a POST, answered with a stream of events.

Source: https://docs.ag-ui.com/spec/1.0 and https://docs.ag-ui.com/concepts/interrupts.
"""

import base64
import binascii
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

from ag_ui.core import (
    EventType,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    ToolMessage,
    UserMessage,
)
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from adk_nb import types
from adk_nb.errors import InputError, PendingError
from adk_nb.events.event_actions import DELETED
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.redaction import without_known
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import ALL, Interrupt, answer
from adk_nb.serving.access import USER
from adk_nb.serving.ag_ui_events import AgUiEvents, interrupts_of, messages_of
from adk_nb.serving.agent_service import AgentService, Call
from adk_nb.serving.http_bodies import error_text, parsed, sse_response

VERSION = "1.0"


class AgUi:
    """The handler of AG-UI's endpoint; a thread is a session of that id."""

    def __init__(self, service: AgentService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        """The route."""
        return [Route("/ag-ui", self._run, methods=["POST"])]

    async def _run(self, request: Request) -> Response:
        run = await parsed(request, RunAgentInput)
        if not run.thread_id.strip() or not run.run_id.strip():
            raise HTTPException(422, "threadId and runId must not be empty")
        return await sse_response(self._lines(run))

    async def _lines(self, run: RunAgentInput) -> AsyncGenerator[str, None]:
        async with aclosing(self._events(run)) as events:
            async for event in events:
                yield without_known(event.model_dump_json(by_alias=True))

    async def _events(self, run: RunAgentInput) -> AsyncGenerator[Any, None]:
        yield RunStartedEvent(
            type=EventType.RUN_STARTED, thread_id=run.thread_id, run_id=run.run_id, protocol_version=VERSION
        )
        try:
            history, state = await self._session(run.thread_id)
            yield StateSnapshotEvent(type=EventType.STATE_SNAPSHOT, snapshot=state)
            message = _message(run, history)
            if message is not None:
                converter, delta = AgUiEvents(), dict[str, Any]()
                if isinstance(cast(Any, run.state), dict):  # what the client has changed in its copy
                    sent = cast(dict[str, Any], run.state)
                    delta = {key: value for key, value in sent.items() if key not in state or state[key] != value}
                    delta |= {key: dict(DELETED) for key in state if sent and key not in sent and ":" not in key}
                call = Call(
                    user_id=USER,
                    session_id=run.thread_id,
                    message=message,
                    state_delta=delta,
                    client="AG-UI client",
                )
                async with aclosing(self._service.events(call)) as answers:
                    async for event in answers:
                        for converted in converter.feed(event):
                            yield converted
                for converted in converter.end():
                    yield converted
                if converter.error:
                    yield RunErrorEvent(type=EventType.RUN_ERROR, message=converter.error, code=converter.error_code)
                    return
            async for closing in self._closing_events(run):
                yield closing
        except Exception as error:
            yield RunErrorEvent(type=EventType.RUN_ERROR, message=error_text(error), code=type(error).__name__)

    async def _closing_events(self, run: RunAgentInput) -> AsyncGenerator[Any, None]:
        """The present state and messages, and the end of the run with its open interrupts."""
        history, state = await self._session(run.thread_id)
        yield StateSnapshotEvent(type=EventType.STATE_SNAPSHOT, snapshot=state)
        messages = messages_of(history)
        # The user's messages get the client's ids, since a client merges a snapshot into its own list by id.
        own = [message for message in messages if isinstance(message, UserMessage)]
        theirs = [message for message in run.messages if isinstance(message, UserMessage)]
        for message, known in zip(reversed(own), reversed(theirs), strict=False):
            if message.content == _text(known.content):
                message.id = known.id
        yield MessagesSnapshotEvent(type=EventType.MESSAGES_SNAPSHOT, messages=messages)
        open_ = history.interrupts()
        outcome: dict[str, Any] = {"type": "success"}
        if open_:
            outcome = {"type": "interrupt", "interrupts": interrupts_of(open_)}
        yield RunFinishedEvent.model_validate(
            {"type": EventType.RUN_FINISHED, "threadId": run.thread_id, "runId": run.run_id, "outcome": outcome}
        )

    async def _session(self, thread: str) -> tuple[History, dict[str, Any]]:
        session = await self._service.session(USER, thread)
        return (History(session.events), dict(session.state)) if session else (History(), {})


def _message(run: RunAgentInput, history: History) -> types.Content | None:
    """The message that a client sends. None: it sends none, and only reads the thread.

    Raises:
        InputError: An answer names no open interrupt, or does not answer all of them.
        PendingError: A message comes while an interrupt is open.
    """
    open_ = history.interrupts()
    if run.resume:
        return _answers(run, open_, history)
    last = run.messages[-1] if run.messages else None
    if isinstance(last, ToolMessage):
        interrupts = history.interrupts(kinds=ALL)
        waiting = next((interrupt for interrupt in interrupts if last.tool_call_id in interrupt.answer_ids), None)
        if waiting is None:
            raise InputError(f"no open call {last.tool_call_id!r}; it was answered already, or there never was one")
        return types.Content(role="user", parts=[answer(waiting, _text(last.content))])
    if not isinstance(last, UserMessage):
        return None
    blocking = [interrupt for interrupt in open_ if interrupt.kind != "long_running"]
    if blocking:
        raise PendingError(f"{_names(blocking)} must be answered first; send it in 'resume', or wait for the answer")
    parts = [types.Part(text=last.content)] if isinstance(last.content, str) else [_part(part) for part in last.content]
    return types.Content(role="user", parts=parts)


def _answers(run: RunAgentInput, open_: Sequence[Interrupt], history: History) -> types.Content | None:
    entries = {entry.interrupt_id: entry for entry in run.resume or ()}
    by_id = {interrupt.id: interrupt for interrupt in open_}
    known = {call.id for event in history.events for call in event.get_function_calls()}
    if unknown := [key for key in entries if key not in by_id and key not in known]:
        raise InputError(f"no interrupt {unknown[0]!r} in this thread")
    if not entries.keys() & by_id.keys():
        return None  # all were answered before, by the same request or in the notebook
    if missing := [interrupt for key, interrupt in by_id.items() if key not in entries]:
        raise InputError(f"'resume' has to answer all that is open; {_names(missing)} is missing")
    parts = [answer(interrupt, _value(interrupt, entries[key])) for key, interrupt in by_id.items()]
    return types.Content(role="user", parts=parts)


def _value(interrupt: Interrupt, entry: Any) -> Any:
    """The answer in an entry of `resume`. ADK's `confirmed` and `args` are `approved` and `editedArgs` in AG-UI."""
    payload = entry.payload if entry.status == "resolved" else None
    if interrupt.kind == "credential" and payload is None:
        return {"error": "access_denied"}
    if not interrupt.is_approval:
        return payload
    fields: dict[str, Any] = cast(dict[str, Any], payload) if isinstance(payload, dict) else {"approved": payload}
    confirmed = fields.get("confirmed", fields.get("approved")) is True
    args: Any = fields.get("args", fields.get("editedArgs"))
    return ToolConfirmation(
        confirmed=confirmed,
        args=cast(dict[str, Any], args) if confirmed and isinstance(args, dict) else None,
        payload=fields.get("payload"),
        reason=str(fields["reason"]) if fields.get("reason") else None,
        by="AG-UI",
    )


def _part(part: Any) -> types.Part:
    if part.type == "text":
        return types.Part(text=part.text)
    source = part.source
    if source.type == "data":
        try:
            data = base64.b64decode(source.value, validate=True)
        except binascii.Error as error:
            raise InputError(f"the {part.type} is not base64: {error}") from error
        return types.Part(inline_data=types.Blob(data=data, mime_type=source.mime_type))
    if source.type == "url":
        return types.Part(file_data=types.FileData(file_uri=source.value, mime_type=source.mime_type))
    raise InputError(f"a {part.type} of the kind {source.type!r} cannot be read here; send its bytes, or an address")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.text for part in content if part.type == "text")


def _names(open_: Sequence[Interrupt]) -> str:
    return ", ".join(f"{interrupt.kind} {interrupt.id!r}" for interrupt in open_)
