"""The rows of a SQLite file: each has a checksum, and each key of a session's state a row of its own."""

import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

from adk_nb import clock
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.events.unread import unread
from adk_nb.sessions.sql.codec import EventRow, Key, to_json
from adk_nb.sessions.sql.driver import SHARED, Head, Rows, StoredSession, named
from adk_nb.sessions.sql.schema import APP_STATES, LEASES, USER_STATES, LeaseRow, R, Table
from adk_nb.sessions.sql.sqlite_file import Damaged, SessionFile, crc
from adk_nb.sessions.state import read_value
from adk_nb.slices import many_objects

_MANY = 5_000
"""From so many events on reading them takes longer than a collection of garbage."""
_NO_STATE = "{}"
_HEAD = (int, int, float, float, int)
_HEAD_COLUMNS = "s.number, s.state_crc, s.create_time, s.update_time, s.seq, s.crc"


class SqliteRows(Rows):
    """The rows of a file. The transaction has the whole file, and so nothing is locked."""

    is_of_many_machines = False
    query = f"""SELECT s.app_name, s.user_id, s.id, {_HEAD_COLUMNS}, s.state, a.*, u.* FROM sessions s
        LEFT JOIN app_states a ON a.app_name = s.app_name
        LEFT JOIN user_states u ON u.app_name = s.app_name AND u.user_id = s.user_id"""

    def __init__(self, db: sqlite3.Connection, file: SessionFile) -> None:
        self._db = db
        self._file = file

    def execute(self, statement: str, values: dict[str, Any]) -> Any:
        return self._db.execute(statement, values)

    def now(self) -> float:
        return clock.ticks()

    def damage(self, problem: str) -> Exception:
        return Damaged(problem)

    def read(self, table: Table[R], **where: Any) -> list[R]:
        empty = tuple(name for name in where if where[name] is None)
        rows = self._db.execute(_select(table, tuple(where), empty), where).fetchall()
        return [_checked(row, table) for row in rows]

    def put(self, table: Table[R], row: R) -> None:
        self._db.execute(_upsert(table), (*row, crc(*row)))

    def shared(self, prefix: str, owner: Sequence[str]) -> Any:
        where = named(owner)
        return next(iter(self.read(SHARED[prefix], **where)), None)

    def head(self, key: Key) -> Head | None:
        query = f"SELECT {_HEAD_COLUMNS} FROM sessions s WHERE app_name = ? AND user_id = ? AND id = ?"
        row = self._db.execute(query, key).fetchone()
        return _head(row, key) if row else None

    def lock(self, number: int) -> None:
        pass

    def before_append(self, key: Key, event_id: str) -> tuple[Head, LeaseRow | None, bytes | None]:
        row = self._db.execute(_BEFORE_APPEND, (event_id, *key)).fetchone()
        if row is None:
            raise self.missing(key)
        lease = _checked(row[7:], LEASES) if row[7] is not None else None
        return _head(row[:6], key), lease, row[6]

    def add_session(self, key: Key, at: float, state: dict[str, Any]) -> bool:
        if self.head(key):
            return False
        (last,) = self._db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'sessions'").fetchone()
        head = Head((last or 0) + 1, crc(_NO_STATE), at, at, 0)
        row = (head.number, *key, _NO_STATE, *head[1:], crc(*key, *head))
        self._db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        if state:
            self._put_head(key, head._replace(state_crc=self._put_keys(head, state)))
        return True

    def append(self, key: Key, head: Head, event: EventRow, delta: dict[str, Any]) -> None:
        seq, at = head.seq + 1, event.timestamp
        row = (head.number, seq, event.id, event.invocation_id, at, event.data.decode())
        check = _event_crc(seq, at, event.data)
        self._db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, check))
        state_crc = self._put_keys(head, delta) if delta else head.state_crc
        self._put_head(key, Head(head.number, state_crc, head.create_time, at, seq))

    def _put_head(self, key: Key, head: Head) -> None:
        self._db.execute(
            "UPDATE sessions SET state_crc = ?, update_time = ?, seq = ?, crc = ? WHERE number = ?",
            (head.state_crc, head.update_time, head.seq, crc(*key, *head), head.number),
        )

    def _put_keys(self, head: Head, delta: dict[str, Any]) -> int:
        """Write `delta` into the session's own keys, and nothing else of its state; the new `state_crc`."""
        check, number = head.state_crc, head.number
        for key, value in delta.items():
            text = None if value == DELETED else to_json(value)
            query = "SELECT value FROM state_keys WHERE session = ? AND key = ?"
            old = self._db.execute(query, (number, key)).fetchone()
            check ^= (crc(number, key, old[0]) if old else 0) ^ crc(number, key, text)
            self._db.execute(
                "INSERT INTO state_keys VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (number, key, text),
            )
        return check

    def stored(self, row: Any) -> StoredSession:
        key: Key = row[:3]
        head, text = _head(row[3:9], key), row[9]
        app = _checked(row[10:15], APP_STATES) if row[10] is not None else None
        user = _checked(row[15:21], USER_STATES) if row[15] is not None else None
        query = "SELECT key, value FROM state_keys WHERE session = ? ORDER BY rowid"
        keys = self._db.execute(query, [head.number]).fetchall()
        check = crc(text)
        for pair in keys:
            check ^= crc(head.number, *pair)
        if check != head.state_crc:
            raise Damaged(f"the state in row {head.number} of sessions is not what was written")

        def state() -> dict[str, Any]:
            return self.with_shared(self._own_state(text, keys), app and app.state, user and user.state)

        return StoredSession(key, head, app.changes if app else 0, user.changes if user else 0, state)

    def _own_state(self, text: Any, keys: list[tuple[Any, Any]]) -> dict[str, Any]:
        """The session's own keys: those in its row, where files of version 1 have them, and over them `state_keys`."""
        state = self.parse(text, "sessions")
        for key, value in keys:
            try:
                state.pop(key, None) if value is None else state.update({key: read_value(key, value)})
            except ValueError as error:
                raise Damaged(f"the state in a row of state_keys is not what was written: {error}") from error
        return state

    def events(self, stored: StoredSession, first: int, after: float | None) -> list[Event]:
        with many_objects() if stored.head.seq - first > _MANY else nullcontext():
            return self._events(stored, first, after)

    def _events(self, stored: StoredSession, first: int, after: float | None) -> list[Event]:
        name, (number, *_, seq) = stored.key[2], stored.head
        where = f"{self._file.named}: an event of session {name!r}"
        query = (
            "SELECT seq, timestamp, CAST(event_data AS BLOB), crc FROM events WHERE session = ? AND seq > ? "
            "ORDER BY seq"
        )
        events: list[Event] = []
        expected = first
        for expected, (actual, at, data, check) in enumerate(self._db.execute(query, (number, first)), first + 1):
            if actual != expected or check != _event_crc(actual, at, data) or type(at) is not float:
                raise Damaged(f"event {expected} of session {name!r} is not what was written")
            if after is None or at >= after:
                events.append(unread(data, where))
        if expected != seq:
            raise Damaged(f"session {name!r} has {seq} events, and event {expected + 1} is not there")
        return events


