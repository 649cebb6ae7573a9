"""One thread that owns a SQLite connection: it works off what many ask for, and commits it together."""

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

logger = logging.getLogger(__name__)

LOCKED_SECONDS = 30.0
"""How long a file that another program keeps locked is waited for."""
BUSY_SECONDS = 0.1
"""How long SQLite itself waits for a lock, before what only reads is served."""
_PAUSE_SECONDS = 0.01
_IN_A_ROW = 16
"""After so many jobs on the caller's thread the file's thread does one: its caller waits, and the event loop goes on
with others; and its commit copies the WAL into the file if it has grown."""
_CLOSES_AFTER = 5.0
"""Seconds: thousands of times as long as a job takes. Who has the lock then is no more: a signal ended it."""

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
Describe = Callable[[Exception], Exception]
"""Turns what went wrong into an error that names the file."""


@dataclass(eq=False)
class _Job(Generic[T]):
    """A piece of work, and who waits for it; see `SqliteThread.ask`."""

    work: Work[T]
    reads: bool
    undo: Callable[[], None] | None
    then: Callable[[T], None] | None
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[None]"
    """Of the caller; touched on its loop alone. The result is not in it: the loop keeps a future for a while."""
    result: T | None = None
    error: Exception | None = None
    is_over: bool = False
    asked_at: float = field(default_factory=clock.ticks)

    def report(self) -> None:
        """On the caller's loop: it is over."""
        self.is_over = True
        if self.error is None and self.then:
            self.then(cast(T, self.result))
        if self.future.done():  # its caller was cancelled
            return
        if self.error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(self.error)


def _finish(db: sqlite3.Connection, jobs: Sequence[_Job[Any]], describe: Describe) -> None:
    """Do `jobs` in the transaction that was begun, and commit: then each has its result or its error.

    What is no error, as a KeyboardInterrupt, is raised on; if it came when all was committed, the jobs report first.
    """
    done, is_committing = list[_Job[Any]](), False
    try:
        for job in jobs:
            try:
                job.result = job.work(db)
                done.append(job)
            except AdkNbError as error:
                job.error = error
        is_committing = True
        db.execute("COMMIT")
    except BaseException as error:
        if is_committing and not (isinstance(error, sqlite3.Error) or db.in_transaction):
            for job in jobs:
                job.report()
            raise
        _undo(db, done)
        if not isinstance(error, Exception):
            raise
        described = describe(error)
        for job in jobs:
            job.error = described


def _undo(db: sqlite3.Connection, jobs: Sequence[_Job[Any]]) -> None:
    with suppress(sqlite3.Error):  # a full disk has ended the transaction already
        db.execute("ROLLBACK")
    for undo in [job.undo for job in reversed(jobs) if job.undo]:
        undo()


class SqliteThread:
    """Works off jobs in the order they came in. What has come in meanwhile is one transaction.

    The thread and its connection begin with the first job, and end with `close`, or when nothing refers to this. While
    nobody else is at the file the caller does brief jobs itself: to wake each other would take longer.
    """

    def __init__(
        self,
        open_file: Callable[[], sqlite3.Connection],
        open_also: Callable[[], sqlite3.Connection] | None,
        describe: Describe,
        check_place: Callable[[], int],
    ) -> None:
        """All are called in the thread, and the last two also where a job is asked for.

        Args:
            open_file: Called again if it fails.
            open_also: Opens a connection for the callers' own threads; None: each write waits for the disk, and the
                thread does everything.
            describe: Makes the error that callers get.
            check_place: Called before each transaction; if it raises, the connection is closed. Gives when something
                was last copied from the WAL into the file.
        """
        self._here = _Here(open_also, describe, check_place)
        self._worker = _Worker(open_file, describe, check_place, self._here)
        self._made_in = os.getpid()
        self._started = False
        self._lock = threading.Lock()
        self._waiting = 0
        """How many wait for what they want written: nobody overtakes them."""

    async def ask(
        self,
        work: Work[T],
        *,
        reads: bool = False,
        is_brief: bool = False,
        undo: Callable[[], None] | None = None,
        then: Callable[[T], None] | None = None,
    ) -> T:
        """See `Driver.ask`. `is_brief`: the event loop may stand still for it if nobody has to be waited for."""
        if os.getpid() != self._made_in:
            raise StorageError("this session service was made in another process; make one in each")
        loop = asyncio.get_running_loop()
        job = _Job(work, reads, undo, then, loop, loop.create_future())
        if is_brief and not (self._waiting or self._worker.closed) and self._here.do(job):
            await job.future
        else:
            await self._wait(job)
        return cast(T, job.result)

    async def _wait(self, job: _Job[Any]) -> None:
        """Let the thread do it."""
        self._put(job)
        try:
            await job.future
        except asyncio.CancelledError:
            if not (self._worker.withdraw(job) or job.is_over):
                job.future = job.loop.create_future()
                while not job.is_over:
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([job.future])
                job.future.exception()  # nobody asks for it any more
            raise
        finally:
            with self._lock:
                self._waiting -= not job.reads

    def close(self) -> "Future[None]":
        """Work off what was asked for, and close the file; nothing more is taken. Again is no error."""
        with self._lock:
            if not self._started and not self._worker.closed:
                self._worker.ended.set_result(None)
            self._worker.close()
        return self._worker.ended

    def _put(self, job: _Job[Any]) -> None:
        with self._lock:
            if self._worker.closed:
                raise StorageError("this session service is closed; make another")
            self._worker.put(job)
            self._waiting += not job.reads
            if not self._started:
                self._started = True
                weakref.finalize(self, self._worker.close)
                threading.Thread(target=self._worker.run, name="adk_nb-sqlite", daemon=True).start()


