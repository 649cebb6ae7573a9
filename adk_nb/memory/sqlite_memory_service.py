"""Memories in an SQLite file with full-text search, across processes."""

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
from adk_nb.memory.memory_entry import (
    MAX_RESULTS,
    MemoryEntry,
    SearchTerms,
    ascii_words,
    event_entries,
    fold,
    search_terms,
    stored_entry,
)
from adk_nb.sessions.session import Session
from adk_nb.wire import replace_surrogates

_BUSY_SECONDS = 10.0
"""Maximum wait for another writer, of this or another process."""
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
    # One row per memory: its words, each prefixed with the owner, so that a search reads no other user's words.
    """create virtual table memory_words using fts5 (words, tokenize="ascii tokenchars '_'", detail=none)""",
)
_SEARCH = """
select content, custom_metadata, id, author, timestamp from memories join (
    select n, count(*) as score from (
        select memory_words.rowid as n from json_each(:words) as term cross join memory_words
        where memory_words match term.value
        union all
        select n from json_each(:non_ascii) as term cross join memories
        where owner = :owner and searched is not null and instr(searched, term.value)
    ) group by n order by score desc, n limit :max_results
) using (n) order by score desc, n
"""
_UPSERT = """
insert into memories (owner, id, session_id, author, timestamp, content, custom_metadata, searched)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (owner, id) do update set session_id = excluded.session_id, author = excluded.author,
    timestamp = excluded.timestamp, content = excluded.content, custom_metadata = excluded.custom_metadata,
    searched = excluded.searched
"""


class _Row(NamedTuple):
    """A stored memory."""

    id: str
    session_id: str | None
    author: str | None
    timestamp: str | None
    content: str
    custom_metadata: str
    searched: str | None


