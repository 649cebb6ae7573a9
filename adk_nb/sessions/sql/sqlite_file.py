"""A database file of sessions: made, opened, brought up to date; refused when it is newer, another's, or damaged."""

import os
import re
import sqlite3
from collections.abc import Collection
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from adk_nb.errors import AdkNbError, ConfigurationError, InputError, StorageError
from adk_nb.sessions.sql import schema
from adk_nb.sessions.sql.rows import Damaged
from adk_nb.warned import warn
from adk_nb.wire import json_problem

Durability = Literal["normal", "full"]

LOCKED_SECONDS = 30.0
"""How long a file that another program keeps locked is waited for."""
BUSY_SECONDS = 0.1
"""How long SQLite itself waits for a lock, before jobs that only read are done."""
CHECKPOINT_PAGES = 1000
"""Size of the WAL from which on a commit copies it into the file."""
_OURS = 0x41444B4E
"""The file's application id: `ADKN`. Source: https://www.sqlite.org/pragma.html#pragma_application_id."""
_URL = re.compile(r"^sqlite(\+\w+)?:///")
"""With or without a driver, as SQLAlchemy's URLs name one."""
_SMALL = [
    *("adk_internal_metadata", "app_states", "user_states", "sessions", "state_keys"),
    *("consumed", "leases", "runs", "intents"),
]
"""Tables whose indexes are compared with their rows when a file is opened. An index of `events` that lost a row is
noticed when the session is read, by the gap in `seq`."""

_EARLIER_TABLES = {*_SMALL, "events", "events_by_time"} - {"state_keys"}


