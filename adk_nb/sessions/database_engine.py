"""A database server's connections: many ask, each session's work is done in the order it was asked for."""

import asyncio
import os
import re
import threading
import weakref
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

from adk_nb.errors import AdkNbError, InputError, StorageError
from adk_nb.lazy import require
from adk_nb.loop_thread import Call, LoopThread, workers
from adk_nb.redaction import hidden, remember
from adk_nb.sessions.database_schema import SPELLED, bring_up

PACKAGE = "'adk-nb[db]'"
LOCKED_SECONDS = 30
"""How long is waited for a row that another transaction keeps locked."""
CONNECT_SECONDS = 10
_THREADS = 15
"""As many as SQLAlchemy's pool has connections at most, unless it is told otherwise."""
_THEIRS = ("sqlalchemy", "psycopg", "asyncpg", "aiosqlite", "sqlite3")
"""Whose errors are told in our words."""
_TIMEOUTS = {"psycopg": "connect_timeout", "psycopg_async": "connect_timeout", "asyncpg": "timeout"}

T = TypeVar("T")
Work = Callable[[Any], T]
"""Given SQLAlchemy's connection, in a transaction. Synchronous: with an async driver, SQLAlchemy runs it so."""


class Database:
    """Connects when it is first asked, and again when the server was away."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        """`options` are those of SQLAlchemy's `create_engine`.

        Raises:
            InputError: `url` is none of a database that this is written for.
            MissingExtraError: SQLAlchemy, or the driver, is not installed.
        """
        parsed = _parsed(url)
        remember(parsed.password, quote(parsed.password or ""))
        self.address: str = hidden(parsed.render_as_string(hide_password=True))
        """The URL without its password."""
        self._serves = _Serves(parsed, options)
        self._made_in = os.getpid()
        self._thread: _Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    async def ask(
        self,
        work: Work[T],
        *,
        lane: Hashable = None,
        done: Callable[[T], None] | None = None,
        then: Callable[[T], None] | None = None,
    ) -> T:
        """What `work` gives, once it is committed.

        A caller that is cancelled before the work began leaves it undone; after that it hears of it at the end, so that
        what it holds is what is stored.

        Args:
            work: What to do in one transaction. What it raises undoes all of it.
            lane: What is asked for with one lane is done one after the other, in the order of the calls.
            done: Called with what `work` gave, before the next of the lane begins.
            then: The same, on the caller's loop.

        Raises:
            AdkNbError: What `work` raised.
            StorageError: The database could not be reached, or did not do it.
        """
        job = _Job(work, lane, done)
        heard = asyncio.wrap_future(self._begin(job))
        heard.add_done_callback(lambda told: _tell(told, then))
        try:
            return await asyncio.shield(heard)
        except asyncio.CancelledError:
            if not job.take():
                await asyncio.wait([heard])
            raise

    async def close(self) -> None:
        """Finish what was asked for, and let the connections go. Again is no error."""
        with self._lock:
            thread, self._thread, self._is_closed = self._thread, None, True
        if thread:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._serves.close(), thread.loop))
            thread.loop.call_soon_threadsafe(thread.loop.stop)
            await asyncio.to_thread(thread.join)

    def _begin(self, job: "_Job[T]") -> "Future[T]":
        with self._lock:
            if self._is_closed:
                raise StorageError("this session service is closed; make another")
            if self._made_in != os.getpid():
                raise StorageError("this session service was made in another process; make one in each")
            if self._thread is None:
                self._thread = _Thread("adk-nb-database")
                weakref.finalize(self, _end, self._serves, self._thread)
            return asyncio.run_coroutine_threadsafe(self._serves.run(job), self._thread.loop)


class _Thread(LoopThread):
    def run(self) -> None:
        super().run()
        self.loop.close()


class _Withdrawn(Exception):
    """Nobody wants it any more."""


class _Job(Generic[T]):
    def __init__(self, work: Work[T], lane: Hashable, done: Callable[[T], None] | None) -> None:
        self.work = work
        self.lane = lane
        self.done = done
        self._open = [True]

    def take(self) -> bool:
        """True the first time, whichever thread asks: it is begun then, or withdrawn."""
        with suppress(IndexError):
            return self._open.pop()
        return False


class _Serves:
    """The thread's side. It does not refer to the `Database`, which may so be collected."""

    def __init__(self, url: Any, options: dict[str, Any]) -> None:
        self._url = url
        self._options = options
        self._is_async = bool(url.get_dialect().is_async)
        self._engine: Any = self._made()
        self._is_up = False
        self._coming_up = asyncio.Lock()
        self._lanes: weakref.WeakValueDictionary[Hashable, asyncio.Lock] = weakref.WeakValueDictionary()
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, job: _Job[T]) -> T:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._running.add(task)
        try:
            async with self._lane(job.lane):
                if not job.take():
                    raise _Withdrawn
                result = await self._transaction(job.work)
                if job.done:
                    job.done(result)
                return result
        finally:
            self._running.discard(task)

    async def close(self) -> None:
        while self._running:
            await asyncio.wait(self._running)
        if self._is_async:
            await self._engine.dispose()
        else:
            self._engine.dispose()

    def _lane(self, lane: Hashable) -> AbstractAsyncContextManager[Any]:
        if lane is None:
            return nullcontext()
        lock = self._lanes.get(lane)
        if lock is None:
            self._lanes[lane] = lock = asyncio.Lock()
        return lock

    async def _transaction(self, work: Work[T]) -> T:
        try:
            if not self._is_up:
                async with self._coming_up:
                    if not self._is_up:
                        await self._do(self._bring_up)
                        self._is_up = True
            return await self._do(work)
        except AdkNbError:
            raise
        except Exception as error:
            if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _THEIRS:
                raise self._told(error) from None  # what the driver says may hold the password
            raise

    async def _do(self, work: Work[T]) -> T:
        if self._is_async:
            async with self._engine.begin() as db:
                return await db.run_sync(work)
        call = Call(lambda: self._done_here(work), copy_context())
        workers(_THREADS).put(call)
        return await asyncio.wrap_future(call.outcome)

    def _done_here(self, work: Work[T]) -> T:
        with self._engine.begin() as db:
            return work(db)

    def _bring_up(self, db: Any) -> None:
        sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
        bring_up(db, sqlalchemy.inspect, sqlalchemy.text, self._named())

    def _made(self) -> Any:
        sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
        options: dict[str, Any] = {"pool_pre_ping": True} | self._options
        if (limit := _TIMEOUTS.get(self._url.get_driver_name())) and limit not in self._url.query:
            options["connect_args"] = {limit: CONNECT_SECONDS} | options.get("connect_args", {})
        try:
            if self._is_async:
                made = require("sqlalchemy.ext.asyncio", package=PACKAGE).create_async_engine(self._url, **options)
            else:
                made = sqlalchemy.create_engine(self._url, **options)
        except ImportError as error:
            require(error.name or "sqlalchemy", package=PACKAGE)
            raise
        except TypeError as error:
            raise InputError(f"an option of the database is not what SQLAlchemy's engine takes: {error}") from error
        engine = made.sync_engine if self._is_async else made
        sqlalchemy.event.listen(engine, "connect", _prepare[self._url.get_backend_name()])
        if self._url.get_backend_name() == "sqlite":
            sqlalchemy.event.listen(engine, "begin", _begin_sqlite)
        return made

    def _told(self, error: Exception) -> StorageError:
        cause = getattr(error, "orig", None) or error
        state = getattr(cause, "sqlstate", None)
        if state == "55P03":  # lock_not_available
            return StorageError(
                f"{self._named()} was kept locked by another program for {LOCKED_SECONDS} s, and nothing was "
                "written; end that program, or its transaction, and try again"
            )
        said = " ".join(hidden(str(cause)).split()) or type(cause).__name__
        lost = state is None or state[:2] in ("08", "57")
        hint = "see that it runs and that the URL is right, and try again" if lost else "nothing was written"
        return StorageError(f"{self._named()} could not be read or written: {said:.400}; {hint}")

    def _named(self) -> str:
        return f"the database {hidden(self._url.render_as_string(hide_password=True))}"


