"""The store's driver for a SQLite file: one thread works off what many ask for, and commits it together."""

import logging
import math
import sqlite3
import time
from contextlib import suppress
from typing import Any

from adk_nb import clock
from adk_nb.errors import StorageError
from adk_nb.sessions.sql import sqlite_file
from adk_nb.sessions.sql.driver import Database, Job, report
from adk_nb.sessions.sql.postgres_rows import PostgresRows
from adk_nb.sessions.sql.rows import Rows
from adk_nb.sessions.sql.sqlite_file import Durability, SessionFile, path_of

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.01
_QUICK_SIZE = 20_000
"""Bytes that are written in less time than it takes to wake a thread."""
THREAD_EVERY = 16
"""Of so many quick jobs the thread does one: its caller waits, so that the event loop goes on with other tasks, and its
commit copies the WAL into the file if it has grown."""


class EarlierRows(PostgresRows):
    """The rows of a file with PostgreSQL's tables."""

    is_of_many_machines = False
    lock_clause = ""
    execute = Rows.execute
    now = Rows.now


class SqliteDatabase(Database):
    """Sessions in one file, on one connection, which the thread opens. All jobs that wait are one transaction.

    While no job waits, a caller does quick jobs in its own thread: to wake each other would take longer.
    """

    def __init__(self, path: Any, durability: Durability = "normal") -> None:
        self.file = SessionFile(path_of(path), durability)
        super().__init__(f"sqlite:///{self.file.path}")
        self._db: sqlite3.Connection | None = None
        self._in_use = False
        """The connection, by the thread or by a caller. Changed with `changed` held."""
        self._waits = True
        """The connection waits for locks, and copies the WAL into the file. Not in a caller's thread."""
        self._quick_jobs = 0
        self._file_time = 0

    def rows_of(self, db: Any) -> Rows:
        return (EarlierRows if self.file.is_earlier else Rows)(db, self.file.named)

    def describe(self, error: Exception) -> Exception:
        return self.file.describe(error)

    def do_now(self, job: Job[Any]) -> bool:
        waits_for_disk = self.file.waits and not job.reads
        if job.size is None or job.size >= _QUICK_SIZE or self.waiting or waits_for_disk:
            return False
        is_mine, db = False, None
        try:
            with self.changed:
                if not self._in_use and not self.jobs and not self.is_closed:
                    # Between these a signal handler cannot run: the file would stay in use for ever.
                    self._in_use = is_mine = True
            if not is_mine or not (db := self._begin(job)):
                return False
            self.finish(db, [job])
        finally:
            if db and db.in_transaction:  # a signal came in between
                db.execute("ROLLBACK")
            if is_mine:
                self._release()
        job.report()
        return True

    def _begin(self, job: Job[Any]) -> sqlite3.Connection | None:
        """The connection, in a transaction; None: a thread shall do the job, or say what is wrong."""
        if not (db := self._db):
            return None
        try:
            changed, before = self.file.check_place(), self._file_time
            self._file_time, self._quick_jobs = changed, self._quick_jobs + 1
            # Who writes after a copy into the file begins the WAL anew, and waits for the disk.
            # Source: https://www.sqlite.org/wal.html, Performance Considerations.
            if not job.reads and (changed != before or self._quick_jobs % THREAD_EVERY == 0):
                return None
            self._let_wait(db, False)
            db.execute("BEGIN" if job.reads else "BEGIN IMMEDIATE")
        except Exception:  # whatever stands in the way, the thread meets it too, and describes it
            return None
        return db

    def work(self) -> None:
        try:
            while self._acquire():
                try:
                    self._work_off(self._connected())
                except Exception as error:  # for the callers: nothing may end this thread before they have heard
                    self._refuse(error)
                finally:
                    self._release()
        finally:
            with self.changed:
                while self._in_use:
                    self.changed.wait(_PAUSE_SECONDS)
                self._disconnect()

    def _acquire(self) -> bool:
        """Wait for jobs, and for the connection. False: it is closed, and all is done."""
        with self.changed:
            is_there = self.wait(lambda: bool(self.jobs) and not self._in_use)
            self._in_use = self._in_use or is_there
            return is_there

    def _release(self) -> None:
        self._in_use = False
        if self.jobs:
            with self.changed:
                self.changed.notify()

    def _connected(self) -> sqlite3.Connection:
        try:
            self.file.check_place()
        except StorageError:
            if self._db:
                with suppress(sqlite3.Error):  # what is in the WAL goes with the file, and not into the next one
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._disconnect()
            raise
        self._db = self._db or self.file.open()
        self._let_wait(self._db, True)
        return self._db

    def _disconnect(self) -> None:
        db, self._db, self._waits = self._db, None, True
        try:
            if db:
                db.close()
        except sqlite3.Error as error:
            logger.warning("%s", self.file.describe(error))

    def _let_wait(self, db: sqlite3.Connection, waits: bool) -> None:
        if self._waits != waits:
            self.file.let_wait(db, waits)
            self._waits = waits

    def _work_off(self, db: sqlite3.Connection) -> None:
        for reads, begin in ((True, "BEGIN"), (False, "BEGIN IMMEDIATE")):
            if any(job.reads == reads for job in self.jobs):
                db.execute(begin)  # before they are taken: until then they can be withdrawn
                jobs = self.take(lambda job, reads=reads: job.reads == reads)
                self.finish(db, jobs)
                report(jobs)

    def _refuse(self, error: Exception) -> None:
        """Fail the jobs that `error` stands in the way of: all, or, if it is a lock, those that waited long enough."""
        is_lock = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        before = clock.ticks() - sqlite_file.LOCKED_SECONDS if is_lock else math.inf
        jobs = self.take(lambda job: job.since < before)
        for job in jobs:
            job.error = self.file.describe(error)
        report(jobs)
        if is_lock:
            time.sleep(_PAUSE_SECONDS)  # some locks SQLite tells of at once
