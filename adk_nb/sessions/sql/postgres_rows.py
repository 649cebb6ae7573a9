"""The rows in PostgreSQL, or in any database that SQLAlchemy opens: JSONB for queries, and text beside it."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any, cast

from adk_nb import clock
from adk_nb.errors import StorageError
from adk_nb.events.event import Event
from adk_nb.events.unread import unread
from adk_nb.lazy import require
from adk_nb.sessions.sql.codec import EventRow, Key, to_json
from adk_nb.sessions.sql.driver import SHARED, Head, Rows, StoredSession, named
from adk_nb.sessions.sql.schema import INTENTS, LEASES, IntentRow, LeaseRow, R, Table
from adk_nb.sessions.state import apply_delta

PACKAGE = "'adk-nb[db]'"
MAX_KEY = 128
"""Characters of a name or an id."""
SPELLED = {
    "postgresql": {"json": "JSONB", "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
    "sqlite": {"json": "TEXT", "serial": "INTEGER PRIMARY KEY AUTOINCREMENT"},
}
"""The databases that this is written for, and the names of what differs in their tables."""
_JSON = {"postgresql": "CAST(CAST(:{0} AS TEXT) AS JSONB)", "sqlite": ":{0}"}
_LOCKS = {"postgresql": " FOR UPDATE", "sqlite": ""}  # in SQLite, the transaction has the whole file
_IS_MINE = "app_name = :app_name AND user_id = :user_id AND id = :id"
_IS_OF_MINE = "app_name = :app_name AND user_id = :user_id AND session_id = :id"
_STATE = "coalesce({0}state_text, CAST({0}state AS TEXT))"
_EVENT = "coalesce(event_text, CAST(event_data AS TEXT))"
_HEAD = "number, 0, create_time, update_time, seq"
_BEFORE_APPEND = (
    f"SELECT (SELECT {_EVENT} FROM events WHERE {_IS_OF_MINE} AND id = :event_id), "
    f"{', '.join(f'l.{name}' for name in LEASES.columns)} "
    "FROM sessions s LEFT JOIN leases l ON l.session = s.number WHERE s.number = :number"
)
_INTENT = ("branch", "kind", "call_id", "name", "effect")
"""Fields of an intent that are in one column, as JSON: they may hold a NUL, and be of any length."""


class PostgresRows(Rows):
    """The rows of a transaction of SQLAlchemy's."""

    is_of_many_machines = True
    query = (
        "SELECT s.app_name, s.user_id, s.id, s.number, 0, s.create_time, s.update_time, s.seq, "
        f"coalesce(a.changes, 0), coalesce(u.changes, 0), {_STATE.format('s.')}, {_STATE.format('a.')}, "
        f"{_STATE.format('u.')} FROM sessions s LEFT JOIN app_states a ON a.app_name = s.app_name "
        "LEFT JOIN user_states u ON u.app_name = s.app_name AND u.user_id = s.user_id"
    )

    def __init__(self, db: Any) -> None:
        self._db = db

    def execute(self, statement: str, values: dict[str, Any]) -> Any:
        """`{json:name}` in `statement` is a parameter that is JSON, and `{lock}` locks the rows."""
        return self._db.execute(_text(statement, self._db.dialect.name), values)

    def now(self) -> float:
        if self._db.dialect.name == "postgresql":
            query = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS FLOAT)"
            return float(self.execute(query, {}).fetchone()[0])
        return clock.ticks()

    def damage(self, problem: str) -> Exception:
        return StorageError(f"the database holds what was not written here: {problem}; put a copy of it in its place")

    def short(self, key: str) -> str:
        return key if len(key) <= MAX_KEY and "\0" not in key else hashlib.blake2b(key.encode()).hexdigest()

    def read(self, table: Table[R], **where: Any) -> list[R]:
        columns = _columns(table)
        where = {name: value for name, value in where.items() if name in columns}
        conditions = " AND ".join(f"{name} IS NULL" if where[name] is None else f"{name} = :{name}" for name in where)
        order = " ORDER BY place" if "run_id" in columns and table.name != LEASES.name else ""
        query = f"SELECT {', '.join(columns.values())} FROM {table.name} WHERE {conditions}{order}"
        rows = self.execute(query, where).fetchall()
        return [self._intent(row) if table.name == INTENTS.name else table.row(*row) for row in rows]

    def put(self, table: Table[R], row: R) -> None:
        values: dict[str, Any] = cast(Any, row)._asdict()
        if isinstance(row, IntentRow):
            values["intent"] = to_json({name: values.pop(name) for name in _INTENT})
        if "state" in values:
            values |= _with_text("state", values["state"], [json.loads(values["state"])])
        self.execute(_upsert(table, tuple(values)), values)

    def _intent(self, row: Sequence[Any]) -> Any:
        session, run_id, key, attempt, text, started, finished, outcome = row
        try:
            branch, kind, call_id, name, effect = (json.loads(text)[field] for field in _INTENT)
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise self.damage(f"an intent of run {run_id!r} is not what was written: {error!r}") from error
        about = (name, effect, key, started, finished, outcome)
        return IntentRow(session, run_id, branch, kind, call_id, attempt, *about)

    def shared(self, prefix: str, owner: Sequence[str]) -> Any:
        table, values = SHARED[prefix], named(owner)
        names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
        # Only a row that is there can be locked.
        insert = (
            f"INSERT INTO {table.name} ({names}, state, update_time, changes) VALUES ({marks}, {{json:state}}, 0, 0)"
        )
        self.execute(f"{insert} ON CONFLICT DO NOTHING", values | {"state": "{}"})
        where = " AND ".join(f"{name} = :{name}" for name in values)
        query = f"SELECT {', '.join(_columns(table).values())} FROM {table.name} WHERE {where}{{lock}}"
        return table.row(*self.execute(query, values).fetchone())

    def head(self, key: Key) -> Head | None:
        row = self.execute(f"SELECT {_HEAD} FROM sessions WHERE {_IS_MINE}{{lock}}", named(key)).fetchone()
        return row and Head(*row)

    def lock(self, number: int) -> None:
        self.execute("SELECT number FROM sessions WHERE number = :number{lock}", {"number": number})

    def before_append(self, key: Key, event_id: str) -> tuple[Head, LeaseRow | None, bytes | None]:
        head = self.head(key)
        if head is None:
            raise self.missing(key)
        values = named(key) | {"event_id": event_id, "number": head.number}
        data, *lease = self.execute(_BEFORE_APPEND, values).fetchone()
        return head, LeaseRow(*lease) if lease[0] is not None else None, data and data.encode()

    def add_session(self, key: Key, at: float, state: dict[str, Any]) -> bool:
        insert = (
            "INSERT INTO sessions (app_name, user_id, id, state, state_text, create_time, update_time, seq) "
            "VALUES (:app_name, :user_id, :id, {json:state}, :state_text, :at, :at, 0) "
            "ON CONFLICT (app_name, user_id, id) DO NOTHING RETURNING number"
        )
        values = named(key) | _with_text("state", to_json(state), [state]) | {"at": at}
        return self.execute(insert, values).fetchone() is not None

    def append(self, key: Key, head: Head, event: EventRow, delta: dict[str, Any]) -> None:
        text = event.data.decode()
        values = {"event_id": event.id, "seq": head.seq + 1, "invocation_id": event.invocation_id}
        insert = (
            "INSERT INTO events (id, app_name, user_id, session_id, seq, invocation_id, timestamp, event_data, "
            "event_text) VALUES (:event_id, :app_name, :user_id, :id, :seq, :invocation_id, :at, {json:event_data}, "
            ":event_text)"
        )
        data = _text_columns(text, event.is_altered_by_jsonb)
        values |= {"at": event.timestamp, "event_data": data[0], "event_text": data[1]}
        self.execute(insert, named(key) | values)
        values = {"number": head.number, "at": event.timestamp}
        if delta:
            query = f"SELECT {_STATE.format('')} FROM sessions WHERE number = :number"
            state = self.parse(self.execute(query, {"number": head.number}).fetchone()[0], "sessions")
            apply_delta(state, delta)
            values |= _with_text("state", to_json(state), [state])
        more = ", state = {json:state}, state_text = :state_text" if delta else ""
        self.execute(f"UPDATE sessions SET seq = seq + 1, update_time = :at{more} WHERE number = :number", values)

    def stored(self, row: Any) -> StoredSession:
        key, head, (app_changes, user_changes, *states) = row[:3], row[3:8], row[8:]
        return StoredSession(tuple(key), Head(*head), app_changes, user_changes, partial(self._state, *states))

    def _state(self, own: str, app: str | None, user: str | None) -> dict[str, Any]:
        return self.with_shared(self.parse(own, "sessions"), app, user)

    def events(self, stored: StoredSession, first: int, after: float | None) -> list[Event] | None:
        name, seq = stored.key[2], stored.head.seq
        query = (
            f"SELECT timestamp, {_EVENT} FROM events WHERE {_IS_OF_MINE} AND seq > :first AND seq <= :last ORDER BY seq"
        )
        values = named(stored.key) | {"first": first, "last": seq}
        rows: list[Any] = self.execute(query, values).fetchall() if first < seq else []
        if len(rows) != seq - first:
            if not self.sessions(*stored.key):
                return None
            raise StorageError(
                f"session {name!r} has {seq} events, and of the last {seq - first} only {len(rows)} are in the "
                "database; put a copy of it in its place"
            )
        where = f"an event of session {name!r}"
        return [unread(data.encode(), where) for at, data in rows if after is None or at >= after]


