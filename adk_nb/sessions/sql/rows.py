"""The rows of a database within one transaction: statements for both, and what only a SQLite file has."""

import hashlib
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

from adk_nb import clock
from adk_nb.errors import SessionNotFoundError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.events.lazy_event import lazy_event
from adk_nb.sessions.base_session_service import not_found
from adk_nb.sessions.session import Session
from adk_nb.sessions.sql.codec import EventRow, Key, Mark, to_json
from adk_nb.sessions.sql.schema import APP_STATES, LEASES, USER_STATES, LeaseRow, R, Table
from adk_nb.sessions.state import State, apply_delta, read_state, read_value
from adk_nb.slices import many_objects

SHARED: dict[str, Table[Any]] = {State.APP_PREFIX: APP_STATES, State.USER_PREFIX: USER_STATES}
_MANY = 5_000
"""From so many events on reading them takes longer than a collection of garbage."""
_IS_MINE = "s.app_name = :app_name AND s.user_id = :user_id AND s.id = :id"
_NEWEST = f"""SELECT s.number, s.seq,
    coalesce((SELECT changes FROM app_states a WHERE a.app_name = s.app_name), 0),
    coalesce((SELECT changes FROM user_states u WHERE u.app_name = s.app_name AND u.user_id = s.user_id), 0)
    FROM sessions s WHERE {_IS_MINE}"""


class Damaged(Exception):
    """A row is not what was written."""


class Head(NamedTuple):
    """A row of `sessions`, but for the state."""

    number: int
    state_crc: int
    """Of the session's own keys; 0 in PostgreSQL, which has no checksums here."""
    create_time: float
    update_time: float
    seq: int
    """Of the newest event; they are counted from 1 without a gap."""


