"""What a database has to do for the store: transactions, rows, and the few statements that differ."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from adk_nb.errors import SessionNotFoundError
from adk_nb.events.event import Event
from adk_nb.sessions.base_session_service import not_found
from adk_nb.sessions.sql.codec import EventRow, Key, encode_event, to_json
from adk_nb.sessions.sql.schema import APP_STATES, USER_STATES, LeaseRow, R, Table
from adk_nb.sessions.state import State, apply_delta, read_state
from adk_nb.wire import not_json

T = TypeVar("T")
SHARED: dict[str, Table[Any]] = {State.APP_PREFIX: APP_STATES, State.USER_PREFIX: USER_STATES}
Newest = tuple[int, int, int, int]
"""A session's number and events, and how often the app's and the user's state has changed."""
NEWEST = """SELECT number, seq,
    coalesce((SELECT changes FROM app_states WHERE app_name = s.app_name), 0),
    coalesce((SELECT changes FROM user_states WHERE app_name = s.app_name AND user_id = s.user_id), 0)
    FROM sessions s WHERE app_name = :app_name AND user_id = :user_id AND id = :id"""


class Head(NamedTuple):
    """A row of `sessions`, but for the state."""

    number: int
    state_crc: int
    """0 where rows have no checksums."""
    create_time: float
    update_time: float
    seq: int
    """Of the newest event; they are counted from 1 without a gap."""


@dataclass(frozen=True)
class StoredSession:
    """A session as it was found, without its events."""

    key: Key
    head: Head
    app_changes: int
    user_changes: int
    state: Callable[[], dict[str, Any]]
    """A new copy of what the session's user sees, with each call."""


class Rows(ABC):
    """The rows of a database, within one transaction."""

    is_of_many_machines: ClassVar[bool]
    """Owners of leases may be processes of other machines."""
    query: ClassVar[str]
    """Gives sessions `s`, each with the state of its app and its user."""

    @abstractmethod
    def execute(self, statement: str, values: dict[str, Any]) -> Any:
        """A cursor on what `statement` gives, whose parameters are written `:name`."""

    @abstractmethod
    def now(self) -> float:
        """The time that leases are counted in."""

    @abstractmethod
    def damage(self, problem: str) -> Exception:
        """The error for rows that were not written here."""

    @abstractmethod
    def read(self, table: Table[R], **where: Any) -> list[R]:
        """The rows in which the columns have these values, in the order in which they were first written."""

    @abstractmethod
    def put(self, table: Table[R], row: R) -> None:
        """Write a row in the place of that with its key."""

    @abstractmethod
    def shared(self, prefix: str, owner: Sequence[str]) -> Any:
        """The row of an app's or a user's state, which nobody else writes before the transaction ends; or None."""

    @abstractmethod
    def head(self, key: Key) -> Head | None:
        """The session's row, which nobody else writes before the transaction ends; or None."""

    @abstractmethod
    def lock(self, number: int) -> None:
        """Let nobody else write to the session of that number before the transaction ends."""

    @abstractmethod
    def before_append(self, key: Key, event_id: str) -> tuple[Head, LeaseRow | None, bytes | None]:
        """What an append looks at: `head`, the lease, and the data of the event if the session has it.

        Raises:
            SessionNotFoundError: There is no such session.
        """

    @abstractmethod
    def add_session(self, key: Key, at: float, state: dict[str, Any]) -> bool:
        """Write a new session, with the session's own keys. False: there is one, and nothing was written."""

    @abstractmethod
    def append(self, key: Key, head: Head, event: EventRow, delta: dict[str, Any]) -> None:
        """Write the session's next event, and the session's own keys in `delta`."""

    def sessions(self, app_name: str, user_id: str | None, session_id: str | None = None) -> list[StoredSession]:
        """An app's sessions, a user's, or that of an id; least recently used first."""
        where = {"app_name": app_name, "user_id": user_id, "id": session_id}
        where = {name: value for name, value in where.items() if value is not None}
        query = f"{self.query} WHERE {' AND '.join(f's.{name} = :{name}' for name in where)}"
        rows = self.execute(f"{query} ORDER BY s.update_time, s.number", where).fetchall()
        return [self.stored(row) for row in rows]

    @abstractmethod
    def stored(self, row: Any) -> StoredSession:
        """The session in a row of `query`."""

    @abstractmethod
    def events(self, stored: StoredSession, first: int, after: float | None) -> list[Event] | None:
        """The events that follow the `first`, without those before the time `after`; oldest first.

        Returns:
            The events. None: the session was deleted meanwhile.
        """

    def short(self, key: str) -> str:
        """What stands for `key` in the table of keys that were used."""
        return key

    def consume(self, number: int, keys: Sequence[str]) -> bool:
        """Use up all of `keys` in the session of that number. False: one was used before, and none is used now."""
        rows = [{"session": number, "key": self.short(key)} for key in keys]
        used = "SELECT 1 FROM consumed WHERE session = :session AND key = :key"
        if any(self.execute(used, row).fetchone() for row in rows):
            return False
        for row in rows:
            self.execute("INSERT INTO consumed (session, key) VALUES (:session, :key)", row)
        return True

    def delete(self, key: Key) -> None:
        """Forget a session, with all that is of it."""
        where = "app_name = :app_name AND user_id = :user_id AND id = :id"
        self.execute(f"DELETE FROM sessions WHERE {where}", named(key))

    def missing(self, key: Key) -> SessionNotFoundError:
        """The error for a session that is not there."""
        mine = "SELECT id FROM sessions WHERE app_name = :app_name AND user_id = :user_id ORDER BY update_time, number"
        rows = self.execute(mine, {"app_name": key[0], "user_id": key[1]}).fetchall()
        return not_found(key[1], key[2], [row[0] for row in rows])

    def add_shared(self, key: Key, parts: dict[str, dict[str, Any]], at: float) -> dict[str, int]:
        """Write the keys of the app and of the user. Always in that order, so that no two wait for each other.

        Returns:
            By prefix, how often the state that was written had changed before.
        """
        before: dict[str, int] = {}
        for count, (prefix, table) in enumerate(SHARED.items(), 1):
            if parts[prefix]:
                row = self.shared(prefix, key[:count])
                state = self.parse(row.state, table.name) if row else {}
                apply_delta(state, parts[prefix])
                before[prefix] = row.changes if row else 0
                self.put(table, table.row(*key[:count], to_json(state), at, before[prefix] + 1))
        return before

    def with_shared(self, state: dict[str, Any], app: Any, user: Any) -> dict[str, Any]:
        """A session's own `state`, and the keys in the texts of its app's and its user's; None: there is none."""
        for (prefix, table), text in zip(SHARED.items(), (app, user), strict=True):
            if text is not None:
                state |= {prefix + name: value for name, value in self.parse(text, table.name).items()}
        return state

    def parse(self, text: Any, table: str) -> dict[str, Any]:
        """The state in a row of `table`."""
        try:
            return read_state(text)
        except ValueError as error:
            raise self.damage(f"the state in a row of {table} is not what was written: {error}") from error


