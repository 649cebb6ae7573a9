"""The rows of a file of sessions: read with their checksums looked at, written with them made."""

import json
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError

from adk_nb.errors import InputError, SessionNotFoundError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.events.unread import unread
from adk_nb.sessions.base_session_service import not_found
from adk_nb.sessions.sqlite_file import Damaged, crc, named
from adk_nb.sessions.state import State, apply_delta, read_state, read_value
from adk_nb.slices import many_objects
from adk_nb.wire import copied, not_json

Key = tuple[str, str, str]
"""App, user and id of a session."""
_FREE = ("agent_state", "artifact_delta", "route", "set_model_response")
"""Actions that hold values of a user's or a model's choice, or numbers of any length."""
_DICTS = {name for name, field in EventActions.model_fields.items() if field.default_factory}
_MANY = 5_000
"""From so many events on reading them takes longer than a collection of garbage."""
_NO_STATE = "{}"
SHARED = {State.APP_PREFIX: "app_states", State.USER_PREFIX: "user_states"}


@dataclass(eq=False)
class Mark:
    """How new a copy of a session is."""

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


class Head(NamedTuple):
    """A row of `sessions`, but for the state."""

    number: int
    state_crc: int
    create_time: float
    update_time: float
    seq: int
    """Of the newest event; they are counted from 1 without a gap."""


_HEAD = (int, int, float, float, int)


def head_of(db: sqlite3.Connection, key: Key) -> Head | None:
    """The session's row, or None."""
    row = db.execute(
        "SELECT number, state_crc, create_time, update_time, seq, crc FROM sessions "
        "WHERE app_name = ? AND user_id = ? AND id = ?",
        key,
    ).fetchone()
    return head_in(row, key) if row else None


def head_in(row: Sequence[Any], key: Key) -> Head:
    """The `Head` in six columns of `sessions`: its fields, and `crc`."""
    head = Head(*row[:-1])
    if crc(*key, *head) != row[-1] or tuple(map(type, head)) != _HEAD:
        raise Damaged(f"the row of session {key[2]!r} is not what was written")
    return head


def keys_of(db: sqlite3.Connection, app_name: str, user_id: str | None) -> list[Key]:
    """Of an app's sessions, or a user's; least recently used first."""
    return db.execute(
        "SELECT app_name, user_id, id FROM sessions WHERE app_name = ? AND user_id = coalesce(?, user_id) "
        "ORDER BY update_time, number",
        (app_name, user_id),
    ).fetchall()


def missing(db: sqlite3.Connection, key: Key) -> SessionNotFoundError:
    """The error for a session that is not there."""
    return not_found(key[1], key[2], [one[2] for one in keys_of(db, key[0], key[1])])


def put_head(db: sqlite3.Connection, key: Key, head: Head) -> None:
    """Write what `head` says, but for the state."""
    db.execute(
        "UPDATE sessions SET update_time = ?, seq = ?, crc = ? WHERE number = ?",
        (head.update_time, head.seq, crc(*key, *head), head.number),
    )


def add_session(db: sqlite3.Connection, key: Key, at: float, state: dict[str, Any]) -> Head:
    """Write a new session's row, and the keys of its state."""
    (last,) = db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'sessions'").fetchone()
    head = Head((last or 0) + 1, crc(_NO_STATE), at, at, 0)
    db.execute(
        "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (head.number, *key, _NO_STATE, *head[1:], crc(*key, *head)),
    )
    head = put_own_keys(db, head, state)
    put_head(db, key, head)
    return head


def own_state(db: sqlite3.Connection, head: Head) -> dict[str, Any]:
    """The session's own keys: those in its row, where files of version 1 have them, and over them `state_keys`."""
    (text,) = db.execute("SELECT state FROM sessions WHERE number = ?", [head.number]).fetchone()
    query = "SELECT key, value FROM state_keys WHERE session = ? ORDER BY rowid"
    keys = db.execute(query, [head.number]).fetchall()
    check = crc(text)
    for row in keys:
        check ^= crc(head.number, *row)
    if check != head.state_crc:
        raise Damaged(f"the state in row {head.number} of sessions is not what was written")
    where = f"row {head.number} of sessions"
    state = _state_in(text, where)
    for key, value in keys:
        state.pop(key, None) if value is None else state.update(_state_in(value, where, key))
    return state


