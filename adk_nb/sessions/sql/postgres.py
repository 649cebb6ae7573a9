"""The driver for PostgreSQL: its rows, a pool of threads with a connection each, and a transaction for each job."""

import json
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import quote, unquote

from adk_nb.errors import AdkNbError, ConfigurationError, InputError, StorageError
from adk_nb.lazy import require
from adk_nb.redaction import hidden, remember
from adk_nb.sessions.sql import schema
from adk_nb.sessions.sql.codec import EventRow, Key, is_altered_by_jsonb, to_json
from adk_nb.sessions.sql.driver import Database, Job, report
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
    # PostgreSQL: the row stays locked until the transaction ends; readers do not wait.
    lock_clause = " FOR UPDATE"
    order_column = "place"
    needs_conflict_target = True
    head_columns = "s.number, 0, s.create_time, s.update_time, s.seq, 0"
    state_column = "coalesce(s.state_text, CAST(s.state AS TEXT))"
    event_column = "coalesce(event_text, CAST(event_data AS TEXT))"
    crc_column = "0"
    session_condition = "app_name = :app_name AND user_id = :user_id AND session_id = :id"

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

    def own_state(self, head: Head, text: str | None) -> Callable[[], dict[str, Any]]:
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
            # Not an error: PostgreSQL would abort the whole transaction.
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
        data, text = _jsonb_and_text(event.data.decode(), event.is_altered_by_jsonb)
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
    data, exact = _jsonb_and_text(text, is_altered_by_jsonb(text, [json.loads(text)]))
    return {name: data, f"{name}_text": exact}


def _jsonb_and_text(text: str, is_altered: bool) -> tuple[str, str | None]:
    # JSONB takes no NUL; the text column keeps it.
    return (text.replace("\\u0000", "\\ufffd"), text) if is_altered else (text, None)


LOCKED_SECONDS = 30
"""Limit of the wait for a row that another transaction has locked."""
CONNECT_SECONDS = 10
POOL_SIZE = 10
PACKAGE = "adk-nb[db]"
_METADATA = "adk_internal_metadata"
_VERSION = "adk_nb_schema_version"
_TABLES = {
    _METADATA,
    *("app_states", "user_states", "sessions", "events", "consumed", "leases", "runs", "intents", "initial_states"),
}
_LOCK = 0x41444B4E
"""Advisory lock for creating or checking the tables."""
_URL = re.compile(r"(postgres(?:ql)?(?:\+(\w+))?)://(?:([^:/@]*)(?::([^@]*))?@)?(.*)", re.DOTALL)
"""Scheme, driver, user, password and rest, as SQLAlchemy parses them: a password may have a slash."""
_DRIVERS = (None, "psycopg", "psycopg_async", "psycopg2", "asyncpg")
"""Drivers in SQLAlchemy's URLs that are accepted."""
_BEFORE_HOST = re.compile(r":.*@", re.DOTALL)
URL_FORMS = "postgresql://user:password@host/database, or sqlite:///file.db"