@dataclass(eq=False)
class Job(Generic[T]):
    """Work to be done in one transaction."""

    work: Callable[[Any], T]
    """Called with `Rows`, mostly in another thread. It has to look at everything before it writes anything: others'
    work may be in the same transaction, and an error of this package undoes nothing."""
    key: Key | None = None
    """The session that it writes: what is asked for one session is done in the order of the calls."""
    reads: bool = False
    """It writes nothing."""
    size: int | None = None
    """Characters that it writes; None: unknown."""
    undo: Callable[[], None] | None = None
    """Called if the transaction was not committed, for what `work` changed in memory."""
    then: Callable[[T], None] | None = None
    """Called on the caller's loop with the result, also if the caller was cancelled."""


class Driver(ABC):
    """A database that is connected to when it is first asked."""

    address: str
    """Its URL, without a password."""

    @abstractmethod
    async def do(self, job: Job[T]) -> T:
        """The result of the job's work, once it is committed. The event loop goes on meanwhile.

        A caller that is cancelled before the work began leaves it undone; later the cancellation takes effect when the
        work has ended, so that the caller's copy is what is stored.

        Raises:
            AdkNbError: What `work` raised.
            StorageError: The database could not be used, and nothing was written.
        """

    def ask(self, work: Callable[[Any], T], **about: Any) -> Awaitable[T]:
        """`do` a job of `work`, with other fields of a `Job` in `about`."""
        return self.do(Job(work, **about))

    @abstractmethod
    async def newest(self, key: Key) -> Newest | None:
        """What is stored of a session now; None: it is not there, or cannot be read."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was asked for, and let the connections go. Again is no error."""

    def encode(self, event: Event, delta: dict[str, Any]) -> EventRow:
        """Encode `event`, with `delta` for its state delta.

        Raises:
            InputError: It holds what would not come back equal.
        """
        return encode_event(event, delta)

    def is_name(self, *names: Any) -> bool:
        """True if all of `names` can be names or ids here."""
        return all(isinstance(name, str) and not not_json(name) for name in names)

    def check_names(self, **names: str) -> None:
        """Refuse names and ids that the database does not hold.

        Raises:
            InputError: It does not hold one of them.
        """
        del names


def named(key: Sequence[str]) -> dict[str, Any]:
    """A session's key, or the beginning of one, as the parameters of a statement."""
    return dict(zip(("app_name", "user_id", "id"), key, strict=False))
