"""The tables of sessions in a database server: made, brought up to date; refused when newer, or another's."""

from typing import Any

from adk_nb.errors import StorageError

_KEY = "VARCHAR(128) NOT NULL"
_SESSION = f"app_name {_KEY}, user_id {_KEY}, session_id {_KEY}"
_OF_SESSION = (
    "FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE"
)
_OF_NUMBER = "session BIGINT NOT NULL REFERENCES sessions (number) ON DELETE CASCADE"
_STATE = "state {json} NOT NULL, state_text TEXT"
MIGRATIONS: list[list[str]] = [
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
        f"CREATE TABLE consumed ({_OF_NUMBER}, key {_KEY}, PRIMARY KEY (session, key))",
        f"CREATE TABLE leases ({_OF_NUMBER} PRIMARY KEY, fence BIGINT NOT NULL, run_id TEXT, owner TEXT NOT NULL, "
        "since DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL)",
        f"CREATE TABLE runs (place {{serial}}, {_OF_NUMBER}, run_id {_KEY}, version TEXT NOT NULL, "
        "owner TEXT NOT NULL, started DOUBLE PRECISION NOT NULL, outcome TEXT, UNIQUE (session, run_id))",
        f"CREATE TABLE intents (place {{serial}}, {_OF_NUMBER}, run_id {_KEY}, key {_KEY}, "
        "attempt BIGINT NOT NULL, intent TEXT NOT NULL, started DOUBLE PRECISION NOT NULL, "
        "finished DOUBLE PRECISION, outcome TEXT, UNIQUE (session, key, attempt))",
    ],
]
"""What makes a database of version n one of version n + 1. An entry that was released never changes.

`*_text` beside a JSONB column is the JSON as it was written, where JSONB would not give it back the same: it holds no
NUL, writes numbers its own way, and puts the keys into an order of its own. Elsewhere it is null.
"""
SPELLED = {
    "postgresql": {"json": "JSONB", "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
    "sqlite": {"json": "TEXT", "serial": "INTEGER PRIMARY KEY AUTOINCREMENT"},
}
"""The databases that this is written for, and what they call what they do not call the same."""

_METADATA = "adk_internal_metadata"
_VERSION = "adk_nb_schema_version"
_LOCK = 0x41444B4E
"""Of those who make or look at the tables at the same time."""


def bring_up(db: Any, inspect: Any, text: Any, where: str) -> None:
    """Take the steps from the version that the database has to the one that this package reads, all or none.

    Args:
        db: SQLAlchemy's connection, in a transaction.
        inspect: SQLAlchemy's function.
        text: SQLAlchemy's function.
        where: The database, in words for an error.

    Raises:
        StorageError: It holds sessions of a newer package, or tables of another program. It is left as it is.
    """
    dialect = db.dialect.name
    if dialect == "postgresql":
        db.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    version = _version_of(db, inspect, text, where)
    if version > len(MIGRATIONS):
        raise StorageError(
            f"{where} has schema version {version}, and this adk_nb reads up to {len(MIGRATIONS)}; "
            "install the newer adk_nb that wrote it, or give another database"
        )
    if version == len(MIGRATIONS):
        return
    if version == 0:
        db.execute(text(f"CREATE TABLE {_METADATA} (key {_KEY} PRIMARY KEY, value TEXT NOT NULL)"))
    for statement in (statement for step in MIGRATIONS[version:] for statement in step):
        db.execute(text(statement.format(**SPELLED[dialect])))
    db.execute(
        text(f"INSERT INTO {_METADATA} VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value"),
        {"key": _VERSION, "value": str(len(MIGRATIONS))},
    )


def _version_of(db: Any, inspect: Any, text: Any, where: str) -> int:
    """0: none of our tables is there, and none that stands in their way."""
    there = set(inspect(db).get_table_names())
    said = None
    if _METADATA in there:
        row = db.execute(text(f"SELECT value FROM {_METADATA} WHERE key = :key"), {"key": _VERSION}).fetchone()
        said = row and row[0]
    if said is not None and str(said).isdecimal():
        return int(said)
    ours = {_METADATA, "app_states", "user_states", "sessions", "events", "consumed", "leases", "runs", "intents"}
    if "adk_internal_metadata" in there and "intents" in there:
        raise StorageError(
            f"{where} is a file of SqliteSessionService; write sqlite:/// and the path, without a driver"
        )
    if in_the_way := sorted(there & ours):
        raise StorageError(
            f"{where} has tables of another program's: {', '.join(in_the_way)}; "
            "give another database, or a schema of its own, and sessions begin anew there"
        )
    return 0