class Rows:
    """The rows of a SQLite file: each has a checksum, and each key of a session's state a row of its own.

    A transaction that writes has the whole file, and so no row is locked. In statements a parameter is written `:name`.
    """

    is_of_many_machines = False
    """Owners of leases may be processes of other machines."""
    lock_clause = ""
    """Ends a query whose rows nobody else shall write before the transaction ends."""
    order = "rowid"
    """The column that counts rows as they are first written."""
    names_conflict = False
    """`ON CONFLICT` needs the names of columns."""
    head_columns = "s.number, s.state_crc, s.create_time, s.update_time, s.seq, s.crc"
    state_column = "s.state"
    event_column = "CAST(event_data AS BLOB)"
    crc_column = "crc"
    of_session = "session = :number"
    """Condition for the events of a session."""

    def __init__(self, db: Any, name: str) -> None:
        self._db = db
        self._name = name
        """Of the database, for errors."""

    def execute(self, statement: str, values: Any) -> Any:
        """A cursor on the result of `statement`; values that it does not name are ignored."""
        return self._db.execute(statement, values)

    def now(self) -> float:
        """The time by which leases expire."""
        return clock.ticks()

    @classmethod
    def columns(cls, table: Table[Any]) -> list[str]:
        """The columns that `decode` reads."""
        return [f"{table.name}.{name}" for name in (*table.columns, "crc")]

    def decode(self, table: Table[R], values: Sequence[Any]) -> R:
        """The row in the values of `columns`."""
        row, check = values[:-1], values[-1]
        if crc(*row) != check or tuple(map(type, row)) not in table.types:
            raise Damaged(f"a row of {table.name} is not what was written")
        return table.row(*row)

    def encode(self, table: Table[R], row: R) -> dict[str, Any]:
        """Column -> value, of all columns that the database has."""
        return {**dict(zip(table.columns, row, strict=True)), "crc": crc(*row)}

    def read(self, table: Table[R], *, lock: bool = False, **where: Any) -> list[R]:
        """The rows in which the columns have these values, in the order in which they were first written."""
        empty = tuple(name for name in where if where[name] is None)
        query = _select(type(self), table, tuple(where), empty) + (self.lock_clause if lock else "")
        return [self.decode(table, row) for row in self.execute(query, where).fetchall()]

    def put(self, table: Table[R], row: R, *, replace: bool = True) -> None:
        """Write a row, in the place of that with its key unless `replace` is false."""
        values = self.encode(table, row)
        self.execute(_insert(type(self), table, tuple(values), replace), values)

    def head(self, key: Key, *, lock: bool = True) -> Head | None:
        """The session's row, or None; locked, nobody else writes it before the transaction ends."""
        query = f"SELECT {self.head_columns} FROM sessions s WHERE {_IS_MINE}{self.lock_clause if lock else ''}"
        row = self.execute(query, named(key)).fetchone()
        return self.decode_head(key, row) if row else None

    def decode_head(self, key: Key, values: Sequence[Any]) -> Head:
        """The head in the values of `head_columns`."""
        head = Head(*values[:-1])
        if crc(*key, *head) != values[-1] or tuple(map(type, head)) != (int, int, float, float, int):
            raise Damaged(f"the row of session {key[2]!r} is not what was written")
        return head

    def lock(self, number: int) -> None:
        """Let nobody else write to the session of that number before the transaction ends."""
        if self.lock_clause:
            self.execute(f"SELECT number FROM sessions WHERE number = :number{self.lock_clause}", {"number": number})

    def before_append(self, key: Key, event_id: str) -> tuple[Head, LeaseRow | None, bytes | None]:
        """What an append looks at: `head`, the lease, and the data of the event if the session has it.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        if self.lock_clause and not self.head(key):  # the next statement sees what was committed while this one waited
            raise self.missing(key)
        row = self.execute(_before_append(type(self)), named(key) | {"event_id": event_id}).fetchone()
        if row is None:
            raise self.missing(key)
        lease = self.decode(LEASES, row[7:]) if row[7] is not None else None
        return self.decode_head(key, row[:6]), lease, _bytes(row[6])

    def newest(self, key: Key) -> tuple[int, int, int, int] | None:
        """A session's number and events, and how often the app's and the user's state has changed; or None."""
        return self.execute(_NEWEST, named(key)).fetchone()

    def sessions(
        self, app_name: str, user_id: str | None = None, session_id: str | None = None, *, is_whole: bool = False
    ) -> list[Session]:
        """An app's sessions, a user's, or that of an id; least recently used first, without events.

        `is_whole`: the caller reads all events after.
        """
        where = {"app_name": app_name, "user_id": user_id, "id": session_id}
        where = {name: value for name, value in where.items() if value is not None}
        conditions = " AND ".join(f"s.{name} = :{name}" for name in where)
        query = f"{_sessions(type(self))} WHERE {conditions} ORDER BY s.update_time, s.number"
        return [self._session(row, is_whole) for row in self.execute(query, where).fetchall()]

    def _session(self, row: Sequence[Any], is_whole: bool) -> Session:
        key: Key = (row[0], row[1], row[2])
        head, start, shared = self.decode_head(key, row[3:9]), 10, list[Any]()
        own = self.own_state(head, row[9])
        for table in SHARED.values():
            end = start + len(self.columns(table))
            shared.append(self.decode(table, row[start:end]) if row[start] is not None else None)
            start = end

        def state() -> dict[str, Any]:
            state = own()
            for (prefix, table), row in zip(SHARED.items(), shared, strict=True):
                if row:
                    state |= {prefix + name: value for name, value in self.parse(row.state, table.name).items()}
            return state

        session = Session(id=key[2], app_name=key[0], user_id=key[1], last_update_time=head.update_time)
        session.state = state()
        app, user = (row.changes if row else 0 for row in shared)
        session.revision = Mark(head.number, head.seq, app, user, is_whole, state() if is_whole else {})
        return session

    def own_state(self, head: Head, text: str) -> Callable[[], dict[str, Any]]:
        """Check a session's own keys: those in its row, where files of version 1 have them, and over them `state_keys`.

        Returns:
            A function that makes a new copy of them.
        """
        query = "SELECT key, value FROM state_keys WHERE session = ? ORDER BY rowid"
        keys, check = self.execute(query, [head.number]).fetchall(), crc(text)
        for pair in keys:
            check ^= crc(head.number, *pair)
        if check != head.state_crc:
            raise Damaged(f"the state in row {head.number} of sessions is not what was written")

        def read() -> dict[str, Any]:
            state = self.parse(text, "sessions")
            try:
                apply_delta(state, {key: DELETED if value is None else read_value(key, value) for key, value in keys})
            except ValueError as error:
                raise Damaged(f"the state in a row of state_keys is not what was written: {error}") from error
            return state

        return read

    def events(self, session: Session, mark: Mark, first: int, after: float | None) -> list[Event]:
        """The events of `session` that follow the `first`, without those before the time `after`; oldest first."""
        where = f"{self._name}: an event of session {session.id!r}"
        values = named((session.app_name, session.user_id, session.id)) | {"number": mark.number, "first": first}
        columns = f"seq, timestamp, {self.event_column}, {self.crc_column}"
        query = f"SELECT {columns} FROM events WHERE {self.of_session} AND seq > :first ORDER BY seq"
        events, expected = list[Event](), first
        with many_objects() if mark.seq - first > _MANY else nullcontext():
            for expected, (seq, at, data, check) in enumerate(self.execute(query, values), first + 1):
                if seq != expected or type(at) is not float or check != self.event_crc(seq, at, data):
                    raise Damaged(f"event {expected} of session {session.id!r} is not what was written")
                if after is None or at >= after:
                    events.append(lazy_event(data if type(data) is bytes else data.encode(), where))
        if expected != mark.seq:
            raise Damaged(f"session {session.id!r} has {mark.seq} events, and event {expected + 1} is not there")
        return events

    def event_crc(self, seq: int, at: float, data: Any) -> int:
        """The checksum of a row of `events`."""
        return zlib.crc32(data, zlib.crc32(b"%d %a" % (seq, at)))

    def add_session(self, key: Key, at: float, state: dict[str, Any]) -> bool:
        """Write a new session, with the session's own keys. False: there is one, and nothing was written."""
        if self.head(key):
            return False
        last = self.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'sessions'", ()).fetchone()[0]
        head = Head((last or 0) + 1, crc("{}"), at, at, 0)
        row = (head.number, *key, "{}", *head[1:], crc(*key, *head))
        self.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        if state:
            self.put_head(key, head._replace(state_crc=self._put_keys(head, state)))
        return True

    def append(self, key: Key, head: Head, event: EventRow, delta: dict[str, Any]) -> None:
        """Write the session's next event, and the session's own keys in `delta`."""
        seq, at = head.seq + 1, event.timestamp
        row = (head.number, seq, event.id, event.invocation_id, at, event.data.decode())
        self.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, self.event_crc(seq, at, event.data)))
        state_crc = self._put_keys(head, delta) if delta else head.state_crc
        self.put_head(key, Head(head.number, state_crc, head.create_time, at, seq))

    def put_head(self, key: Key, head: Head) -> None:
        """Write the row of a session of a SQLite file."""
        query = "UPDATE sessions SET state_crc = ?, update_time = ?, seq = ?, crc = ? WHERE number = ?"
        self.execute(query, (head.state_crc, head.update_time, head.seq, crc(*key, *head), head.number))

    def _put_keys(self, head: Head, delta: dict[str, Any]) -> int:
        """Write `delta` into the session's own keys, and nothing else of its state; the new `state_crc`."""
        check, number = head.state_crc, head.number
        put = "INSERT INTO state_keys VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
        for key, value in delta.items():
            text = None if value == DELETED else to_json(value)
            query = "SELECT value FROM state_keys WHERE session = ? AND key = ?"
            old = self.execute(query, (number, key)).fetchone()
            check ^= (crc(number, key, old[0]) if old else 0) ^ crc(number, key, text)
            self.execute(put, (number, key, text))
        return check

    def consumed_key(self, key: str) -> str:
        """The form in which `key` is stored once it is used."""
        return key

    def consume(self, number: int, keys: Sequence[str]) -> bool:
        """Use up all of `keys` in the session of that number. False: one was used before, and none is used now."""
        rows = [{"session": number, "key": self.consumed_key(key), "hash": hash_of(key)} for key in keys]
        used = "SELECT 1 FROM consumed WHERE session = :session AND key IN (:key, :hash)"
        if any(self.execute(used, row).fetchone() for row in rows):
            return False
        for row in rows:
            self.execute("INSERT INTO consumed (session, key) VALUES (:session, :key)", row)
        return True

    def delete(self, key: Key) -> None:
        """Forget a session, with all that belongs to it."""
        self.execute("DELETE FROM sessions WHERE app_name = :app_name AND user_id = :user_id AND id = :id", named(key))

    def missing(self, key: Key) -> SessionNotFoundError:
        """The error for a session that is not there."""
        mine = "SELECT id FROM sessions WHERE app_name = :app_name AND user_id = :user_id ORDER BY update_time, number"
        return not_found(key[1], key[2], [row[0] for row in self.execute(mine, named(key)).fetchall()])

    def add_shared(self, key: Key, parts: dict[str, dict[str, Any]], at: float) -> dict[str, int]:
        """Write the keys of the app and of the user. Always in that order, so that no two wait for each other.

        Returns:
            By prefix, how often the state that was written had changed before.
        """
        before: dict[str, int] = {}
        for count, (prefix, table) in enumerate(SHARED.items(), 1):
            if parts[prefix]:
                owner = named(key[:count])
                if not (rows := self.read(table, lock=True, **owner)):  # only a row that is there can be locked
                    self.put(table, table.row(*owner.values(), "{}", at, 0), replace=False)
                    rows = self.read(table, lock=True, **owner)
                state, before[prefix] = self.parse(rows[0].state, table.name), rows[0].changes
                apply_delta(state, parts[prefix])
                self.put(table, table.row(*owner.values(), to_json(state), at, before[prefix] + 1))
        return before

    def parse(self, text: Any, table: str) -> dict[str, Any]:
        """The state in a row of `table`."""
        try:
            return read_state(text)
        except ValueError as error:
            raise Damaged(f"the state in a row of {table} is not what was written: {error}") from error


