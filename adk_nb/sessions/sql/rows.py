"""Rows of a database within a transaction: statements for both databases, and those for a SQLite file."""

import hashlib
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

from adk_nb import clock
from adk_nb.concurrency.generators import many_objects
from adk_nb.errors import SessionNotFoundError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.events.lazy_event import lazy_event
from adk_nb.sessions.base_session_service import session_not_found
from adk_nb.sessions.session import Session
from adk_nb.sessions.sql.codec import EventRow, Key, Mark, key_of, to_json
from adk_nb.sessions.sql.schema import APP_STATES, INITIAL_STATES, LEASES, USER_STATES, LeaseRow, R, Table
from adk_nb.sessions.state import State, apply_delta, read_state, read_value

SHARED: dict[str, Table[Any]] = {State.APP_PREFIX: APP_STATES, State.USER_PREFIX: USER_STATES}
_MANY_EVENTS = 5_000
"""From this number of events on, reading them takes longer than a garbage collection."""
_BY_KEY = "s.app_name = :app_name AND s.user_id = :user_id AND s.id = :id"
_NEWEST = f"""SELECT s.number, s.seq,
    coalesce((SELECT changes FROM app_states a WHERE a.app_name = s.app_name), 0),
    coalesce((SELECT changes FROM user_states u WHERE u.app_name = s.app_name AND u.user_id = s.user_id), 0)
    FROM sessions s WHERE {_BY_KEY}"""


class Damaged(Exception):
    """A stored row was altered."""


class Head(NamedTuple):
    """A row of `sessions` without its state."""

    number: int
    state_crc: int
    """Checksum of the session's own keys; 0 in PostgreSQL, which has no checksums here."""
    create_time: float
    update_time: float
    seq: int
    """Number of the newest event; events are counted from 1 without gaps."""


