"""The tables: the rows that the journal works with, and the steps that made each database's schema.

The drivers keep the same tables, and differ in what guards them: a SQLite file has a checksum in each row and a row for
each key of a session's state; PostgreSQL has JSONB, which others can query.
"""

from itertools import product
from typing import Any, Generic, NamedTuple, TypeVar, get_args

R = TypeVar("R", bound=tuple[Any, ...])


class Table(Generic[R]):
    """A table with the same columns in each database."""

    def __init__(self, name: str, row: type[R], key: str) -> None:
        self.name = name
        self.row = row
        """A NamedTuple of its columns, in their order."""
        self.key = key.split()
        """The columns that tell its rows apart."""
        self.columns: tuple[str, ...] = tuple(row.__annotations__)
        self.types = set(product(*(get_args(kind) or (kind,) for kind in row.__annotations__.values())))
        """Of a row's values: SQLite lets any value stand in any column."""


class LeaseRow(NamedTuple):
    """The newest lease of a session."""

    session: int
    fence: int
    run_id: str | None
    """None: it was released."""
    owner: str
    since: float
    expires: float
    """In `Rows.now()`."""


class RunRow(NamedTuple):
    """An invocation."""

    session: int
    run_id: str
    version: str
    owner: str
    started: float
    outcome: str | None


class IntentRow(NamedTuple):
    """An attempt at an intent."""

    session: int
    run_id: str
    branch: str
    kind: str
    call_id: str
    attempt: int
    name: str
    effect: str
    key: str
    started: float
    finished: float | None
    outcome: str | None
    """JSON."""


class AppState(NamedTuple):
    """The state that the sessions of an app share."""

    app_name: str
    state: str
    """JSON."""
    update_time: float
    changes: int
    """How often it was written."""


class UserState(NamedTuple):
    """The state that the sessions of a user share."""

    app_name: str
    user_id: str
    state: str
    update_time: float
    changes: int


LEASES = Table("leases", LeaseRow, "session")
RUNS = Table("runs", RunRow, "session run_id")
INTENTS = Table("intents", IntentRow, "session run_id branch kind call_id attempt")
APP_STATES = Table("app_states", AppState, "app_name")
USER_STATES = Table("user_states", UserState, "app_name user_id")

_OF_NUMBER = "session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE"
SQLITE: list[list[str]] = [
    [
        "CREATE TABLE adk_internal_metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT NOT NULL, update_time REAL NOT NULL, "
        "changes INTEGER NOT NULL, crc INTEGER NOT NULL)",
        "CREATE TABLE user_states (app_name TEXT NOT NULL, user_id TEXT NOT NULL, state TEXT NOT NULL, "
        "update_time REAL NOT NULL, changes INTEGER NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (app_name, user_id))",
        "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, app_name TEXT NOT NULL, "
        "user_id TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, state_crc INTEGER NOT NULL, "
        "create_time REAL NOT NULL, update_time REAL NOT NULL, seq INTEGER NOT NULL, crc INTEGER NOT NULL, "
        "UNIQUE (app_name, user_id, id))",
        f"CREATE TABLE events ({_OF_NUMBER}, seq INTEGER NOT NULL, id TEXT NOT NULL, invocation_id TEXT NOT NULL, "
        "timestamp REAL NOT NULL, event_data TEXT NOT NULL, crc INTEGER NOT NULL, "
        "PRIMARY KEY (session, seq), UNIQUE (session, id))",
        f"CREATE TABLE consumed ({_OF_NUMBER}, key TEXT NOT NULL, PRIMARY KEY (session, key))",
        f"CREATE TABLE leases ({_OF_NUMBER}, fence INTEGER NOT NULL, run_id TEXT, owner TEXT NOT NULL, "
        "since REAL NOT NULL, expires REAL NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (session))",
        f"CREATE TABLE runs ({_OF_NUMBER}, run_id TEXT NOT NULL, version TEXT NOT NULL, owner TEXT NOT NULL, "
        "started REAL NOT NULL, outcome TEXT, crc INTEGER NOT NULL, PRIMARY KEY (session, run_id))",
        f"CREATE TABLE intents ({_OF_NUMBER}, run_id TEXT NOT NULL, branch TEXT NOT NULL, kind TEXT NOT NULL, "
        "call_id TEXT NOT NULL, attempt INTEGER NOT NULL, name TEXT NOT NULL, effect TEXT NOT NULL, key TEXT NOT NULL, "
        "started REAL NOT NULL, finished REAL, outcome TEXT, crc INTEGER NOT NULL, "
        "PRIMARY KEY (session, run_id, branch, kind, call_id, attempt))",
    ],
    [
        f"CREATE TABLE state_keys ({_OF_NUMBER}, key TEXT NOT NULL, value TEXT, PRIMARY KEY (session, key))",
    ],
]
"""What makes a file of version n one of version n + 1. A released entry never changes, to the letter: the text of its
tables is what a file is recognised by."""

