"""The rows in PostgreSQL: JSONB for queries of other programs, and the text beside it where JSONB would change it."""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from adk_nb.sessions.sql.codec import EventRow, Key, is_altered_by_jsonb, to_json
from adk_nb.sessions.sql.rows import Damaged, Head, Rows, hash_of, named
from adk_nb.sessions.sql.schema import INTENTS, R, Table
from adk_nb.sessions.state import apply_delta

MAX_KEY = 128
"""Characters of a name, an id or a key."""
_INTENT = ("branch", "kind", "call_id", "name", "effect")
"""Fields of an intent that are in one column, as JSON: they may hold a NUL, and be of any length."""
_PARAMETER = re.compile(r":(\w+)")


class PostgresRows(Rows):
    """The rows of a transaction of psycopg's."""

    is_of_many_machines = True
    lock_clause = " FOR UPDATE"
    order = "place"
    names_conflict = True
    head_columns = "s.number, 0, s.create_time, s.update_time, s.seq, 0"
    state_column = "coalesce(s.state_text, CAST(s.state AS TEXT))"
    event_column = "coalesce(event_text, CAST(event_data AS TEXT))"
    crc_column = "0"
    of_session = "app_name = :app_name AND user_id = :user_id AND session_id = :id"

    def execute(self, statement: str, values: Any) -> Any:
        return self._db.execute(_spelled(statement), values)

    def now(self) -> float:
        # Not now(), which is when the transaction began, and so before it waited for locks.
        return float(self.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS FLOAT)", {}).fetchone()[0])

    @classmethod
    def columns(cls, table: Table[Any]) -> list[str]:
        if table is INTENTS:
            return ["session", "run_id", "key", "attempt", "started", "finished", "outcome", "intent"]
        state = cls.state_column.replace("s.", f"{table.name}.")
        return [state if name == "state" else f"{table.name}.{name}" for name in table.columns]

    def decode(self, table: Table[R], values: Sequence[Any]) -> R:
        if table is not INTENTS:
            return table.row(*values)
        known: dict[str, Any] = dict(zip(self.columns(table), values, strict=True))
        try:
            intent = json.loads(known.pop("intent"))
            return table.row(**known, **{name: intent[name] for name in _INTENT})
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise Damaged(f"an intent of run {values[1]!r} is not what was written: {error!r}") from error

    def encode(self, table: Table[R], row: R) -> dict[str, Any]:
        values = dict(zip(table.columns, row, strict=True))
        if table is INTENTS:
            values["intent"] = to_json({name: values.pop(name) for name in _INTENT})
        if "state" in values:
            values |= _with_text("state", values["state"])
        return values

    def decode_head(self, key: Key, values: Sequence[Any]) -> Head:
        return Head(*values[:-1])

    def own_state(self, head: Head, text: str) -> Callable[[], dict[str, Any]]:
        return lambda: self.parse(text, "sessions")

    def event_crc(self, seq: int, at: float, data: Any) -> int:
        return 0

    def consumed_key(self, key: str) -> str:
        return key if len(key) <= MAX_KEY and "\0" not in key else hash_of(key)

    def add_session(self, key: Key, at: float, state: dict[str, Any]) -> bool:
        insert = (
            "INSERT INTO sessions (app_name, user_id, id, state, state_text, create_time, update_time, seq) "
            "VALUES (:app_name, :user_id, :id, :state, :state_text, :at, :at, 0) "
            "ON CONFLICT (app_name, user_id, id) DO NOTHING RETURNING number"
        )
        values = named(key) | _with_text("state", to_json(state)) | {"at": at}
        return self.execute(insert, values).fetchone() is not None

    def append(self, key: Key, head: Head, event: EventRow, delta: dict[str, Any]) -> None:
        insert = (
            "INSERT INTO events (id, app_name, user_id, session_id, seq, invocation_id, timestamp, event_data, "
            "event_text) VALUES (:event_id, :app_name, :user_id, :id, :seq, :invocation_id, :at, :data, :text)"
        )
        data, text = _columns(event.data.decode(), event.is_altered_by_jsonb)
        values = {"event_id": event.id, "seq": head.seq + 1, "invocation_id": event.invocation_id}
        self.execute(insert, named(key) | values | {"at": event.timestamp, "data": data, "text": text})
        values, more = {"number": head.number, "at": event.timestamp}, ""
        if delta:
            query = f"SELECT {self.state_column} FROM sessions s WHERE number = :number"
            state = self.parse(self.execute(query, values).fetchone()[0], "sessions")
            apply_delta(state, delta)
            values |= _with_text("state", to_json(state))
            more = ", state = :state, state_text = :state_text"
        self.execute(f"UPDATE sessions SET seq = seq + 1, update_time = :at{more} WHERE number = :number", values)


@cache
def _spelled(statement: str) -> str:
    """`statement` with its parameters as psycopg writes them."""
    return _PARAMETER.sub(r"%(\1)s", statement)


def _with_text(name: str, text: str) -> dict[str, Any]:
    """The values of a JSONB column, and of that of the text beside it."""
    data, exact = _columns(text, is_altered_by_jsonb(text, [json.loads(text)]))
    return {name: data, f"{name}_text": exact}


def _columns(text: str, is_altered: bool) -> tuple[str, str | None]:
    return (text.replace("\\u0000", "\\ufffd"), text) if is_altered else (text, None)
