"""The interface of a session service."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Generator, Iterable
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from adk_nb import clock
from adk_nb.errors import InputError, SessionNotFoundError
from adk_nb.events.event import Event
from adk_nb.sessions.session import ListSessionsResponse, Session
from adk_nb.sessions.state import apply_stored_delta, storable_delta
from adk_nb.wire import has_control, json_problem

T = TypeVar("T")


class GetSessionConfig(BaseModel):
    """Limits on the history to load. The state is always complete."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    num_recent_events: int | None = Field(default=None, ge=0)
    """Only the last so many events. None: all."""
    after_timestamp: float | None = None
    """Only events of this time and later; seconds since the epoch, UTC."""


class BaseSessionService(ABC):
    """A store of sessions. A method may be a coroutine, or return an awaitable object."""

    keeps_only_json: ClassVar[bool] = False
    """True: a state value that is not JSON is refused when it is written, with its key."""
    _consumed: dict[tuple[str, str, str], set[str]] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Awaitable[Session]:
        """Create a session.

        Args:
            app_name: The app it belongs to.
            user_id: The user it belongs to.
            state: Initial values; a prefix sets the scope of a key, `temp:` keys are dropped.
            session_id: Stripped; a blank id or None is replaced by a fresh one.

        Raises:
            AlreadyExistsError: The user has a session with this id.
            InputError: A name is not text.
            ConfigurationError: `state` is not a dict, or has a value that cannot be stored.
        """

    @abstractmethod
    def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Awaitable[Session | None]:
        """Load a session, or None. The caller owns the copy: later events do not reach it. The id is stripped."""

    @abstractmethod
    def list_sessions(self, *, app_name: str, user_id: str | None = None) -> Awaitable[ListSessionsResponse]:
        """List the sessions of a user, or of all users: without events, least recently used first."""

    @abstractmethod
    def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> Awaitable[None]:
        """Delete a session. No error if there is none."""

    def get_user_state(self, *, app_name: str, user_id: str) -> Awaitable[dict[str, Any]]:
        """Load the state that the user's sessions share: keys without `user:`, the caller's copy, perhaps empty.

        Raises:
            NotImplementedError: The service does not support this; read a session of the user instead.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot load a user's state; read a session of the user")

    def append_event(self, session: Session, event: Event) -> Awaitable[Event]:
        """Append `event` to the stored session and to the caller's `session`, and apply its state delta to both.

        A partial event is returned as it is and not stored; nor is an event that is stored already. An implementation
        stores the event with the `storable_delta` of its state delta, and then calls this method with the event as it
        came, which changes only the caller's session and the event's delta: without its `temp:` keys, which only the
        live state has, and with the values that are stored.

        Raises:
            SessionNotFoundError: The store has no such session.
            ConfigurationError: The state delta has a value that cannot be stored; nothing was stored.
            AlreadyExistsError: The session has another event of this id.
            StaleSessionError: Another writer appended since this copy was read; get the session again. Only services
                that store sessions on disk.
            SessionBusyError: Another run holds the session. Only services on disk.
            InputError: The event has a value that JSON cannot represent. Only services on disk.
        """
        if not event.partial:
            append_to_copy(session, event, only_json=self.keeps_only_json)
        return Ready(event)

    def flush(self) -> Awaitable[None]:
        """Wait until every appended event is stored. The default returns at once, for stores without a queue."""
        return Ready(None)

    def is_current(self, session: Session) -> Awaitable[bool]:
        """True if `get_session` would return a copy equal to `session`, so that reading it again can be skipped."""
        return Ready(False)

    def consume(self, session: Session, key: str) -> Awaitable[bool]:
        """Use up a key that may be used once: True for the first call with `key` in this session.

        This object remembers the keys; a service that several processes share overrides the method. So does one whose
        sessions are deleted and created again under the same id: here their keys may stay used.
        """
        return self._consume(session, key)

    async def _consume(self, session: Session, key: str) -> bool:
        ids = (session.app_name, session.user_id, session.id)
        stored = await self.get_session(
            app_name=ids[0], user_id=ids[1], session_id=ids[2], config=GetSessionConfig(num_recent_events=0)
        )
        with _consuming:
            consumed = self._consumed = self._consumed or {}  # a subclass need not call this class's __init__
            if not stored:
                consumed.pop(ids, None)
                return False
            keys = consumed.setdefault(ids, set())
            is_first = key not in keys
            keys.add(key)
        return is_first


_consuming = threading.Lock()


class Ready(Generic[T]):
    """A result that exists already, and can be awaited."""

    def __init__(self, answer: T) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, None, T]:
        return self._answer
        yield  # never reached: it makes this a generator, as `await` needs

    def __bool__(self) -> bool:
        return bool(self._answer)


def check_session_id(app_name: str, user_id: str, session_id: str | None) -> str:
    """Check the names of a new session.

    Returns:
        The session's id: stripped, or a fresh one for a blank id or None.

    Raises:
        InputError: A name is not text, or cannot be stored.
    """
    names: dict[str, Any] = {"app_name": app_name, "user_id": user_id, "session_id": session_id or ""}
    for field, name in names.items():
        if not isinstance(name, str) or json_problem(name):
            raise InputError(f"the {field} of a session must be a str, got {name!r:.80}")
    session_id = strip_id(session_id or "")
    refuse_control(app_name=app_name, user_id=user_id, session_id=session_id)
    return session_id or clock.new_id()


def refuse_control(**ids: str) -> None:
    """Refuse ids with control characters: where they are shown and typed again, they are those of other sessions.

    Raises:
        InputError: The name of the argument, and the id.
    """
    for field, value in ids.items():
        if has_control(value):
            raise InputError(f"the {field} {value!r:.80} has a control character; write it without, on one line")


def strip_id(session_id: str) -> str:
    """Strip a session id: sessions are stored under stripped ids."""
    return session_id.strip() if isinstance(cast(Any, session_id), str) else session_id


def session_not_found(user_id: str, session_id: str, user_session_ids: Iterable[str]) -> SessionNotFoundError:
    """Build the error for a missing session. It suggests only sessions of the same user.

    Args:
        user_id: The session's user.
        session_id: The id that was not found.
        user_session_ids: Ids of the user's sessions.
    """
    return SessionNotFoundError(
        "session", session_id, user_session_ids, hint=f"only those of user_id={user_id!r} were looked at"
    )


def append_to_copy(session: Session, event: Event, *, only_json: bool) -> None:
    """Append `event` to the caller's `session` and apply its state delta; `temp:` keys are dropped from the event.

    Args:
        session: The caller's copy.
        event: The event, with its delta as it was written.
        only_json: The delta is converted to JSON, as for `storable_delta`.

    Raises:
        ConfigurationError: The state delta has a value that cannot be stored; nothing was changed.
    """
    if delta := vars(event.actions).get("state_delta"):  # reading the attribute would create an empty dict
        event.actions.state_delta = stored = storable_delta(delta, only_json=only_json)
        apply_stored_delta(session.state, delta, stored)
    session.events.append(event)
    session.last_update_time = event.timestamp
