"""The driver for PostgreSQL: a pool of threads with a connection each, and a transaction for each job."""

import re
import threading
from contextlib import suppress
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote

from adk_nb.errors import AdkNbError, ConfigurationError, InputError, StorageError
from adk_nb.lazy import require
from adk_nb.redaction import hidden, remember
from adk_nb.sessions.sql import schema
from adk_nb.sessions.sql.codec import Key
from adk_nb.sessions.sql.driver import Database, Job, report
from adk_nb.sessions.sql.postgres_rows import MAX_KEY, PostgresRows
from adk_nb.sessions.sql.rows import Damaged, Rows

LOCKED_SECONDS = 30
"""Limit of the wait for a row that another transaction has locked."""
CONNECT_SECONDS = 10
POOL_SIZE = 10
PACKAGE = "'adk-nb[db]'"
_METADATA = "adk_internal_metadata"
_VERSION = "adk_nb_schema_version"
_TABLES = {_METADATA, *("app_states", "user_states", "sessions", "events", "consumed", "leases", "runs", "intents")}
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
        self.most_threads = pool_size
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
            db.execute(f"SET lock_timeout = '{LOCKED_SECONDS}s'")
            with self._making_tables:
                # Checked again by each process, under a lock of the server.
                if not self._has_tables:
                    with db.transaction():
                        self._migrate(db)
                    self._has_tables = True
            db.execute(begin)
        except BaseException:
            db.close()
            raise
        return db

    def _migrate(self, db: Any) -> None:
        """Migrate the tables to the schema version of this package, in one transaction.

        Raises:
            StorageError: They have a newer version, or belong to another program. They are left as they are.
        """
        db.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        version, newest = self._version(db), len(schema.POSTGRES)
        if version > newest:
            raise StorageError(
                f"{self._name} has schema version {version}, and this adk_nb reads up to {newest}; "
                "install the newer adk_nb that wrote it, or give another database"
            )
        if version == newest:
            return
        if version == 0:
            db.execute(f"CREATE TABLE {_METADATA} (key VARCHAR(128) NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        for statement in chain(*schema.POSTGRES[version:]):
            db.execute(statement)
        conflict = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        db.execute(f"INSERT INTO {_METADATA} VALUES (%s, %s) {conflict}", (_VERSION, str(newest)))

    def _version(self, db: Any) -> int:
        """The schema version of the database; 0: it has none of our tables, and no others of their names."""
        rows = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        tables = {name for (name,) in rows}
        if _METADATA in tables:
            row = db.execute(f"SELECT value FROM {_METADATA} WHERE key = %s", (_VERSION,)).fetchone()
            if row and str(row[0]).isdecimal():
                return int(row[0])
        if conflicts := sorted(tables & _TABLES):
            raise StorageError(
                f"{self._name} has tables of another program: {', '.join(conflicts)}; "
                "give another database or schema to create sessions in"
            )
        return 0

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
        redacted = _BEFORE_HOST.sub(":[redacted]@", hidden(url))  # what is no URL may hold a password anywhere
        raise InputError(f"{redacted!r:.200} is not a database URL; write {URL_FORMS}")
    scheme, _, user, password, rest = match.groups()
    remember(password, unquote(password or ""), quote(password or ""))
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
