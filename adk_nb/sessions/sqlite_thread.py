"""One thread that owns a SQLite connection: it works off what many ask for, and commits it together."""

import asyncio
import logging
import math
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar, cast

from adk_nb import clock
from adk_nb.errors import StorageError
from adk_nb.sessions.sqlite_here import SqliteHere
from adk_nb.sessions.sqlite_job import Job, Told, finish

logger = logging.getLogger(__name__)

LOCKED_SECONDS = 30.0
"""How long is waited for a file that another program keeps locked."""
BUSY_SECONDS = 0.1
"""How long SQLite itself waits for a lock, before what only reads is served."""
_PAUSE_SECONDS = 0.01

T = TypeVar("T")
Open = Callable[[], sqlite3.Connection]


class SqliteThread:
    """Works off jobs in the order they came in. What has come in meanwhile is one transaction.

    The thread and its connection begin with the first job, and end with `close`, or when nothing refers to this. While
    nobody else is at the file the caller does himself what is brief: to wake each other would take longer.
    """

    def __init__(self, open_file: Open, told: Told, check: Callable[[], object], here: SqliteHere) -> None:
        """All are called in the thread, and the last two also where a job is asked for.

        Args:
            open_file: Called again if it fails.
            told: Says in words what went wrong.
            check: Called before each transaction; if it raises, the connection is closed.
            here: Does what is brief for the caller.
        """
        self._inbox = _Inbox()
        self._here = here
        self._serves = _Serves(open_file, told, check, self._inbox, here)
        self._made_in = os.getpid()
        self._started = False
        self._lock = threading.Lock()
        self._waiting = 0
        """How many wait for what they want written: nobody overtakes them."""

    async def ask(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        reads: bool = False,
        is_brief: bool = False,
        undo: Callable[[], None] | None = None,
        then: Callable[[T], None] | None = None,
    ) -> T:
        """What `work` gives, once it is committed. The event loop goes on meanwhile.

        A caller that is cancelled before the work began leaves it undone; after that it hears of it at the end, so that
        what it holds is what is stored.

        Args:
            work: Called within a transaction, mostly in the thread. It looks at everything before it writes anything:
                when it raises an error of this package, what others asked for is committed all the same.
            reads: It writes nothing, and need not wait for a lock.
            is_brief: It writes a few rows, and the event loop may stand still for it if nobody has to be waited for.
            undo: Called where `work` was if the transaction was not committed, for what `work` changed in memory.
            then: Called on the caller's loop with what `work` gave, also if the caller was cancelled.

        Raises:
            AdkNbError: What `work` raised.
            StorageError: The file could not be opened, read or written, or stays locked; nothing was written.
        """
        if os.getpid() != self._made_in:
            raise StorageError("this session service was made in another process; make one in each")
        loop = asyncio.get_running_loop()
        job = Job(work, reads, undo, then, loop, loop.create_future())
        if is_brief and not (self._waiting or self._inbox.closed) and self._here.do(job):
            await job.heard
        else:
            await self._wait(job)
        return cast(T, job.result)

    async def _wait(self, job: Job[Any]) -> None:
        """Let the thread do it."""
        self._put(job)
        try:
            await job.heard
        except asyncio.CancelledError:
            if not (self._inbox.withdraw(job) or job.is_told):
                job.heard = job.loop.create_future()
                while not job.is_told:
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([job.heard])
                job.heard.exception()  # it is not his any more
            raise
        finally:
            with self._lock:
                self._waiting -= not job.reads

    def close(self) -> "Future[None]":
        """Work off what was asked for, and close the file; nothing more is taken. Again is no error."""
        with self._lock:
            if not self._started and not self._inbox.closed:
                self._serves.ended.set_result(None)
            self._inbox.close()
        return self._serves.ended

    def _put(self, job: Job[Any]) -> None:
        with self._lock:
            if self._inbox.closed:
                raise StorageError("this session service is closed; make another")
            self._inbox.put(job)
            self._waiting += not job.reads
            if not self._started:
                self._started = True
                weakref.finalize(self, self._inbox.close)
                threading.Thread(target=self._serves.run, name="adk_nb-sqlite", daemon=True).start()