_BEFORE_APPEND = f"""SELECT {_HEAD_COLUMNS},
    (SELECT CAST(event_data AS BLOB) FROM events e WHERE e.session = s.number AND e.id = ?), l.*
    FROM sessions s LEFT JOIN leases l ON l.session = s.number WHERE app_name = ? AND user_id = ? AND s.id = ?"""


@cache
def _select(table: Table[Any], where: tuple[str, ...], empty: tuple[str, ...]) -> str:
    conditions = " AND ".join(f"{name} IS NULL" if name in empty else f"{name} = :{name}" for name in where)
    return f"SELECT * FROM {table.name} WHERE {conditions} ORDER BY rowid"


@cache
def _upsert(table: Table[Any]) -> str:
    columns = [*table.columns, "crc"]
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in table.key)
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table.name} VALUES ({marks}) ON CONFLICT DO UPDATE SET {changed}"  # not REPLACE: it stays


def _checked(row: Sequence[Any], table: Table[R]) -> R:
    """The row in the table's columns and their checksum."""
    values = row[:-1]
    if crc(*values) != row[-1] or tuple(map(type, values)) not in table.types:
        raise Damaged(f"a row of {table.name} is not what was written")
    return table.row(*values)


def _head(row: Sequence[Any], key: Key) -> Head:
    """The `Head` in six columns of `sessions`: its fields, and `crc`."""
    head = Head(*row[:-1])
    if crc(*key, *head) != row[-1] or tuple(map(type, head)) != _HEAD:
        raise Damaged(f"the row of session {key[2]!r} is not what was written")
    return head


def _event_crc(seq: int, timestamp: float, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(b"%d %a" % (seq, timestamp)))