class PostgresDatabase(Database):
    """Sessions on a PostgreSQL server. Connects with the first job, and again after a lost connection."""

    is_jsonb = True
    max_name = MAX_KEY

    def __init__(self, url: str, *, pool_size: int = POOL_SIZE, connect_args: dict[str, Any] | None = None) -> None:
        """Parse the URL; connect later.

        Args:
            url: As in `URL_FORMS`.
            pool_size: Maximum number of connections.
            connect_args: More options of `psycopg.connect`.

        Raises:
            InputError: `url` is not a PostgreSQL URL.
            ConfigurationError: `pool_size` is not a positive integer.
            MissingExtraError: psycopg is not installed.
        """
        if type(pool_size) is not int or pool_size < 1:
            raise ConfigurationError(f"pool_size must be a positive integer, got {pool_size!r:.80}")
        self._psycopg: Any = require("psycopg", package=PACKAGE)
        address, options = _parse(url, self._psycopg)
        super().__init__(address)
        self.max_threads = pool_size
        self._options = {"connect_timeout": CONNECT_SECONDS} | options | (connect_args or {})
        self._name = f"the database {address}"
        self._has_tables = False
        self._making_tables = threading.Lock()
        self._busy: set[Key | None] = set()
        """Sessions of the jobs that are running."""

    def rows_of(self, db: Any) -> Rows:
        """The rows of a psycopg connection's transaction."""
        return PostgresRows(db, self._name)

    def work(self) -> None:
        """Run jobs one at a time on this thread's connection, which is opened again after it was lost."""
        db: Any = None
        while job := self._next():
            try:
                db = self._begin(db, job)
                self.finish(db, [job])
            except Exception as error:
                job.error = self.describe(error)
            report([job])  # before another thread takes the session's next job: reports keep the order of the calls
            with self.changed:
                self._busy.discard(job.key)
                self.changed.notify_all()
            del job  # else the thread holds the last result while it waits
        if db:
            db.close()

    def _next(self) -> Job[Any] | None:
        """Wait for a job whose session no other thread works on; None: closed, and the queue is empty."""

        def first_free_job() -> Job[Any] | None:
            return next((job for job in self.jobs if job.key is None or job.key not in self._busy), None)

        with self.changed:
            if not self.wait(lambda: first_free_job() is not None) or not (job := first_free_job()):
                return None
            self.jobs.remove(job)
            if job.key:
                self._busy.add(job.key)
            return job

    def _begin(self, db: Any, job: Job[Any]) -> Any:
        """Begin a transaction on `db`, or on a new connection if it was lost."""
        # A reading job sees one snapshot; a writing job decides on rows that it has locked.
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if job.reads else "BEGIN"
        if db and not db.closed:
            with suppress(self._psycopg.OperationalError):  # the server has closed the idle connection
                db.execute(begin)
                return db
            db.close()
        db = self._psycopg.connect(**self._options | {"autocommit": True})  # transactions are begun and ended here
        try:
            # PostgreSQL waits for a lock without limit by default.
            db.execute(f"SET lock_timeout = '{LOCKED_SECONDS}s'")
            with self._making_tables:
                # Checked again by each process, under a lock of the server.
                if not self._has_tables:
                    with db.transaction():
                        self._create_tables(db)
                    self._has_tables = True
            db.execute(begin)
        except BaseException:
            db.close()
            raise
        return db

    def _create_tables(self, db: Any) -> None:
        """Create the tables if there are none, in one transaction.

        Raises:
            StorageError: They have another version, or belong to another program. They are left as they are.
        """
        # Two CREATE TABLE at once may both pass IF NOT EXISTS; the lock ends with the transaction.
        db.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        # The current schema alone: others of the database may have tables of these names.
        rows = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        tables = {name for (name,) in rows}
        if _METADATA in tables:
            row = db.execute(f"SELECT value FROM {_METADATA} WHERE key = %s", (_VERSION,)).fetchone()
            if row and str(row[0]).isdecimal():
                schema.check_version(self._name, int(row[0]), "database")
                return
        if conflicts := sorted(tables & _TABLES):
            raise StorageError(
                f"{self._name} has tables of another program: {', '.join(conflicts)}; "
                "give another database or schema to create sessions in"
            )
        db.execute(f"CREATE TABLE {_METADATA} (key VARCHAR(128) NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        for statement in schema.POSTGRES:
            db.execute(statement)
        db.execute(f"INSERT INTO {_METADATA} VALUES (%s, %s)", (_VERSION, str(schema.VERSION)))

    def describe(self, error: Exception) -> Exception:
        """Convert an error of psycopg to one that names the database; see `Database`."""
        if isinstance(error, Damaged):
            return StorageError(f"{self._name} is damaged: {error}; restore it from a backup")
        if isinstance(error, AdkNbError) or not isinstance(error, (self._psycopg.Error, OSError)):
            return error
        state = getattr(error, "sqlstate", None)
        if state == "55P03":  # lock_not_available
            return StorageError(
                f"{self._name} was locked by another program for {LOCKED_SECONDS} s, and nothing was "
                "written; end that program, or its transaction, and try again"
            )
        reason = " ".join(hidden(str(error)).split()) or type(error).__name__
        is_lost = state is None or state[:2] in ("08", "57")  # connection exception, operator intervention
        hint = "see that it runs and that the URL is right, and try again" if is_lost else "nothing was written"
        # Not chained: psycopg's own message may have the password.
        return StorageError(f"{self._name} could not be read or written: {reason:.400}; {hint}")


def _parse(url: str, psycopg: Any) -> tuple[str, dict[str, Any]]:
    """Parse a URL into one without a password, and psycopg's options."""
    match = _URL.fullmatch(url)
    if not match or match[2] not in _DRIVERS:
        redacted = _BEFORE_HOST.sub(":[redacted]@", hidden(url))  # the password may be anywhere before the host
        raise InputError(f"{redacted!r:.200} is not a database URL; write {URL_FORMS}")
    scheme, _, user, password, rest = match.groups()
    # libpq's messages may quote the password in any of these forms.
    remember(password, unquote(password or ""), quote(password or ""))
    # Otherwise a part of the password would be taken for the host, and shown in errors.
    if "@" in rest.partition("?")[0]:
        raise InputError("the password in the database URL has an '@'; write it as %40")
    try:
        options: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(f"postgresql://{rest}")
        _ = [int(port) for port in str(options.get("port") or 0).split(",")]
    except (psycopg.Error, ValueError) as error:
        redacted = hidden(f"{scheme}://{rest}")
        raise InputError(
            f"{redacted!r:.200} is not a database URL: {hidden(str(error)).strip()}; write {URL_FORMS}"
        ) from None
    names = {"user": user and unquote(user), "password": password and unquote(password)}
    options |= {name: value for name, value in names.items() if value}
    remember(options.get("password"))
    login = "" if user is None else f"{user}@" if password is None else f"{user}:***@"
    return hidden(f"{scheme}://{login}{rest}"), options
