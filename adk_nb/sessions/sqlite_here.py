"""What is brief, done by who asks for it: no thread is woken while nobody else is at the file."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from adk_nb.sessions.sqlite_job import Job, Told, finish

_IN_A_ROW = 16
"""After so many jobs the thread does one: who asks for it waits, and the event loop goes on with others; and its commit
copies the WAL into the file if it has grown."""
_CLOSES_AFTER = 5.0
"""Seconds: thousands of times as long as a job takes. Who has the lock then is no more: a signal ended it."""


def is_brief(text: str | bytes) -> bool:
    """Whether to write `text` takes no longer than to wake a thread."""
    return len(text) < 20_000


class SqliteHere:
    """A connection of its own, which waits neither for a lock nor for the disk. Any thread may have it do a job."""

    def __init__(
        self, open_file: Callable[[], sqlite3.Connection] | None, told: Told, written: Callable[[], int]
    ) -> None:
        """All are called wherever a job is done, but the first in the file's thread.

        Args:
            open_file: None if whatever is written waits for the disk; then nothing is done here.
            told: As for `SqliteThread`.
            written: Looks where the file is, and gives when something was last copied into it from the WAL.
        """
        self._open_file = open_file
        self._told = told
        self._written = written
        self._db: sqlite3.Connection | None = None
        self._done = 0
        self._copied = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        """In the file's thread: have a connection. Again is no error; without one the thread does everything."""
        if self._open_file and not self._db:
            with suppress(sqlite3.Error):
                self._db = self._open_file()

    def close(self) -> None:
        """In the file's thread, which also closes the file after."""
        had = self._lock.acquire(timeout=_CLOSES_AFTER)
        try:
            db, self._db = self._db, None
            if db is not None:
                db.close()
        finally:
            if had:
                self._lock.release()

    def do(self, job: Job[Any]) -> bool:
        """Do it, commit, and tell. False: nothing was done; the thread shall do it, or say what is wrong."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not (db := self._begun()):
                return False
            finish(db, [job], self._told)
        finally:
            if self._db and self._db.in_transaction:  # a signal came in between
                self._db.execute("ROLLBACK")
            self._lock.release()
        job.tell()
        return True

    def _begun(self) -> sqlite3.Connection | None:
        """The connection in a transaction."""
        if (db := self._db) is None:
            return None
        try:
            written, before = self._written(), self._copied
            self._copied, self._done = written, self._done + 1
            if written != before or self._done % _IN_A_ROW == 0:  # who writes after a copy begins the WAL anew, and
                return None  # waits for the disk. Source: https://www.sqlite.org/wal.html, Performance Considerations
            db.execute("BEGIN IMMEDIATE")
        except Exception:  # whatever stands in the way, the thread meets it too, and has the words for it
            return None
        return db
