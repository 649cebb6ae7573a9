"""The session service on a database, whichever it is."""

from collections.abc import Awaitable
from typing import Any

from adk_nb import clock
from adk_nb.errors import AlreadyExistsError, StorageError
from adk_nb.events.event import Event
from adk_nb.sessions.base_session_service import BaseSessionService, GetSessionConfig, checked_id, stripped
from adk_nb.sessions.journal import Lease, Run
from adk_nb.sessions.session import ListSessionsResponse, Session
from adk_nb.sessions.sql import journal
from adk_nb.sessions.sql.codec import Key, Mark, encode_event, is_same_event, split_state
from adk_nb.sessions.sql.driver import Database, Driver
from adk_nb.sessions.sql.rows import Head, Rows
from adk_nb.sessions.sql.schema import USER_STATES
from adk_nb.sessions.state import State, apply_delta, committed, is_same, take_delta


class SqlSessionService(BaseSessionService):
    """Sessions in a database. Also a `journal.Journal`."""

    keeps_only_json = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._driver = Driver(database)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    @property
    def address(self) -> str:
        """The URL of the database, without its password."""
        return self._database.address

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        key = (app_name, user_id, checked_id(app_name, user_id, session_id))
        self._database.check_names(app_name=app_name, user_id=user_id, session_id=key[2])
        parts, at = split_state(committed(state or {})), clock.now()

        def create(rows: Rows) -> Session:
            if not rows.add_session(key, at, parts[""]):
                raise AlreadyExistsError(f"user {user_id!r} of app {app_name!r} has a session {key[2]!r} already")
            rows.add_shared(key, parts, at)
            return rows.sessions(*key, is_whole=True)[0]

        return await self._driver.ask(create)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        key = (app_name, user_id, stripped(session_id))
        if not self._database.is_name(*key):
            return None
        return await self._driver.ask(lambda rows: _load(rows, key, config), reads=True)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        if not self._database.is_name(app_name, user_id or ""):
            return ListSessionsResponse()
        sessions = await self._driver.ask(lambda rows: rows.sessions(app_name, user_id), reads=True)
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        key = (app_name, user_id, stripped(session_id))
        if self._database.is_name(*key):
            await self._driver.ask(lambda rows: rows.delete(key), key=key)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        if not self._database.is_name(app_name, user_id):
            return {}

        def read(rows: Rows) -> dict[str, Any]:
            states = rows.read(USER_STATES, app_name=app_name, user_id=user_id)
            return rows.parse(states[0].state, USER_STATES.name) if states else {}

        return await self._driver.ask(read, reads=True)

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        append = _Append(self._database, session, event)
        try:
            await self._driver.ask(append.run, key=append.key, size=append.size, undo=append.undo, then=append.take)
        except BaseException:
            append.restore()
            raise
        return event

    async def flush(self) -> None:
        await self._driver.ask(lambda rows: None, reads=True)

    async def is_current(self, session: Session) -> bool:
        mark = session.revision
        if not isinstance(mark, Mark) or not mark.is_whole or len(session.events) != mark.seq:
            return False
        if not is_same(session.state, mark.state):
            return False
        try:
            newest = await self._driver.ask(lambda rows: rows.newest(_key(session)), reads=True, size=0)
        except StorageError:  # whoever reads the session next hears what is wrong
            return False
        return newest == (mark.number, mark.seq, mark.app, mark.user)

    async def close(self) -> None:
        """Finish what was asked for, and let the connections go. Nothing more can be asked after; again is no error.

        A service that nothing refers to any more lets them go by itself.
        """
        await self._driver.close()

    def claim(self, session: Session, run_id: str, *, owner: str, version: str = "") -> Awaitable[Lease]:
        """Take the session for a run; see `journal.Journal`."""
        return journal.SqlLease(self._driver, session, run_id).claim(owner, version)

    async def unfinished(self, session: Session) -> list[Run]:
        """The runs of a session that did not end; see `journal.Journal`."""
        key = _key(session)
        return await self._driver.ask(lambda rows: journal.unfinished(rows, key), reads=True)

    async def consume(self, session: Session, key: str) -> bool:
        """True the first time this session is asked for `key`; see `journal.Journal`."""
        where = _key(session)

        def use(rows: Rows) -> bool:
            head = rows.head(where)
            return head is not None and rows.consume(head.number, [key])

        return await self._driver.ask(use, key=where, size=0)


