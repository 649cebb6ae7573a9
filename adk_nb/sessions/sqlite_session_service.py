"""Sessions in one SQLite file: kept across kernels, and shared by the processes of one machine."""

import asyncio
import os
import sqlite3
import threading
import weakref
from typing import Any, get_args

from adk_nb import clock
from adk_nb.errors import AlreadyExistsError, ConfigurationError
from adk_nb.events.event import Event
from adk_nb.sessions import sqlite_journal as journal
from adk_nb.sessions import sqlite_rows as rows
from adk_nb.sessions.base_session_service import BaseSessionService, GetSessionConfig, Ready, checked_id, stripped
from adk_nb.sessions.journal import Run
from adk_nb.sessions.session import ListSessionsResponse, Session
from adk_nb.sessions.sqlite_file import Durability, SessionFile, path_of
from adk_nb.sessions.sqlite_here import SqliteHere, is_brief
from adk_nb.sessions.sqlite_rows import Head, Key, Mark
from adk_nb.sessions.sqlite_thread import SqliteThread
from adk_nb.sessions.state import State, apply_delta, committed, is_same, take_delta
from adk_nb.wire import not_json


class SqliteSessionService(BaseSessionService):
    """Sessions in one file, which is made when it is not there. Also a `journal.Journal`.

    What was appended is in the file: it survives the end of the process. A service is good for any number of threads,
    event loops and sessions, and several processes of one machine may have services on one file. A file that is locked
    is waited for, and the event loop goes on meanwhile. Storage is JSON.

    Events are parsed when they are first looked at, so a long session is opened at once; `GetSessionConfig` says that
    only the newest are to be read.

    Raises:
        InputError: `db_path` names no file.
        ConfigurationError: There is no such `durability`.
    """

    keeps_only_json = True

    def __init__(self, db_path: str | os.PathLike[str], durability: Durability = "normal") -> None:
        """Nothing is opened before it is needed; `flush` opens, and tells of a file that cannot be used.

        Args:
            db_path: A path, or a URL such as `sqlite:///nb.db`.
            durability: `full`: what was appended also survives the machine losing power, at some milliseconds each.
                `normal`: then the newest may be lost, and what is left has no gaps.
        """
        if durability not in get_args(Durability):
            raise ConfigurationError(f"durability is 'normal' or 'full', and not {durability!r:.80}")
        self._file = file = SessionFile(path_of(db_path), durability)
        here = SqliteHere(None if file.waits else file.open_also, file.told, file.check_place)
        self._thread = SqliteThread(file.open, file.told, file.check_place, here)
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.Lock()

    def __repr__(self) -> str:
        return f"SqliteSessionService({self._file.path!r})"

    @property
    def address(self) -> str:
        """The URL of its file."""
        return f"sqlite:///{self._file.path}"

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        key = (app_name, user_id, checked_id(app_name, user_id, session_id))
        parts, at = rows.split(committed(state or {})), clock.now()

        def create(db: sqlite3.Connection) -> Session:
            if rows.head_of(db, key):
                raise AlreadyExistsError(f"user {user_id!r} of app {app_name!r} has a session {key[2]!r} already")
            head = rows.add_session(db, key, at, parts[""])
            _put_shared(db, key, parts, at)
            return _read(db, key, head, None)

        return await self._thread.ask(create)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        key = (app_name, user_id, stripped(session_id))
        if not _are_names(*key):
            return None

        def read(db: sqlite3.Connection) -> Session | None:
            head = rows.head_of(db, key)
            return head and _read(db, key, head, config)

        return await self._thread.ask(read, reads=True)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        if not _are_names(app_name, user_id or ""):
            return ListSessionsResponse()

        def read(db: sqlite3.Connection) -> list[Session]:
            heads = [(key, rows.head_of(db, key)) for key in rows.keys_of(db, app_name, user_id)]
            return [_read(db, key, head, GetSessionConfig(num_recent_events=0)) for key, head in heads if head]

        return ListSessionsResponse(sessions=await self._thread.ask(read, reads=True))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        key = (app_name, user_id, stripped(session_id))
        if _are_names(*key):
            await self._thread.ask(lambda db: _delete(db, key))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        owner = (app_name, user_id)
        if not _are_names(*owner):
            return {}
        return await self._thread.ask(lambda db: rows.shared_state(db, State.USER_PREFIX, owner)[0], reads=True)

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        append = _Append(session, event)
        try:
            await self._thread.ask(append.run, is_brief=is_brief(append.data), undo=append.undo, then=append.tell)
        except BaseException:
            append.leave()
            raise
        return event

    async def flush(self) -> None:
        await self._thread.ask(lambda db: None, reads=True)

    def is_current(self, session: Session) -> Ready[bool]:
        return Ready(self._is_current(session))

    def _is_current(self, session: Session) -> bool:
        mark = session.revision
        if not isinstance(mark, Mark) or not mark.is_whole or len(session.events) != mark.seq:
            return False
        try:
            with self._reading:
                if self._reader is None:
                    self._reader = self._file.reader()
                    weakref.finalize(self, self._reader.close)  # of a service that nobody closes
                stored = self._reader.execute(_NOW, _key(session)).fetchone()
        except sqlite3.Error:
            return False
        return stored == (mark.number, mark.seq, mark.app, mark.user) and is_same(session.state, mark.state)

    async def close(self) -> None:
        """Finish what was asked for, and close the file. The service cannot be used after; closing again is no error.

        A service that nothing refers to any more closes its file by itself.
        """
        await asyncio.wrap_future(self._thread.close())
        with self._reading:
            if self._reader:
                self._reader.close()
                self._reader = None

    async def claim(self, session: Session, run_id: str, *, owner: str, version: str = "") -> "journal.SqliteLease":
        """Take the session for a run; see `journal.Journal`."""
        lease = journal.SqliteLease(self._thread, session, run_id)
        return await lease.claim(owner, version)

    async def unfinished(self, session: Session) -> list[Run]:
        """The runs of a session that did not end; see `journal.Journal`."""
        key = _key(session)
        return await self._thread.ask(lambda db: journal.unfinished(db, key), reads=True)

    async def consume(self, session: Session, key: str) -> bool:
        """True the first time this session is asked for `key`; see `journal.Journal`."""
        where = _key(session)

        def use(db: sqlite3.Connection) -> bool:
            head = rows.head_of(db, where)
            return head is not None and journal.consume(db, head.number, [key])

        return await self._thread.ask(use, is_brief=True)


