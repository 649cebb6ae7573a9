"""A PostgreSQL database: a role that can only read, a transaction that is never committed, and a cursor.

A read-only transaction can be made one that writes, by `set transaction read write` before its first query and by
`commit; begin`. So a query runs in a cursor, which takes one SELECT and nothing else, after another query, and with a
role that has no right to write.
"""

import contextlib
import json
import re
import threading
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import pq
from psycopg.sql import SQL, Identifier
from psycopg.types.string import TextLoader

from adk_nb.tools.data_tool.read_error import ReadError

_AS_TEXT = ("date", "timestamp", "timestamptz", "time", "timetz", "interval")
"""Types of PostgreSQL that have more values than Python's."""
_CONNECT_SECONDS = 5
_BATCH = 500
_REFUSED = re.compile(
    r"\b(pg_sleep\w*|pg_terminate_backend|pg_cancel_backend|pg_(?:try_)?advisory\w*|pg_read_\w+|pg_ls_\w+|pg_stat_file"
    r"|pg_notify|pg_logical_\w+|set_config|current_setting|nextval|setval|lo_\w+|loread|lowrite|dblink\w*"
    r"|(?:query|cursor|table|schema|database)_to_xml\w*|ts_stat|ts_rewrite|pg_switch_wal|pg_reload_conf"
    r"|pg_rotate_logfile\w*|pg_create_\w+|pg_file_\w+|pg_export_snapshot)\b|\b(u&)",
    re.IGNORECASE,
)
"""Functions that do something, and the spelling in which any name could be hidden."""
_OTHER_STATEMENTS = """
abort alter analyze begin call checkpoint close cluster comment commit copy create deallocate declare delete discard
do drop end execute explain fetch grant import insert listen load lock merge move notify prepare reassign refresh
reindex release reset revoke rollback savepoint security set show start truncate unlisten update vacuum
"""
_ROLES = (
    "pg_write_all_data", "pg_write_server_files", "pg_read_server_files", "pg_execute_server_program",
    "pg_signal_backend", "pg_checkpoint", "pg_maintain", "pg_create_subscription",
)  # fmt: skip
_RIGHTS = """
select case
    when r.rolsuper then 'is a superuser'
    when r.rolreplication then 'may replicate'
    when r.rolcreaterole then 'may create roles'
    when r.rolcreatedb then 'may create databases'
    when has_database_privilege(current_database(), 'create') then 'may create schemas in this database'
end,
(select 'is a member of ' || g.rolname from pg_roles g
    where g.rolname = any(%s) and pg_has_role(current_user, g.oid, 'member') limit 1),
(select 'may write to ' || c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'f') and n.nspname not in ('pg_catalog', 'information_schema')
    and n.nspname not like 'pg\\_t%%' and has_schema_privilege(n.oid, 'usage')
    and (has_table_privilege(c.oid, 'insert, update, delete, truncate')
        or has_any_column_privilege(c.oid, 'insert, update')) limit 1),
(select 'may create tables in the schema ' || nspname from pg_namespace
    where nspname not like 'pg\\_%%' and nspname <> 'information_schema' and has_schema_privilege(oid, 'create')
    limit 1)
from pg_roles r where r.rolname = current_user
"""
_TABLES = """
select n.nspname, c.relname, c.reltuples::bigint,
    array_agg(array[a.attname::text, format_type(a.atttypid, a.atttypmod)] order by a.attnum)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema')
    and n.nspname not like 'pg\\_t%%' and has_schema_privilege(n.oid, 'usage')
    and has_any_column_privilege(c.oid, 'select')
group by 1, 2, 3 order by n.nspname <> 'public', 1, 2 limit 2000
"""
_COUNTED = 100_000
"""Rows up to which they are counted rather than estimated."""


