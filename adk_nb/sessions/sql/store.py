"""The session service on a SQL database."""

from collections.abc import Awaitable
from typing import Any

from adk_nb import clock
from adk_nb.errors import AlreadyExistsError, StorageError
from adk_nb.events.event import Event
from adk_nb.sessions.base_session_service import BaseSessionService, GetSessionConfig, check_session_id, strip_id
from adk_nb.sessions.journal import Lease, Run
from adk_nb.sessions.session import ListSessionsResponse, Session
from adk_nb.sessions.sql import journal
from adk_nb.sessions.sql.codec import Key, Mark, encode_event, is_same_event, key_of, split_state, to_json
from adk_nb.sessions.sql.driver import Database, Driver
from adk_nb.sessions.sql.rows import Head, Rows
from adk_nb.sessions.sql.schema import INITIAL_STATES, USER_STATES, InitialState
from adk_nb.sessions.state import State, apply_delta, apply_stored_delta, is_same, storable_delta


class SqlSessionService(BaseSessionService):
    """Sessions in a SQL database. Also a `journal.Journal`."""

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
        """Create a session, in one transaction; see BaseSessionService."""
        key = (app_name, user_id, check_session_id(app_name, user_id, session_id))
        self._database.check_names(app_name=app_name, user_id=user_id, session_id=key[2])
        parts, now = split_state(storable_delta(state or {})), clock.now()

        def create(rows: Rows) -> Session:
            if not rows.add_session(key, now, parts[""]):
                raise AlreadyExistsError(f"user {user_id!r} of app {app_name!r} has a session {key[2]!r} already")
            rows.add_shared(key, parts, now)
            session = rows.sessions(*key, is_whole=True)[0]
            session.initial_state = parts[""]
            if parts[""]:
                rows.put(INITIAL_STATES, InitialState(session.revision.number, to_json(parts[""])))
            return session

        return await self._driver.run(create)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Load a session; its events are parsed when they are first used."""
        key = (app_name, user_id, strip_id(session_id))
        if not self._database.is_name(*key):
            return None
        return await self._driver.run(lambda rows: _load(rows, key, config), reads=True)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """List sessions, in one query; see BaseSessionService."""
        if not self._database.is_name(app_name, user_id or ""):
            return ListSessionsResponse()
        sessions = await self._driver.run(lambda rows: rows.sessions(app_name, user_id), reads=True)
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session with its events and its journal. No error if there is none."""
        key = (app_name, user_id, strip_id(session_id))
        if self._database.is_name(*key):
            await self._driver.run(lambda rows: rows.delete(key), key=key)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Load the state that the user's sessions share, without `user:` before the keys."""
        if not self._database.is_name(app_name, user_id):
            return {}

        def read(rows: Rows) -> dict[str, Any]:
            states = rows.read(USER_STATES, app_name=app_name, user_id=user_id)
            return rows.parse(states[0].state, USER_STATES.name) if states else {}

        return await self._driver.run(read, reads=True)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event, in one transaction with its state delta; see BaseSessionService."""
        if event.partial:
            return event
        append = _Append(self._database, session, event)
        try:
            await self._driver.run(
                append.run, key=append.key, size=append.size, undo=append.undo, on_commit=append.apply
            )
        except BaseException:
            append.restore()
            raise
        return event

    async def flush(self) -> None:
        """Open the database, or raise why it cannot be used; an append that was awaited is stored already."""
        await self._driver.run(lambda rows: None, reads=True)

    async def is_current(self, session: Session) -> bool:
        """Compare the copy with the stored revision, in one query; False if the database cannot be read."""
        mark = session.revision
        if not isinstance(mark, Mark) or not mark.is_whole or len(session.events) != mark.seq:
            return False
        if not is_same(session.state, mark.state):
            return False
        try:
            newest = await self._driver.run(lambda rows: rows.newest(key_of(session)), reads=True, size=0)
        except StorageError:  # the next read of the session raises it
            return False
        return newest == (mark.number, mark.seq, mark.app, mark.user)

    async def close(self) -> None:
        """Finish the queued jobs and close the connections. Later calls raise StorageError; closing again is no error.

        A service that is collected closes them by itself.
        """
        await self._driver.close()

    def claim(self, session: Session, run_id: str, *, owner: str, version: str = "") -> Awaitable[Lease]:
        """Take the session for a run; see `journal.Journal`."""
        return journal.SqlLease(self._driver, session, run_id).claim(owner, version)

    async def unfinished(self, session: Session) -> list[Run]:
        """List the runs of a session without an outcome; see `journal.Journal`."""
        key = key_of(session)
        return await self._driver.run(lambda rows: journal.unfinished(rows, key), reads=True)

    async def consume(self, session: Session, key: str) -> bool:
        """Use up a key that may be used once; see `journal.Journal`."""
        session_key = key_of(session)

        def consume_key(rows: Rows) -> bool:
            head = rows.head(session_key)
            return head is not None and rows.consume(head.number, [key])

        return await self._driver.run(consume_key, key=session_key, size=0)


class _Append:
    """The append of one event, first to the store, then to the caller's session."""

    def __init__(self, database: Database, session: Session, event: Event) -> None:
        """Check everything that can be checked without the database.

        Raises:
            InputError: The event has a value that would not come back equal, or an id that cannot be stored.
            ConfigurationError: The state delta is not JSON.
        """
        self.key = key_of(session)
        self._session = session
        self._event = event
        self._delta = event.actions.state_delta
        """Includes `temp:` keys."""
        self._stored_delta = storable_delta(self._delta) if self._delta else {}
        database.check_names(**{"id of an event": event.id, "invocation_id of an event": event.invocation_id})
        self._row = encode_event(event, self._stored_delta, jsonb=database.is_jsonb)
        self.size = len(self._row.data)
        self._mark: Mark | None = session.revision if isinstance(session.revision, Mark) else None
        self._previous_counts = self._mark and (self._mark.seq, self._mark.app, self._mark.user)
        self._is_stored = False
        if self._delta:
            event.actions.state_delta = self._stored_delta

    def run(self, rows: Rows) -> bool:
        """Write the event, in a transaction. False: it is stored already."""
        head, lease, stored = rows.before_append(self.key, self._row.id)
        # Before the lease is checked: repeating a stored step is harmless, whoever holds the session now.
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
            self._previous_counts = (mark.seq, mark.app, mark.user)
            mark.seq += 1
            # If another session changed this state, too, this copy is not current: its count stays behind.
            mark.app += changes.get(State.APP_PREFIX) == mark.app
            mark.user += changes.get(State.USER_PREFIX) == mark.user

    def undo(self) -> None:
        """Undo `run` in memory: the transaction was not committed."""
        if self._mark and self._previous_counts:
            self._mark.seq, self._mark.app, self._mark.user = self._previous_counts

    def apply(self, is_new: bool) -> None:
        """Append the stored event to the caller's session, on the caller's loop."""
        self._is_stored = True
        if not is_new:
            return
        session, event = self._session, self._event
        if self._delta:
            apply_stored_delta(session.state, self._delta, self._stored_delta)
            if self._mark:
                apply_delta(self._mark.state, self._stored_delta)
        session.events.append(event)
        session.last_update_time = event.timestamp

    def restore(self) -> None:
        """Restore the event's state delta: the append failed."""
        if self._delta and not self._is_stored:
            self._event.actions.state_delta = self._delta


def _load(rows: Rows, key: Key, config: GetSessionConfig | None) -> Session | None:
    sessions = rows.sessions(*key, is_whole=config is None)
    for session in sessions:
        mark: Mark = session.revision
        session.initial_state = rows.initial_state(mark.number)
        count, earliest = (config.num_recent_events, config.after_timestamp) if config else (None, None)
        first = 0 if count is None else max(mark.seq - count, 0)
        session.events = rows.events(session, mark, first, earliest) if first < mark.seq else []
    return next(iter(sessions), None)