@cache
def _text(statement: str, dialect: str) -> Any:
    spelled = re.sub(r"\{json:(\w+)\}", lambda name: _JSON[dialect].format(name[1]), statement)
    return require("sqlalchemy", package=PACKAGE).text(spelled.replace("{lock}", _LOCKS[dialect]))


@cache
def _columns(table: Table[Any]) -> dict[str, str]:
    """Column -> how it is read."""
    if table.name == INTENTS.name:
        names = ("session", "run_id", "key", "attempt", "intent", "started", "finished", "outcome")
        return {name: name for name in names}
    return {name: _STATE.format("") if name == "state" else name for name in table.columns}


@cache
def _upsert(table: Table[Any], columns: tuple[str, ...]) -> str:
    key = ["session", "key", "attempt"] if table.name == INTENTS.name else table.key
    marks = ", ".join("{json:state}" if name == "state" else f":{name}" for name in columns)
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    insert = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"
    return f"{insert} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


def is_altered(event: Event, delta: dict[str, Any], row: EventRow) -> bool:
    """True if JSONB would not give back `row`, of `event` with `delta`, as it was written."""
    values: list[Any] = [event.output, event.custom_metadata, event.actions.agent_state, delta]
    values += [part.function_call.args for part in event.parts if part.function_call]
    values += [part.function_response.response for part in event.parts if part.function_response]
    return _is_altered(row.data.decode(), values)


