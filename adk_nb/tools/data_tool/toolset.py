"""Frames, files and databases as tools: `describe`, and `query` for one SELECT at a time.

Nothing is written, nothing but the data is read, and no query runs past its limits. What holds a model back are the
engines' parsers and authorizers (`duckdb_reader`, `sqlite_reader`, `postgres_reader`) and a process of its own, which
has no right to write files, limited memory, and is killed when it is late.
"""

import contextlib
import datetime as dt
import json
import shutil
import tempfile
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Literal

from adk_nb import sync
from adk_nb.errors import ConfigurationError, InputError, UserError, closest
from adk_nb.lazy import require, require_installed
from adk_nb.redaction import hidden, redacted, remember_url
from adk_nb.runtime.context import ReadonlyContext, ToolContext, call_state
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.conditions import Condition
from adk_nb.tools.data_tool import answers, frames
from adk_nb.tools.data_tool.frames import Version, library_of
from adk_nb.tools.data_tool.read_error import ReadError
from adk_nb.tools.data_tool.reader_process import ReaderProcess
from adk_nb.tools.function_tool import FunctionTool

_EXTRA = "adk-nb[data]"
_MAX_BYTES = 256 * 1024 * 1024
"""Of a whole result."""
_EXAMPLES, _MAX_EXAMPLE_COLUMNS = 5, 100
_THREADS = 4
"""That wait for answers, of all toolsets together."""
_TIMES = frozenset({"timestamp", "timestamptz", "date"})
_MAKE_ROLE = (
    "make one that may only read: create role reader login password '…'; grant pg_read_all_data to reader; "
    "then write postgresql://reader:…@host/database"
)
"""What to type where a role may write."""
Keep = Callable[[Any], str]


