"""One event on its way into a database server, and from there into the caller's session."""

from typing import Any

from adk_nb.errors import AlreadyExistsError
from adk_nb.events.event import Event
from adk_nb.sessions import database_journal as journal
from adk_nb.sessions import database_rows as rows
from adk_nb.sessions.database_rows import Head
from adk_nb.sessions.session import Session
from adk_nb.sessions.sqlite_rows import Key, Mark, is_same_event, row_of, split
from adk_nb.sessions.state import State, apply_delta, committed, take_delta


class Append:
    """Made when it is asked for, run in a transaction, and told of once that was committed."""

    def __init__(self, session: Session, event: Event) -> None:
        """Look at everything that can be refused without the database.

        Raises:
            InputError: The event holds what would not come back equal, or an id that no key column holds.
            ConfigurationError: The state delta is not JSON.
        """
        rows.check_keys(**{"id of an event": event.id, "invocation_id of an event": event.invocation_id})
        self.key: Key = (session.app_name, session.user_id, session.id)
        self._session = session
        self._event = event
        self._given = event.actions.state_delta
        """With the `temp:` keys."""
        self._kept = committed(self._given) if self._given else {}
        self._row = row_of(event, self._kept)
        self._columns = rows.event_columns(event, self._kept, self._row)
        self._mark: Mark | None = session.revision if isinstance(session.revision, Mark) else None
        self._is_stored = False
        if self._given:
            event.actions.state_delta = self._kept

    def run(self, db: Any) -> bool:
        """In the transaction: write it. False: it is there already."""
        key, row = self.key, self._row
        head = rows.locked(db, key)
        if head is None:
            raise rows.missing(db, key)
        if same := rows.stored_data(db, key, row.id):
            if not is_same_event(same, row.data):
                raise AlreadyExistsError(f"session {key[2]!r} has another event of the id {row.id!r}")
            return False
        journal.check_may_write(db, key, head, self._session.lease)
        journal.check_is_newest(key, head, self._mark)
        self._write(db, head)
        return True

    def _write(self, db: Any, head: Head) -> None:
        parts = split(self._kept)
        shares = bool(parts[State.APP_PREFIX]), bool(parts[State.USER_PREFIX])
        rows.add_event(db, self.key, head.seq + 1, self._row, self._columns)
        rows.put_head(db, head, self._row.timestamp, parts[""])
        self._changes = self._shared = (0, 0)
        if any(shares):
            rows.put_shared_states(db, self.key, parts, self._row.timestamp)
            self._changes, self._shared = rows.changes(db, self.key), (int(shares[0]), int(shares[1]))

    def done(self, is_new: bool) -> None:
        """It is committed: the next append of this copy may follow."""
        mark = self._mark
        if not mark or not is_new:
            return
        mark.seq += 1
        before = tuple(now - mine for now, mine in zip(self._changes, self._shared, strict=True))
        if any(self._shared) and before == (mark.app, mark.user):  # nobody else changed them
            mark.app, mark.user = self._changes

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
