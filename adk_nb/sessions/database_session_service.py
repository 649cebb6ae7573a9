"""Sessions in a database server: shared by the processes of many machines."""

from collections.abc import Awaitable
from typing import Any, cast

from adk_nb import clock
from adk_nb.errors import AlreadyExistsError, ConfigurationError, StorageError
from adk_nb.events.event import Event
from adk_nb.sessions import database_journal as journal
from adk_nb.sessions import database_rows as rows
from adk_nb.sessions.base_session_service import BaseSessionService, GetSessionConfig, checked_id, stripped
from adk_nb.sessions.database_append import Append
from adk_nb.sessions.database_engine import Database
from adk_nb.sessions.journal import Lease, Run
from adk_nb.sessions.session import ListSessionsResponse, Session
from adk_nb.sessions.sqlite_rows import Key, Mark, split
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from adk_nb.sessions.state import committed, is_same


class _ServerSessionService(BaseSessionService):
    """Sessions in PostgreSQL, or in SQLite through SQLAlchemy."""

    keeps_only_json = True

    def __init__(self, db_url: str, options: dict[str, Any]) -> None:
        self._database = Database(db_url, options)

    @property
    def address(self) -> str:
        """The URL without its password."""
        return self._database.address

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        key = (app_name, user_id, checked_id(app_name, user_id, session_id))
        rows.check_keys(app_name=app_name, user_id=user_id, session_id=key[2])
        parts, at = split(committed(state or {})), clock.now()

        def create(db: Any) -> Session:
            if not rows.add_session(db, key, at, parts):
                raise AlreadyExistsError(f"user {user_id!r} of app {app_name!r} has a session {key[2]!r} already")
            return cast(Session, rows.session_of(db, key, None))

        return await self._database.ask(create)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        key = (app_name, user_id, stripped(session_id))
        if not rows.is_key(*key):
            return None
        return await self._database.ask(lambda db: rows.session_of(db, key, config))

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        if not rows.is_key(app_name, user_id or ""):
            return ListSessionsResponse()
        found = await self._database.ask(lambda db: rows.sessions_of(db, app_name, user_id))
        return ListSessionsResponse(sessions=found)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        key = (app_name, user_id, stripped(session_id))
        if rows.is_key(*key):
            await self._database.ask(lambda db: _delete(db, key), lane=key)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        if not rows.is_key(app_name, user_id):
            return {}
        return await self._database.ask(lambda db: rows.user_state(db, app_name, user_id))

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        append = Append(session, event)
        try:
            await self._database.ask(append.run, lane=append.key, done=append.done, then=append.tell)
        except BaseException:
            append.leave()
            raise
        return event

    async def flush(self) -> None:
        await self._database.ask(lambda db: None)

    async def is_current(self, session: Session) -> bool:
        mark = session.revision
        if not isinstance(mark, Mark) or not mark.is_whole or len(session.events) != mark.seq:
            return False
        if not is_same(session.state, mark.state):
            return False
        try:
            stored = await self._database.ask(lambda db: rows.newest(db, _key(session)))
        except StorageError:  # whoever reads it next is told what is wrong
            return False
        return stored == (mark.number, mark.seq, mark.app, mark.user)

    async def close(self) -> None:
        await self._database.close()

    async def claim(self, session: Session, run_id: str, *, owner: str, version: str = "") -> Lease:
        return await journal.DatabaseLease(self._database, session, run_id).claim(owner, version)

    async def unfinished(self, session: Session) -> list[Run]:
        key = _key(session)
        return await self._database.ask(lambda db: journal.unfinished(db, key))

    async def consume(self, session: Session, key: str) -> bool:
        where = _key(session)

        def use(db: Any) -> bool:
            head = rows.locked(db, where)
            return head is not None and journal.consume(db, head.number, [key])

        return await self._database.ask(use, lane=where)


class DatabaseSessionService(BaseSessionService):
    """Sessions in a database that SQLAlchemy names by a URL. Also a `journal.Journal`. Needs the extra `db`.

    `postgresql://user:password@host/database` keeps them in PostgreSQL, for any number of processes and machines;
    the driver is psycopg unless the URL names another. With an async driver (`postgresql+asyncpg://`) nothing blocks
    a thread, with others the work is done in threads. `sqlite:///nb.db` is `SqliteSessionService("nb.db")`, and needs
    no extra; `sqlite+aiosqlite:///` and `sqlite+pysqlite:///` go through SQLAlchemy.

    A service is good for any number of threads, event loops and sessions; its connections end with `close`, or when
    nothing refers to it any more. Storage is JSON.

    Raises:
        InputError: The URL names no database of those.
        ConfigurationError: `engine_kwargs` for a `sqlite:///` URL.
        MissingExtraError: SQLAlchemy, or the driver, is not installed.
    """

    keeps_only_json = True

    def __init__(self, db_url: str, **engine_kwargs: Any) -> None:
        """Nothing is opened before it is needed; `flush` connects, and tells of a database that cannot be used.

        Args:
            db_url: Where sessions are kept. A password in it is hidden from errors and logs.
            engine_kwargs: For SQLAlchemy's `create_engine`: `pool_size`, `connect_args`, ...
        """
        self._kept: _ServerSessionService | SqliteSessionService
        if db_url.startswith("sqlite:///"):
            if odd := sorted(engine_kwargs.keys() - {"durability"}):
                raise ConfigurationError(
                    f"{', '.join(odd)}: options of SQLAlchemy's engine, which sqlite:/// does not use; "
                    "write sqlite+pysqlite:/// to go through it"
                )
            self._kept = SqliteSessionService(db_url, **engine_kwargs)
        else:
            self._kept = _ServerSessionService(db_url, engine_kwargs)

    def __repr__(self) -> str:
        return f"DatabaseSessionService({self._kept.address!r})"

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        return await self._kept.create_session(app_name=app_name, user_id=user_id, state=state, session_id=session_id)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        return await self._kept.get_session(app_name=app_name, user_id=user_id, session_id=session_id, config=config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        return await self._kept.list_sessions(app_name=app_name, user_id=user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        await self._kept.delete_session(app_name=app_name, user_id=user_id, session_id=session_id)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await self._kept.get_user_state(app_name=app_name, user_id=user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        return await self._kept.append_event(session, event)

    async def flush(self) -> None:
        await self._kept.flush()

    def is_current(self, session: Session) -> Awaitable[bool]:
        return self._kept.is_current(session)

    async def close(self) -> None:
        """Finish what was asked for, and let the connections go. Nothing more can be asked after; again is no error."""
        await self._kept.close()

    async def claim(self, session: Session, run_id: str, *, owner: str, version: str = "") -> Lease:
        """Take the session for a run; see `journal.Journal`."""
        return await self._kept.claim(session, run_id, owner=owner, version=version)

    async def unfinished(self, session: Session) -> list[Run]:
        """The runs of a session that did not end; see `journal.Journal`."""
        return await self._kept.unfinished(session)

    async def consume(self, session: Session, key: str) -> bool:
        """True the first time this session is asked for `key`: what may happen only once asks here first."""
        return await self._kept.consume(session, key)


def _key(session: Session) -> Key:
    return (session.app_name, session.user_id, session.id)


def _delete(db: Any, key: Key) -> None:
    given = {"app_name": key[0], "user_id": key[1], "id": key[2]}
    rows.execute(db, "DELETE FROM sessions WHERE app_name = :app_name AND user_id = :user_id AND id = :id", **given)
