"""The rows of sessions in a database server: read, locked and written."""

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple, cast

from adk_nb.errors import InputError, SessionNotFoundError, StorageError
from adk_nb.events.event import Event
from adk_nb.events.unread import unread
from adk_nb.lazy import require
from adk_nb.sessions.base_session_service import GetSessionConfig, not_found
from adk_nb.sessions.database_engine import PACKAGE
from adk_nb.sessions.session import Session
from adk_nb.sessions.sqlite_rows import SHARED, EventRow, Key, Mark
from adk_nb.sessions.state import State, apply_delta, read_state
from adk_nb.wire import not_json

MAX_KEY = 128
"""Characters of a name or an id."""
_JSON = {"postgresql": "CAST(CAST(:{0} AS TEXT) AS JSONB)", "sqlite": ":{0}"}
_LOCKS = {"postgresql": " FOR UPDATE", "sqlite": ""}  # in SQLite, the transaction has the whole file
_IS_MINE = "app_name = :app_name AND user_id = :user_id AND id = :id"


def execute(db: Any, statement: str, **given: Any) -> Any:
    """What SQLAlchemy's connection `db` gives for `statement`; `{json:name}` in it is a parameter that is JSON."""
    return db.execute(_text(statement, db.dialect.name), given)


@cache
def _text(statement: str, dialect: str) -> Any:
    spelled = re.sub(r"\{json:(\w+)\}", lambda name: _JSON[dialect].format(name[1]), statement)
    return require("sqlalchemy", package=PACKAGE).text(spelled.replace("{lock}", _LOCKS[dialect]))


def is_key(*names: Any) -> bool:
    """True if all of `names` can be names or ids here."""
    return all(
        isinstance(name, str) and len(name) <= MAX_KEY and "\0" not in name and not not_json(name) for name in names
    )


def check_keys(**names: str) -> None:
    """Refuse what is too long for a key column, or holds what no column of text can.

    Raises:
        InputError: One of `names` is.
    """
    for what, name in names.items():
        if len(name) > MAX_KEY:
            raise InputError(
                f"the {what} has {len(name)} characters, and a database keeps {MAX_KEY}; shorten {name!r:.60}"
            )
        if "\0" in name:
            raise InputError(f"the {what} holds the character NUL, which a database does not keep: {name!r:.60}")


class Head(NamedTuple):
    """What of a session's row is needed to write to it."""

    number: int
    seq: int
    """Of the newest event; they are counted from 1 without a gap."""


def locked(db: Any, key: Key) -> Head | None:
    """The session's row, which nobody else writes to before the transaction ends; or None."""
    row = execute(db, f"SELECT number, seq FROM sessions WHERE {_IS_MINE}{{lock}}", **_named(key)).fetchone()
    return row and Head(*row)


def missing(db: Any, key: Key) -> SessionNotFoundError:
    """The error for a session that is not there."""
    mine = "SELECT id FROM sessions WHERE app_name = :app_name AND user_id = :user_id"
    rows = execute(db, mine, app_name=key[0], user_id=key[1]).fetchall()
    return not_found(key[1], key[2], [row[0] for row in rows])


def add_session(db: Any, key: Key, at: float, parts: dict[str, dict[str, Any]]) -> bool:
    """Write a new session's row, and the state that it shares. False: it is there already."""
    text = to_json(parts[""])
    number = execute(
        db,
        "INSERT INTO sessions (app_name, user_id, id, state, state_text, create_time, update_time, seq) "
        "VALUES (:app_name, :user_id, :id, {json:state}, :state_text, :at, :at, 0) "
        "ON CONFLICT (app_name, user_id, id) DO NOTHING RETURNING number",
        **_named(key),
        **_columns("state", text, [parts[""]]),
        at=at,
    ).fetchone()
    if number is None:
        return False
    put_shared_states(db, key, parts, at)
    return True


def put_head(db: Any, head: Head, at: float, delta: dict[str, Any]) -> None:
    """Count one event more, and write `delta` into the session's own keys."""
    said: dict[str, Any] = {}
    if delta:
        query = "SELECT coalesce(state_text, CAST(state AS TEXT)) FROM sessions WHERE number = :number"
        state = _state_in(execute(db, query, number=head.number).fetchone()[0])
        apply_delta(state, delta)
        said = _columns("state", to_json(state), [state])
    more = ", state = {json:state}, state_text = :state_text" if said else ""
    execute(
        db,
        f"UPDATE sessions SET seq = seq + 1, update_time = :at{more} WHERE number = :number",
        number=head.number,
        at=at,
        **said,
    )