_ODD = re.compile(r"\\u0000|[:,\[]-?\d[\d.]*e[+-]?\d|[:,\[]-0[.,\]}]")
"""JSON that JSONB does not take (NUL), or gives back as another number: 1e+23 as an int, -0.0 without its sign.
Source: https://www.postgresql.org/docs/current/datatype-json.html."""


def _is_altered(text: str, values: Iterable[Any]) -> bool:
    return bool(_ODD.search(text)) or not all(_is_in_order(value) for value in values)


def _is_in_order(value: Any) -> bool:
    """True if its keys stand as JSONB orders them: the shorter first. The order is part of what a model is sent."""
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        keys = [(len(name := key.encode()), name) for key in members]
        return keys == sorted(keys) and all(_is_in_order(member) for member in members.values())
    if isinstance(value, list):
        return all(_is_in_order(item) for item in cast(list[Any], value))
    return True


def _with_text(name: str, text: str, values: Iterable[Any]) -> dict[str, str | None]:
    """What stands in a JSONB column, and in that of the text beside it."""
    return dict(zip((name, f"{name}_text"), _text_columns(text, _is_altered(text, values)), strict=True))


def _text_columns(text: str, is_altered: bool) -> tuple[str, str | None]:
    return (text.replace("\\u0000", "\\ufffd"), text) if is_altered else (text, None)
