"""A database file of sessions: made, opened, brought up to date; refused when it is newer, another's, or damaged."""

import os
import sqlite3
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

from adk_nb.errors import AdkNbError, InputError, StorageError
from adk_nb.sessions.sqlite_thread import BUSY_SECONDS, LOCKED_SECONDS
from adk_nb.warned import warn
from adk_nb.wire import not_json

Durability = Literal["normal", "full"]

_OURS = 0x41444B4E
"""The file's application id: `ADKN`. Source: https://www.sqlite.org/pragma.html#pragma_application_id."""

_OF_NUMBER = "session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE"
MIGRATIONS: list[list[str]] = [
    [
        "CREATE TABLE adk_internal_metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT NOT NULL, update_time REAL NOT NULL, "
        "changes INTEGER NOT NULL, crc INTEGER NOT NULL)",
        "CREATE TABLE user_states (app_name TEXT NOT NULL, user_id TEXT NOT NULL, state TEXT NOT NULL, "
        "update_time REAL NOT NULL, changes INTEGER NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (app_name, user_id))",
        "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, app_name TEXT NOT NULL, "
        "user_id TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, state_crc INTEGER NOT NULL, "
        "create_time REAL NOT NULL, update_time REAL NOT NULL, seq INTEGER NOT NULL, crc INTEGER NOT NULL, "
        "UNIQUE (app_name, user_id, id))",
        f"CREATE TABLE events ({_OF_NUMBER}, seq INTEGER NOT NULL, id TEXT NOT NULL, invocation_id TEXT NOT NULL, "
        "timestamp REAL NOT NULL, event_data TEXT NOT NULL, crc INTEGER NOT NULL, "
        "PRIMARY KEY (session, seq), UNIQUE (session, id))",
        f"CREATE TABLE consumed ({_OF_NUMBER}, key TEXT NOT NULL, PRIMARY KEY (session, key))",
        f"CREATE TABLE leases ({_OF_NUMBER}, fence INTEGER NOT NULL, run_id TEXT, owner TEXT NOT NULL, "
        "since REAL NOT NULL, expires REAL NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (session))",
        f"CREATE TABLE runs ({_OF_NUMBER}, run_id TEXT NOT NULL, version TEXT NOT NULL, owner TEXT NOT NULL, "
        "started REAL NOT NULL, outcome TEXT, crc INTEGER NOT NULL, PRIMARY KEY (session, run_id))",
        f"CREATE TABLE intents ({_OF_NUMBER}, run_id TEXT NOT NULL, branch TEXT NOT NULL, kind TEXT NOT NULL, "
        "call_id TEXT NOT NULL, attempt INTEGER NOT NULL, name TEXT NOT NULL, effect TEXT NOT NULL, key TEXT NOT NULL, "
        "started REAL NOT NULL, finished REAL, outcome TEXT, crc INTEGER NOT NULL, "
        "PRIMARY KEY (session, run_id, branch, kind, call_id, attempt))",
    ],
    [
        f"CREATE TABLE state_keys ({_OF_NUMBER}, key TEXT NOT NULL, value TEXT, PRIMARY KEY (session, key))",
    ],
]
"""What makes a file of version n one of version n + 1. An entry that was released never changes."""
_SMALL = [
    *("adk_internal_metadata", "app_states", "user_states", "sessions", "state_keys"),
    *("consumed", "leases", "runs", "intents"),
]
"""Tables whose indexes are compared with their rows when a file is opened. An index of `events` that lost a row is
noticed when the session is read, by the gap in `seq`."""


class Damaged(sqlite3.DatabaseError):
    """What was read is not what was written."""


_DAMAGE = (Damaged, UnicodeDecodeError)


