"""What is brief, done by who asks for it: no thread is woken while nobody else is at the file."""

import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from adk_nb.sessions.sqlite_job import Job, Told, finish

_OF, _LEFT = 256, 2
"""Of so many jobs so many are left to the thread, whose commits copy the WAL into the file when it has grown, and begin
it anew: both wait for the disk. Source: https://www.sqlite.org/wal.html, Performance Considerations."""


class SqliteHere:
    """A connection of its own, which waits neither for a lock nor for the disk. Any thread may have it do a job."""

    def __init__(
        self, open_file: Callable[[], sqlite3.Connection] | None, told: Told, check: Callable[[], None]
    ) -> None:
        """`open_file`: None if whatever is written waits for the disk; then nothing is done here.

        The rest as for `SqliteThread`.
        """
        self._open_file = open_file
        self._told = told
        self._check = check
        self._db: sqlite3.Connection | None = None
        self._done = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        """In the file's thread: have a connection. Again is no error."""
        if self._open_file and not self._db:
            self._db = self._open_file()

    def close(self) -> None:
        """In the file's thread, which also closes the file after."""
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def do(self, job: Job[Any]) -> bool:
        """Do it, commit, and tell. False: nothing was done; the thread shall do it, or say what is wrong."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not (db := self._begun()):
                return False
            finish(db, [job], self._told)
        finally:
            self._lock.release()
        job.tell()
        return True

    def _begun(self) -> sqlite3.Connection | None:
        """The connection in a transaction."""
        if (db := self._db) is None:
            return None
        self._done += 1
        if self._done % _OF >= _OF - _LEFT:
            return None
        try:
            self._check()
            db.execute("BEGIN IMMEDIATE")
        except Exception:  # whatever stands in the way, the thread meets it too, and has the words for it
            return None
        return db
