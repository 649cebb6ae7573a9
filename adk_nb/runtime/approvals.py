"""The one-use record of an approval: which call waits, what was asked, what was answered, and that it counts once.

Source of the shapes: google-adk's tool confirmation, https://google.github.io/adk-docs/tools/confirmation/.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.invocation_context import APPROVAL_REQUEST as REQUEST
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

RESERVED = "adk_"
"""Function names that start so are the runtime's own; a model may not use them."""
WAITING = "this call needs a person's approval and has not run yet; it runs once it is approved"
REJECTED = "a person rejected this call; it did not run"


@runtime_checkable
class Consumes(Protocol):
    """A session service that can promise that something happens only once, whoever asks at the same time."""

    def consume(self, session: Session, key: str, /) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A call that waits for a person."""

    id: str
    """Of the request; what an answer names."""
    call: types.FunctionCall
    """The call that waits."""
    hint: str
    """What the tool's author wants the person to be asked; empty if only whether it may run."""
    payload: Any
    author: str
    """The agent whose call it is."""


def placeholder() -> dict[str, Any]:
    """What stands as a call's result while it waits."""
    return {"error": WAITING}


def rejection(decided: ToolConfirmation) -> dict[str, Any]:
    """What the model is told of a call that a person rejected."""
    return {"error": f"{REJECTED}; the reason given: {decided.reason}" if decided.reason else REJECTED}


def ask(asked: Event, wanted: dict[str, ToolConfirmation]) -> Event:
    """The event that asks for approval of the calls of `asked` that are in `wanted`, by call id."""
    parts = [
        types.Part(function_call=_request(call, wanted[call.id or ""]))
        for call in asked.get_function_calls()
        if call.id in wanted
    ]
    return Event(
        author=asked.author,
        branch=asked.branch,
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={part.function_call.id or "" for part in parts if part.function_call},
    )


def _request(call: types.FunctionCall, wanted: ToolConfirmation) -> types.FunctionCall:
    confirmation = {"hint": wanted.hint or _usual_hint(call.name or ""), "confirmed": False}
    if wanted.payload is not None:
        confirmation["payload"] = wanted.payload
    args = {"originalFunctionCall": call.model_dump(exclude_none=True), "toolConfirmation": confirmation}
    return types.FunctionCall(id=f"adk-{clock.new_id()}", name=REQUEST, args=args)


def _usual_hint(tool: str) -> str:
    return (
        f"Approve or reject the call of {tool}() by answering with a FunctionResponse "
        "whose response is a ToolConfirmation: {'confirmed': true} or {'confirmed': false}."
    )


def pending(events: Iterable[Event]) -> list[Pending]:
    """The approvals that are open, oldest first."""
    waiting: dict[str, Pending] = {}
    asked_by: dict[str, str] = {}
    for event in events:
        for call in event.get_function_calls():
            # Only the runtime marks a request as long-running: one that a model wrote is not a request.
            ours = call.name == REQUEST and call.id in (event.long_running_tool_ids or ())
            if ours and call.id and (original := _original(call)):
                told = (call.args or {}).get("toolConfirmation", {})
                waiting[call.id] = Pending(
                    id=call.id,
                    call=original,
                    hint="" if told.get("hint") == _usual_hint(original.name or "") else str(told.get("hint", "")),
                    payload=told.get("payload"),
                    author=event.author,
                )
                asked_by[original.id or ""] = call.id
        for response in event.get_function_responses():
            if response.id in asked_by and not is_placeholder(event, response):
                waiting.pop(asked_by[response.id or ""], None)
    return list(waiting.values())


def is_placeholder(event: Event, response: types.FunctionResponse) -> bool:
    """True if `response` only says that its call waits for an answer."""
    return response.id in event.actions.requested_tool_confirmations


def unanswered_calls(events: Iterable[Event]) -> list[types.FunctionCall]:
    """The calls in `events` that have no result yet, oldest first, without those whose result comes from outside."""
    calls: dict[str, types.FunctionCall] = {}
    for event in events:
        for call in event.get_function_calls():
            if call.id and call.name != REQUEST and call.id not in (event.long_running_tool_ids or ()):
                calls[call.id] = call
        for response in event.get_function_responses():
            calls.pop(response.id or "", None)
    return list(calls.values())


def take_answers(ctx: InvocationContext) -> dict[str, types.FunctionCall]:
    """Take the answers in the user's message, each only once: call id -> the call it decides.

    What was decided is put into `ctx.answered`. An answer to what is not open, or was answered before, is left out
    with a warning: nothing runs for it.
    """
    responses = [part.function_response for part in (ctx.user_content and ctx.user_content.parts) or ()]
    given = {response.id: response for response in responses if response and response.name == REQUEST}
    open_now = {one.id: one for one in pending(ctx.session.events)}
    by_call = {one.call.id: one for one in open_now.values()}
    taken: dict[str, types.FunctionCall] = {}
    for key, response in given.items():
        waiting = open_now.get(key or "") or by_call.get(key)
        if waiting is None or waiting.author != ctx.agent.name or not _first(ctx, waiting.id):
            logger.warning("the answer to approval %r was ignored: it is not open", key)
            continue
        decided = read_answer(response.response or {})
        call = waiting.call
        if decided.args is not None:
            call = call.model_copy(update={"args": decided.args})
        ctx.answered[call.id or ""] = decided
        taken[call.id or ""] = call
    return taken


def _first(ctx: InvocationContext, request_id: str) -> bool:
    service = ctx.session_service
    return not isinstance(service, Consumes) or service.consume(ctx.session, f"approval:{request_id}")


def answer(request_id: str, confirmation: ToolConfirmation) -> types.Part:
    """The part of a user's message that answers a request."""
    said = confirmation.model_dump(by_alias=True, exclude_none=True, exclude={"hint"})
    return types.Part(function_response=types.FunctionResponse(id=request_id, name=REQUEST, response=said))


def read_answer(said: dict[str, Any]) -> ToolConfirmation:
    """An answer in any of the shapes that ADK's and adk-rs's clients send; anything else is a no."""
    inner: Any = said
    for key in ("response", "result", "toolConfirmation", "tool_confirmation"):
        if isinstance(inner, dict) and "confirmed" not in inner and key in inner:
            inner = cast(dict[str, Any], inner)[key]
            inner = _from_json(inner) if isinstance(inner, str) else inner
    if isinstance(inner, bool):
        return ToolConfirmation(confirmed=inner)
    if isinstance(inner, dict) and isinstance(cast(dict[str, Any], inner).get("confirmed"), bool):
        return ToolConfirmation.model_validate(inner)
    logger.warning("an approval was answered with %.200r, which is neither yes nor no; taken as no", said)
    return ToolConfirmation(confirmed=False)


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _original(call: types.FunctionCall) -> types.FunctionCall | None:
    original = (call.args or {}).get("originalFunctionCall")
    return types.FunctionCall.model_validate(original) if isinstance(original, dict) else None