def put_shared_states(db: Any, key: Key, parts: dict[str, dict[str, Any]], at: float) -> None:
    """Write the keys of the app and of the user. Always in that order, so that no two wait for each other."""
    for prefix, owner in ((State.APP_PREFIX, {"app_name": key[0]}), (State.USER_PREFIX, _named(key, 2))):
        if delta := parts[prefix]:
            _put_shared(db, SHARED[prefix], owner, delta, at)


def _put_shared(db: Any, table: str, owner: dict[str, str], delta: dict[str, Any], at: float) -> None:
    names, values = ", ".join(owner), ", ".join(f":{name}" for name in owner)
    where = " AND ".join(f"{name} = :{name}" for name in owner)
    execute(
        db,
        f"INSERT INTO {table} ({names}, state, update_time, changes) VALUES ({values}, {{json:state}}, :at, 0) "
        "ON CONFLICT DO NOTHING",
        **owner,
        state="{}",
        at=at,
    )
    query = f"SELECT coalesce(state_text, CAST(state AS TEXT)) FROM {table} WHERE {where}{{lock}}"
    state = _state_in(execute(db, query, **owner).fetchone()[0])
    apply_delta(state, delta)
    execute(
        db,
        f"UPDATE {table} SET state = {{json:state}}, state_text = :state_text, update_time = :at, "
        f"changes = changes + 1 WHERE {where}",
        **owner,
        **_columns("state", to_json(state), [state]),
        at=at,
    )


def user_state(db: Any, app_name: str, user_id: str) -> dict[str, Any]:
    """The keys that a user's sessions share."""
    query = (
        "SELECT coalesce(state_text, CAST(state AS TEXT)) FROM user_states WHERE app_name = :app AND user_id = :user"
    )
    row = execute(db, query, app=app_name, user=user_id).fetchone()
    return _state_in(row[0]) if row else {}


def changes(db: Any, key: Key) -> tuple[int, int]:
    """How often the app's and the user's keys have changed."""
    row = execute(
        db,
        "SELECT coalesce((SELECT changes FROM app_states WHERE app_name = :app_name), 0), "
        "coalesce((SELECT changes FROM user_states WHERE app_name = :app_name AND user_id = :user_id), 0)",
        **_named(key, 2),
    ).fetchone()
    return row[0], row[1]


def newest(db: Any, key: Key) -> tuple[int, int, int, int] | None:
    """What a `Mark` says of a session: its number, its events, and how often the app's and the user's keys changed."""
    row = execute(
        db,
        "SELECT s.number, s.seq, coalesce(a.changes, 0), coalesce(u.changes, 0) FROM sessions s "
        "LEFT JOIN app_states a ON a.app_name = s.app_name "
        "LEFT JOIN user_states u ON u.app_name = s.app_name AND u.user_id = s.user_id "
        "WHERE s.app_name = :app_name AND s.user_id = :user_id AND s.id = :id",
        **_named(key),
    ).fetchone()
    return row and tuple(row)


_SESSIONS = (
    "SELECT s.app_name, s.user_id, s.id, s.number, s.seq, s.update_time, coalesce(a.changes, 0), "
    "coalesce(u.changes, 0), coalesce(s.state_text, CAST(s.state AS TEXT)), "
    "coalesce(a.state_text, CAST(a.state AS TEXT), '{}'), coalesce(u.state_text, CAST(u.state AS TEXT), '{}') "
    "FROM sessions s LEFT JOIN app_states a ON a.app_name = s.app_name "
    "LEFT JOIN user_states u ON u.app_name = s.app_name AND u.user_id = s.user_id WHERE s.app_name = :app_name "
)


def sessions_of(db: Any, app_name: str, user_id: str | None) -> list[Session]:
    """An app's sessions, or a user's, without events; least recently used first."""
    mine = "" if user_id is None else "AND s.user_id = :user_id "
    given = {"app_name": app_name} | ({} if user_id is None else {"user_id": user_id})
    found = execute(db, f"{_SESSIONS}{mine}ORDER BY s.update_time, s.number", **given).fetchall()
    return [_session(row, is_whole=False) for row in found]


def session_of(db: Any, key: Key, config: GetSessionConfig | None) -> Session | None:
    """A session with as much of its history as `config` says, or None."""
    row = execute(db, f"{_SESSIONS}AND s.user_id = :user_id AND s.id = :id", **_named(key)).fetchone()
    if row is None:
        return None
    session = _session(row, is_whole=config is None)
    count, after = (config.num_recent_events, config.after_timestamp) if config else (None, None)
    seq = session.revision.seq
    first = 0 if count is None else max(seq - count, 0)
    found = _events(db, key, first, seq) if first < seq else []
    if len(found) != seq - first:
        if execute(db, f"SELECT number FROM sessions WHERE {_IS_MINE}", **_named(key)).fetchone() is None:
            return None  # it was deleted meanwhile
        raise StorageError(
            f"session {key[2]!r} has {seq} events, and of the last {seq - first} only {len(found)} are in the "
            "database; put a copy of it in its place"
        )
    where = f"an event of session {key[2]!r}"
    session.events = [unread(data, where) for at, data in found if after is None or at >= after]
    return session


