"""Memories in an SQLite file, found by full-text search: kept across kernels."""

import json
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from adk_nb import sync, types
from adk_nb.errors import InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from adk_nb.memory.memory_entry import MemoryEntry
from adk_nb.memory.remembered import MOST, Words, entries_of, folded, kept_entry, words_of
from adk_nb.sessions.session import Session

_BUSY_SECONDS = 10.0
"""How long one writer waits for another, of this or another process."""
_VERSION = 1
_SCHEMA = (
    "create table memory_schema (version integer not null)",
    f"insert into memory_schema values ({_VERSION})",
    """create table memory_owners (
        n integer primary key, app_name text not null, user_id text not null, unique (app_name, user_id))""",
    # `searched`: the folded text, where it is not all ASCII.
    """create table memories (
        n integer primary key, owner integer not null, id text not null, session_id text, author text, timestamp text,
        content text not null, custom_metadata text not null, searched text, unique (owner, id))""",
    "create index memories_of_session on memories (owner, session_id)",
    "create table memory_deleted (owner integer not null, id text not null, primary key (owner, id)) without rowid",
    # A row for each of `memories`: its words, each with the owner before it, so that a search meets nobody else's.
    """create virtual table memory_words using fts5 (words, tokenize="ascii tokenchars '_'", detail=none)""",
)
_SEARCH = """
select content, custom_metadata, id, author, timestamp from memories join (
    select n, count(*) as score from (
        select memory_words.rowid as n from json_each(:words) as asked cross join memory_words
        where memory_words match asked.value
        union all
        select n from json_each(:inside) as asked cross join memories
        where owner = :owner and searched is not null and instr(searched, asked.value)
    ) group by n order by score desc, n limit :most
) using (n) order by score desc, n
"""
_KEEP = """
insert into memories (owner, id, session_id, author, timestamp, content, custom_metadata, searched)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (owner, id) do update set session_id = excluded.session_id, author = excluded.author,
    timestamp = excluded.timestamp, content = excluded.content, custom_metadata = excluded.custom_metadata,
    searched = excluded.searched
"""


class _Row(NamedTuple):
    """A memory as it is stored."""

    id: str
    session_id: str | None
    author: str | None
    timestamp: str | None
    content: str
    custom_metadata: str
    searched: str | None


