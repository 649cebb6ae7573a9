"""A SQLite file: queries over its tables, behind an authorizer that denies all that is not listed.

`mode=ro` alone is not read-only: ATTACH opens other files for writing, VACUUM INTO makes new ones, and PRAGMA changes
the whole process.
"""

import contextlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from adk_nb.tools.data_tool.read_error import ReadError

_FUNCTIONS = """
abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling changes char coalesce concat concat_ws cos cosh
count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor
format glob group_concat hex highlight ifnull iif instr json json_array json_array_length json_each
json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch json_pretty
json_quote json_remove json_replace json_set json_tree json_type json_valid julianday lag last_value lead length
like likelihood likely ln log log10 log2 lower ltrim match max min mod nth_value ntile nullif octet_length
percent_rank pi pow power printf quote radians random rank regexp replace round row_number rtrim sign sin sinh
snippet soundex sqrt strftime string_agg substr substring sum tan tanh time timediff total trim trunc typeof unhex
unicode unixepoch unlikely upper
"""
_ALLOWED_FUNCTIONS = frozenset(_FUNCTIONS.split())
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
_LIMITS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LENGTH: 10_000_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_OPERATIONS = 1_000
"""Of SQLite's machine, between two looks at the clock."""
_LOCKED = 2.0
"""Seconds that it waits for a writer."""
_COUNTED = 0.5
"""Seconds for the number of rows of a table."""
_BATCH = 1_000
_UNKNOWN = re.compile(r"no such (column|table): (.+)")
_DENIED = re.compile(r"access to (\S+) is prohibited|not authorized to use function: (\w+)")