class PostgresReader:
    """A connection of a role that cannot write; each answer is a transaction, which is rolled back."""

    opens_files = True  # a time-out needs a second connection

    def __init__(self, settings: dict[str, Any]) -> None:
        self._label, self._seconds = settings["label"], settings["seconds"]
        try:
            self._connection = psycopg.connect(
                settings["url"], connect_timeout=_CONNECT_SECONDS, application_name="adk_nb", prepare_threshold=None
            )
            self._connection.read_only = True
            for name in _AS_TEXT:
                self._connection.adapters.register_loader(name, TextLoader)
            rights: Any = self._connection.execute(_RIGHTS, [list(_ROLES)]).fetchone()
            role = self._connection.info.user
            self._connection.rollback()
        except (psycopg.Error, UnicodeError) as error:
            raise ReadError("gone", f"{self._label} cannot be reached: {_first_line(error)}") from None
        if right := next(filter(None, rights or ["is unknown"]), None):
            raise ReadError("refused", f"the role {role} {right}", role)

    def tables(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        with self._in_time():
            for schema, name, estimate, columns in self._connection.execute(_TABLES).fetchall():
                label = name if schema == "public" else f"{schema}.{name}"
                found.append({"name": label, "row_count": None, "columns": columns})
                if estimate >= 0:
                    found[-1]["row_count"] = estimate
                if estimate < _COUNTED and len(found) <= 50:
                    identifier = Identifier(schema, name)
                    with contextlib.suppress(psycopg.errors.InsufficientPrivilege), self._connection.transaction():
                        statement = SQL("select count(*) from (select from {} limit {}) counted")
                        counted = self._connection.execute(statement.format(identifier, _COUNTED)).fetchone()
                        found[-1]["row_count"] = counted and (counted[0] if counted[0] < _COUNTED else None)
        return found

    def query(self, sql: str, rows: int, size: int) -> tuple[dict[str, Any], bytes]:
        if found := _REFUSED.search(sql):
            raise ReadError("refused", f"{found[1] or found[2]} is not for queries")
        with self._in_time():
            # After a query the transaction can only read. And dates as ISO, whatever the server is set to.
            self._connection.execute("select set_config('datestyle', 'ISO, YMD', true)")
            values, used, more = list[list[Any]](), 0, False
            with self._connection.cursor(name="adk_nb") as cursor:
                cursor.itersize = _BATCH
                cursor.execute(sql.rstrip().rstrip(";").encode())
                columns = cursor.description or []
                types = [[column.name, self._type(column.type_code)] for column in columns]
                while not more and (batch := cursor.fetchmany(_BATCH)):
                    for row in batch:
                        values.append([_plain(value) for value in row])
                        used += sum(len(value) if isinstance(value, str) else 8 for value in values[-1])
                        if len(values) > rows or used > size:
                            values.pop()
                            more = True
                            break
        return {"form": "json", "columns": types, "rows": len(values), "more": more}, json.dumps(values).encode()

    def _type(self, oid: int) -> str:
        known = self._connection.adapters.types.get(oid)
        return known.name if known else "other"

    @contextlib.contextmanager
    def _in_time(self) -> Any:
        """A transaction that is rolled back, and cancelled when it is late."""
        late = threading.Event()

        def cancel() -> None:
            late.set()
            with contextlib.suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_CONNECT_SECONDS)

        timer = threading.Timer(self._seconds, cancel)
        timer.start()
        try:
            yield
        except psycopg.Error as error:
            raise self._read_error(error, is_late=late.is_set()) from None
        finally:
            timer.cancel()
            with contextlib.suppress(psycopg.Error):
                self._connection.rollback()

    def _read_error(self, error: psycopg.Error, *, is_late: bool) -> ReadError:
        text = _first_line(error)
        if is_late or isinstance(error, psycopg.errors.QueryCanceled):
            return ReadError("time", "it takes longer than a query may")
        if self._connection.info.status == pq.ConnStatus.BAD:
            return ReadError("gone", f"{self._label} cannot be reached any more: {text}")
        if isinstance(error, psycopg.errors.UndefinedColumn):
            return ReadError("column", text, _quoted_name(text))
        if isinstance(error, psycopg.errors.UndefinedTable):
            return ReadError("table", text, _quoted_name(text))
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction | psycopg.errors.InsufficientPrivilege):
            return ReadError("refused", text)
        if "data-modifying" in text or "INTO is not allowed" in text:
            return ReadError("refused", "only a SELECT is run, and it may not write")
        if "cannot insert multiple commands" in text:
            return ReadError("refused", "one SELECT is run at a time, and there are several statements")
        if isinstance(error, psycopg.errors.SyntaxError) and _begins_otherwise(text):
            return ReadError("refused", "only a SELECT is run, which may begin with WITH")
        if "out of memory" in text:
            return ReadError("memory", "it needs more memory than a query may have")
        return ReadError("other", text)


def _begins_otherwise(text: str) -> bool:
    """True if the cursor has found another statement than a SELECT."""
    word = re.search(r'at or near "(\w+)"', text)
    return word is not None and word[1].lower() in _OTHER_STATEMENTS.split()


def _quoted_name(text: str) -> str:
    found = re.search(r'"(.+?)"', text) or re.search(r"column (\S+) does not exist", text)
    return found[1] if found else ""


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("LINE ", "^", "HINT:", "CONTEXT:", "Is the server "))]
    return " ".join(kept)[:600]


def _plain(value: Any) -> Any:
    """A value as JSON."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)


def open_reader(settings: dict[str, Any]) -> PostgresReader:
    """The reader of the database in `settings`.

    Raises:
        ReadError: It cannot be reached, or the role may write.
    """
    return PostgresReader(settings)