def named(key: Sequence[str]) -> dict[str, Any]:
    """A session's key, or the beginning of one, as the parameters of a statement."""
    return dict(zip(("app_name", "user_id", "id"), key, strict=False))


def hash_of(key: str) -> str:
    """A key of any length and any characters, in 128 characters."""
    return hashlib.blake2b(key.encode()).hexdigest()


def crc(*columns: Any) -> int:
    """The checksum of a row, by which a byte that a disk changed is noticed. No help against who means harm."""
    return zlib.crc32(repr(columns).encode("utf-8", "replace"))


def _bytes(data: Any) -> Any:
    return data.encode() if isinstance(data, str) else data


@cache
def _select(rows: type[Rows], table: Table[Any], where: tuple[str, ...], empty: tuple[str, ...]) -> str:
    conditions = " AND ".join(f"{name} IS NULL" if name in empty else f"{name} = :{name}" for name in where)
    order = f" ORDER BY {rows.order}" if table.is_ordered else ""
    return f"SELECT {', '.join(rows.columns(table))} FROM {table.name} WHERE {conditions}{order}"


@cache
def _insert(rows: type[Rows], table: Table[Any], columns: tuple[str, ...], replace: bool) -> str:
    marks = ", ".join(f":{name}" for name in columns)
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in table.key)
    # Not SQLite's REPLACE: the row keeps its place among the others.
    target = f"({', '.join(table.key)}) " if rows.names_conflict else ""
    then = f"{target}DO UPDATE SET {changed}" if replace else "DO NOTHING"
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT {then}"


@cache
def _before_append(rows: type[Rows]) -> str:
    of_session = rows.of_session.replace(":number", "s.number")
    event = f"(SELECT {rows.event_column} FROM events WHERE {of_session} AND id = :event_id)"
    lease = f"{', '.join(rows.columns(LEASES))} FROM sessions s LEFT JOIN leases ON leases.session = s.number"
    return f"SELECT {rows.head_columns}, {event}, {lease} WHERE {_IS_MINE}"


@cache
def _sessions(rows: type[Rows]) -> str:
    shared = ", ".join(column for table in SHARED.values() for column in rows.columns(table))
    return f"""SELECT s.app_name, s.user_id, s.id, {rows.head_columns}, {rows.state_column}, {shared}
        FROM sessions s LEFT JOIN app_states ON app_states.app_name = s.app_name
        LEFT JOIN user_states ON user_states.app_name = s.app_name AND user_states.user_id = s.user_id"""