def _parsed(url: str) -> Any:
    sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
    try:
        parsed = sqlalchemy.make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        name = parsed.get_backend_name()
        known = name in SPELLED and parsed.get_dialect()
    except sqlalchemy.exc.ArgumentError:
        shown = _BEFORE_HOST.sub("://[redacted]@", hidden(str(url)))  # what is no URL may hold a password anywhere
        raise InputError(f"no database is named by {shown!r:.200}; write {_SHAPE}") from None
    if known and name == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise InputError(f"no file is named by {str(url)!r:.200}; give a path, or use InMemorySessionService()")
    if not known:
        raise InputError(f"sessions are kept in PostgreSQL or SQLite, and not in {name!r}; write {_SHAPE}")
    return parsed


_BEFORE_HOST = re.compile(r"://.*@")
_SHAPE = "postgresql://user:password@host/database, or sqlite:///file.db"


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


_prepare = {"postgresql": _prepare_postgresql, "sqlite": _prepare_sqlite}


def _tell(told: "asyncio.Future[T]", then: Callable[[T], None] | None) -> None:
    if not told.cancelled() and told.exception() is None and then:
        then(told.result())


def _end(serves: _Serves, thread: _Thread) -> None:
    """For a service that nobody closed: let its connections go, and its thread end."""

    async def end() -> None:
        with suppress(Exception):
            await serves.close()
        thread.loop.stop()

    if thread.is_alive() and not thread.loop.is_closed():
        with suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(end(), thread.loop)
