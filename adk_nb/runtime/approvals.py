"""Approvals on the wire: the request, its placeholder, and the answers that clients send.

Source of the shapes: google-adk's tool confirmation, https://google.github.io/adk-docs/tools-custom/confirmation/.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import ValidationError

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST as REQUEST
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.interrupts import TOOL_INFO, VALID_FOR, Interrupt, default_hint
from adk_nb.wire import json_or_text

logger = logging.getLogger(__name__)

RESERVED = "adk_"
"""Prefix of the runtime's own function names; a model may not call them."""
# Placeholders are recognised by their text in stored sessions: it must not change.
PENDING = "this call needs a person's approval and has not run yet; it runs once it is approved"
IN_DOUBT = "the run was cut while this call was made; it may or may not have taken effect"
_PENDING_IN_DOUBT = f"{IN_DOUBT}; a person is asked"
NOT_AGAIN = "and a person decided not to make it again"
REJECTED = "this call was rejected; it did not run"
CHANGED = "this call did not run: a callback changed its arguments after a person had approved others"
CHANGED_INTO_GATED = "this call did not run: a callback changed its arguments into ones that need a person's approval"
REDEFINED = "this call did not run: its tool was redefined after a person was asked; call it again if need be"
NOT_MADE = "the run was cut before this call was made"
NOT_CALLED_AGAIN = "was not called again"
_NOT_RUN = (CHANGED, CHANGED_INTO_GATED, REDEFINED, NOT_MADE)


@dataclass(frozen=True, kw_only=True)
class ConfirmationNeeded:
    """An approval to request for a call."""

    confirmation: ToolConfirmation
    ran: bool
    """True: the tool asked while it ran. False: the call waits before it runs."""
    tool_fingerprint: str | None


def placeholder(*, in_doubt: bool = False) -> dict[str, Any]:
    """The result of a call while its approval is pending. `in_doubt`: an earlier attempt may have taken effect."""
    return {"error": _PENDING_IN_DOUBT if in_doubt else PENDING}


PLACEHOLDERS = (placeholder(), placeholder(in_doubt=True))


def rejection(decision: ToolConfirmation) -> dict[str, Any]:
    """The result of a rejected call, for the model."""
    return {"error": f"{REJECTED}; the reason given: {decision.reason}" if decision.reason else REJECTED}


Fate = Literal["ran", "in doubt", "not repeated", "rejected", "not made", "not made again"]
"""`not repeated`: a person said no to a call in doubt. `not made again`: it had the same result too often."""


def fate_of(response: types.FunctionResponse) -> Fate:
    """What became of a call, as its result says: the only place that reads this from the text of an error."""
    error = str((response.response or {}).get("error", ""))
    if error.startswith(REJECTED):
        return "rejected"
    if error.startswith(IN_DOUBT):
        return "not repeated" if NOT_AGAIN in error else "in doubt"
    if error.startswith(f"{response.name}() {NOT_CALLED_AGAIN}"):
        return "not made again"
    return "not made" if error.startswith((*_NOT_RUN, f"{response.name}() was not called")) else "ran"


def request_event(
    author: str, branch: str | None, calls: Iterable[types.FunctionCall], needed: dict[str, ConfirmationNeeded]
) -> Event:
    """The event that requests approval of the calls in `needed`, by call id."""
    parts = [types.Part(function_call=_request(call, needed[call.id or ""])) for call in calls if call.id in needed]
    return Event(
        author=author,
        branch=branch,
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={part.function_call.id or "" for part in parts if part.function_call},
    )


def _request(call: types.FunctionCall, needed: ConfirmationNeeded) -> types.FunctionCall:
    requested = needed.confirmation
    if requested.args is not None:  # a callback changed the arguments: ask about those that will run
        call = call.model_copy(update={"args": requested.args})
    confirmation = {"hint": requested.hint or default_hint(call.name or ""), "confirmed": False}
    if requested.payload is not None:
        confirmation["payload"] = requested.payload
    tool_info: dict[str, Any] = {"tool": needed.tool_fingerprint, "ran": needed.ran}
    if requested.documents:
        tool_info["documents"] = requested.documents
    if requested.action:
        tool_info["action"] = requested.action
    if requested.for_turn:
        tool_info["forTurn"] = True
    if requested.in_doubt:
        tool_info["in_doubt"] = True
    if requested.earlier:
        tool_info["earlier"] = requested.earlier
    args = {
        "originalFunctionCall": call.model_dump(exclude_none=True),
        "toolConfirmation": confirmation,
        TOOL_INFO: tool_info,
    }
    return types.FunctionCall(id=f"adk-{clock.new_id()}", name=REQUEST, args=args)


def expired_message(name: str | None) -> str:
    """The error message for approving an expired request."""
    return f"the approval request for {name} has expired after {VALID_FOR / 86_400:g} days"


def rejection_event(interrupt: Interrupt, decision: ToolConfirmation) -> Event:
    """The event with the result of a rejected call, stored without a run of its agent."""
    response = types.FunctionResponse(id=interrupt.call.id, name=interrupt.call.name, response=rejection(decision))
    content = types.Content(role="user", parts=[types.Part(function_response=response)])
    return Event(author=interrupt.agent, branch=interrupt.branch, content=content)


def read_answer(response: dict[str, Any]) -> ToolConfirmation:
    """Parse an answer in any shape that clients of ADK send; anything else is a no."""
    answer: Any = response
    # Clients nest these keys in this order, and send some of them as JSON text.
    for key in ("response", "result", "toolConfirmation", "tool_confirmation"):
        if isinstance(answer, dict) and "confirmed" not in answer and key in answer:
            answer = cast(dict[str, Any], answer)[key]
            answer = json_or_text(answer) if isinstance(answer, str) else answer
    if isinstance(answer, bool):
        return ToolConfirmation(confirmed=answer)
    if isinstance(answer, dict) and isinstance(cast(dict[str, Any], answer).get("confirmed"), bool):
        try:
            return ToolConfirmation.model_validate(answer)
        except ValidationError as error:
            logger.warning("the answer to an approval is not a ToolConfirmation, and counts as no: %s", error)
            return ToolConfirmation(confirmed=False)
    logger.warning("the answer %.200r to an approval is neither yes nor no, and counts as no", response)
    return ToolConfirmation(confirmed=False)


def is_same_json(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """True if both are the same JSON in any order of keys. 1, 1.0, "1" and true are four different values."""
    return _canonical(first) == _canonical(second)


def _canonical(args: dict[str, Any]) -> str:
    return json.dumps(args, sort_keys=True, default=repr)