class _Here:
    """A connection that waits neither for a lock nor for the disk. Any thread may have it do a job."""

    def __init__(
        self, open_also: Callable[[], sqlite3.Connection] | None, describe: Describe, check_place: Callable[[], int]
    ) -> None:
        self._open_also = open_also
        self._describe = describe
        self._check_place = check_place
        self._db: sqlite3.Connection | None = None
        self._done = 0
        self._copied = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        """In the file's thread: have a connection. Again is no error; without one the thread does everything."""
        if self._open_also and not self._db:
            with suppress(sqlite3.Error):
                self._db = self._open_also()

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

    def do(self, job: _Job[Any]) -> bool:
        """Do it, commit, and report. False: nothing was done; the thread shall do it, or say what is wrong."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not (db := self._begin()):
                return False
            _finish(db, [job], self._describe)
        finally:
            if self._db and self._db.in_transaction:  # a signal came in between
                self._db.execute("ROLLBACK")
            self._lock.release()
        job.report()
        return True

    def _begin(self) -> sqlite3.Connection | None:
        """The connection, in a transaction."""
        if (db := self._db) is None:
            return None
        try:
            copied, before = self._check_place(), self._copied
            self._copied, self._done = copied, self._done + 1
            if copied != before or self._done % _IN_A_ROW == 0:  # who writes after a copy begins the WAL anew, and
                return None  # waits for the disk. Source: https://www.sqlite.org/wal.html, Performance Considerations
            db.execute("BEGIN IMMEDIATE")
        except Exception:  # whatever stands in the way, the thread meets it too, and describes it
            return None
        return db


class _Worker:
    """The thread's side. It does not refer to the `SqliteThread`, which may so be collected."""

    def __init__(
        self,
        open_file: Callable[[], sqlite3.Connection],
        describe: Describe,
        check_place: Callable[[], int],
        here: _Here,
    ) -> None:
        self.closed = False
        self.ended: Future[None] = Future()
        self._open_file = open_file
        self._describe = describe
        self._check_place = check_place
        self._here = here
        self._db: sqlite3.Connection | None = None
        self._jobs: dict[bool, list[_Job[Any]]] = {True: [], False: []}
        """What only reads, and what writes; each in the order it came in."""
        self._changed = threading.Condition()

    def put(self, job: _Job[Any]) -> None:
        with self._changed:
            self._jobs[job.reads].append(job)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify()

    def withdraw(self, job: _Job[Any]) -> bool:
        """False: it was taken."""
        with self._changed:
            is_there = job in self._jobs[job.reads]
            if is_there:
                self._jobs[job.reads].remove(job)
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
            self._check_place()
        except StorageError:
            if self._db:
                with suppress(sqlite3.Error):  # what is in the WAL goes with the file, and not into the next one
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._disconnect()
            raise
        self._db = self._db or self._open_file()
        self._here.open()
        return self._db

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        for connection in filter(None, (self._here, db)):
            try:
                connection.close()
            except sqlite3.Error as error:
                logger.warning("%s", self._describe(error))

    def _work_off(self, db: sqlite3.Connection) -> None:
        for reads, begin in ((True, "BEGIN"), (False, "BEGIN IMMEDIATE")):
            if self._jobs[reads]:
                db.execute(begin)  # before they are taken out: who is not in there any more is not told of an error
                jobs = self._take(lambda job, reads=reads: job.reads == reads)
                _finish(db, jobs, self._describe)
                _report(jobs)

    def _refuse(self, error: Exception) -> None:
        """Let those fail that `error` stands in the way of: all, or, if it is a lock, who has waited long enough."""
        waits = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        before = clock.ticks() - LOCKED_SECONDS if waits else math.inf
        jobs = self._take(lambda job: job.asked_at < before)
        for job in jobs:
            job.error = self._describe(error)
        _report(jobs)
        if waits:
            time.sleep(_PAUSE_SECONDS)  # some locks SQLite tells of at once

    def _take(self, is_wanted: Callable[[_Job[Any]], bool]) -> list[_Job[Any]]:
        """Take jobs out: from now on they cannot be withdrawn."""
        with self._changed:
            jobs = [job for jobs in self._jobs.values() for job in jobs if is_wanted(job)]
            for reads, left in self._jobs.items():
                self._jobs[reads] = [job for job in left if not is_wanted(job)]
        return jobs


def _report(jobs: list[_Job[Any]]) -> None:
    """Let the callers hear, each on its loop; a loop is woken once for all of its own."""
    for loop in {job.loop for job in jobs}:
        mine = [job for job in jobs if job.loop is loop]
        with suppress(RuntimeError):  # it was closed: nobody listens any more
            loop.call_soon_threadsafe(_report_here, mine)


def _report_here(jobs: list[_Job[Any]]) -> None:
    for job in jobs:
        job.report()