class _Append:
    """One event on its way into the store, and from there into the caller's session."""

    def __init__(self, database: Database, session: Session, event: Event) -> None:
        """Check everything that can be refused without the database.

        Raises:
            InputError: The event holds what would not come back equal, or an id that the database does not hold.
            ConfigurationError: The state delta is not JSON.
        """
        self.key = _key(session)
        self._session = session
        self._event = event
        self._delta = event.actions.state_delta
        """With the `temp:` keys."""
        self._stored_delta = committed(self._delta) if self._delta else {}
        database.check_names(**{"id of an event": event.id, "invocation_id of an event": event.invocation_id})
        self._row = encode_event(event, self._stored_delta, jsonb=database.is_jsonb)
        self.size = len(self._row.data)
        self._mark: Mark | None = session.revision if isinstance(session.revision, Mark) else None
        self._before = self._mark and (self._mark.seq, self._mark.app, self._mark.user)
        self._is_stored = False
        if self._delta:
            event.actions.state_delta = self._stored_delta

    def run(self, rows: Rows) -> bool:
        """In a transaction: write the event. False: it is there already."""
        head, lease, stored = rows.before_append(self.key, self._row.id)
        if stored is not None:
            if not is_same_event(self._row.data, stored):
                raise AlreadyExistsError(f"session {self.key[2]!r} has another event of the id {self._row.id!r}")
            return False
        journal.check_may_write(rows, self.key, lease, self._session.lease)
        journal.check_is_newest(self.key, head, self._mark)
        self._write(rows, head)
        return True

    def _write(self, rows: Rows, head: Head) -> None:
        parts = split_state(self._stored_delta)
        rows.append(self.key, head, self._row, parts[""])
        changes = rows.add_shared(self.key, parts, self._row.timestamp)
        if mark := self._mark:
            self._before = (mark.seq, mark.app, mark.user)
            mark.seq += 1
            # A state that another changed, too, is not what this copy has: its count stays behind.
            mark.app += changes.get(State.APP_PREFIX) == mark.app
            mark.user += changes.get(State.USER_PREFIX) == mark.user

    def undo(self) -> None:
        """After `run`: it was not committed."""
        if self._mark and self._before:
            self._mark.seq, self._mark.app, self._mark.user = self._before

    def take(self, is_new: bool) -> None:
        """On the caller's loop: the event is stored."""
        self._is_stored = True
        if not is_new:
            return
        session, event = self._session, self._event
        if self._delta:
            take_delta(session.state, self._delta, self._stored_delta)
            if self._mark:
                apply_delta(self._mark.state, self._stored_delta)
        session.events.append(event)
        session.last_update_time = event.timestamp

    def restore(self) -> None:
        """The append failed: let the event be as it was."""
        if self._delta and not self._is_stored:
            self._event.actions.state_delta = self._delta


def _key(session: Session) -> Key:
    return (session.app_name, session.user_id, session.id)


def _load(rows: Rows, key: Key, config: GetSessionConfig | None) -> Session | None:
    sessions = rows.sessions(*key, is_whole=config is None)
    for session in sessions:
        mark: Mark = session.revision
        count, after = (config.num_recent_events, config.after_timestamp) if config else (None, None)
        first = 0 if count is None else max(mark.seq - count, 0)
        session.events = rows.events(session, mark, first, after) if first < mark.seq else []
    return next(iter(sessions), None)
