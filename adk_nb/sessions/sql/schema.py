"""The tables: the journal's rows, and the statements that create the tables of each database.

Both databases store the same rows, in different forms: a SQLite file has a checksum in each row, and a row for each key
of a session's state; PostgreSQL has JSONB, which other programs can query.
"""

from itertools import product
from typing import Any, Generic, NamedTuple, TypeVar, get_args

from adk_nb.errors import StorageError

R = TypeVar("R", bound=tuple[Any, ...])


class Table(Generic[R]):
    """A table with the same columns in each database."""

    def __init__(self, name: str, row: type[R], key: str, *, is_ordered: bool = False) -> None:
        self.name = name
        self.row = row
        """A NamedTuple of the columns, in their order."""
        self.key = key.split()
        """The columns that identify a row."""
        self.is_ordered = is_ordered
        """Rows are read in the order of their first write."""
        self.columns: tuple[str, ...] = tuple(row.__annotations__)
        self.types = set(product(*(get_args(kind) or (kind,) for kind in row.__annotations__.values())))
        """Types of a row's values: SQLite accepts any type in any column."""


class LeaseRow(NamedTuple):
    """The newest lease of a session."""

    session: int
    fence: int
    run_id: str | None
    """None: released."""
    owner: str
    since: float
    expires: float
    """In the clock of `Rows.now()`."""


class RunRow(NamedTuple):
    """An invocation."""

    session: int
    run_id: str
    version: str
    owner: str
    started: float
    outcome: str | None


class IntentRow(NamedTuple):
    """An attempt at an intent; see `journal.Attempt`."""

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
    """Number of writes."""


class UserState(NamedTuple):
    """The state that the sessions of a user share."""

    app_name: str
    user_id: str
    state: str
    update_time: float
    changes: int


class InitialState(NamedTuple):
    """The own keys that a session was created with, if any: not in its row, which each append writes anew."""

    session: int
    value: str
    """JSON."""


LEASES = Table("leases", LeaseRow, "session")
RUNS = Table("runs", RunRow, "session run_id", is_ordered=True)
INTENTS = Table("intents", IntentRow, "session key attempt", is_ordered=True)
APP_STATES = Table("app_states", AppState, "app_name")
USER_STATES = Table("user_states", UserState, "app_name user_id")
INITIAL_STATES = Table("initial_states", InitialState, "session")

VERSION = 4
"""Version of the tables, of both databases."""


def check_version(name: str, version: int, kind: str) -> None:
    """Refuse tables of another version. `kind` of place: `database` or `path`.

    Raises:
        StorageError: The version is not that of this package.
    """
    if version != VERSION:
        raise StorageError(
            f"{name} has schema version {version}, and this adk_nb reads version {VERSION}; "
            f"install the {'newer' if version > VERSION else 'older'} adk_nb that wrote it, or give another {kind}"
        )


_OF_NUMBER = "session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE"
SQLITE = [
    "CREATE TABLE adk_internal_metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT NOT NULL, update_time REAL NOT NULL, "
    "changes INTEGER NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE user_states (app_name TEXT NOT NULL, user_id TEXT NOT NULL, state TEXT NOT NULL, "
    "update_time REAL NOT NULL, changes INTEGER NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (app_name, user_id))",
    # AUTOINCREMENT: the number of a deleted session is never given to another.
    "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, app_name TEXT NOT NULL, "
    "user_id TEXT NOT NULL, id TEXT NOT NULL, state_crc INTEGER NOT NULL, "
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
    f"CREATE TABLE state_keys ({_OF_NUMBER}, key TEXT NOT NULL, value TEXT, PRIMARY KEY (session, key))",
    f"CREATE TABLE initial_states ({_OF_NUMBER}, value TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (session))",
]
"""Statements that create the tables of a file, which is recognised by their text."""

_NAME = "VARCHAR(128) NOT NULL"
_STATE = "state JSONB NOT NULL, state_text TEXT"
_SERIAL = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
_OF_BIG_NUMBER = "session BIGINT NOT NULL REFERENCES sessions (number) ON DELETE CASCADE"
POSTGRES = [
    f"CREATE TABLE app_states (app_name {_NAME} PRIMARY KEY, {_STATE}, update_time DOUBLE PRECISION NOT NULL, "
    "changes BIGINT NOT NULL)",
    f"CREATE TABLE user_states (app_name {_NAME}, user_id {_NAME}, {_STATE}, "
    "update_time DOUBLE PRECISION NOT NULL, changes BIGINT NOT NULL, PRIMARY KEY (app_name, user_id))",
    f"CREATE TABLE sessions (number {_SERIAL}, app_name {_NAME}, user_id {_NAME}, id {_NAME}, {_STATE}, "
    "create_time DOUBLE PRECISION NOT NULL, update_time DOUBLE PRECISION NOT NULL, seq BIGINT NOT NULL, "
    "UNIQUE (app_name, user_id, id))",
    f"CREATE TABLE events (id {_NAME}, app_name {_NAME}, user_id {_NAME}, session_id {_NAME}, seq BIGINT NOT NULL, "
    f"invocation_id {_NAME}, timestamp DOUBLE PRECISION NOT NULL, event_data JSONB NOT NULL, event_text TEXT, "
    "PRIMARY KEY (app_name, user_id, session_id, id), UNIQUE (app_name, user_id, session_id, seq), "
    "FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE)",
    # The newest events of a session are read from its end.
    "CREATE INDEX events_by_time ON events (app_name, user_id, session_id, timestamp DESC, id DESC)",
    f"CREATE TABLE consumed ({_OF_BIG_NUMBER}, key {_NAME}, PRIMARY KEY (session, key))",
    f"CREATE TABLE leases ({_OF_BIG_NUMBER} PRIMARY KEY, fence BIGINT NOT NULL, run_id TEXT, owner TEXT NOT NULL, "
    "since DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL)",
    # `place`: PostgreSQL has no rowid, and started times may be equal.
    f"CREATE TABLE runs (place {_SERIAL}, {_OF_BIG_NUMBER}, run_id {_NAME}, version TEXT NOT NULL, "
    "owner TEXT NOT NULL, started DOUBLE PRECISION NOT NULL, outcome TEXT, UNIQUE (session, run_id))",
    f"CREATE TABLE intents (place {_SERIAL}, {_OF_BIG_NUMBER}, run_id {_NAME}, key {_NAME}, "
    "attempt BIGINT NOT NULL, intent TEXT NOT NULL, started DOUBLE PRECISION NOT NULL, "
    "finished DOUBLE PRECISION, outcome TEXT, UNIQUE (session, key, attempt))",
    f"CREATE TABLE initial_states ({_OF_BIG_NUMBER} PRIMARY KEY, value TEXT NOT NULL)",
]
"""Statements that create the tables of a PostgreSQL database.

`*_text` beside a JSONB column is the JSON as it was written, if JSONB would return it altered: it has no NUL, and its
own form of numbers and order of keys. Otherwise it is null.
"""