class _Inbox:
    """What was asked for and is not done yet."""

    def __init__(self) -> None:
        self.closed = False
        self._jobs: dict[bool, list[Job[Any]]] = {True: [], False: []}
        """What only reads, and what writes; each in the order it came in."""
        self._changed = threading.Condition()

    def put(self, job: Job[Any]) -> None:
        with self._changed:
            self._jobs[job.reads].append(job)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify()

    def has(self, reads: bool) -> bool:
        return bool(self._jobs[reads])

    def wait(self) -> bool:
        """Wait for a job. False: it is closed, and all is done."""
        with self._changed:
            while not (self._jobs[True] or self._jobs[False] or self.closed):
                self._changed.wait()
            return self.has(True) or self.has(False)

    def take(self, reads: bool) -> list[Job[Any]]:
        """Those that read, or those that write; from now on they cannot be withdrawn."""
        with self._changed:
            found, self._jobs[reads] = self._jobs[reads], []
        return found

    def take_older(self, than: float) -> list[Job[Any]]:
        """Those that came in before `than`, in `clock.ticks()`; from now on they cannot be withdrawn."""
        with self._changed:
            found = [job for jobs in self._jobs.values() for job in jobs if job.asked_at < than]
            for reads, jobs in self._jobs.items():
                self._jobs[reads] = [job for job in jobs if job.asked_at >= than]
        return found

    def withdraw(self, job: Job[Any]) -> bool:
        """False: it was taken."""
        with self._changed:
            jobs = self._jobs[job.reads]
            there = job in jobs
            if there:
                jobs.remove(job)
        return there


class _Serves:
    """The thread's side. It does not refer to the `SqliteThread`, which may so be collected."""

    def __init__(
        self, open_file: Open, told: Told, check: Callable[[], object], inbox: _Inbox, here: SqliteHere
    ) -> None:
        self._open = open_file
        self._told = told
        self._check = check
        self._inbox = inbox
        self._here = here
        self._db: sqlite3.Connection | None = None
        self.ended: Future[None] = Future()

    def run(self) -> None:
        try:
            while self._inbox.wait():
                try:
                    self._round(self._connected())
                except Exception as error:  # told to who waits: nothing may end this thread before they have heard
                    self._refuse(error)
        finally:
            self._close()
            self.ended.set_result(None)

    def _connected(self) -> sqlite3.Connection:
        try:
            self._check()
        except StorageError:
            if self._db:
                with suppress(sqlite3.Error):  # what is in the WAL goes with the file, and not into the next one
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._close()
            raise
        self._db = self._db or self._open()
        self._here.open()
        return self._db

    def _close(self) -> None:
        db, self._db = self._db, None
        for opened in filter(None, (self._here, db)):
            try:
                opened.close()
            except sqlite3.Error as error:
                logger.warning("%s", self._told(error))

    def _round(self, db: sqlite3.Connection) -> None:
        for reads, begin in ((True, "BEGIN"), (False, "BEGIN IMMEDIATE")):
            if self._inbox.has(reads):
                db.execute(begin)  # before they are taken out: who is not in there any more is not told of an error
                jobs = self._inbox.take(reads)
                finish(db, jobs, self._told)
                _tell(jobs)

    def _refuse(self, error: Exception) -> None:
        """Let those fail that `error` stands in the way of: all, or, if it is a lock, who has waited long enough."""
        waits = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        before = clock.ticks() - LOCKED_SECONDS if waits else math.inf
        _fail(self._inbox.take_older(before), self._told(error))
        if waits:
            time.sleep(_PAUSE_SECONDS)  # some locks SQLite tells of at once


def _fail(jobs: list[Job[Any]], error: Exception) -> None:
    for job in jobs:
        job.error = error
    _tell(jobs)


def _tell(jobs: list[Job[Any]]) -> None:
    """Let the callers hear, each on its loop; a loop is woken once for all of its own."""
    for loop in {job.loop for job in jobs}:
        with suppress(RuntimeError):  # it was closed: nobody listens any more
            loop.call_soon_threadsafe(_tell_here, [job for job in jobs if job.loop is loop])


def _tell_here(jobs: list[Job[Any]]) -> None:
    for job in jobs:
        job.tell()
