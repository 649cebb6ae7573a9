"""Approvals on the wire: the request, its placeholder, the answers that clients send, and that each counts once.

Source of the shapes: google-adk's tool confirmation, https://google.github.io/adk-docs/tools/confirmation/.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST as REQUEST
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.interrupts import ASKED_OF, VALID_FOR, Interrupt, usual_hint

logger = logging.getLogger(__name__)

RESERVED = "adk_"
"""Function names that start so are the runtime's own; a model may not use them."""
WAITING = "this call needs a person's approval and has not run yet; it runs once it is approved"
IN_DOUBT = "the run was cut while this call was made; it may or may not have taken effect"
_WAITING_IN_DOUBT = f"{IN_DOUBT}; a person is asked"
REJECTED = "this call was rejected; it did not run"
CHANGED = "this call did not run: a callback changed its arguments after a person had approved others"
CHANGED_INTO_GATED = "this call did not run: a callback changed its arguments into ones that need a person's approval"
REDEFINED = "this call did not run: its tool was redefined after a person was asked; call it again if need be"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be asked of a call."""

    confirmation: ToolConfirmation
    ran: bool
    tool: str | None


def placeholder(*, in_doubt: bool = False) -> dict[str, Any]:
    """What stands as a call's result while it waits. `in_doubt`: it was begun before, and may have been made."""
    return {"error": _WAITING_IN_DOUBT if in_doubt else WAITING}


PLACEHOLDERS = (placeholder(), placeholder(in_doubt=True))


def rejection(decided: ToolConfirmation) -> dict[str, Any]:
    """What the model is told of a call that a person rejected."""
    return {"error": f"{REJECTED}; the reason given: {decided.reason}" if decided.reason else REJECTED}


def is_rejection(response: types.FunctionResponse) -> bool:
    """True if `response` says that its call was rejected."""
    return str((response.response or {}).get("error", "")).startswith(REJECTED)


def ask(author: str, branch: str | None, calls: Iterable[types.FunctionCall], wanted: dict[str, Wanted]) -> Event:
    """The event in which `author` asks for approval of those of its calls that are in `wanted`, by call id."""
    parts = [types.Part(function_call=_request(call, wanted[call.id or ""])) for call in calls if call.id in wanted]
    return Event(
        author=author,
        branch=branch,
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={part.function_call.id or "" for part in parts if part.function_call},
    )


def _request(call: types.FunctionCall, wanted: Wanted) -> types.FunctionCall:
    asked = wanted.confirmation
    if asked.args is not None:  # a callback changed them: what will run is what is asked
        call = call.model_copy(update={"args": asked.args})
    confirmation = {"hint": asked.hint or usual_hint(call.name or ""), "confirmed": False}
    if asked.payload is not None:
        confirmation["payload"] = asked.payload
    args = {
        "originalFunctionCall": call.model_dump(exclude_none=True),
        "toolConfirmation": confirmation,
        ASKED_OF: {"tool": wanted.tool, "ran": wanted.ran},
    }
    return types.FunctionCall(id=f"adk-{clock.new_id()}", name=REQUEST, args=args)


def is_placeholder(event: Event, response: types.FunctionResponse) -> bool:
    """True if `response` only says that its call waits for an answer."""
    return response.id in event.actions.requested_tool_confirmations


def expired_words(name: str | None) -> str:
    """That it is too late for a yes."""
    return f"{name} was asked for more than {VALID_FOR / 86_400:g} days ago, and cannot be approved any more"


def refused(one: Interrupt, decided: ToolConfirmation) -> Event:
    """The result of a call that was refused, to be stored where no run of its agent can tell of it."""
    response = types.FunctionResponse(id=one.call.id, name=one.call.name, response=rejection(decided))
    content = types.Content(role="user", parts=[types.Part(function_response=response)])
    return Event(author=one.agent, branch=one.branch, content=content)


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
        try:
            return ToolConfirmation.model_validate(inner)
        except ValidationError as error:
            logger.warning("an approval was answered with what cannot be read, and taken as no: %s", error)
            return ToolConfirmation(confirmed=False)
    logger.warning("an approval was answered with %.200r, which is neither yes nor no; taken as no", said)
    return ToolConfirmation(confirmed=False)


def same(args: dict[str, Any], others: dict[str, Any]) -> bool:
    """True if both are the same JSON, whatever the order of keys. 1, 1.0, "1" and true are four values."""
    return _canonical(args) == _canonical(others)


def _canonical(args: dict[str, Any]) -> str:
    return json.dumps(args, sort_keys=True, default=repr)


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