_NOW = """SELECT number, seq,
    coalesce((SELECT changes FROM app_states WHERE app_name = s.app_name), 0),
    coalesce((SELECT changes FROM user_states WHERE app_name = s.app_name AND user_id = s.user_id), 0)
    FROM sessions s WHERE app_name = ? AND user_id = ? AND id = ?"""


class _Append:
    """One event on its way into the store, and from there into the caller's session."""

    def __init__(self, session: Session, event: Event) -> None:
        self._session = session
        self._event = event
        self._key = _key(session)
        self._given = event.actions.state_delta
        """With the `temp:` keys."""
        self._kept = committed(self._given) if self._given else {}
        self._row = rows.row_of(event, self._kept)
        self._mark: Mark | None = session.revision if isinstance(session.revision, Mark) else None
        self._before = self._mark and (self._mark.seq, self._mark.app, self._mark.user)
        self._is_stored = False
        if self._given:
            event.actions.state_delta = self._kept

    @property
    def data(self) -> bytes:
        """The event as it is stored."""
        return self._row.data

    def run(self, db: sqlite3.Connection) -> bool:
        """In a transaction: write it. False: it is there already."""
        key, row = self._key, self._row
        head, held, is_there = journal.before_append(db, key, row.id)
        if is_there:
            if not rows.is_same_event(rows.stored_data(db, head.number, row.id), row.data):
                raise AlreadyExistsError(f"session {key[2]!r} has another event of the id {row.id!r}")
            return False
        journal.check_may_write(key, held, self._session.lease)
        journal.check_is_newest(key, head, self._mark)
        self._write(db, head)
        return True

    def _write(self, db: sqlite3.Connection, head: Head) -> None:
        key, mark, row = self._key, self._mark, self._row
        parts = rows.split(self._kept)
        is_shared = bool(parts[State.APP_PREFIX] or parts[State.USER_PREFIX])
        changes = _changes(db, key) if mark and is_shared else None
        rows.add_event(db, head.number, head.seq + 1, row)
        if parts[""]:
            head = rows.put_own_keys(db, head, parts[""])
        _put_shared(db, key, parts, row.timestamp)
        rows.put_head(db, key, head._replace(seq=head.seq + 1, update_time=row.timestamp))
        if mark:
            self._before = (mark.seq, mark.app, mark.user)
            mark.seq += 1
            if changes == (mark.app, mark.user):
                mark.app += bool(parts[State.APP_PREFIX])
                mark.user += bool(parts[State.USER_PREFIX])

    def undo(self) -> None:
        """Where `run` was: it was not committed."""
        if self._mark and self._before:
            self._mark.seq, self._mark.app, self._mark.user = self._before

    def tell(self, is_new: bool) -> None:
        """On the caller's loop: it is stored."""
        self._is_stored = True
        if not is_new:
            return
        session, event = self._session, self._event
        take_delta(session.state, self._given, self._kept)
        if self._mark:
            apply_delta(self._mark.state, self._kept)
        session.events.append(event)
        session.last_update_time = event.timestamp

    def leave(self) -> None:
        """It did not come about: let the event be as it was."""
        if self._given and not self._is_stored:
            self._event.actions.state_delta = self._given


def _key(session: Session) -> Key:
    return (session.app_name, session.user_id, session.id)


def _are_names(*names: Any) -> bool:
    return all(isinstance(name, str) and not not_json(name) for name in names)


def _delete(db: sqlite3.Connection, key: Key) -> None:
    db.execute("DELETE FROM sessions WHERE app_name = ? AND user_id = ? AND id = ?", key)


def _changes(db: sqlite3.Connection, key: Key) -> tuple[int, int]:
    _, _, app, user = db.execute(_NOW, key).fetchone()
    return app, user


def _put_shared(db: sqlite3.Connection, key: Key, parts: dict[str, dict[str, Any]], at: float) -> None:
    for prefix, owner in ((State.APP_PREFIX, key[:1]), (State.USER_PREFIX, key[:2])):
        if parts[prefix]:
            rows.put_shared_state(db, prefix, owner, parts[prefix], at)


def _read(db: sqlite3.Connection, key: Key, head: Head, config: GetSessionConfig | None) -> Session:
    state, of_app, of_user = rows.whole_state(db, key, head)
    count, after = (config.num_recent_events, config.after_timestamp) if config else (None, None)
    session = Session(id=key[2], app_name=key[0], user_id=key[1], last_update_time=head.update_time)
    session.state = state
    session.events = [] if count == 0 else rows.events_of(db, key, head, count, after)
    session.revision = Mark(head.number, head.seq, of_app, of_user, config is None, rows.whole_state(db, key, head)[0])
    return session
