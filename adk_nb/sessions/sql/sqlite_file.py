"""A SQLite file of sessions, created or opened; refused if damaged, of another version, or another program's."""

import os
import re
import sqlite3
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote

from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.errors import AdkNbError, ConfigurationError, InputError, StorageError
from adk_nb.locations import warn
from adk_nb.sessions.sql import schema
from adk_nb.sessions.sql.rows import Damaged
from adk_nb.wire import json_problem

Durability = Literal["normal", "full"]

LOCKED_SECONDS = 30.0
"""Limit of the wait for a file that another program has locked."""
BUSY_SECONDS = 0.1
"""SQLite's own wait for a lock. Short, since jobs that only read wait for it, too."""
CHECKPOINT_PAGES = 1000
"""Size of the WAL from which on a commit checkpoints it."""
_APPLICATION_ID = 0x41444B4E
"""The file's application id: `ADKN`. Source: https://www.sqlite.org/pragma.html#pragma_application_id."""
_URL = re.compile(r"^sqlite(\+\w+)?:///")
"""With or without a driver, as in SQLAlchemy's URLs."""
_SMALL_TABLES = [
    *("adk_internal_metadata", "app_states", "user_states", "sessions", "state_keys"),
    *("consumed", "leases", "runs", "intents", "initial_states"),
]
"""Tables whose indexes are checked when a file is opened. A row missing from an index of `events` is noticed when the
session is read, by the gap in `seq`."""


class SessionFile:
    """A file, its connections, and the errors that name it."""

    def __init__(self, path: str, durability: Durability) -> None:
        if durability not in get_args(Durability):
            raise ConfigurationError(f"durability must be 'normal' or 'full', got {durability!r:.80}")
        self.path = path
        self.is_durable = durability == "full"
        """Each commit waits for the disk."""
        self._version: int | None = None
        """Schema version of the file. None: it has no tables yet."""
        self._identity: tuple[int, int] | None = None
        """Device and inode of the file that was opened."""

    def open(self) -> sqlite3.Connection:
        """Open a writing connection; create the tables of an empty or missing file.

        Raises:
            StorageError: The file is another program's, of another version, or damaged. It is left as it is.
            sqlite3.Error: It cannot be opened just now.
        """
        if os.path.isfile(self.path) and os.path.getsize(self.path) == 1:  # SQLite takes one byte for an empty file
            raise self.damaged("file is not a database")
        db = self._connect()
        try:
            # Detect a damaged page when it is read, not after its content was taken for rows.
            db.execute("PRAGMA cell_size_check = ON")
            # A file from elsewhere may have triggers and views with side effects.
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("BEGIN")  # a snapshot of the file: another process may be creating it
            self._check(db)
            db.execute("ROLLBACK")
            # SQLite: not within a transaction; where the mode cannot change, the old one is returned, without an error.
            if not IN_A_BROWSER and db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise StorageError(f"{self.path} cannot be put in WAL mode; move it to a local disk of this machine")
            db.execute(f"PRAGMA synchronous = {'FULL' if self.is_durable else 'NORMAL'}")
            # macOS: fsync leaves data in the drive's cache; F_FULLFSYNC does not.
            db.execute(f"PRAGMA fullfsync = {int(self.is_durable)}")
            # Off by default, and of each connection: without it no ON DELETE CASCADE.
            db.execute("PRAGMA foreign_keys = ON")
            self.set_blocking(db, True)
            if self._version is None:
                self._create_tables(db)
            # Set once, at the first opening: another file in its place is refused from then on.
            self._identity = self._identity or _file_identity(_stat(self.path))
        except BaseException:
            db.close()
            raise
        return db

    def _connect(self) -> sqlite3.Connection:
        """A connection; in a browser one that locks nothing and maps no memory, which a page's files cannot."""
        path = f"file:{quote(self.path)}?vfs=unix-none" if IN_A_BROWSER else self.path
        # isolation_level None: otherwise Python's sqlite3 begins transactions by itself.
        options: dict[str, Any] = {"timeout": BUSY_SECONDS, "isolation_level": None, "check_same_thread": False}
        db = sqlite3.connect(path, uri=IN_A_BROWSER, **options)
        if IN_A_BROWSER:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA journal_mode = MEMORY")
        return db

    def set_blocking(self, db: sqlite3.Connection, blocks: bool) -> None:
        """Let a connection wait for locks and checkpoint the WAL, or do neither."""
        db.execute(f"PRAGMA busy_timeout = {int(blocks * BUSY_SECONDS * 1000)}")
        db.execute(f"PRAGMA wal_autocheckpoint = {blocks * CHECKPOINT_PAGES}")

    def check_identity(self) -> int:
        """Check that the path is still the file that was opened.

        Returns:
            Time of the last checkpoint: when the file itself was last written, in nanoseconds, for comparison.

        Raises:
            StorageError: The file was moved, deleted or replaced.
        """
        stat = _stat(self.path)
        if self._identity not in (None, _file_identity(stat)):
            raise StorageError(
                f"{self.path} was moved, deleted or replaced since it was opened, and nothing was written; put it "
                "back, or open the new file with another service (in a notebook, "
                'with %config AdkNb.sessions = "", and then its address again)'
            )
        return stat.st_mtime_ns if stat else 0

    def describe(self, error: Exception) -> Exception:
        """Convert an error to one that names the file and the remedy; an AdkNbError is returned as it is."""
        if isinstance(error, AdkNbError):
            return error
        # SQLite: the low byte is the primary code, the rest the extended one.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            described = StorageError(
                f"{self.label} was locked by another program for {LOCKED_SECONDS:g} s, and nothing was "
                "written; end that program, or its transaction, and try again"
            )
        elif isinstance(error, Damaged | UnicodeDecodeError) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            described = self.damaged(str(error))
        else:
            described = StorageError(f"{self.label} could not be read or written: {self._reason(error)}")
        described.__cause__ = error
        return described

    def damaged(self, problem: str) -> StorageError:
        """Build the error for a damaged file."""
        return StorageError(
            f"{self.label} is damaged: {problem}; "
            "it was not changed: restore it from a backup, or move it away to start with an empty one"
        )

    @property
    def label(self) -> str:
        """The file and its version, for an error."""
        return f"{self.path} (schema version {'unknown' if self._version is None else self._version})"

    def _reason(self, error: Exception) -> str:
        """SQLite's message, or the cause where that says only "unable to open database file"."""
        folder = os.path.dirname(self.path)
        if os.path.isdir(self.path):  # unlike pathlib's, false for an invalid path
            return f"it is a folder; give a file in it, such as {os.path.join(self.path, 'nb.db')}"
        if not os.path.isdir(folder):
            return f"there is no folder {folder}; make it, or give another path"
        return str(error)

    def _check(self, db: sqlite3.Connection) -> None:
        """Read the version; refuse a file of another program, of another version, or a damaged one."""
        (application_id,) = db.execute("PRAGMA application_id").fetchone()
        tables = _tables(db)
        if not tables and not application_id:
            return
        if application_id != _APPLICATION_ID and tables != _expected_tables():
            raise StorageError(
                f"{self.label} is a database of another program, with the tables: {', '.join(tables) or 'none'}; "
                "give another path to create sessions in"
            )
        row = db.execute("SELECT value FROM adk_internal_metadata WHERE key = 'schema_version'").fetchone()
        self._version = int(row[0]) if row and str(row[0]).isdecimal() else None
        if application_id != _APPLICATION_ID:
            raise self.damaged(f"its application id is {application_id}, and not {_APPLICATION_ID}")
        if self._version is None:
            raise self.damaged("it has no schema version")
        schema.check_version(self.path, self._version, "path")
        if tables != _expected_tables():
            raise self.damaged("its tables are not those of that version")
        # quick_check reads all pages, but compares no index with its table.
        for check in ("quick_check(1)", *(f"integrity_check({name})" for name in _SMALL_TABLES)):
            if (result := db.execute(f"PRAGMA {check}").fetchone()) != ("ok",):
                raise self.damaged(str(result[0]).replace("\n", " "))

    def _create_tables(self, db: sqlite3.Connection) -> None:
        # IMMEDIATE: of two processes that both read first, only one could go on to write.
        db.execute("BEGIN IMMEDIATE")
        try:
            self._check(db)
            if self._version is None:  # else another process was first
                for statement in schema.SQLITE:
                    db.execute(statement)
                db.execute("INSERT INTO adk_internal_metadata VALUES ('schema_version', ?)", [str(schema.VERSION)])
                # In the transaction: a file with the id always has all its tables.
                db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        self._version = schema.VERSION