class Rows:
    """The rows of a SQLite file: each row has a checksum, and each key of a session's state has a row.

    A writing transaction locks the whole file, so no row is locked. Parameters of statements are written `:name`.
    """

    is_of_many_machines = False
    """Lease owners may be processes of other machines."""
    lock_clause = ""
    """Clause that locks the rows of a query until the transaction ends."""
    order_column = "rowid"
    """Column that orders rows by their first write."""
    needs_conflict_target = False
    """`ON CONFLICT` must name the columns of the key."""
    head_columns = "s.number, s.state_crc, s.create_time, s.update_time, s.seq, s.crc"
    state_column = "NULL"
    event_column = "CAST(event_data AS BLOB)"
    crc_column = "crc"
    session_condition = "session = :number"
    """Condition for the events of a session."""

    def __init__(self, db: Any, name: str) -> None:
        self._db = db
        self._name = name
        """Name of the database, for errors."""

    def execute(self, statement: str, values: Any) -> Any:
        """Execute `statement` and return a cursor; values that it does not name are ignored."""
        return self._db.execute(statement, values)

    def now(self) -> float:
        """The clock by which leases expire, in seconds."""
        return clock.ticks()

    @classmethod
    def columns(cls, table: Table[Any]) -> list[str]:
        """The columns that `decode` reads."""
        return [f"{table.name}.{name}" for name in (*table.columns, "crc")]

    def decode(self, table: Table[R], values: Sequence[Any]) -> R:
        """Decode the values of `columns`, and check their checksum."""
        row, check = values[:-1], values[-1]
        if crc(*row) != check or tuple(map(type, row)) not in table.types:
            raise Damaged(f"a row of {table.name} was altered")
        return table.row(*row)

    def encode(self, table: Table[R], row: R) -> dict[str, Any]:
        """Column -> value, for all columns of the database."""
        return {**dict(zip(table.columns, row, strict=True)), "crc": crc(*row)}

    def read(self, table: Table[R], *, lock: bool = False, **conditions: Any) -> list[R]:
        """Select the rows with these column values, in the order of their first write."""
        empty = tuple(name for name in conditions if conditions[name] is None)
        query = _select(type(self), table, tuple(conditions), empty) + (self.lock_clause if lock else "")
        return [self.decode(table, row) for row in self.execute(query, conditions).fetchall()]

    def put(self, table: Table[R], row: R, *, replace: bool = True) -> None:
        """Insert a row; with `replace`, over the row with its key."""
        values = self.encode(table, row)
        self.execute(_insert(type(self), table, tuple(values), replace), values)

    def head(self, key: Key, *, lock: bool = True) -> Head | None:
        """The session's row, or None; `lock` it until the transaction ends."""
        query = f"SELECT {self.head_columns} FROM sessions s WHERE {_BY_KEY}{self.lock_clause if lock else ''}"
        row = self.execute(query, key_parameters(key)).fetchone()
        return self.decode_head(key, row) if row else None

    def decode_head(self, key: Key, values: Sequence[Any]) -> Head:
        """Decode the values of `head_columns`."""
        head = Head(*values[:-1])
        if crc(*key, *head) != values[-1] or tuple(map(type, head)) != (int, int, float, float, int):
            raise Damaged(f"the row of session {key[2]!r} was altered")
        return head

    def lock(self, number: int) -> None:
        """Lock the session's row until the transaction ends, in a database that locks rows."""
        if self.lock_clause:
            self.execute(f"SELECT number FROM sessions WHERE number = :number{self.lock_clause}", {"number": number})

    def before_append(self, key: Key, event_id: str) -> tuple[Head, LeaseRow | None, bytes | None]:
        """Read everything that an append checks: the head, the lease, and the stored event of this id or None.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        # Lock first, in a statement of its own: the next one sees what was committed while this one waited.
        if self.lock_clause and not self.head(key):
            raise self.missing(key)
        row = self.execute(_before_append(type(self)), key_parameters(key) | {"event_id": event_id}).fetchone()
        if row is None:
            raise self.missing(key)
        lease = self.decode(LEASES, row[7:]) if row[7] is not None else None
        event = row[6].encode() if isinstance(row[6], str) else row[6]
        return self.decode_head(key, row[:6]), lease, event

    def newest(self, key: Key) -> tuple[int, int, int, int] | None:
        """A session's number and event count, and the change counts of the app's and the user's state; or None."""
        return self.execute(_NEWEST, key_parameters(key)).fetchone()

    def sessions(
        self, app_name: str, user_id: str | None = None, session_id: str | None = None, *, is_whole: bool = False
    ) -> list[Session]:
        """List an app's sessions, a user's, or the session of an id; least recently used first, without events.

        `is_whole`: the caller reads all events next.
        """
        values = {"app_name": app_name, "user_id": user_id, "id": session_id}
        values = {name: value for name, value in values.items() if value is not None}
        conditions = " AND ".join(f"s.{name} = :{name}" for name in values)
        query = f"{_sessions(type(self))} WHERE {conditions} ORDER BY s.update_time, s.number"
        return [self._session(row, is_whole) for row in self.execute(query, values).fetchall()]

    def _session(self, row: Sequence[Any], is_whole: bool) -> Session:
        key: Key = (row[0], row[1], row[2])
        head, start, shared = self.decode_head(key, row[3:9]), 10, list[Any]()
        own_state = self.own_state(head, row[9])
        for table in SHARED.values():
            end = start + len(self.columns(table))
            shared.append(self.decode(table, row[start:end]) if row[start] is not None else None)
            start = end

        def state() -> dict[str, Any]:
            """Build a copy of the whole state."""
            state = own_state()
            for (prefix, table), row in zip(SHARED.items(), shared, strict=True):
                if row:
                    state |= {prefix + name: value for name, value in self.parse(row.state, table.name).items()}
            return state

        session = Session(id=key[2], app_name=key[0], user_id=key[1], last_update_time=head.update_time)
        session.state = state()
        app, user = (row.changes if row else 0 for row in shared)
        session.revision = Mark(head.number, head.seq, app, user, is_whole, state() if is_whole else {})
        return session

    def own_state(self, head: Head, text: str | None) -> Callable[[], dict[str, Any]]:
        """Check a session's own keys: `text` is the value of `state_column`.

        Returns:
            A function that builds a new copy of them.
        """
        query = "SELECT key, value FROM state_keys WHERE session = ? ORDER BY rowid"
        keys, check = self.execute(query, [head.number]).fetchall(), 0
        for pair in keys:
            check ^= crc(head.number, *pair)
        if check != head.state_crc:
            raise Damaged(f"the state in row {head.number} of sessions was altered")

        def read() -> dict[str, Any]:
            """Build a copy of the session's own keys."""
            try:
                # A deleted key keeps its row, without a value.
                return {key: read_value(key, value) for key, value in keys if value is not None}
            except ValueError as error:
                raise Damaged(f"the state in a row of state_keys was altered: {error}") from error

        return read

    def events(self, session: Session, mark: Mark, first: int, earliest: float | None) -> list[Event]:
        """List the events of `session` after the `first`, from the time `earliest` on; oldest first."""
        source = f"{self._name}: an event of session {session.id!r}"
        values = key_parameters(key_of(session)) | {"number": mark.number, "first": first}
        columns = f"seq, timestamp, {self.event_column}, {self.crc_column}"
        query = f"SELECT {columns} FROM events WHERE {self.session_condition} AND seq > :first ORDER BY seq"
        events, expected = list[Event](), first
        with many_objects() if mark.seq - first > _MANY_EVENTS else nullcontext():
            for expected, (seq, timestamp, data, check) in enumerate(self.execute(query, values), first + 1):
                # Checked for every event, also before `earliest`: a gap shows a lost row.
                if seq != expected or type(timestamp) is not float or check != self.event_crc(seq, timestamp, data):
                    raise Damaged(f"event {expected} of session {session.id!r} was altered")
                if earliest is None or timestamp >= earliest:
                    events.append(lazy_event(data if type(data) is bytes else data.encode(), source))
        if expected != mark.seq:
            raise Damaged(f"session {session.id!r} has {mark.seq} events, and event {expected + 1} is missing")
        return events

    def event_crc(self, seq: int, timestamp: float, data: Any) -> int:
        """The checksum of a row of `events`."""
        return zlib.crc32(data, zlib.crc32(b"%d %a" % (seq, timestamp)))

    def add_session(self, key: Key, create_time: float, state: dict[str, Any]) -> bool:
        """Write a new session with its own keys. False: there is one, and nothing was written."""
        if self.head(key):
            return False
        # A number is never used again: copies of a deleted session stay recognisable.
        last = self.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'sessions'", ()).fetchone()[0]
        head = Head((last or 0) + 1, 0, create_time, create_time, 0)
        row = (head.number, *key, *head[1:], crc(*key, *head))
        self.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        if state:
            self.put_head(key, head._replace(state_crc=self._put_keys(head, state)))
        return True

    def initial_state(self, number: int) -> dict[str, Any]:
        """The own keys that the session of that number was created with."""
        rows = self.read(INITIAL_STATES, session=number)
        return self.parse(rows[0].value, INITIAL_STATES.name) if rows else {}

    def append(self, key: Key, head: Head, event: EventRow, delta: dict[str, Any]) -> None:
        """Write the session's next event, and the session's own keys in `delta`."""
        seq, timestamp = head.seq + 1, event.timestamp
        row = (head.number, seq, event.id, event.invocation_id, timestamp, event.data.decode())
        self.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, self.event_crc(seq, timestamp, event.data))
        )
        state_crc = self._put_keys(head, delta) if delta else head.state_crc
        self.put_head(key, Head(head.number, state_crc, head.create_time, timestamp, seq))

    def put_head(self, key: Key, head: Head) -> None:
        """Update the row of a session of a SQLite file."""
        query = "UPDATE sessions SET state_crc = ?, update_time = ?, seq = ?, crc = ? WHERE number = ?"
        self.execute(query, (head.state_crc, head.update_time, head.seq, crc(*key, *head), head.number))

    def _put_keys(self, head: Head, delta: dict[str, Any]) -> int:
        """Write `delta` into the rows of the session's own keys; returns the new `state_crc`."""
        check, number = head.state_crc, head.number
        put = "INSERT INTO state_keys VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
        for key, value in delta.items():
            text = None if value == DELETED else to_json(value)
            query = "SELECT value FROM state_keys WHERE session = ? AND key = ?"
            old = self.execute(query, (number, key)).fetchone()
            # The XOR of all rows' checksums: one key is changed without reading the others.
            check ^= (crc(number, key, old[0]) if old else 0) ^ crc(number, key, text)
            self.execute(put, (number, key, text))
        return check

    def consumed_key(self, key: str) -> str:
        """The stored form of a `key` that was used up."""
        return key

    def consume(self, number: int, keys: Sequence[str]) -> bool:
        """Use up all of `keys` in the session of that number. False: one was used up before, and none is now."""
        rows = [{"session": number, "key": self.consumed_key(key), "hash": hash_key(key)} for key in keys]
        # Also under its hash, which PostgreSQL stores for a long key.
        used = "SELECT 1 FROM consumed WHERE session = :session AND key IN (:key, :hash)"
        if any(self.execute(used, row).fetchone() for row in rows):
            return False
        for row in rows:
            self.execute("INSERT INTO consumed (session, key) VALUES (:session, :key)", row)
        return True

    def delete(self, key: Key) -> None:
        """Delete a session with all its rows."""
        query = "DELETE FROM sessions WHERE app_name = :app_name AND user_id = :user_id AND id = :id"
        self.execute(query, key_parameters(key))

    def missing(self, key: Key) -> SessionNotFoundError:
        """Build the error for a missing session."""
        query = "SELECT id FROM sessions WHERE app_name = :app_name AND user_id = :user_id ORDER BY update_time, number"
        ids = [row[0] for row in self.execute(query, key_parameters(key)).fetchall()]
        return session_not_found(key[1], key[2], ids)

    def add_shared(self, key: Key, parts: dict[str, dict[str, Any]], update_time: float) -> dict[str, int]:
        """Write keys of the app and of the user, always in that order, so that no two transactions deadlock.

        Returns:
            Prefix -> number of changes of that state before this one.
        """
        changes: dict[str, int] = {}
        for count, (prefix, table) in enumerate(SHARED.items(), 1):
            if parts[prefix]:
                owner = key_parameters(key[:count])
                # Insert a missing row first: only an existing one can be locked.
                if not (rows := self.read(table, lock=True, **owner)):
                    self.put(table, table.row(*owner.values(), "{}", update_time, 0), replace=False)
                    rows = self.read(table, lock=True, **owner)
                state, changes[prefix] = self.parse(rows[0].state, table.name), rows[0].changes
                apply_delta(state, parts[prefix])
                self.put(table, table.row(*owner.values(), to_json(state), update_time, changes[prefix] + 1))
        return changes

    def parse(self, text: Any, table: str) -> dict[str, Any]:
        """Parse the state in a row of `table`."""
        try:
            return read_state(text)
        except ValueError as error:
            raise Damaged(f"the state in a row of {table} was altered: {error}") from error


