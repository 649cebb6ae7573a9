"""Encoding of events and states as JSON text for a database."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from pydantic_core import PydanticSerializationError

from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.sessions.session import Session, free_values, problem_in
from adk_nb.sessions.state import State
from adk_nb.wire import copy_model

Key = tuple[str, str, str]
"""App, user and id of a session."""


def key_of(session: Session) -> Key:
    """The key of a session."""
    return session.app_name, session.user_id, session.id


_DICTS = {name for name, field in EventActions.model_fields.items() if field.default_factory}


@dataclass(eq=False)
class Mark:
    """Revision of a caller's copy of a session."""

    number: int
    """Number of the session's row: a session that was deleted and created again has another."""
    seq: int
    """Number of the newest event; events are counted from 1 without gaps."""
    app: int
    """Number of changes of the app's state."""
    user: int
    is_whole: bool = True
    """All events were read."""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The stored state."""


class EventRow(NamedTuple):
    """An event as it is stored."""

    id: str
    invocation_id: str
    timestamp: float
    data: bytes
    """JSON, UTF-8."""
    is_altered_by_jsonb: bool = False


def encode_event(event: Event, delta: dict[str, Any], *, jsonb: bool = False) -> EventRow:
    """Encode `event` with `delta` as its state delta.

    Args:
        event: The event, not changed.
        delta: The state delta to store.
        jsonb: The database stores JSONB.

    Raises:
        InputError: The event has a value that would not come back equal.
    """
    values = free_values(event)
    if problem := problem_in(event, values):
        raise InputError(f"an event of {event.author!r} cannot be stored: {problem}, which JSON cannot represent")
    if event.actions.state_delta:
        event = copy_model(event, actions=copy_model(event.actions, state_delta=delta))
    # Fields with their default values are left out.
    present = {k for k, value in event.actions.__dict__.items() if value is not None and (k not in _DICTS or value)}
    left_out: dict[str, Any] = {"actions": _DICTS.difference(present) if present else True}
    if not any(event.node_info.__dict__.values()):
        left_out["node_info"] = True
    try:
        data = event.model_dump_json(by_alias=True, exclude_none=True, exclude=left_out).encode()
    except PydanticSerializationError as error:
        reason = str(error).partition(": ")[2] or str(error)
        raise InputError(f"an event of {event.author!r} cannot be stored: {reason:.200}") from error
    is_altered = jsonb and is_altered_by_jsonb(data.decode(), [*values.values(), delta])
    timestamp = float(event.timestamp) + 0.0  # SQLite's REAL keeps neither an int nor the sign of -0.0
    return EventRow(event.id, event.invocation_id, timestamp, data, is_altered)


_ALTERED_BY_JSONB = re.compile(r"\\u0000|[:,\[]-?\d[\d.]*e[+-]?\d|[:,\[]-0[.,\]}]")
"""JSON that JSONB does not take (NUL), or gives back as another number: 1e+23 as an int, -0.0 without its sign.
Source: https://www.postgresql.org/docs/current/datatype-json.html."""


def is_altered_by_jsonb(text: str, values: list[Any]) -> bool:
    """True if JSONB would not return `text` as it was written; `values` are the free-form values in it."""
    return bool(_ALTERED_BY_JSONB.search(text)) or not _is_in_order(values)


def _is_in_order(value: Any) -> bool:
    """True if its keys are in JSONB's order, shortest first: a model is sent keys in their order."""
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        keys = [(len(name := key.encode()), name) for key in members]
        return keys == sorted(keys) and all(_is_in_order(member) for member in members.values())
    return not isinstance(value, list) or all(_is_in_order(item) for item in cast(list[Any], value))


def is_same_event(data: bytes, stored: bytes) -> bool:
    """True if both are equal but for the timestamp: the same step, repeated after a restart."""
    # JSONB gives keys back in another order, so bytes alone do not decide.
    return data == stored or _without_time(data) == _without_time(stored)


def _without_time(data: bytes) -> dict[str, Any]:
    return {name: value for name, value in json.loads(data).items() if name != "timestamp"}


def split_state(delta: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Split `delta` by prefix and remove the prefixes; the session's own keys are under the empty prefix."""
    parts: dict[str, dict[str, Any]] = {"": {}, State.APP_PREFIX: {}, State.USER_PREFIX: {}}
    for key, value in delta.items():
        prefix = next((prefix for prefix in parts if prefix and key.startswith(prefix) and key != prefix), "")
        parts[prefix][key.removeprefix(prefix)] = value
    return parts


def to_json(value: Any) -> str:
    """Encode a JSON value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
