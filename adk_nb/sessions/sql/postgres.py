"""The store's driver for PostgreSQL: SQLAlchemy's pool, where each session's work is done in the order of the calls."""

import asyncio
import os
import re
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

from adk_nb.errors import AdkNbError, InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.lazy import require
from adk_nb.loop_thread import Call, LoopThread, workers
from adk_nb.redaction import hidden, remember
from adk_nb.sessions.sql import schema
from adk_nb.sessions.sql.codec import EventRow, Key
from adk_nb.sessions.sql.driver import NEWEST, Driver, Job, Newest, named
from adk_nb.sessions.sql.postgres_rows import MAX_KEY, PACKAGE, SPELLED, PostgresRows, is_altered

LOCKED_SECONDS = 30
"""How long a row that another transaction keeps locked is waited for."""
CONNECT_SECONDS = 10
_THREADS = 15
"""As many as SQLAlchemy's pool has connections at most, unless it is told otherwise."""
_DRIVERS = ("sqlalchemy", "psycopg", "asyncpg", "aiosqlite", "sqlite3")
"""Whose errors are worded here."""
_TIMEOUTS = {"psycopg": "connect_timeout", "psycopg_async": "connect_timeout", "asyncpg": "timeout"}
_METADATA = "adk_internal_metadata"
_VERSION = "adk_nb_schema_version"
_LOCK = 0x41444B4E
"""Of those who make or look at the tables at the same time."""
_BEFORE_HOST = re.compile(r"://.*@")
_SHAPE = "postgresql://user:password@host/database, or sqlite:///file.db"

T = TypeVar("T")