def key_parameters(key: Sequence[str]) -> dict[str, Any]:
    """A session's key, or a prefix of one, as statement parameters."""
    return dict(zip(("app_name", "user_id", "id"), key, strict=False))


def hash_key(key: str) -> str:
    """Hash a key of any length and characters to 128 characters."""
    return hashlib.blake2b(key.encode()).hexdigest()


def crc(*columns: Any) -> int:
    """Checksum of a row, against disk errors; it does not protect against an attacker."""
    return zlib.crc32(repr(columns).encode("utf-8", "replace"))


@cache
def _select(rows: type[Rows], table: Table[Any], columns: tuple[str, ...], nulls: tuple[str, ...]) -> str:
    conditions = " AND ".join(f"{name} IS NULL" if name in nulls else f"{name} = :{name}" for name in columns)
    order = f" ORDER BY {rows.order_column}" if table.is_ordered else ""
    return f"SELECT {', '.join(rows.columns(table))} FROM {table.name} WHERE {conditions}{order}"


@cache
def _insert(rows: type[Rows], table: Table[Any], columns: tuple[str, ...], replace: bool) -> str:
    marks = ", ".join(f":{name}" for name in columns)
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in table.key)
    # Not SQLite's REPLACE: an updated row keeps its rowid, and so its place in the order.
    target = f"({', '.join(table.key)}) " if rows.needs_conflict_target else ""
    then = f"{target}DO UPDATE SET {changed}" if replace else "DO NOTHING"
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT {then}"


@cache
def _before_append(rows: type[Rows]) -> str:
    condition = rows.session_condition.replace(":number", "s.number")
    event = f"(SELECT {rows.event_column} FROM events WHERE {condition} AND id = :event_id)"
    lease = f"{', '.join(rows.columns(LEASES))} FROM sessions s LEFT JOIN leases ON leases.session = s.number"
    return f"SELECT {rows.head_columns}, {event}, {lease} WHERE {_BY_KEY}"


@cache
def _sessions(rows: type[Rows]) -> str:
    shared = ", ".join(column for table in SHARED.values() for column in rows.columns(table))
    return f"""SELECT s.app_name, s.user_id, s.id, {rows.head_columns}, {rows.state_column}, {shared}
        FROM sessions s LEFT JOIN app_states ON app_states.app_name = s.app_name
        LEFT JOIN user_states ON user_states.app_name = s.app_name AND user_states.user_id = s.user_id"""