class SqliteReader:
    """A connection that reads, and a clock for each query."""

    opens_files = True  # SQLite looks for a journal beside the file each time

    def __init__(self, settings: dict[str, Any]) -> None:
        self._path, self._label, self._seconds = Path(settings["path"]), settings["label"], settings["seconds"]
        self._connection: sqlite3.Connection | None = None
        self._deadline = 0.0
        self._denied = ""
        self._opened()

    def _opened(self) -> sqlite3.Connection:
        """A new connection: the file may have been replaced since the last question."""
        if self._connection:
            self._connection.close()
        self._denied = ""
        if not self._path.is_file():
            raise ReadError("gone", f"there is no file {self._label}", self._path.name)
        try:
            self._connection = self._open()
        except sqlite3.Error as error:
            raise self._read_error(error) from None
        return self._connection

    def _open(self) -> sqlite3.Connection:
        uri = self._path.resolve().as_uri() + "?mode=ro"
        # A file in WAL mode that nobody has open needs files beside it, which would be written: it does not change
        # while it is read, and is read as it is.
        with self._path.open("rb") as file:
            is_wal = file.read(20)[18:20] == b"\x02\x02"
        if is_wal and not os.path.exists(f"{self._path}-wal"):
            uri += "&immutable=1"
        connection = sqlite3.connect(uri, uri=True, timeout=_LOCKED, isolation_level=None)
        for pragma in ("query_only = 1", "trusted_schema = 0", "temp_store = 2", "mmap_size = 0"):
            connection.execute(f"pragma {pragma}")
        connection.text_factory = _decoded
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        rows = connection.execute(
            "select name, sql from sqlite_master where type in ('table', 'view') and substr(name, 1, 7) <> 'sqlite_'"
        ).fetchall()
        self._names = [str(name) for name, _ in rows]
        virtual = [str(name) for name, sql in rows if re.match(r"\s*create\s+virtual", sql or "", re.IGNORECASE)]
        for name in [*map(_quoted, virtual), *(f"{function}('[]')" for function in sorted(_TABLE_FUNCTIONS))]:
            with contextlib.suppress(sqlite3.Error):  # what they prepare for themselves, before all of it is denied
                connection.execute(f"select * from {name} limit 1").fetchall()
        shadows = ("_data", "_idx", "_content", "_docsize", "_config", "_node", "_parent", "_rowid")
        self._shown = [name for name in self._names if not any(name == v + end for v in virtual for end in shadows)]
        self._allowed = frozenset(name.casefold() for name in [*self._names, *_TABLE_FUNCTIONS])
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._is_late, _OPERATIONS)
        return connection

    def _authorize(self, action: int, one: str | None, two: str | None, *_: Any) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            # Of a common table that is only counted, SQLite names neither table nor column.
            if (one or "").casefold() in self._allowed or not two:
                return sqlite3.SQLITE_OK
            self._denied = f"{one} is not for queries; describe lists the tables"
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION:
            if (two or "").lower() in _ALLOWED_FUNCTIONS:
                return sqlite3.SQLITE_OK
            self._denied = f"{two}() is not for queries"
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA and one == "data_version" and two is None:  # full-text search looks at it
            return sqlite3.SQLITE_OK
        self._denied = self._denied or "only a SELECT is run, which may begin with WITH"
        return sqlite3.SQLITE_DENY

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def tables(self) -> list[dict[str, Any]]:
        connection = self._opened()
        return [self._described(connection, name) for name in self._shown]

    def _described(self, connection: sqlite3.Connection, name: str) -> dict[str, Any]:
        quoted = _quoted(name)
        self._deadline = time.monotonic() + _COUNTED
        connection.set_authorizer(None)
        try:
            found = connection.execute(f"pragma table_info({quoted})").fetchall()
            columns = [[str(row[1]), str(row[2]) or "ANY"] for row in found]
        except sqlite3.Error as error:
            raise self._read_error(error) from None
        finally:
            connection.set_authorizer(self._authorize)
        count = None
        with contextlib.suppress(sqlite3.Error):  # too many rows to count, or a view that is broken
            count = connection.execute(f"select count(*) from {quoted}").fetchone()[0]
        return {"name": name, "row_count": count, "columns": columns}

    def query(self, sql: str, rows: int, size: int) -> tuple[dict[str, Any], bytes]:
        connection, self._deadline = self._opened(), time.monotonic() + self._seconds
        try:
            cursor = connection.execute(sql)
            names = [str(column[0]) for column in cursor.description or ()]
            values, used, more = list[list[Any]](), 0, False
            while batch := cursor.fetchmany(_BATCH):
                for row in batch:
                    values.append([_plain(value) for value in row])
                    used += sum(len(value) if isinstance(value, str) else 8 for value in values[-1])
                    if len(values) > rows or used > size:
                        more = True
                        break
                if more:
                    values.pop()
                    break
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._read_error(error) from None
        if not names:
            raise ReadError("refused", "only a SELECT is run, which may begin with WITH")
        types = [[name, _type_of(row[at] for row in values)] for at, name in enumerate(names)]
        return {"form": "json", "columns": types, "rows": len(values), "more": more}, json.dumps(values).encode()

    def _read_error(self, error: Exception) -> ReadError:
        text = " ".join(str(error).split())[:600]
        if self._denied or _DENIED.search(text):
            return ReadError("refused", self._denied or text)
        if text == "interrupted":
            return ReadError("time", "it takes longer than a query may")
        if "locked" in text or "busy" in text:
            return ReadError("locked", f"{self._label} is locked by a program that writes to it")
        if "one statement at a time" in text:
            return ReadError("refused", "one SELECT is run at a time, and there are several statements")
        if "too big" in text or "out of memory" in text:
            return ReadError("memory", "it needs more memory than a query may have")
        if "disk I/O error" in text or "readonly" in text:  # a log of changes that nobody has open
            return ReadError("gone", f"{self._label} has changes that its program has not finished: open it there once")
        if "not a database" in text or "unable to open" in text or "malformed" in text:
            return ReadError("gone", f"{self._label} cannot be read: {text}")
        if found := _UNKNOWN.search(text):
            kind, name = found.groups()
            return ReadError("column" if kind == "column" else "table", f"there is no {kind} {name}", name)
        return ReadError("other", text)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    return value


def _type_of(values: Iterable[Any]) -> str:
    """The type of a column, of its values; SQLite's columns have none."""
    kinds: set[type[Any]] = {type(value) for value in values if value is not None}
    if kinds <= {int}:
        return "INTEGER" if kinds else "NULL"
    return "REAL" if kinds <= {int, float} else "TEXT"


def open_reader(settings: dict[str, Any]) -> SqliteReader:
    """The reader of the file in `settings`.

    Raises:
        ReadError: It is not there, or not a database of SQLite.
    """
    return SqliteReader(settings)
