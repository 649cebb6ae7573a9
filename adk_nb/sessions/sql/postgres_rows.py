"""Rows in PostgreSQL: JSONB for other programs' queries, and the exact text beside it where JSONB would alter it."""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from adk_nb.sessions.sql.codec import EventRow, Key, is_altered_by_jsonb, to_json
from adk_nb.sessions.sql.rows import Damaged, Head, Rows, hash_key, key_parameters
from adk_nb.sessions.sql.schema import INTENTS, R, Table
from adk_nb.sessions.state import apply_delta

MAX_KEY = 128
"""Maximum length of a name, an id or a key, in characters."""
_INTENT = ("branch", "kind", "call_id", "name", "effect")
"""Fields of an intent that share one column, as JSON: they may have a NUL, and any length."""
_PARAMETER = re.compile(r":(\w+)")


class PostgresRows(Rows):
    """The rows of a psycopg transaction."""

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
        """Execute `statement`, with parameters as psycopg spells them."""
        return self._db.execute(_psycopg_statement(statement), values)

    def now(self) -> float:
        """The server's clock, in seconds since the epoch."""
        # Not now(): that is the start of the transaction, before it waited for locks.
        return float(self.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS FLOAT)", {}).fetchone()[0])

    @classmethod
    def columns(cls, table: Table[Any]) -> list[str]:
        """The columns that `decode` reads; the state as text."""
        if table is INTENTS:
            return ["session", "run_id", "key", "attempt", "started", "finished", "outcome", "intent"]
        state = cls.state_column.replace("s.", f"{table.name}.")
        return [state if name == "state" else f"{table.name}.{name}" for name in table.columns]

    def decode(self, table: Table[R], values: Sequence[Any]) -> R:
        """Decode a row; an intent from its JSON column."""
        if table is not INTENTS:
            return table.row(*values)
        fields: dict[str, Any] = dict(zip(self.columns(table), values, strict=True))
        try:
            intent = json.loads(fields.pop("intent"))
            return table.row(**fields, **{name: intent[name] for name in _INTENT})
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise Damaged(f"an intent of run {values[1]!r} was altered: {error!r}") from error

    def encode(self, table: Table[R], row: R) -> dict[str, Any]:
        """Encode a row: an intent's fields into one column, a state into JSONB and its exact text."""
        values = dict(zip(table.columns, row, strict=True))
        if table is INTENTS:
            values["intent"] = to_json({name: values.pop(name) for name in _INTENT})
        if "state" in values:
            values |= _with_text("state", values["state"])
        return values

    def decode_head(self, key: Key, values: Sequence[Any]) -> Head:
        """Decode the head; there is no checksum."""
        return Head(*values[:-1])

    def own_state(self, head: Head, text: str) -> Callable[[], dict[str, Any]]:
        """Parse the session's own keys; a new copy with each call."""
        return lambda: self.parse(text, "sessions")

    def event_crc(self, seq: int, timestamp: float, data: Any) -> int:
        """0: there are no checksums here."""
        return 0

    def consumed_key(self, key: str) -> str:
        """The key, or its hash if it does not fit the column."""
        return key if len(key) <= MAX_KEY and "\0" not in key else hash_key(key)

    def add_session(self, key: Key, create_time: float, state: dict[str, Any]) -> bool:
        """Write a new session. False: there is one, and nothing was written."""
        insert = (
            "INSERT INTO sessions (app_name, user_id, id, state, state_text, create_time, update_time, seq) "
            "VALUES (:app_name, :user_id, :id, :state, :state_text, :at, :at, 0) "
            "ON CONFLICT (app_name, user_id, id) DO NOTHING RETURNING number"
        )
        values = key_parameters(key) | _with_text("state", to_json(state)) | {"at": create_time}
        return self.execute(insert, values).fetchone() is not None

    def append(self, key: Key, head: Head, event: EventRow, delta: dict[str, Any]) -> None:
        """Write the session's next event, and the session's own keys in `delta`."""
        insert = (
            "INSERT INTO events (id, app_name, user_id, session_id, seq, invocation_id, timestamp, event_data, "
            "event_text) VALUES (:event_id, :app_name, :user_id, :id, :seq, :invocation_id, :at, :data, :text)"
        )
        data, text = _columns(event.data.decode(), event.is_altered_by_jsonb)
        values = {"event_id": event.id, "seq": head.seq + 1, "invocation_id": event.invocation_id}
        self.execute(insert, key_parameters(key) | values | {"at": event.timestamp, "data": data, "text": text})
        values, state_columns = {"number": head.number, "at": event.timestamp}, ""
        if delta:
            # Nobody changes it in between: `before_append` has locked the row.
            query = f"SELECT {self.state_column} FROM sessions s WHERE number = :number"
            state = self.parse(self.execute(query, values).fetchone()[0], "sessions")
            apply_delta(state, delta)
            values |= _with_text("state", to_json(state))
            state_columns = ", state = :state, state_text = :state_text"
        self.execute(
            f"UPDATE sessions SET seq = seq + 1, update_time = :at{state_columns} WHERE number = :number", values
        )


@cache
def _psycopg_statement(statement: str) -> str:
    """`statement` with its parameters in psycopg's form, `%(name)s`."""
    return _PARAMETER.sub(r"%(\1)s", statement)


def _with_text(name: str, text: str) -> dict[str, Any]:
    """The values of a JSONB column and of its text column."""
    data, exact = _columns(text, is_altered_by_jsonb(text, [json.loads(text)]))
    return {name: data, f"{name}_text": exact}


def _columns(text: str, is_altered: bool) -> tuple[str, str | None]:
    # JSONB takes no NUL; the text column keeps it.
    return (text.replace("\\u0000", "\\ufffd"), text) if is_altered else (text, None)