_KEY = "VARCHAR(128) NOT NULL"
_SESSION = f"app_name {_KEY}, user_id {_KEY}, session_id {_KEY}"
_OF_SESSION = (
    "FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE"
)
_OF_BIG_NUMBER = "session BIGINT NOT NULL REFERENCES sessions (number) ON DELETE CASCADE"
_STATE = "state {json} NOT NULL, state_text TEXT"
SERVER: list[list[str]] = [
    [
        f"CREATE TABLE app_states (app_name {_KEY} PRIMARY KEY, {_STATE}, update_time DOUBLE PRECISION NOT NULL, "
        "changes BIGINT NOT NULL)",
        f"CREATE TABLE user_states (app_name {_KEY}, user_id {_KEY}, {_STATE}, update_time DOUBLE PRECISION NOT NULL, "
        "changes BIGINT NOT NULL, PRIMARY KEY (app_name, user_id))",
        f"CREATE TABLE sessions (number {{serial}}, app_name {_KEY}, user_id {_KEY}, id {_KEY}, {_STATE}, "
        "create_time DOUBLE PRECISION NOT NULL, update_time DOUBLE PRECISION NOT NULL, seq BIGINT NOT NULL, "
        "UNIQUE (app_name, user_id, id))",
        f"CREATE TABLE events (id {_KEY}, {_SESSION}, seq BIGINT NOT NULL, invocation_id {_KEY}, "
        "timestamp DOUBLE PRECISION NOT NULL, event_data {json} NOT NULL, event_text TEXT, "
        "PRIMARY KEY (app_name, user_id, session_id, id), UNIQUE (app_name, user_id, session_id, seq), "
        f"{_OF_SESSION})",
        "CREATE INDEX events_by_time ON events (app_name, user_id, session_id, timestamp DESC, id DESC)",
        f"CREATE TABLE consumed ({_OF_BIG_NUMBER}, key {_KEY}, PRIMARY KEY (session, key))",
        f"CREATE TABLE leases ({_OF_BIG_NUMBER} PRIMARY KEY, fence BIGINT NOT NULL, run_id TEXT, owner TEXT NOT NULL, "
        "since DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL)",
        f"CREATE TABLE runs (place {{serial}}, {_OF_BIG_NUMBER}, run_id {_KEY}, version TEXT NOT NULL, "
        "owner TEXT NOT NULL, started DOUBLE PRECISION NOT NULL, outcome TEXT, UNIQUE (session, run_id))",
        f"CREATE TABLE intents (place {{serial}}, {_OF_BIG_NUMBER}, run_id {_KEY}, key {_KEY}, "
        "attempt BIGINT NOT NULL, intent TEXT NOT NULL, started DOUBLE PRECISION NOT NULL, "
        "finished DOUBLE PRECISION, outcome TEXT, UNIQUE (session, key, attempt))",
    ],
]
"""The same for a database that SQLAlchemy opens.

`*_text` beside a JSONB column is the JSON as it was written, where JSONB would not give it back the same: it holds no
NUL, writes numbers its own way, and puts the keys into an order of its own. Elsewhere it is null.
"""