class PostgresDriver(Driver):
    """Connects when it is first asked, and again when the server was away."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        """`options` are those of SQLAlchemy's `create_engine`.

        Raises:
            InputError: `url` is none of a database that this is written for.
            MissingExtraError: SQLAlchemy, or the driver, is not installed.
        """
        parsed = _parse(url)
        remember(parsed.password, quote(parsed.password or ""))
        self.address = hidden(parsed.render_as_string(hide_password=True))
        self._pool = _Pool(parsed, options, f"the database {self.address}")
        self._made_in = os.getpid()
        self._thread: _Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    async def do(self, job: Job[T]) -> T:
        pending = _Pending(job)
        future = asyncio.wrap_future(self._begin(pending))
        future.add_done_callback(lambda ended: _report(ended, job.then))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not pending.take():
                while not future.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([future])
            raise

    async def newest(self, key: Key) -> Newest | None:
        try:
            row = await self.ask(lambda rows: rows.execute(NEWEST, named(key)).fetchone(), reads=True)
        except StorageError:  # whoever reads the session next is told what is wrong
            return None
        return row and cast(Newest, tuple(row))

    async def close(self) -> None:
        with self._lock:
            thread, self._thread, self._is_closed = self._thread, None, True
        if thread:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._pool.close(), thread.loop))
            thread.loop.call_soon_threadsafe(thread.loop.stop)
            await asyncio.to_thread(thread.join)

    def encode(self, event: Event, delta: dict[str, Any]) -> EventRow:
        self.check_names(**{"id of an event": event.id, "invocation_id of an event": event.invocation_id})
        row = super().encode(event, delta)
        return row._replace(is_altered_by_jsonb=is_altered(event, delta, row))

    def is_name(self, *names: Any) -> bool:
        return super().is_name(*names) and all(len(name) <= MAX_KEY and "\0" not in name for name in names)

    def check_names(self, **names: str) -> None:
        for what, name in names.items():
            if len(name) > MAX_KEY:
                raise InputError(
                    f"the {what} has {len(name)} characters, and a database keeps {MAX_KEY}; shorten {name!r:.60}"
                )
            if "\0" in name:
                raise InputError(f"the {what} holds the character NUL, which a database does not keep: {name!r:.60}")

    def _begin(self, pending: "_Pending[T]") -> "Future[T]":
        with self._lock:
            if self._is_closed:
                raise StorageError("this session service is closed; make another")
            if self._made_in != os.getpid():
                raise StorageError("this session service was made in another process; make one in each")
            if self._thread is None:
                self._thread = _Thread("adk-nb-database")
                weakref.finalize(self, _end, self._pool, self._thread)
            return asyncio.run_coroutine_threadsafe(self._pool.run(pending), self._thread.loop)


class _Thread(LoopThread):
    def run(self) -> None:
        super().run()
        self.loop.close()


class _Withdrawn(Exception):
    """Nobody wants it any more."""


@dataclass(eq=False)
class _Pending(Generic[T]):
    job: Job[T]
    _open: list[bool] = field(default_factory=lambda: [True])

    def take(self) -> bool:
        """True the first time, whichever thread asks: it is begun then, or withdrawn."""
        with suppress(IndexError):
            return self._open.pop()
        return False


class _Pool:
    """The connections, on the thread's loop. It does not refer to the driver, which may so be collected."""

    def __init__(self, url: Any, options: dict[str, Any], named: str) -> None:
        self._url = url
        self._named = named
        self._is_async = bool(url.get_dialect().is_async)
        self._engine: Any = self._make(options)
        self._is_up = False
        self._coming_up = asyncio.Lock()
        self._locks: weakref.WeakValueDictionary[Key, asyncio.Lock] = weakref.WeakValueDictionary()
        """Of sessions: their work is done one after the other."""
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, pending: _Pending[T]) -> T:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._running.add(task)
        try:
            key = pending.job.key
            async with self._locks.setdefault(key, asyncio.Lock()) if key else nullcontext():
                if not pending.take():
                    raise _Withdrawn
                try:
                    return await self._transaction(pending.job.work)
                except BaseException:
                    if pending.job.undo:
                        pending.job.undo()
                    raise
        finally:
            self._running.discard(task)

    async def close(self) -> None:
        while self._running:
            await asyncio.wait(self._running)
        if self._is_async:
            await self._engine.dispose()
        else:
            self._engine.dispose()

    async def _transaction(self, work: Callable[[Any], T]) -> T:
        try:
            if not self._is_up:
                async with self._coming_up:
                    if not self._is_up:
                        await self._do(self._bring_up)
                        self._is_up = True
            return await self._do(lambda db: work(PostgresRows(db)))
        except AdkNbError:
            raise
        except Exception as error:
            if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _DRIVERS:
                raise self._describe(error) from None  # what the driver says may hold the password
            raise

    async def _do(self, work: Callable[[Any], T]) -> T:
        if self._is_async:
            async with self._engine.begin() as db:
                return await db.run_sync(work)
        call = Call(lambda: self._do_here(work), copy_context())
        workers(_THREADS).put(call)
        return await asyncio.wrap_future(call.outcome)

    def _do_here(self, work: Callable[[Any], T]) -> T:
        with self._engine.begin() as db:
            return work(db)

    def _make(self, options: dict[str, Any]) -> Any:
        sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
        options = {"pool_pre_ping": True} | options
        if (limit := _TIMEOUTS.get(self._url.get_driver_name())) and limit not in self._url.query:
            options["connect_args"] = {limit: CONNECT_SECONDS} | options.get("connect_args", {})
        try:
            if self._is_async:
                engine = require("sqlalchemy.ext.asyncio", package=PACKAGE).create_async_engine(self._url, **options)
            else:
                engine = sqlalchemy.create_engine(self._url, **options)
        except ImportError as error:
            require(error.name or "sqlalchemy", package=PACKAGE)
            raise
        except TypeError as error:
            raise InputError(f"an option of the database is not what SQLAlchemy's engine takes: {error}") from error
        is_sqlite = self._url.get_backend_name() == "sqlite"
        events = engine.sync_engine if self._is_async else engine
        sqlalchemy.event.listen(events, "connect", _prepare_sqlite if is_sqlite else _prepare_postgresql)
        if is_sqlite:
            sqlalchemy.event.listen(events, "begin", _begin_sqlite)
        return engine

    def _bring_up(self, db: Any) -> None:
        """Take the steps from the version that the database has to the one that this package reads, all or none.

        Raises:
            StorageError: It holds sessions of a newer package, or tables of another program. It is left as it is.
        """
        text, dialect = require("sqlalchemy", package=PACKAGE).text, db.dialect.name
        if dialect == "postgresql":
            db.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        version, newest = self._version(db), len(schema.SERVER)
        if version > newest:
            raise StorageError(
                f"{self._named} has schema version {version}, and this adk_nb reads up to {newest}; "
                "install the newer adk_nb that wrote it, or give another database"
            )
        if version == newest:
            return
        if version == 0:
            db.execute(text(f"CREATE TABLE {_METADATA} (key VARCHAR(128) NOT NULL PRIMARY KEY, value TEXT NOT NULL)"))
        for statement in (statement for step in schema.SERVER[version:] for statement in step):
            db.execute(text(statement.format(**SPELLED[dialect])))
        conflict = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        statement = text(f"INSERT INTO {_METADATA} VALUES (:key, :value) {conflict}")
        db.execute(statement, {"key": _VERSION, "value": str(newest)})

    def _version(self, db: Any) -> int:
        """0: none of our tables is there, and none that stands in their way."""
        sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
        tables: set[str] = set(sqlalchemy.inspect(db).get_table_names())
        if _METADATA in tables:
            query = sqlalchemy.text(f"SELECT value FROM {_METADATA} WHERE key = :key")
            row = db.execute(query, {"key": _VERSION}).fetchone()
            if row and str(row[0]).isdecimal():
                return int(row[0])
        if {_METADATA, "intents"} <= tables:
            raise StorageError(
                f"{self._named} is a file of SqliteSessionService; write sqlite:/// and the path, without a driver"
            )
        ours = {_METADATA, "app_states", "user_states", "sessions", "events", "consumed", "leases", "runs", "intents"}
        if in_the_way := sorted(tables & ours):
            raise StorageError(
                f"{self._named} has tables of another program's: {', '.join(in_the_way)}; "
                "give another database, or a schema of its own, and sessions begin anew there"
            )
        return 0

    def _describe(self, error: Exception) -> StorageError:
        cause = getattr(error, "orig", None) or error
        state = getattr(cause, "sqlstate", None)
        if state == "55P03":  # lock_not_available
            return StorageError(
                f"{self._named} was kept locked by another program for {LOCKED_SECONDS} s, and nothing was "
                "written; end that program, or its transaction, and try again"
            )
        reason = " ".join(hidden(str(cause)).split()) or type(cause).__name__
        is_lost = state is None or state[:2] in ("08", "57")
        hint = "see that it runs and that the URL is right, and try again" if is_lost else "nothing was written"
        return StorageError(f"{self._named} could not be read or written: {reason:.400}; {hint}")


