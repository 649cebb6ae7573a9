"""The store's driver for a SQLite file: one thread works off what many ask for, and commits it together."""

import asyncio
import logging
import math
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from adk_nb import clock
from adk_nb.errors import AdkNbError, StorageError
from adk_nb.sessions.sql import sqlite_file
from adk_nb.sessions.sql.codec import Key
from adk_nb.sessions.sql.driver import NEWEST, Driver, Job, Newest, named
from adk_nb.sessions.sql.sqlite_file import Durability, SessionFile, path_of
from adk_nb.sessions.sql.sqlite_rows import SqliteRows

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.01
_BRIEF = 20_000
"""Bytes that are written in less time than it takes to wake a thread."""
_IN_A_ROW = 16
"""After so many jobs on the caller's thread the file's thread does one: its caller waits, and the event loop goes on
with others; and its commit copies the WAL into the file if it has grown."""
_CLOSES_AFTER = 5.0
"""Seconds: thousands of times as long as a job takes. Who has the lock then is no more: a signal ended it."""

T = TypeVar("T")


@dataclass(eq=False)
class _Pending(Generic[T]):
    """A job, and who waits for it."""

    job: Job[T]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[None]"
    """Of the caller; touched on its loop alone. The result is not in it: the loop keeps a future for a while."""
    result: T | None = None
    error: Exception | None = None
    is_over: bool = False
    since: float = field(default_factory=clock.ticks)

    def report(self) -> None:
        """On the caller's loop: it is over."""
        self.is_over = True
        if self.error is None and self.job.then:
            self.job.then(cast(T, self.result))
        if self.future.done():  # its caller was cancelled
            return
        if self.error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(self.error)


def _finish(db: sqlite3.Connection, jobs: Sequence[_Pending[Any]], file: SessionFile) -> None:
    """Do `jobs` in the transaction that was begun, and commit: then each has its result or its error.

    What is no error, as a KeyboardInterrupt, is raised on; if it came when all was committed, the jobs report first.
    """
    rows, done, is_committing = SqliteRows(db, file), list[_Pending[Any]](), False
    try:
        for pending in jobs:
            try:
                pending.result = pending.job.work(rows)
                done.append(pending)
            except AdkNbError as error:
                pending.error = error
        is_committing = True
        db.execute("COMMIT")
    except BaseException as error:
        if is_committing and not (isinstance(error, sqlite3.Error) or db.in_transaction):
            for pending in jobs:
                pending.report()
            raise
        _undo(db, done)
        if not isinstance(error, Exception):
            raise
        described = file.describe(error)
        for pending in jobs:
            pending.error = described


def _undo(db: sqlite3.Connection, jobs: Sequence[_Pending[Any]]) -> None:
    with suppress(sqlite3.Error):  # a full disk has ended the transaction already
        db.execute("ROLLBACK")
    for undo in [pending.job.undo for pending in reversed(jobs) if pending.job.undo]:
        undo()


class SqliteDriver(Driver):
    """Sessions in one file, which one thread owns. What is asked for meanwhile is one transaction.

    The thread and its connection begin with the first job, and end with `close`, or when nothing refers to this. While
    nobody else is at the file the caller does brief jobs itself: to wake each other would take longer.
    """

    def __init__(self, path: Any, durability: Durability) -> None:
        self._file = SessionFile(path_of(path), durability)
        self.path = self._file.path
        self.address = f"sqlite:///{self.path}"
        self._here = _Here(self._file)
        self._worker = _Worker(self._file, self._here)
        self._made_in = os.getpid()
        self._started = False
        self._lock = threading.Lock()
        self._waiting = 0
        """How many wait for what they want written: nobody overtakes them."""
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.Lock()

    async def do(self, job: Job[T]) -> T:
        if os.getpid() != self._made_in:
            raise StorageError("this session service was made in another process; make one in each")
        loop = asyncio.get_running_loop()
        pending, is_brief = _Pending(job, loop, loop.create_future()), job.size is not None and job.size < _BRIEF
        if is_brief and not (self._waiting or self._worker.closed) and self._here.do(pending):
            await pending.future
        else:
            await self._wait(pending)
        return cast(T, pending.result)

    async def _wait(self, pending: _Pending[Any]) -> None:
        """Let the thread do it."""
        self._put(pending)
        try:
            await pending.future
        except asyncio.CancelledError:
            if not (self._worker.withdraw(pending) or pending.is_over):
                pending.future = pending.loop.create_future()
                while not pending.is_over:
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([pending.future])
                pending.future.exception()  # nobody asks for it any more
            raise
        finally:
            with self._lock:
                self._waiting -= not pending.job.reads

    def _put(self, pending: _Pending[Any]) -> None:
        with self._lock:
            if self._worker.closed:
                raise StorageError("this session service is closed; make another")
            self._worker.put(pending)
            self._waiting += not pending.job.reads
            if not self._started:
                self._started = True
                weakref.finalize(self, self._worker.close)
                threading.Thread(target=self._worker.run, name="adk_nb-sqlite", daemon=True).start()

    async def newest(self, key: Key) -> Newest | None:
        try:
            with self._reading:
                if self._reader is None:
                    self._reader = self._file.open_to_read()
                    weakref.finalize(self, self._reader.close)  # of a service that nobody closes
                return self._reader.execute(NEWEST, named(key)).fetchone()
        except sqlite3.Error:
            return None

    async def close(self) -> None:
        with self._lock:
            if not self._started and not self._worker.closed:
                self._worker.ended.set_result(None)
            self._worker.close()
        await asyncio.wrap_future(self._worker.ended)
        with self._reading:
            if self._reader:
                self._reader.close()
                self._reader = None