def put_own_keys(db: sqlite3.Connection, head: Head, delta: dict[str, Any]) -> Head:
    """Write `delta` into the session's own keys, and nothing else of its state; `put_head` has to follow."""
    check = head.state_crc
    for key, value in delta.items():
        text = None if value == DELETED else _json(value)
        old = db.execute("SELECT value FROM state_keys WHERE session = ? AND key = ?", (head.number, key)).fetchone()
        check ^= (crc(head.number, key, old[0]) if old else 0) ^ crc(head.number, key, text)
        db.execute(
            "INSERT INTO state_keys VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (head.number, key, text),
        )
    db.execute("UPDATE sessions SET state_crc = ? WHERE number = ?", (check, head.number))
    return head._replace(state_crc=check)


def shared_state(db: sqlite3.Connection, prefix: str, owner: Sequence[str]) -> tuple[dict[str, Any], int]:
    """The keys of an app (`owner`: its name) or a user (`owner`: app and user), and how often they have changed."""
    table = SHARED[prefix]
    where = "app_name = ? AND user_id = ?" if prefix == State.USER_PREFIX else "app_name = ?"
    row = db.execute(f"SELECT state, update_time, changes, crc FROM {table} WHERE {where}", owner).fetchone()
    if row is None:
        return {}, 0
    if crc(*owner, *row[:-1]) != row[-1] or type(row[2]) is not int:
        raise Damaged(f"the row of {owner!r} in {table} is not what was written")
    return _state_in(row[0], f"the row of {owner!r} in {table}"), row[2]


def put_shared_state(
    db: sqlite3.Connection, prefix: str, owner: Sequence[str], delta: dict[str, Any], at: float
) -> None:
    """Write `delta` into the keys of an app or a user."""
    state, changes = shared_state(db, prefix, owner)
    apply_delta(state, delta)
    row = (_json(state), at, changes + 1)
    marks = ", ".join("?" * (len(owner) + 4))
    db.execute(f"INSERT OR REPLACE INTO {SHARED[prefix]} VALUES ({marks})", (*owner, *row, crc(*owner, *row)))


def _state_in(text: Any, where: str, key: Any = None) -> dict[str, Any]:
    """The state in `text`; or, with a `key`, that key alone, of which `text` is the value."""
    try:
        return read_state(text) if key is None else {key: read_value(key, text)}
    except ValueError as error:
        raise Damaged(f"the state in {where} is not what was written: {error}") from error