class SqliteMemoryService(BaseMemoryService):
    """Memories in the file `db_path`, found as `InMemoryMemoryService` finds them. Several processes may share it.

    ASCII words are found by index. For others a user's memories that are not all ASCII are read through. Needs an
    SQLite with FTS5, which Python's own has had since 3.8 on all common systems.
    """

    def __init__(self, db_path: str | Path) -> None:
        """`db_path`: made when something is first kept, with its folder.

        Raises:
            InputError: It names no file.
        """
        if str(db_path) in ("", ":memory:"):
            raise InputError(f"{str(db_path)!r} is no file; pass a path, or take InMemoryMemoryService()")
        self.db_path = Path(db_path).expanduser().absolute()

    def __repr__(self) -> str:
        return f"SqliteMemoryService({str(self.db_path)!r})"

    async def add_session_to_memory(self, session: Session) -> None:
        rows = _rows(entries_of(session.events), session.id)
        await self._write(session.app_name, session.user_id, partial(_replace, session_id=_utf8(session.id), rows=rows))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        rows = _rows(entries_of(events, custom_metadata), session_id)
        await self._write(app_name, user_id, partial(_add, rows=rows))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        rows = _rows([kept_entry(one, custom_metadata) for one in memories], None)
        await self._write(app_name, user_id, partial(_set, rows=rows))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        _check_owner(app_name, user_id)
        if not (asked := words_of(folded(query))):
            return SearchMemoryResponse()
        found = await sync.service_call(partial(self._search, app_name, user_id, asked))
        return SearchMemoryResponse(memories=found)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str) -> None:
        await self._write(app_name, user_id, partial(_forget, memory_id=_utf8(memory_id)))

    async def _write(self, app_name: str, user_id: str, change: Callable[[sqlite3.Connection, int], None]) -> None:
        _check_owner(app_name, user_id)
        await sync.service_call(partial(self._change, app_name, user_id, change))

    def _change(self, app_name: str, user_id: str, change: Callable[[sqlite3.Connection, int], None]) -> None:
        """Do `change` whole or not at all."""
        with self._open() as db:
            db.execute("begin immediate")
            _make_tables(db)
            db.execute("insert or ignore into memory_owners (app_name, user_id) values (?, ?)", (app_name, user_id))
            change(db, _owner(db, app_name, user_id) or 0)
            db.execute("commit")

    def _search(self, app_name: str, user_id: str, asked: Words) -> list[MemoryEntry]:
        if not self.db_path.exists():
            return []
        with self._open() as db:
            owner = _owner(db, app_name, user_id) if _version(db) else None
            if owner is None:
                return []
            words = json.dumps([f'"{owner}_{word}"' for word in asked.ascii])
            said = {"words": words, "inside": json.dumps(asked.other), "owner": owner, "most": MOST}
            return [_entry(*found) for found in db.execute(_SEARCH, said)]

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection of its own for each use: any thread, and any process, may be the next. Closing it rolls back."""
        try:
            self.db_path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.db_path, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
                yield db
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"the memories in {str(self.db_path)!r} cannot be used: {error}") from error


def _make_tables(db: sqlite3.Connection) -> None:
    if not _version(db):
        for statement in _SCHEMA:
            db.execute(statement)


def _version(db: sqlite3.Connection) -> int:
    """The version of the tables; 0 if there are none.

    Raises:
        StorageError: They are of a version that this one does not know.
    """
    if not db.execute("select 1 from sqlite_master where name = 'memory_schema'").fetchone():
        return 0
    [version] = db.execute("select max(version) from memory_schema").fetchone()
    if version != _VERSION:
        raise StorageError(f"the memories are of version {version}, and this adk_nb reads {_VERSION}; update adk_nb")
    return version


def _owner(db: sqlite3.Connection, app_name: str, user_id: str) -> int | None:
    found = db.execute("select n from memory_owners where app_name = ? and user_id = ?", (app_name, user_id)).fetchone()
    return found[0] if found else None


def _replace(db: sqlite3.Connection, owner: int, *, session_id: str, rows: list[_Row]) -> None:
    columns = ", ".join(_Row._fields)
    of_session = f"select {columns} from memories where owner = ? and session_id = ?"
    before = {row[0]: row for row in db.execute(of_session, (owner, session_id))}
    for key in before.keys() - {row.id for row in rows}:
        _drop(db, owner, key)
    for row in rows:
        if before.get(row.id) != row and not _is_deleted(db, owner, row.id):
            _keep(db, owner, row)


def _add(db: sqlite3.Connection, owner: int, *, rows: list[_Row]) -> None:
    for row in rows:
        if _number(db, owner, row.id) is None and not _is_deleted(db, owner, row.id):
            _keep(db, owner, row)


def _set(db: sqlite3.Connection, owner: int, *, rows: list[_Row]) -> None:
    for row in rows:
        db.execute("delete from memory_deleted where owner = ? and id = ?", (owner, row.id))
        _keep(db, owner, row)


def _forget(db: sqlite3.Connection, owner: int, *, memory_id: str) -> None:
    if _number(db, owner, memory_id) is not None:
        _drop(db, owner, memory_id)
        db.execute("insert or ignore into memory_deleted values (?, ?)", (owner, memory_id))


def _keep(db: sqlite3.Connection, owner: int, row: _Row) -> None:
    db.execute(_KEEP, (owner, *row))
    words = words_of(folded(_entry(row.content, row.custom_metadata).text)).ascii
    told = " ".join(f"{owner}_{word}" for word in words)
    db.execute("insert or replace into memory_words (rowid, words) values (?, ?)", (_number(db, owner, row.id), told))


def _drop(db: sqlite3.Connection, owner: int, key: str) -> None:
    db.execute("delete from memory_words where rowid = ?", (_number(db, owner, key),))
    db.execute("delete from memories where owner = ? and id = ?", (owner, key))


def _number(db: sqlite3.Connection, owner: int, key: str) -> int | None:
    found = db.execute("select n from memories where owner = ? and id = ?", (owner, key)).fetchone()
    return found[0] if found else None


def _is_deleted(db: sqlite3.Connection, owner: int, key: str) -> bool:
    found = db.execute("select 1 from memory_deleted where owner = ? and id = ?", (owner, key)).fetchone()
    return found is not None


def _rows(entries: Iterable[MemoryEntry], session_id: str | None) -> list[_Row]:
    return [_row(entry, session_id) for entry in entries]


def _row(entry: MemoryEntry, session_id: str | None) -> _Row:
    text = folded(entry.text)
    return _Row(
        id=_utf8(entry.id or ""),
        session_id=None if session_id is None else _utf8(session_id),
        author=None if entry.author is None else _utf8(entry.author),
        timestamp=None if entry.timestamp is None else _utf8(entry.timestamp),
        content=_utf8(json.dumps(entry.content.model_dump(mode="json", exclude_none=True), ensure_ascii=False)),
        custom_metadata=json.dumps(entry.custom_metadata),
        searched=None if text.isascii() else text,
    )


def _entry(
    content: str, metadata: str, key: str | None = None, author: str | None = None, timestamp: str | None = None
) -> MemoryEntry:
    return MemoryEntry(
        content=types.Content.model_validate_json(content),
        custom_metadata=json.loads(metadata),
        id=key,
        author=author,
        timestamp=timestamp,
    )


def _utf8(text: str) -> str:
    """`text` as a file can hold it: what is half a character is a question mark."""
    return text.encode("utf-8", "replace").decode()


def _check_owner(app_name: str, user_id: str) -> None:
    for what, given in (("app_name", app_name), ("user_id", user_id)):
        if _utf8(given) != given:  # a question mark would make one user of two
            raise InputError(f"{what} {given!a} is no text that a file can hold; choose another")