class _Here:
    """A connection that waits neither for a lock nor for the disk. Any thread may have it do a job."""

    def __init__(self, file: SessionFile) -> None:
        self._file = file
        self._db: sqlite3.Connection | None = None
        self._done = 0
        self._copied = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        """In the file's thread: have a connection, unless each write waits for the disk. Again is no error."""
        if not (self._file.waits or self._db):
            with suppress(sqlite3.Error):
                self._db = self._file.open_also()

    def close(self) -> None:
        """In the file's thread, which also closes the file after."""
        locked = self._lock.acquire(timeout=_CLOSES_AFTER)
        try:
            db, self._db = self._db, None
            if db is not None:
                db.close()
        finally:
            if locked:
                self._lock.release()

    def do(self, pending: _Pending[Any]) -> bool:
        """Do it, commit, and report. False: nothing was done; the thread shall do it, or say what is wrong."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not (db := self._begin()):
                return False
            _finish(db, [pending], self._file)
        finally:
            if self._db and self._db.in_transaction:  # a signal came in between
                self._db.execute("ROLLBACK")
            self._lock.release()
        pending.report()
        return True

    def _begin(self) -> sqlite3.Connection | None:
        """The connection, in a transaction."""
        if (db := self._db) is None:
            return None
        try:
            copied, before = self._file.check_place(), self._copied
            self._copied, self._done = copied, self._done + 1
            if copied != before or self._done % _IN_A_ROW == 0:  # who writes after a copy begins the WAL anew, and
                return None  # waits for the disk. Source: https://www.sqlite.org/wal.html, Performance Considerations
            db.execute("BEGIN IMMEDIATE")
        except Exception:  # whatever stands in the way, the thread meets it too, and describes it
            return None
        return db


class _Worker:
    """The thread's side. It does not refer to the `SqliteDriver`, which may so be collected."""

    def __init__(self, file: SessionFile, here: _Here) -> None:
        self.closed = False
        self.ended: Future[None] = Future()
        self._file = file
        self._here = here
        self._db: sqlite3.Connection | None = None
        self._jobs: dict[bool, list[_Pending[Any]]] = {True: [], False: []}
        """What only reads, and what writes; each in the order it came in."""
        self._changed = threading.Condition()

    def put(self, pending: _Pending[Any]) -> None:
        with self._changed:
            self._jobs[pending.job.reads].append(pending)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify()

    def withdraw(self, pending: _Pending[Any]) -> bool:
        """False: it was taken."""
        with self._changed:
            is_there = pending in self._jobs[pending.job.reads]
            if is_there:
                self._jobs[pending.job.reads].remove(pending)
        return is_there

    def run(self) -> None:
        try:
            while self._wait():
                try:
                    self._work_off(self._connected())
                except Exception as error:  # for who waits: nothing may end this thread before they have heard
                    self._refuse(error)
        finally:
            self._disconnect()
            self.ended.set_result(None)

    def _wait(self) -> bool:
        """Wait for a job. False: it is closed, and all is done."""
        with self._changed:
            while not (self._jobs[True] or self._jobs[False] or self.closed):
                self._changed.wait()
            return bool(self._jobs[True] or self._jobs[False])

    def _connected(self) -> sqlite3.Connection:
        try:
            self._file.check_place()
        except StorageError:
            if self._db:
                with suppress(sqlite3.Error):  # what is in the WAL goes with the file, and not into the next one
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._disconnect()
            raise
        self._db = self._db or self._file.open()
        self._here.open()
        return self._db

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        for connection in filter(None, (self._here, db)):
            try:
                connection.close()
            except sqlite3.Error as error:
                logger.warning("%s", self._file.describe(error))

    def _work_off(self, db: sqlite3.Connection) -> None:
        for reads, begin in ((True, "BEGIN"), (False, "BEGIN IMMEDIATE")):
            if self._jobs[reads]:
                db.execute(begin)  # before they are taken out: who is not in there any more is not told of an error
                jobs = self._take(lambda pending, reads=reads: pending.job.reads == reads)
                _finish(db, jobs, self._file)
                _report(jobs)

    def _refuse(self, error: Exception) -> None:
        """Let those fail that `error` stands in the way of: all, or, if it is a lock, who has waited long enough."""
        waits = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        before = clock.ticks() - sqlite_file.LOCKED_SECONDS if waits else math.inf
        jobs = self._take(lambda pending: pending.since < before)
        for pending in jobs:
            pending.error = self._file.describe(error)
        _report(jobs)
        if waits:
            time.sleep(_PAUSE_SECONDS)  # some locks SQLite tells of at once

    def _take(self, is_wanted: Callable[[_Pending[Any]], bool]) -> list[_Pending[Any]]:
        """Take jobs out: from now on they cannot be withdrawn."""
        with self._changed:
            jobs = [pending for jobs in self._jobs.values() for pending in jobs if is_wanted(pending)]
            for reads, left in self._jobs.items():
                self._jobs[reads] = [pending for pending in left if not is_wanted(pending)]
        return jobs


def _report(jobs: list[_Pending[Any]]) -> None:
    """Let the callers hear, each on its loop; a loop is woken once for all of its own."""
    for loop in {pending.loop for pending in jobs}:
        mine = [pending for pending in jobs if pending.loop is loop]
        with suppress(RuntimeError):  # it was closed: nobody listens any more
            loop.call_soon_threadsafe(_report_here, mine)


def _report_here(jobs: list[_Pending[Any]]) -> None:
    for pending in jobs:
        pending.report()
