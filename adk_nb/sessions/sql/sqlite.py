"""The driver for a SQLite file: one thread runs the queued jobs of all callers and commits them together."""

import logging
import math
import sqlite3
import time
from contextlib import suppress
from typing import Any

from adk_nb import clock
from adk_nb.concurrency.threads import IN_A_BROWSER, has_threads
from adk_nb.errors import StorageError
from adk_nb.sessions.sql import sqlite_file
from adk_nb.sessions.sql.driver import Database, Job, report
from adk_nb.sessions.sql.rows import Rows
from adk_nb.sessions.sql.sqlite_file import Durability, SessionFile, parse_path

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.01
_QUICK_SIZE = 20_000
"""Bytes that are written faster than a thread is woken."""
THREAD_EVERY = 16
"""Of so many quick jobs one runs on the thread: its caller waits, so that other tasks of the event loop run, and its
commit checkpoints the WAL if that has grown."""


class SqliteDatabase(Database):
    """Sessions in one file, on one connection, which the thread opens. All queued jobs share a transaction.

    While no job is queued, callers run quick jobs in their own thread, which takes less time than waking the other.
    """

    def __init__(self, path: Any, durability: Durability = "normal") -> None:
        self.file = SessionFile(parse_path(path), durability)
        super().__init__(f"sqlite:///{self.file.path}")
        self._db: sqlite3.Connection | None = None
        self._in_use = False
        """The connection is in use, by the thread or by a caller. Guarded by `changed`."""
        self._blocks = True
        """The connection waits for locks, and checkpoints the WAL. Not in a caller's thread."""
        self._quick_jobs = 0
        self._file_time = 0
        """Time of the newest checkpoint that a quick job saw; see `SessionFile.check_identity`."""

    def rows_of(self, db: Any) -> Rows:
        """The rows of the file's tables."""
        return Rows(db, self.file.label)

    def describe(self, error: Exception) -> Exception:
        """Convert an error of SQLite to one that names the file; see `SessionFile`."""
        return self.file.describe(error)

    def do_now(self, job: Job[Any]) -> bool:
        """Run a small job in the caller's thread, unless it may have to wait for a lock or the disk."""
        is_durable_write = self.file.is_durable and not job.reads
        if job.size is None or job.size >= _QUICK_SIZE or self.waiting or is_durable_write:
            return False
        is_acquired, db = False, None
        try:
            with self.changed:
                if not self._in_use and not self.jobs and not self.is_closed:
                    # One statement: an interrupt between two could leave the connection in use for ever.
                    self._in_use = is_acquired = True
            # The thread does what cannot be done at once.
            if not is_acquired or not (db := self._begin(job)):
                return False
            self.finish(db, [job])
        finally:
            if db and db.in_transaction:  # a signal interrupted the job
                db.execute("ROLLBACK")
            if is_acquired:
                self._release()
        job.report()
        return True

    def _begin(self, job: Job[Any]) -> sqlite3.Connection | None:
        """Begin a transaction on the open connection; None: the thread runs the job, or reports the problem."""
        if not (db := self._db):
            return None
        try:
            changed, previous = self.file.check_identity(), self._file_time
            self._file_time, self._quick_jobs = changed, self._quick_jobs + 1
            # The first writer after a checkpoint starts the WAL over, and waits for the disk.
            # Source: https://www.sqlite.org/pragma.html#pragma_synchronous, NORMAL.
            if not job.reads and (changed != previous or self._quick_jobs % THREAD_EVERY == 0):
                return None
            self._set_blocking(db, False)
            db.execute("BEGIN" if job.reads else "BEGIN IMMEDIATE")
        except Exception:  # the thread meets the same problem, and describes it
            return None
        return db

    def work(self) -> None:
        """Run queued jobs, reads before writes, in one transaction each; open the connection again after an error."""
        try:
            while self._acquire():
                try:
                    db = self._connected()
                    for reads, begin in ((True, "BEGIN"), (False, "BEGIN IMMEDIATE")):
                        if any(job.reads == reads for job in self.jobs):
                            db.execute(begin)  # before they are taken: until then callers can withdraw them
                            jobs = self.take(lambda job, reads=reads: job.reads == reads)
                            self.finish(db, jobs)
                            report(jobs)
                except Exception as error:  # reported to the callers: it must not end this thread
                    self._fail_jobs(error)
                finally:
                    self._release()
        finally:
            with self.changed:
                while self._in_use:
                    self.changed.wait(_PAUSE_SECONDS)
                # Without threads, the next job comes on the same connection; but a page stores a file as it is closed.
                if has_threads() or self.is_closed or IN_A_BROWSER:
                    self._disconnect()

    def _acquire(self) -> bool:
        """Wait for jobs and for the connection. False: closed, and the queue is empty."""
        with self.changed:
            has_jobs = self.wait(lambda: bool(self.jobs) and not self._in_use)
            self._in_use = self._in_use or has_jobs
            return has_jobs

    def _release(self) -> None:
        self._in_use = False
        if self.jobs:
            with self.changed:
                self.changed.notify()

    def _connected(self) -> sqlite3.Connection:
        try:
            self.file.check_identity()
        except StorageError:
            if self._db:
                with suppress(sqlite3.Error):  # the WAL belongs to the old file, not to the one in its place
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._disconnect()
            raise
        self._db = self._db or self.file.open()
        self._set_blocking(self._db, True)
        return self._db

    def _disconnect(self) -> None:
        db, self._db, self._blocks = self._db, None, True
        try:
            if db:
                db.close()
        except sqlite3.Error as error:
            logger.warning("%s", self.file.describe(error))

    def _set_blocking(self, db: sqlite3.Connection, blocks: bool) -> None:
        if self._blocks != blocks:
            self.file.set_blocking(db, blocks)
            self._blocks = blocks

    def _fail_jobs(self, error: Exception) -> None:
        """Fail the jobs that `error` blocks: all, or, for a lock, those that have waited long enough."""
        is_lock = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        deadline = clock.ticks() - sqlite_file.LOCKED_SECONDS if is_lock else math.inf
        jobs = self.take(lambda job: job.since < deadline)
        for job in jobs:
            job.error = self.file.describe(error)
        report(jobs)
        if is_lock:
            time.sleep(_PAUSE_SECONDS)  # SQLite reports some locks at once, without its busy timeout