def _events(db: Any, key: Key, first: int, last: int) -> list[tuple[float, bytes]]:
    rows = execute(
        db,
        "SELECT timestamp, coalesce(event_text, CAST(event_data AS TEXT)) FROM events WHERE app_name = :app_name "
        "AND user_id = :user_id AND session_id = :id AND seq > :first AND seq <= :last ORDER BY seq",
        **_named(key),
        first=first,
        last=last,
    )
    return [(at, data.encode()) for at, data in rows]


def _session(row: Any, *, is_whole: bool) -> Session:
    app_name, user_id, session_id, number, seq, update_time, of_app, of_user, own, app, user = row
    session = Session(id=session_id, app_name=app_name, user_id=user_id, last_update_time=update_time)
    session.state = _state(own, app, user)
    session.revision = Mark(number, seq, of_app, of_user, is_whole, _state(own, app, user))
    return session


def _state(own: str, app: str, user: str) -> dict[str, Any]:
    state = _state_in(own)
    state |= {State.APP_PREFIX + name: value for name, value in _state_in(app).items()}
    return state | {State.USER_PREFIX + name: value for name, value in _state_in(user).items()}


def _state_in(text: Any) -> dict[str, Any]:
    try:
        return read_state(text)
    except ValueError as error:
        raise StorageError(
            f"the database holds a state that was not written here: {error}; put a copy of it in its place"
        ) from error


def stored_data(db: Any, key: Key, event_id: str) -> bytes | None:
    """The JSON of the session's event of that id, or None."""
    row = execute(
        db,
        "SELECT coalesce(event_text, CAST(event_data AS TEXT)) FROM events WHERE app_name = :app_name "
        "AND user_id = :user_id AND session_id = :id AND id = :event_id",
        **_named(key),
        event_id=event_id,
    ).fetchone()
    return row and row[0].encode()


def add_event(db: Any, key: Key, seq: int, row: EventRow, columns: dict[str, str | None]) -> None:
    """Write an event; `columns` is what `event_columns` gave."""
    execute(
        db,
        "INSERT INTO events (id, app_name, user_id, session_id, seq, invocation_id, timestamp, event_data, event_text) "
        "VALUES (:event_id, :app_name, :user_id, :id, :seq, :invocation_id, :at, {json:event_data}, :event_text)",
        **_named(key),
        **columns,
        event_id=row.id,
        seq=seq,
        invocation_id=row.invocation_id,
        at=row.timestamp,
    )


def event_columns(event: Event, delta: dict[str, Any], row: EventRow) -> dict[str, str | None]:
    """What stands in `event_data` and `event_text`."""
    free: list[Any] = [event.output, event.custom_metadata, event.actions.agent_state, delta]
    free += [part.function_call.args for part in event.parts if part.function_call]
    free += [part.function_response.response for part in event.parts if part.function_response]
    text = row.data.decode()
    data, exact = _columns("event", text, free).values()
    return {"event_data": data, "event_text": exact}


def to_json(value: Any) -> str:
    """`value` as it is kept."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_ODD = re.compile(r"\\u0000|[:,\[]-?\d[\d.]*e[+-]?\d|[:,\[]-0[.,\]}]")
"""JSON that JSONB does not take (NUL), or gives back as another number: 1e+23 as an int, -0.0 without its sign.
Source: https://www.postgresql.org/docs/current/datatype-json.html."""


def _columns(name: str, text: str, free: Iterable[Any]) -> dict[str, str | None]:
    is_odd = _ODD.search(text) or not all(_is_in_order(value) for value in free)
    return {name: text.replace("\\u0000", "\\ufffd") if is_odd else text, f"{name}_text": text if is_odd else None}


def _is_in_order(value: Any) -> bool:
    """True if its keys stand as JSONB orders them: the shorter first. The order is part of what a model is sent."""
    if isinstance(value, dict):
        given = cast(dict[str, Any], value)
        keys = [(len(name := key.encode()), name) for key in given]
        return keys == sorted(keys) and all(_is_in_order(one) for one in given.values())
    if isinstance(value, list):
        return all(_is_in_order(one) for one in cast(list[Any], value))
    return True


def _named(key: Key, count: int = 3) -> dict[str, str]:
    return dict(zip(("app_name", "user_id", "id")[:count], key, strict=False))
