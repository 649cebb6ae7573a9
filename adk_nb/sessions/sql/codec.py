"""Events and states as the JSON text that a database keeps."""

import json
import sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError

from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.sessions.state import State
from adk_nb.wire import copied, not_json

Key = tuple[str, str, str]
"""App, user and id of a session."""
_FREE = ("agent_state", "artifact_delta", "route", "set_model_response")
"""Actions that hold values of a user's or a model's choice, or numbers of any length."""
_DICTS = {name for name, field in EventActions.model_fields.items() if field.default_factory}


@dataclass(eq=False)
class Mark:
    """Revision of a caller's copy of a session."""

    number: int
    """Of the session's row: another for a session that was made anew under an old id."""
    seq: int
    app: int
    """How often the app's state had changed."""
    user: int
    is_whole: bool = True
    """All events were read."""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The state as it is stored."""


class EventRow(NamedTuple):
    """An event as it is stored."""

    id: str
    invocation_id: str
    timestamp: float
    data: bytes
    """JSON, UTF-8."""
    is_altered_by_jsonb: bool = False


def encode_event(event: Event, delta: dict[str, Any]) -> EventRow:
    """Encode `event`, with `delta` for its state delta.

    Raises:
        InputError: It holds what would not come back equal.
    """
    if problem := unstorable(event):
        raise InputError(f"an event of {event.author!r} cannot be stored: {problem}, which JSON cannot hold")
    if event.actions.state_delta:
        event = copied(event, actions=copied(event.actions, state_delta=delta))
    try:
        data = event.model_dump_json(by_alias=True, exclude_none=True, exclude=_defaults(event)).encode()
    except PydanticSerializationError as error:
        reason = str(error).partition(": ")[2] or str(error)
        raise InputError(f"an event of {event.author!r} cannot be stored: {reason:.200}") from error
    return EventRow(event.id, event.invocation_id, float(event.timestamp) + 0.0, data)  # no int, no -0: SQLite has none


def _defaults(event: Event) -> Any:
    """Fields to leave out, since reading gives them back."""
    actions = event.actions.__dict__.items()
    present = [name for name, value in actions if value is not None and not (name in _DICTS and value == {})]
    fields: dict[str, Any] = {"actions": _DICTS.difference(present) if present else True}
    return fields if any(event.node_info.__dict__.values()) else fields | {"node_info": True}


def unstorable(event: Event) -> str | None:
    """What in `event` would not come back equal from JSON, in words; or None."""
    values: dict[str, Any] = {"output": event.output, "custom_metadata": event.custom_metadata}
    values |= {name: value for name in _FREE if (value := getattr(event.actions, name))}
    if confirmations := event.actions.requested_tool_confirmations:
        values["a payload"] = [confirmation.payload for confirmation in confirmations.values()]
    if widgets := event.actions.render_ui_widgets:
        values["a widget"] = [widget.payload for widget in widgets]
    for part in event.parts:
        if part.function_call:
            values[f"the arguments of {part.function_call.name!r}"] = part.function_call.args
        if part.function_response:
            values[f"the result of {part.function_response.name!r}"] = part.function_response.response
        if part.part_metadata:
            values["part_metadata"] = part.part_metadata
    problem = next((f"{name} holds {odd}" for name, value in values.items() if (odd := not_json(value))), None)
    return problem or (None if _is_time(event.timestamp) else f"its timestamp is {event.timestamp!s:.80}")


def _is_time(at: Any) -> bool:
    return isinstance(at, float | int) and abs(at) <= sys.float_info.max


def is_same_event(data: bytes, stored: bytes) -> bool:
    """True if the two are equal but for the time, so that an event that a repeated step makes is recognised."""
    return data == stored or _without_time(data) == _without_time(stored)


def _without_time(data: bytes) -> dict[str, Any]:
    return {name: value for name, value in json.loads(data).items() if name != "timestamp"}


def split_state(delta: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Split `delta` by prefix, and take the prefixes off; the session's own keys are under the empty one."""
    parts: dict[str, dict[str, Any]] = {"": {}, State.APP_PREFIX: {}, State.USER_PREFIX: {}}
    for key, value in delta.items():
        prefix = next((prefix for prefix in parts if prefix and key.startswith(prefix) and key != prefix), "")
        parts[prefix][key.removeprefix(prefix)] = value
    return parts


def to_json(value: Any) -> str:
    """Encode a JSON value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
