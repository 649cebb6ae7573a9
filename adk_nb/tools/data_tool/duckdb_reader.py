"""Frames and files in DuckDB, in memory: queries that are one SELECT over the given tables.

DuckDB's own switches do not hold alone: `WITH x AS (INSERT ...)` and `WITH x AS (COPY ...)` are SELECTs to its parser,
and `json_execute_serialized_sql` runs what it is given. So each statement is parsed, and its tree may have nothing but
what is listed here.
"""

import glob
import json
import re
from collections.abc import Iterator
from typing import Any, cast

import duckdb
import pyarrow

from adk_nb.tools.data_tool.read_error import ReadError

_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLE_REFS = frozenset(
    {"BASE_TABLE", "JOIN", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT", "COLUMN_DATA"}
)
_TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree"})
_REFUSED = re.compile(
    r"(?:current_setting|getvariable|getenv|write_log|(?:pg_)?sleep\w*|nextval|setval|currval|current_query\w*"
    r"|__internal\w*|\w*serialized?_(?:sql|plan)\w*|\w*_scan)",
    re.IGNORECASE,
)
"""Functions that say or do something about the process, not about the data."""
_READ = {
    "csv": "read_csv",
    "tsv": "read_csv",
    "parquet": "read_parquet",
    "jsonl": "read_ndjson",
    "ndjson": "read_ndjson",
}
_BATCH = 10_000
arrow: Any = pyarrow
_UNKNOWN_COLUMN = re.compile(r'Referenced column "(.+?)" not found|does not have a column named "(.+?)"')
_UNKNOWN_TABLE = re.compile(r'(?:Table with name "?(.+?)"? does not exist|Referenced table "(.+?)" not found)')


class DuckDbReader:
    """A connection that is locked once its tables are there."""

    opens_files = False

    def __init__(self, settings: dict[str, Any]) -> None:
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "threads": str(settings["threads"]),
                "temp_directory": "",
                "max_execution_time": str(int(settings["seconds"] * 1_000)),
                "python_enable_replacements": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
                "allow_persistent_secrets": "false",
                "preserve_insertion_order": "true",
            },
        )
        self._names: dict[str, str] = {}
        self._tables = [self._add(name, source) for name, source in settings["tables"].items()]
        used = self._connection.execute("select memory_usage_bytes from duckdb_memory()").fetchall()
        total = sum(int(row[0]) for row in used) + settings["memory"]
        for statement in (
            f"set memory_limit = '{total // 2**20 + 1}MiB'",
            "set enable_external_access = false",
            "set lock_configuration = true",
        ):
            self._connection.execute(statement)

    def _add(self, name: str, source: dict[str, str]) -> dict[str, Any]:
        """Make a table, and return what it has."""
        quoted = '"' + name.replace('"', '""') + '"'
        self._names[name.casefold()] = name
        if "arrow" in source:
            table = arrow.ipc.open_file(arrow.memory_map(source["arrow"])).read_all()
            self._connection.register(name, table)
            count = table.num_rows
        else:
            path, label = source["file"], source["label"]
            function = _READ[path.rpartition(".")[2].lower()]
            try:
                self._connection.execute(f"create table {quoted} as select * from {function}(?)", [glob.escape(path)])
            except duckdb.Error as error:
                raise ReadError("gone", f"{label} cannot be read: {_first_lines(error)}") from None
            [count] = self._connection.execute(f"select count(*) from {quoted}").fetchone() or [0]
        columns = self._connection.execute(f"select * from {quoted} limit 0").description or []
        self._connection.abort()
        return {"name": name, "row_count": count, "columns": [[str(column[0]), str(column[1])] for column in columns]}

    def tables(self) -> list[dict[str, Any]]:
        return self._tables

    def query(self, sql: str, rows: int, size: int) -> tuple[dict[str, Any], bytes]:
        self._check(sql)
        self._connection.execute("begin transaction read only")
        try:
            # Not `execute`, whose results are copied once more.
            relation = self._connection.sql(sql)
            types = [[str(name), str(kind)] for name, kind in zip(relation.columns, relation.types, strict=True)]
            reader = relation.to_arrow_reader(_BATCH)
            batches, count, used, more = list[Any](), 0, 0, False
            for batch in reader:
                if count + batch.num_rows > rows or used + batch.nbytes > size:
                    kept = min(rows - count, int(batch.num_rows * max(0, size - used) / max(1, batch.nbytes)))
                    batches, count, more = [*batches, batch.slice(0, kept)], count + kept, True
                    break
                batches.append(batch)
                count, used = count + batch.num_rows, used + batch.nbytes
            schema = reader.schema
            reader.close()
        except duckdb.Error as error:
            raise _read_error(error) from None
        finally:
            self._connection.abort()
            self._connection.execute("rollback")
        sink = arrow.BufferOutputStream()
        with arrow.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return {"form": "arrow", "columns": types, "rows": count, "more": more}, sink.getvalue().to_pybytes()

    def _check(self, sql: str) -> None:
        """Raise a ReadError unless the text is one SELECT that has nothing but what is listed."""
        try:
            found = self._connection.execute("select json_serialize_sql(?::varchar)", [sql]).fetchone()
        except duckdb.Error as error:
            raise _read_error(error) from None
        finally:
            self._connection.abort()
        tree: dict[str, Any] = json.loads(found[0] if found else "{}")
        if tree.get("error"):
            text = str(tree.get("error_message", "it cannot be parsed"))
            if "Only SELECT" in text:
                raise ReadError("refused", "only a SELECT is run, which may begin with WITH")
            raise ReadError("other", text.strip())
        statements: list[Any] = tree.get("statements", [])
        if len(statements) != 1:
            raise ReadError("refused", f"one SELECT is run at a time, and there are {len(statements)} statements")
        nodes = list(_nodes(statements))
        named = {str(entry["key"]).casefold() for node in nodes for entry in _common_tables(node)}
        for node in nodes:
            kind: Any = node.get("type")
            if not isinstance(kind, str):
                continue
            if kind.endswith("_NODE") and kind not in _NODES:
                raise ReadError("refused", f"only SELECT is run, and there is {kind.partition('_')[0]} in it")
            if ("sample" in node and "alias" in node and kind not in _TABLE_REFS) or kind == "SHOW_REF":
                raise ReadError("refused", f"{kind} is not for queries")
            if kind == "BASE_TABLE":
                self._check_table(node, named)
            elif kind == "TABLE_FUNCTION":
                self._check_table_function(node)
            if "function_name" in node and _REFUSED.fullmatch(str(node["function_name"])):
                raise ReadError("refused", f"{node['function_name']}() is not for queries")

    def _check_table(self, node: dict[str, Any], named: set[str]) -> None:
        name, path = str(node.get("table_name", "")), node.get("qualified_name", {}).get("path", [])
        is_ours = name.casefold() in self._names
        if is_ours and [str(part).casefold() for part in path[:-1]] in ([], ["main"]):
            return
        if len(path) == 1 and name.casefold() in named:
            return
        raise ReadError("table", f"there is no table {'.'.join(map(str, path)) or name}", str(name))

    def _check_table_function(self, node: dict[str, Any]) -> None:
        function = cast(dict[str, Any], node.get("function") or {})
        name = str(function.get("function_name", ""))
        if name.lower() not in _TABLE_FUNCTIONS:
            raise ReadError("refused", f"{name}() is not for queries")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a tree; not by recursion, which a query could exhaust."""
    waiting: list[Any] = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield cast(dict[str, Any], value)
            waiting.extend(cast(dict[str, Any], value).values())
        elif isinstance(value, list):
            waiting.extend(cast(list[Any], value))


def _common_tables(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The common tables that a node names, and a recursive one."""
    tables: dict[str, Any] = node.get("cte_map") or {}
    entries: list[dict[str, Any]] = tables.get("map") or []
    return [*entries, {"key": node["cte_name"]}] if node.get("cte_name") else entries


def _read_error(error: duckdb.Error) -> ReadError:
    text = _first_lines(error)
    if isinstance(error, duckdb.InterruptException):
        return ReadError("time", "it takes longer than a query may")
    if isinstance(error, duckdb.OutOfMemoryException) or "bad allocation" in text or "std::bad_alloc" in text:
        return ReadError("memory", "it needs more memory than a query may have")
    for reason, pattern in (("column", _UNKNOWN_COLUMN), ("table", _UNKNOWN_TABLE)):
        if found := pattern.search(text):
            name = next(filter(None, found.groups()))
            return ReadError("column" if reason == "column" else "table", f"there is no {reason} {name}", name)
    return ReadError("other", text)


def _first_lines(error: Exception) -> str:
    """The engine's words, without the query and its list of hints."""
    text = str(error)
    for end in ("\n\nLINE ", "Possible solutions", ' Use "SET '):
        text = text.partition(end)[0]
    return " ".join(" ".join(text.split("\n")[:6]).split())[:600]


def open_reader(settings: dict[str, Any]) -> DuckDbReader:
    """The reader of the tables in `settings`.

    Raises:
        ReadError: A file cannot be read.
    """
    return DuckDbReader(settings)