def _parse(url: str) -> Any:
    sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
    try:
        parsed = sqlalchemy.make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        name = parsed.get_backend_name()
        known = name in SPELLED and parsed.get_dialect()
    except (sqlalchemy.exc.ArgumentError, ValueError):  # ValueError: the port is no number
        shown = _BEFORE_HOST.sub("://[redacted]@", hidden(str(url)))  # what is no URL may hold a password anywhere
        raise InputError(f"no database is named by {shown!r:.200}; write {_SHAPE}") from None
    if "@" in (parsed.host or ""):
        raise InputError("the password in the database's URL holds an '@'; write it as %40")
    if known and name == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise InputError(f"no file is named by {str(url)!r:.200}; give a path, or use InMemorySessionService()")
    if not known:
        raise InputError(f"sessions are kept in PostgreSQL or SQLite, and not in {name!r}; write {_SHAPE}")
    return parsed


def _prepare_postgresql(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = '{LOCKED_SECONDS}s'")
    cursor.close()
    connection.commit()


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver begins no transactions of its own
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute(f"PRAGMA busy_timeout = {LOCKED_SECONDS * 1000}")
    cursor.close()


def _begin_sqlite(db: Any) -> None:
    db.exec_driver_sql("BEGIN IMMEDIATE")


def _report(ended: "asyncio.Future[T]", then: Callable[[T], None] | None) -> None:
    if not ended.cancelled() and ended.exception() is None and then:
        then(ended.result())


def _end(pool: _Pool, thread: _Thread) -> None:
    """For a service that nobody closed: let its connections go, and its thread end."""

    async def end() -> None:
        with suppress(Exception):
            await pool.close()
        thread.loop.stop()

    if thread.is_alive() and not thread.loop.is_closed():
        with suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(end(), thread.loop)