class SessionFile:
    """Where a database lies, how it is opened, and the errors that name it."""

    def __init__(self, path: str, durability: Durability) -> None:
        if durability not in get_args(Durability):
            raise ConfigurationError(f"durability is 'normal' or 'full', and not {durability!r:.80}")
        self.path = path
        self.waits = durability == "full"
        """For the disk, with each commit."""
        self._version: int | None = None
        self.is_earlier = False
        """It has PostgreSQL's tables: `DatabaseSessionService` wrote it by way of SQLAlchemy."""
        self._place: tuple[int, int] | None = None
        """Device and number of the file that was opened."""

    def open(self) -> sqlite3.Connection:
        """A connection for writing; an empty or missing file becomes one of sessions, an older one is brought up.

        Raises:
            StorageError: It is not one of ours, newer than this package, or damaged. It is left as it is.
            sqlite3.Error: It cannot be opened just now.
        """
        if os.path.isfile(self.path) and os.path.getsize(self.path) == 1:  # SQLite takes it for empty
            raise self.damaged("file is not a database")
        db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA cell_size_check = ON")
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("BEGIN")  # one view of the file: another process may be making it
            self._check(db)
            db.execute("ROLLBACK")
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise StorageError(f"{self.path} cannot be kept in WAL mode; move it to a disk of this machine's own")
            db.execute(f"PRAGMA synchronous = {'FULL' if self.waits else 'NORMAL'}")
            db.execute(f"PRAGMA fullfsync = {int(self.waits)}")
            db.execute("PRAGMA foreign_keys = ON")
            self.let_wait(db, True)
            self._bring_up(db)
            self._place = self._place or _place(_stat(self.path))
        except BaseException:
            db.close()
            raise
        return db

    def let_wait(self, db: sqlite3.Connection, waits: bool) -> None:
        """Let a connection wait for locks, and copy the WAL into the file once it has grown; or let it do neither."""
        db.execute(f"PRAGMA busy_timeout = {int(waits * BUSY_SECONDS * 1000)}")
        db.execute(f"PRAGMA wal_autocheckpoint = {waits * CHECKPOINT_PAGES}")

    def check_place(self) -> int:
        """See that the path still leads to the file that was opened.

        Returns:
            When the file itself was last written, by a copy of what was in the WAL. In nanoseconds, for comparing.

        Raises:
            StorageError: The file was moved, deleted or replaced.
        """
        stat = _stat(self.path)
        if self._place not in (None, _place(stat)):
            raise StorageError(
                f"{self.path} is not the file any more that was opened: it was moved, deleted or replaced, and nothing "
                "was written; put it back, or open what is there now with another service (in a notebook, "
                'with %config AdkNb.sessions = "", and then its address again)'
            )
        return stat.st_mtime_ns if stat else 0

    def describe(self, error: Exception) -> Exception:
        """What SQLite said, or whatever else went wrong, as an error that names the file; ours as it is."""
        if isinstance(error, AdkNbError):
            return error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            described = StorageError(
                f"{self.named} was kept locked by another program for {LOCKED_SECONDS:g} s, and nothing was "
                "written; end that program, or its transaction, and try again"
            )
        elif isinstance(error, Damaged | UnicodeDecodeError) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            described = self.damaged(str(error))
        else:
            described = StorageError(f"{self.named} could not be read or written, and nothing was: {self._why(error)}")
        described.__cause__ = error
        return described

    def damaged(self, problem: str) -> StorageError:
        """The error that says what is wrong with the file."""
        return StorageError(
            f"{self.named} is damaged: {problem}; "
            "it was left as it is: put a copy in its place, or move it away to begin anew"
        )

    @property
    def named(self) -> str:
        """The file, in words for an error."""
        return f"{self.path} (schema version {'unknown' if self._version is None else self._version})"

    def _why(self, error: Exception) -> str:
        """What SQLite said, or where it says little, what stands in the way."""
        folder = os.path.dirname(self.path)
        if os.path.isdir(self.path):  # unlike pathlib's, false for what is no path at all
            return f"it is a folder; name a file in it, as {os.path.join(self.path, 'nb.db')}"
        if not os.path.isdir(folder):
            return f"there is no folder {folder}; make it, or give another path"
        return str(error)

    def _check(self, db: sqlite3.Connection) -> None:
        """Take note of the version; refuse what is not ours, too new, or damaged."""
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        tables = _tables(db)
        if not tables and not mark:
            return
        self.is_earlier = set(tables) == _EARLIER_TABLES
        if mark != _OURS and tables != _expected() and not self.is_earlier:
            raise StorageError(
                f"{self.named} is a database of another program's, with the tables: {', '.join(tables) or 'none'}; "
                "give another path, and sessions begin anew there"
            )
        key = "adk_nb_schema_version" if self.is_earlier else "schema_version"
        row = db.execute("SELECT value FROM adk_internal_metadata WHERE key = ?", [key]).fetchone()
        version = int(row[0]) if row and str(row[0]).isdecimal() else None
        self._version, newest = version, len(schema.POSTGRES if self.is_earlier else schema.SQLITE)
        if mark != _OURS and not self.is_earlier:
            raise self.damaged(f"its application id is {mark}, and not {_OURS}")
        if version is None:
            raise self.damaged("no schema version is in it")
        if version > newest:
            raise StorageError(
                f"{self.path} has schema version {version}, and this adk_nb reads up to {newest}; "
                "install the newer adk_nb that wrote it, or give another path"
            )
        if version == newest and not self.is_earlier and tables != _expected():
            raise self.damaged("its tables are not those of that version")
        self._check_pages(db, tables)

    def _check_pages(self, db: sqlite3.Connection, tables: Collection[str]) -> None:
        checks = ["PRAGMA quick_check(1)", *(f"PRAGMA integrity_check({name})" for name in _SMALL if name in tables)]
        for check in checks:
            if (result := db.execute(check).fetchone()) != ("ok",):
                raise self.damaged(str(result[0]).replace("\n", " "))

    def _bring_up(self, db: sqlite3.Connection) -> None:
        """Take the steps from the version that the file has to the one that this package reads, all or none."""
        newest = len(schema.SQLITE)
        if self._version == newest or self.is_earlier:
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            self._check(db)  # another process may have been first
            for statement in chain(*schema.SQLITE[self._version or 0 :]):
                db.execute(statement)
            db.execute("INSERT OR REPLACE INTO adk_internal_metadata VALUES ('schema_version', ?)", [str(newest)])
            db.execute(f"PRAGMA application_id = {_OURS}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        self._version = newest


def path_of(db_path: Any) -> str:
    """The path in `db_path`, which may be a URL: `sqlite:///nb.db` is beside the notebook, `sqlite:////nb.db` is not.

    Options of a URL that have no meaning here, such as `check_same_thread`, are left out with a warning.

    Raises:
        InputError: It names no file, or has options that would open another database.
    """
    path = str(db_path)
    if path.startswith("sqlite") and "://" in path:
        path, _, query = path.partition("?")
        _check_options(path, query)
    path = _URL.sub("", path)
    try:
        absolute = str(Path(path).expanduser().absolute())
    except RuntimeError:  # ~somebody, who has no home here
        absolute = ""
    if path.strip() in ("", ":memory:") or "://" in path or "\0" in path or not absolute or json_problem(absolute):
        raise InputError(f"no file is named by {str(db_path)!r:.200}; give a path, or use InMemorySessionService()")
    return absolute


def _check_options(url: str, query: str) -> None:
    names = [option.partition("=")[0] for option in query.split("&") if "=" in option]  # not a value: it may be secret
    if not query:
        return
    if refused := sorted({"mode", "cache", "immutable", "nolock", "psow", "vfs"}.intersection(names)):
        raise InputError(
            f"{url!r:.200} has the option {refused[0]!r}, and a session file has none of SQLite's own; leave it out"
        )
    shown = ", ".join(names) or "what stands behind the ?"
    warn(f"{url!r:.200}: {shown}: options that mean nothing for a session file; leave them out")


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _place(stat: os.stat_result | None) -> tuple[int, int] | None:
    return (stat.st_dev, stat.st_ino) if stat else None


def _tables(db: sqlite3.Connection) -> dict[str, str]:
    """Name -> how it was made, of all that the file holds but what SQLite adds by itself."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {name: str(sql) for name, sql in rows}


def _expected() -> dict[str, str]:
    with sqlite3.connect(":memory:") as db:
        for statement in chain(*schema.SQLITE):
            db.execute(statement)
        tables = _tables(db)
    db.close()
    return tables