def split(delta: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """`delta` by how far its keys reach: prefix -> keys without it; the session's own under the empty one."""
    parts: dict[str, dict[str, Any]] = {"": {}, **{prefix: {} for prefix in SHARED}}
    for key, value in delta.items():
        prefix = next((one for one in SHARED if key.startswith(one) and key != one), "")
        parts[prefix][key.removeprefix(prefix)] = value
    return parts


def whole_state(db: sqlite3.Connection, key: Key, head: Head) -> tuple[dict[str, Any], int, int]:
    """What a session's user sees, and how often the app's and the user's keys have changed."""
    state = own_state(db, head)
    app, of_app = shared_state(db, State.APP_PREFIX, key[:1])
    user, of_user = shared_state(db, State.USER_PREFIX, key[:2])
    state |= {State.APP_PREFIX + name: value for name, value in app.items()}
    state |= {State.USER_PREFIX + name: value for name, value in user.items()}
    return state, of_app, of_user


class EventRow(NamedTuple):
    """An event as it is stored."""

    id: str
    invocation_id: str
    timestamp: float
    data: bytes
    """JSON, UTF-8."""


def row_of(event: Event, delta: dict[str, Any]) -> EventRow:
    """`event`, with `delta` for its state delta.

    Raises:
        InputError: It holds what would not come back equal.
    """
    if odd := unstorable(event):
        raise InputError(f"an event of {event.author!r} cannot be stored: {odd}, which JSON cannot hold")
    if event.actions.state_delta:
        event = copied(event, actions=copied(event.actions, state_delta=delta))
    try:
        data = event.model_dump_json(by_alias=True, exclude_none=True, exclude=_empty(event)).encode()
    except PydanticSerializationError as error:
        said = str(error).partition(": ")[2] or str(error)
        raise InputError(f"an event of {event.author!r} cannot be stored: {said:.200}") from error
    return EventRow(event.id, event.invocation_id, float(event.timestamp) + 0.0, data)  # no int, no -0: SQLite has none


def _empty(event: Event) -> Any:
    """What need not be written, since it is read back all the same."""
    acts = event.actions.__dict__.items()
    said = [name for name, value in acts if value is not None and not (name in _DICTS and value == {})]
    empty: dict[str, Any] = {"actions": _DICTS.difference(said) if said else True}
    return empty if any(event.node_info.__dict__.values()) else empty | {"node_info": True}


def unstorable(event: Event) -> str | None:
    """What in `event` would not come back equal from JSON, in words; or None."""
    values: dict[str, Any] = {"output": event.output, "custom_metadata": event.custom_metadata}
    values |= {name: said for name in _FREE if (said := getattr(event.actions, name))}
    if asked := event.actions.requested_tool_confirmations:
        values["a payload"] = [one.payload for one in asked.values()]
    if widgets := event.actions.render_ui_widgets:
        values["a widget"] = [one.payload for one in widgets]
    for part in event.parts:
        if part.function_call:
            values[f"the arguments of {part.function_call.name!r}"] = part.function_call.args
        if part.function_response:
            values[f"the result of {part.function_response.name!r}"] = part.function_response.response
        if part.part_metadata:
            values["part_metadata"] = part.part_metadata
    odd = next((f"{name} holds {odd}" for name, value in values.items() if (odd := not_json(value))), None)
    return odd or (None if _is_time(event.timestamp) else f"its timestamp is {event.timestamp!s:.80}")


def _is_time(at: Any) -> bool:
    return isinstance(at, float | int) and abs(at) <= sys.float_info.max


def stored_data(db: sqlite3.Connection, number: int, event_id: str) -> bytes:
    """The JSON of the event of that id, which the session of that number has."""
    query = "SELECT CAST(event_data AS BLOB) FROM events WHERE session = ? AND id = ?"
    return db.execute(query, (number, event_id)).fetchone()[0]


def is_same_event(one: bytes, other: bytes) -> bool:
    """True if the two say the same; when they were made does not count, so that what is done again is known."""
    return one == other or _timeless(one) == _timeless(other)


def _timeless(data: bytes) -> dict[str, Any]:
    return {name: value for name, value in json.loads(data).items() if name != "timestamp"}


def add_event(db: sqlite3.Connection, number: int, seq: int, row: EventRow) -> None:
    """Write an event of the session of that number."""
    check = _check_of(seq, row.timestamp, row.data)
    db.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
        (number, seq, row.id, row.invocation_id, row.timestamp, row.data.decode(), check),
    )


def events_of(db: sqlite3.Connection, key: Key, head: Head, count: int | None, after: float | None) -> list[Event]:
    """The last `count` events that there are, without those before `after`; oldest first, unread."""
    first = 0 if count is None else max(head.seq - count, 0)
    with many_objects() if head.seq - first > _MANY else nullcontext():
        return _unread_events(db, key, head, first, after)


def _unread_events(db: sqlite3.Connection, key: Key, head: Head, first: int, after: float | None) -> list[Event]:
    seq = head.seq
    where = f"{named(db)}: an event of session {key[2]!r}"
    found: list[Event] = []
    at = first
    for at, (number, timestamp, data, check) in enumerate(_event_rows(db, head.number, first), first + 1):
        if number != at or check != _check_of(number, timestamp, data):
            raise Damaged(f"event {at} of session {key[2]!r} is not what was written")
        if type(timestamp) is not float:
            raise Damaged(f"the time of event {at} of session {key[2]!r} is not what was written")
        if after is None or timestamp >= after:
            found.append(unread(data, where))
    if at != seq:
        raise Damaged(f"session {key[2]!r} has {seq} events, and event {at + 1} is not there")
    return found


def _event_rows(db: sqlite3.Connection, number: int, first: int) -> Iterable[tuple[int, float, bytes, int]]:
    return db.execute(
        "SELECT seq, timestamp, CAST(event_data AS BLOB), crc FROM events WHERE session = ? AND seq > ? ORDER BY seq",
        (number, first),
    )


def _check_of(seq: int, timestamp: float, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(b"%d %a" % (seq, timestamp)))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