class SqliteMemoryService(BaseMemoryService):
    """Memories in the file `db_path`, searched like those of InMemoryMemoryService. Several processes may share it.

    ASCII terms are searched by index. For others, all of the user's memories that are not pure ASCII are scanned. Needs
    SQLite with FTS5, which Python's own includes on all common systems.
    """

    def __init__(self, db_path: str | Path) -> None:
        """`db_path`: created with its folder on the first write.

        Raises:
            InputError: It is not a file path.
        """
        if str(db_path) in ("", ":memory:"):
            raise InputError(f"{str(db_path)!r} is not a file path; pass a path, or use InMemoryMemoryService()")
        self.db_path = Path(db_path).expanduser().absolute()

    def __repr__(self) -> str:
        return f"SqliteMemoryService({str(self.db_path)!r})"

    async def add_session_to_memory(self, session: Session) -> None:
        """Replace the memories of the session, in one transaction."""
        rows = _rows(event_entries(session.events), session.id)
        await self._write(
            session.app_name, session.user_id, partial(_replace, session_id=replace_surrogates(session.id), rows=rows)
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the events that are not stored yet."""
        rows = _rows(event_entries(events, custom_metadata), session_id)
        await self._write(app_name, user_id, partial(_add, rows=rows))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Store the entries; a deleted id may be used again."""
        rows = _rows([stored_entry(memory, custom_metadata) for memory in memories], None)
        await self._write(app_name, user_id, partial(_overwrite, rows=rows))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Rank the user's memories by the number of matching terms."""
        _check_owner(app_name, user_id)
        if not (terms := search_terms(fold(query))):
            return SearchMemoryResponse()
        memories = await sync.service_call(partial(self._search, app_name, user_id, terms))
        return SearchMemoryResponse(memories=memories)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str) -> None:
        """Delete a memory, and remember its id."""
        await self._write(app_name, user_id, partial(_delete, memory_id=replace_surrogates(memory_id)))

    async def _write(self, app_name: str, user_id: str, change: Callable[[sqlite3.Connection, int], None]) -> None:
        _check_owner(app_name, user_id)
        await sync.service_call(partial(self._change, app_name, user_id, change))

    def _change(self, app_name: str, user_id: str, change: Callable[[sqlite3.Connection, int], None]) -> None:
        """Apply `change` in one transaction."""
        with self._open() as db:
            db.execute("begin immediate")  # upgrading a read lock could deadlock with another writer
            _make_tables(db)
            db.execute("insert or ignore into memory_owners (app_name, user_id) values (?, ?)", (app_name, user_id))
            change(db, _owner(db, app_name, user_id) or 0)
            db.execute("commit")

    def _search(self, app_name: str, user_id: str, terms: SearchTerms) -> list[MemoryEntry]:
        if not self.db_path.exists():
            return []
        with self._open() as db:
            owner = _owner(db, app_name, user_id) if _version(db) else None
            if owner is None:
                return []
            # Quoted, so that FTS5 does not parse terms as operators.
            owned_terms = json.dumps([f'"{owner}_{term}"' for term in terms.ascii])
            parameters = {
                "words": owned_terms,
                "non_ascii": json.dumps(terms.non_ascii),
                "owner": owner,
                "max_results": MAX_RESULTS,
            }
            return [_entry(*row) for row in db.execute(_SEARCH, parameters)]

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection, None, None]:
        """A new connection for each use, from any thread or process. Closing it rolls back."""
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
        StorageError: It is not supported.
    """
    if not db.execute("select 1 from sqlite_master where name = 'memory_schema'").fetchone():
        return 0
    [version] = db.execute("select max(version) from memory_schema").fetchone()
    if version != _VERSION:
        raise StorageError(f"the memories are of version {version}, and this adk_nb reads {_VERSION}; update adk_nb")
    return version


def _owner(db: sqlite3.Connection, app_name: str, user_id: str) -> int | None:
    row = db.execute("select n from memory_owners where app_name = ? and user_id = ?", (app_name, user_id)).fetchone()
    return row[0] if row else None


def _replace(db: sqlite3.Connection, owner: int, *, session_id: str, rows: list[_Row]) -> None:
    columns = ", ".join(_Row._fields)
    query = f"select {columns} from memories where owner = ? and session_id = ?"
    stored = {row[0]: row for row in db.execute(query, (owner, session_id))}
    for key in stored.keys() - {row.id for row in rows}:
        _remove(db, owner, key)
    for row in rows:
        # Called after every turn: most rows are stored already, and are not indexed again.
        if stored.get(row.id) != row and not _is_deleted(db, owner, row.id):
            _store(db, owner, row)


def _add(db: sqlite3.Connection, owner: int, *, rows: list[_Row]) -> None:
    for row in rows:
        if _row_number(db, owner, row.id) is None and not _is_deleted(db, owner, row.id):
            _store(db, owner, row)


def _overwrite(db: sqlite3.Connection, owner: int, *, rows: list[_Row]) -> None:
    for row in rows:
        db.execute("delete from memory_deleted where owner = ? and id = ?", (owner, row.id))
        _store(db, owner, row)


def _delete(db: sqlite3.Connection, owner: int, *, memory_id: str) -> None:
    if _row_number(db, owner, memory_id) is not None:
        _remove(db, owner, memory_id)
        db.execute("insert or ignore into memory_deleted values (?, ?)", (owner, memory_id))


def _store(db: sqlite3.Connection, owner: int, row: _Row) -> None:
    db.execute(_UPSERT, (owner, *row))
    terms = ascii_words(fold(_entry(row.content, row.custom_metadata).text))
    indexed_terms = " ".join(f"{owner}_{term}" for term in terms)
    db.execute(
        "insert or replace into memory_words (rowid, words) values (?, ?)",
        (_row_number(db, owner, row.id), indexed_terms),
    )


def _remove(db: sqlite3.Connection, owner: int, key: str) -> None:
    db.execute("delete from memory_words where rowid = ?", (_row_number(db, owner, key),))
    db.execute("delete from memories where owner = ? and id = ?", (owner, key))


def _row_number(db: sqlite3.Connection, owner: int, key: str) -> int | None:
    row = db.execute("select n from memories where owner = ? and id = ?", (owner, key)).fetchone()
    return row[0] if row else None


def _is_deleted(db: sqlite3.Connection, owner: int, key: str) -> bool:
    row = db.execute("select 1 from memory_deleted where owner = ? and id = ?", (owner, key)).fetchone()
    return row is not None


def _rows(entries: Iterable[MemoryEntry], session_id: str | None) -> list[_Row]:
    return [_row(entry, session_id) for entry in entries]


def _row(entry: MemoryEntry, session_id: str | None) -> _Row:
    text = fold(entry.text)
    # SQLite stores UTF-8, which has no lone surrogates.
    return _Row(
        id=replace_surrogates(entry.id or ""),
        session_id=replace_surrogates(session_id),
        author=replace_surrogates(entry.author),
        timestamp=replace_surrogates(entry.timestamp),
        content=replace_surrogates(
            json.dumps(entry.content.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
        ),
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


def _check_owner(app_name: str, user_id: str) -> None:
    for name, value in (("app_name", app_name), ("user_id", user_id)):
        # Refused, not replaced: two users could become one.
        if replace_surrogates(value) != value:
            raise InputError(f"{name} {value!a} cannot be stored as UTF-8; choose another")