class _ReadingToolset(BaseToolset):
    """The common part of the toolsets of frames and of databases."""

    dialect = ""
    """The SQL that it takes, as a model knows it."""

    def __init__(
        self,
        *,
        seconds: float,
        memory: int,
        max_rows: int,
        keep: Keep | None,
        require_confirmation: Condition,
        tool_filter: ToolPredicate | Sequence[str] | None,
        tool_name_prefix: str | None,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        for name, value in (("seconds", seconds), ("memory", memory), ("max_rows", max_rows)):
            if not value > 0:
                raise ConfigurationError(f"{type(self).__name__}: {name} must be more than 0, got {value!r:.40}")
        self.require_confirmation = require_confirmation
        self._limits = {"seconds": seconds, "memory": memory, "threads": 2}
        self._seconds, self._memory, self._max_rows, self._keep = seconds, memory, max_rows, keep
        self._lock = threading.Lock()
        self._process: ReaderProcess | None = None
        self._tools: list[BaseTool] = [
            FunctionTool(
                self.describe,
                effect="pure",
                description="List the tables, with their columns, types and number of rows. Of one table: example rows "
                "too. `like`: only columns with one of these words in their name.",
            ),
            FunctionTool(
                self.query,
                effect="pure",
                require_confirmation=require_confirmation,
                description=f"Run one SELECT, in the SQL of {self.dialect}, and get its columns, the number of its "
                f"rows and the first {answers.MAX_ROWS}. Let SQL count, sum and filter. Nothing can be changed.",
            ),
        ]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return self._tools

    async def close(self) -> None:
        """End the process that reads; the next question starts another one."""
        with self._lock:
            self._end()

    # ---- the tools

    async def describe(self, table: str = "", like: str = "") -> dict[str, Any]:
        """List the tables with their columns, types and counts; of one table example rows, too."""
        return await self._in_a_thread(partial(self._describe, table, like))

    async def query(self, sql: str, tool_context: ToolContext) -> dict[str, Any]:
        """Run one SELECT; returns its columns, the number of its rows, and the first of them."""
        answer, shown = await self._in_a_thread(partial(self._query, sql))
        if shown:  # for the person who reads along
            call_state(tool_context).display = shown
        return answer

    async def _in_a_thread(self, work: Callable[[], Any]) -> Any:
        def give_up(_: Future[Any]) -> None:
            if process := self._process:
                process.close()

        return await sync.blocking(work, thread=True, threads=_THREADS, on_abandon=give_up)

    def _describe(self, table: str, like: str) -> dict[str, Any]:
        try:
            with self._lock:
                tables: list[answers.Table] = self._ask({"do": "tables"})[0]["tables"]
        except (ReadError, UserError) as error:
            return {"error": hidden(self._sentence(error, []))}
        if not tables:
            return {"tables": [], "note": f"{self._label} has no tables"}
        if table:
            names = {entry["name"].casefold(): entry for entry in tables}
            if (found := names.get(table.casefold())) is None:
                return {"error": f"there is no table {table}; {answers.unknown_name('table', table, tables)}"}
            tables = [found]
        listed = answers.tables_answer(tables, like)
        if like and not listed["tables"]:
            return {"error": f"no table and no column has {like!r} in its name; leave `like` out"}
        if len(tables) > 1 or like or len(tables[0]["columns"]) > _MAX_EXAMPLE_COLUMNS:
            return listed
        return listed | self._examples(tables[0], answers.MAX_CHARS - len(json.dumps(listed, ensure_ascii=False)))

    def _examples(self, table: answers.Table, room: int) -> dict[str, Any]:
        """The first rows of a table, as far as there is room for them."""
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in self._parts_of(table["name"]))
        with self._lock, contextlib.suppress(ReadError, UserError):
            header, rows, _ = self._rows(f"select * from {quoted} limit {_EXAMPLES}", _EXAMPLES)
            examples = answers.rows_answer(header["columns"], rows)["rows"]
            while examples and len(json.dumps(examples, ensure_ascii=False)) > room - 20:
                examples.pop()
            return {"examples": examples} if examples else {}
        return {}

    def _parts_of(self, name: str) -> list[str]:
        return [name]

    def _query(self, sql: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What the model gets, and what a person sees."""
        with self._lock:
            try:
                header, rows, frame = self._rows(sql, self._max_rows)
            except (ReadError, UserError) as error:
                tables: list[answers.Table] = []
                if isinstance(error, ReadError) and error.reason in ("column", "table"):
                    with contextlib.suppress(ReadError, UserError):
                        tables = self._ask({"do": "tables"})[0]["tables"]
                return {"error": hidden(self._sentence(error, tables))}, []
        columns, count = header["columns"], header["rows"]
        facts: dict[str, Any] = {"row_count": count}
        if self._keep:
            facts["frame"] = self._keep(frame)
        if header["more"]:
            facts["note"] = f"there are more rows; these are the first {count:,}: let SQL count, sum or filter them"
        code = {"kind": "code", "language": "sql", "text": str(redacted(sql.strip()))}
        return answers.rows_answer(columns, rows, **facts), [code, answers.shown_table(columns, rows, count)]

    # ---- the process

    def _rows(self, sql: str, most: int) -> tuple[dict[str, Any], list[list[Any]], Any]:
        """Run a query; returns the header, the first rows, and all of them as a frame."""
        header, payload = self._ask({"do": "query", "sql": sql, "rows": most, "size": _MAX_BYTES})
        if header["form"] == "arrow":
            table = _arrow_table(payload)
            head = table.slice(0, answers.MAX_ROWS)
            rows = [list(row) for row in zip(*(column.to_pylist() for column in head.columns), strict=True)]
            return header, rows, frames.frame_of_arrow(table, self._library())
        values: list[list[Any]] = json.loads(payload)
        names = frames.unique_names(name for name, _ in header["columns"])
        frame = frames.frame_of_columns(names, _with_times(values, header["columns"]), self._library())
        return header, values[: answers.MAX_ROWS], frame

    def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Ask the process, which is started, or once more if it or its connection is gone. The lock must be held."""
        was_there = self._process is not None and self._process.is_alive
        try:
            return self._current().ask(request)
        except ReadError as error:
            if error.reason != "gone":
                raise
            self._end()
            if not was_there:
                raise
        return self._current().ask(request)

    def _current(self) -> ReaderProcess:
        """The process that reads the data as it is now."""
        is_new = self._is_new()
        if self._process is None or not self._process.is_alive or is_new:
            self._end()
            self._process = self._start()
        return self._process

    def _end(self) -> None:
        if self._process:
            self._process.close()
        self._process = None

    def _is_new(self) -> bool:
        """True if the data has changed in a way that a running process does not see."""
        return False

    @abstractmethod
    def _start(self) -> ReaderProcess:
        """A process that reads the data as it is now."""

    @property
    @abstractmethod
    def _label(self) -> str:
        """The data, in an error."""

    def _library(self) -> str:
        """The library of the frames that results become."""
        return frames.frame_library()

    def _sentence(self, error: ReadError | UserError, tables: Sequence[answers.Table]) -> str:
        """An error with what to do."""
        text = str(error)
        if isinstance(error, UserError):
            return text
        if error.reason in ("column", "table") and tables:
            return f"{text}; {answers.unknown_name(error.reason, error.name, tables)}"
        more = {
            "time": f": {self._seconds:g} s; let SQL look at fewer rows, or give the toolset more seconds",
            "memory": f": {self._memory / 2**20:,.0f} MB; let SQL count or filter, or give the toolset more memory",
            "refused": "; write one SELECT over the tables of describe",
            "locked": "; wait until it has ended, and ask again",
        }
        return f"{text}{more.get(error.reason, '')}"


class DataToolset(_ReadingToolset):
    """Frames and files as tables: a model asks for them in SQL, which DuckDB runs in a process of its own.

    A frame that was changed, or a file that was written again, is noticed at the next question.

    Args:
        tables: Name of a table -> a frame of pandas, polars or Arrow; the path of a file of CSV, Parquet or JSON lines;
            or a function that returns the frame as it is now.
        seconds: The longest time of a query.
        memory: The most bytes of memory of a query, beside the data.
        max_rows: The most rows of a result.
        keep: Gets each whole result as a frame, and returns the name that the model is told.
        require_confirmation: As in `FunctionTool`, of `query`, whose argument is `sql`.
        tool_filter: As in `BaseToolset`.
        tool_name_prefix: As in `BaseToolset`.

    Raises:
        ConfigurationError: There is no table, or one is neither a frame nor a file.
        MissingExtraError: DuckDB or pyarrow is not installed.
    """

    dialect = "DuckDB"

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        seconds: float = 5,
        memory: int = 512 * 1024 * 1024,
        max_rows: int = 1_000_000,
        keep: Keep | None = None,
        require_confirmation: Condition = False,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        super().__init__(
            seconds=seconds, memory=memory, max_rows=max_rows, keep=keep, require_confirmation=require_confirmation,
            tool_filter=tool_filter, tool_name_prefix=tool_name_prefix,
        )  # fmt: skip
        for module in ("duckdb", "pyarrow"):
            require_installed(module, package=_EXTRA)
        if not tables:
            raise ConfigurationError('DataToolset: there is no table; write DataToolset({"sales": df})')
        self._sources = {name: _checked_source(name, source) for name, source in tables.items()}
        self._versions: dict[str, Version | tuple[Any, ...]] = {}
        self._frames: dict[str, Any] = {}

    @property
    def _label(self) -> str:
        return ", ".join(self._sources)

    def _library(self) -> str:
        libraries = (version.library for version in self._versions.values() if isinstance(version, Version))
        return frames.frame_library(next(libraries, ""))

    def _is_new(self) -> bool:
        self._frames = {name: self._frame(name) for name in self._sources}
        return self._versions.keys() != self._frames.keys() or not all(
            known.is_of(self._frames[name]) if isinstance(known, Version) else known == _state_of(self._frames[name])
            for name, known in self._versions.items()
        )

    def _frame(self, name: str) -> Any:
        """A frame, or the path of a file, as it is now."""
        source = self._sources[name]
        value = source() if callable(source) else source
        if isinstance(value, Path):
            if not value.is_file():
                near = closest(value.name, [entry.name for entry in value.parent.glob("*")])
                hint = f"; did you mean {near}?" if near else "; run the cell that makes it, or name another file"
                raise InputError(f"there is no file {value}{hint}")
        elif not library_of(value):
            raise InputError(
                f"table {name}: {type(value).__name__} is no frame; give it one of pandas, polars or Arrow"
            )
        return value

    def _start(self) -> ReaderProcess:
        folder = Path(tempfile.mkdtemp(prefix="adk-nb-data-"))
        try:
            tables: dict[str, dict[str, str]] = {}
            versions: dict[str, Version | tuple[Any, ...]] = {}
            for number, (name, value) in enumerate(self._frames.items()):
                if isinstance(value, Path):
                    versions[name] = _state_of(value)
                    tables[name] = {"file": str(value.resolve()), "label": value.name}
                    continue
                versions[name] = Version(value)
                tables[name] = {"arrow": str(folder / f"{number}.arrow")}
                frames.write_arrow(value, folder / f"{number}.arrow", f"table {name}")
            process = ReaderProcess({"kind": "frames", "tables": tables, **self._limits})
        finally:
            # The process has mapped its files, which go with it; Windows keeps them until then.
            shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            weakref.finalize(process, shutil.rmtree, folder, ignore_errors=True)
        self._versions, self._frames = versions, {}
        return process


class SqlToolset(_ReadingToolset):
    """A database, to read: a file of SQLite, or PostgreSQL with a role that may only read.

    Args:
        url: `sqlite:///shop.db`, or `postgresql://reader:password@host/database`.
        seconds: As in `DataToolset`.
        memory: As in `DataToolset`.
        max_rows: As in `DataToolset`.
        keep: As in `DataToolset`.
        require_confirmation: As in `DataToolset`.
        tool_filter: As in `BaseToolset`.
        tool_name_prefix: As in `BaseToolset`.

    Raises:
        ConfigurationError: It is another URL.
        MissingExtraError: psycopg is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        seconds: float = 5,
        memory: int = 512 * 1024 * 1024,
        max_rows: int = 1_000_000,
        keep: Keep | None = None,
        require_confirmation: Condition = False,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        remember_url(url)
        scheme, _, rest = url.partition("://")
        engine = scheme.partition("+")[0]
        self._kind: Literal["sqlite", "postgresql"] = "sqlite" if engine == "sqlite" else "postgresql"
        if self._kind == "sqlite" and not (rest.startswith("/") and rest[1:]):
            raise ConfigurationError(f"{hidden(url)!r:.80} names no file; write sqlite:///shop.db")
        if engine not in ("sqlite", "postgresql", "postgres"):
            raise ConfigurationError(
                f"{hidden(url)!r:.80} is no URL of a database that can be read; write sqlite:///shop.db or "
                "postgresql://reader@host/database"
            )
        if self._kind == "postgresql":
            require_installed("psycopg", package="adk-nb[db]")
        self.dialect = "SQLite" if self._kind == "sqlite" else "PostgreSQL"
        self._url = f"{engine}://{rest}"
        self._path = Path(rest[1:].partition("?")[0]).expanduser()
        super().__init__(
            seconds=seconds, memory=memory, max_rows=max_rows, keep=keep, require_confirmation=require_confirmation,
            tool_filter=tool_filter, tool_name_prefix=tool_name_prefix,
        )  # fmt: skip

    @property
    def _label(self) -> str:
        return self._path.name if self._kind == "sqlite" else "the database"

    def _start(self) -> ReaderProcess:
        facts = {"path": str(self._path.absolute())} if self._kind == "sqlite" else {"url": self._url}
        return ReaderProcess({"kind": self._kind, "label": self._label, **facts, **self._limits})

    def _parts_of(self, name: str) -> list[str]:
        return name.split(".", 1) if self._kind == "postgresql" else [name]

    def _sentence(self, error: ReadError | UserError, tables: Sequence[answers.Table]) -> str:
        if isinstance(error, UserError):
            return str(error)
        if error.reason == "refused" and str(error).startswith("the role "):
            return f"{error}; {_MAKE_ROLE}"
        if error.reason == "gone" and self._kind == "sqlite":
            files = [entry.name for entry in self._path.absolute().parent.glob("*") if entry.is_file()]
            if self._path.is_file():
                return f"{error}; then ask again, or give the toolset another file"
            near = closest(self._path.name, files)
            return f"{error}; " + (f"did you mean {near}?" if near else "give the toolset the path of another file")
        if error.reason == "gone":
            return f"{error}; start the server, or mend the address, and ask again"
        return super()._sentence(error, tables)


def _checked_source(name: str, source: Any) -> Any:
    """A frame or a function as it is; the path of a file as a Path."""
    if library_of(source) or callable(source):
        return source
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        suffix = path.suffix.lower().lstrip(".")
        if suffix not in frames.SUFFIXES:
            known = ", ".join(f".{known}" for known in frames.SUFFIXES)
            raise ConfigurationError(f"table {name}: {str(source)!r:.80} is no file that can be read; {known} can be")
        return path
    raise ConfigurationError(
        f"table {name}: {type(source).__name__} is no frame of pandas, polars or Arrow, and no file; give it one"
    )


def _state_of(path: Any) -> tuple[Any, ...]:
    """Facts of a file that change when it is written."""
    state = path.stat() if isinstance(path, Path) else None
    return (str(path), state.st_mtime_ns, state.st_size, state.st_ino) if state else ()


def _arrow_table(payload: bytes) -> Any:
    """An Arrow table of a reader's bytes, with numbers that frames can calculate with."""
    arrow = require("pyarrow", package=_EXTRA)
    table = arrow.ipc.open_stream(payload).read_all()
    table = table.rename_columns(frames.unique_names(table.column_names))
    for at, field in enumerate(table.schema):
        if not arrow.types.is_decimal(field.type):
            continue
        column = table.column(at)
        try:  # sums of whole numbers
            if field.type.scale:
                raise arrow.ArrowInvalid
            column = column.cast(arrow.int64())
        except arrow.ArrowInvalid:
            column = column.cast(arrow.float64())
        table = table.set_column(at, field.name, column)
    return table


def _with_times(rows: list[list[Any]], columns: Sequence[Sequence[str]]) -> list[list[Any]]:
    """Rows of a database, with points in time in place of their texts."""
    for at, (_, kind) in enumerate(columns):
        if kind not in _TIMES:
            continue
        try:
            read = dt.date.fromisoformat if kind == "date" else dt.datetime.fromisoformat
            times: list[Any] = [None if row[at] is None else read(row[at]) for row in rows]
        except ValueError:  # infinity, or before the year 1
            continue
        for row, time in zip(rows, times, strict=True):
            row[at] = time.astimezone(dt.UTC) if kind == "timestamptz" and time else time
    return rows