class SessionFile:
    """Where a database lies, and how it is opened and spoken of."""

    def __init__(self, path: str, durability: Durability) -> None:
        self.path = path
        self.waits = durability == "full"
        """For the disk, with each commit."""
        self._version: int | None = None
        self._is_at: tuple[int, int] | None = None
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
            self._check(db)
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise StorageError(f"{self.path} cannot be kept in WAL mode; move it to a disk of this machine's own")
            db.execute(f"PRAGMA synchronous = {'FULL' if self.waits else 'NORMAL'}")
            db.execute(f"PRAGMA fullfsync = {int(self.waits)}")
            db.execute("PRAGMA foreign_keys = ON")
            self._bring_up(db)
            self._is_at = self._is_at or _place(_found(self.path))
        except BaseException:
            db.close()
            raise
        return db

    def open_also(self) -> sqlite3.Connection:
        """A further connection to the open file, from any thread, for what waits neither for a lock nor for the disk.

        What it commits stays in the WAL until the first one commits.
        """
        settings = ("cell_size_check = ON", "synchronous = NORMAL", "foreign_keys = ON", "wal_autocheckpoint = 0")
        return self._connected(*settings)

    def check_place(self) -> int:
        """See that the path still leads to the file that was opened.

        Returns:
            When the file itself was last written, by a copy of what was in the WAL. In nanoseconds, for comparing.

        Raises:
            StorageError: The file was moved, deleted or replaced.
        """
        found = _found(self.path)
        if self._is_at not in (None, _place(found)):
            raise StorageError(
                f"{self.path} is not the file any more that was opened: it was moved, deleted or replaced, and nothing "
                "was written; put it back, or open what is there now with another service (in a notebook, "
                'with %config AdkNb.sessions = "", and then its address again)'
            )
        return found.st_mtime_ns if found else 0

    def reader(self) -> sqlite3.Connection:
        """A connection that only reads, from any thread, never waits for a lock, and makes no file."""
        return self._connected("query_only = ON")

    def told(self, error: Exception) -> Exception:
        """What SQLite said, or whatever else stood in the way, in words that name the file; ours as it is."""
        if isinstance(error, AdkNbError):
            return error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            said = StorageError(
                f"{self._named()} was kept locked by another program for {LOCKED_SECONDS:g} s, and nothing was "
                "written; end that program, or its transaction, and try again"
            )
        elif isinstance(error, _DAMAGE) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            said = self.damaged(str(error))
        else:
            said = StorageError(f"{self._named()} could not be read or written, and nothing was: {self._why(error)}")
        said.__cause__ = error
        return said

    def damaged(self, what: str) -> StorageError:
        """The error that says what is wrong with the file."""
        return StorageError(
            f"{self._named()} is damaged: {what}; "
            "it was left as it is: put a copy in its place, or move it away to begin anew"
        )

    def _why(self, error: Exception) -> str:
        """What SQLite said, or where it says little, what stands in the way."""
        folder = os.path.dirname(self.path)
        if os.path.isdir(self.path):  # unlike pathlib's, false for what is no path at all
            return f"it is a folder; name a file in it, as {os.path.join(self.path, 'nb.db')}"
        if not os.path.isdir(folder):
            return f"there is no folder {folder}; make it, or give another path"
        return str(error)

    def _connected(self, *settings: str) -> sqlite3.Connection:
        where = f"{Path(self.path).as_uri()}?mode=rw"
        db = sqlite3.connect(where, timeout=0, isolation_level=None, check_same_thread=False, uri=True)
        try:
            for setting in ("trusted_schema = OFF", *settings):
                db.execute(f"PRAGMA {setting}")
        except BaseException:
            db.close()
            raise
        return db

    def _named(self) -> str:
        return f"{self.path} (schema version {'unknown' if self._version is None else self._version})"

    def _check(self, db: sqlite3.Connection) -> None:
        """Take note of the version; refuse what is not ours, too new, or damaged."""
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        there = _schema(db)
        if not there and not mark:
            return
        if mark != _OURS and there != _expected():
            raise StorageError(
                f"{self._named()} is a database of another program's, with the tables: {', '.join(there) or 'none'}; "
                "give another path, and sessions begin anew there"
            )
        self._version = version = _version_of(db)
        if mark != _OURS:
            raise self.damaged(f"its application id is {mark}, and not {_OURS}")
        if version is None:
            raise self.damaged("no schema version is in it")
        if version > len(MIGRATIONS):
            raise StorageError(
                f"{self.path} has schema version {version}, and this adk_nb reads up to {len(MIGRATIONS)}; "
                "install the newer adk_nb that wrote it, or give another path"
            )
        if version == len(MIGRATIONS) and there != _expected():
            raise self.damaged("its tables are not those of that version")
        self._check_pages(db, there)

    def _check_pages(self, db: sqlite3.Connection, there: Collection[str]) -> None:
        checks = ["PRAGMA quick_check(1)", *(f"PRAGMA integrity_check({name})" for name in _SMALL if name in there)]
        for check in checks:
            if (said := db.execute(check).fetchone()) != ("ok",):
                raise self.damaged(str(said[0]).replace("\n", " "))

    def _bring_up(self, db: sqlite3.Connection) -> None:
        """Take the steps from the version that the file has to the one that this package reads, all or none."""
        if self._version == len(MIGRATIONS):
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            self._check(db)  # another process may have been first
            for step in MIGRATIONS[self._version or 0 :]:
                for statement in step:
                    db.execute(statement)
            db.execute(
                "INSERT OR REPLACE INTO adk_internal_metadata VALUES ('schema_version', ?)", [str(len(MIGRATIONS))]
            )
            db.execute(f"PRAGMA application_id = {_OURS}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        self._version = len(MIGRATIONS)


def named(db: sqlite3.Connection) -> str:
    """The file of an open connection, in words for an error."""
    return f"{db.execute('PRAGMA database_list').fetchone()[2]} (schema version {len(MIGRATIONS)})"


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
    for start in ("sqlite:///", "sqlite+aiosqlite:///"):
        path = path.removeprefix(start)
    try:
        found = str(Path(path).expanduser().absolute())
    except RuntimeError:  # ~somebody, who has no home here
        found = ""
    if path.strip() in ("", ":memory:") or "://" in path or "\0" in path or not found or not_json(found):
        raise InputError(f"no file is named by {str(db_path)!r:.200}; give a path, or use InMemorySessionService()")
    return found


def _check_options(url: str, query: str) -> None:
    names = [option.partition("=")[0] for option in query.split("&") if "=" in option]  # not a value: it may be secret
    if not query:
        return
    if other := sorted({"mode", "cache", "immutable", "nolock", "psow", "vfs"}.intersection(names)):
        raise InputError(
            f"{url!r:.200} has the option {other[0]!r}, and a session file has none of SQLite's own; leave it out"
        )
    shown = ", ".join(names) or "what stands behind the ?"
    warn(f"{url!r:.200}: {shown}: options that mean nothing for a session file; leave them out")


def crc(*columns: Any) -> int:
    """The checksum of a row, by which a byte that a disk changed is noticed. No help against who means harm."""
    return zlib.crc32(repr(columns).encode("utf-8", "replace"))


def _found(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _place(found: os.stat_result | None) -> tuple[int, int] | None:
    return (found.st_dev, found.st_ino) if found else None


def _version_of(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT value FROM adk_internal_metadata WHERE key = 'schema_version'").fetchone()
    return int(row[0]) if row and str(row[0]).isdecimal() else None


def _schema(db: sqlite3.Connection) -> dict[str, str]:
    """Name -> how it was made, of all that the file holds but what SQLite adds by itself."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {name: str(sql) for name, sql in rows}


def _expected() -> dict[str, str]:
    with sqlite3.connect(":memory:") as db:
        for statement in (statement for step in MIGRATIONS for statement in step):
            db.execute(statement)
        made = _schema(db)
    db.close()
    return made