def parse_path(db_path: Any) -> str:
    """Parse a path or a URL: `sqlite:///nb.db` is relative, `sqlite:////nb.db` is absolute.

    Options of a URL that have no effect here, such as `check_same_thread`, are ignored with a warning.

    Raises:
        InputError: It is not a file path, or has options that would open another database.
    """
    path = str(db_path)
    if path.startswith("sqlite") and "://" in path:
        path, _, query = path.partition("?")
        _check_options(path, query)
    path = _URL.sub("", path)
    try:
        absolute = str(Path(path).expanduser().absolute())
    except RuntimeError:  # ~user without a home directory
        absolute = ""
    if path.strip() in ("", ":memory:") or "://" in path or "\0" in path or not absolute or json_problem(absolute):
        raise InputError(f"{str(db_path)!r:.200} is not a file path; give one, or use InMemorySessionService()")
    return absolute


def _check_options(url: str, query: str) -> None:
    if not query:
        return
    # Without the values: one may be secret.
    names = [option.partition("=")[0] for option in query.split("&") if "=" in option]
    # These would open another file, a copy in memory, or the file without locks.
    if refused := sorted({"mode", "cache", "immutable", "nolock", "psow", "vfs"}.intersection(names)):
        raise InputError(
            f"{url!r:.200} has the option {refused[0]!r}, and a session file takes no options of SQLite; leave it out"
        )
    options = ", ".join(names) or "the text after ?"
    warn(f"{url!r:.200}: {options}: no effect on a session file; leave it out")


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _file_identity(stat: os.stat_result | None) -> tuple[int, int] | None:
    return (stat.st_dev, stat.st_ino) if stat else None


def _tables(db: sqlite3.Connection) -> dict[str, str]:
    """Name -> CREATE statement of every table and index, without SQLite's internal ones."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {name: str(sql) for name, sql in rows}


def _expected_tables() -> dict[str, str]:
    # sqlite3: `with` ends the transaction, and leaves the connection open.
    with sqlite3.connect(":memory:") as db:
        for statement in schema.SQLITE:
            db.execute(statement)
        tables = _tables(db)
    db.close()
    return tables
