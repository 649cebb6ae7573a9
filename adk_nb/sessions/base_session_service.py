"""Where sessions are kept: the interface."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Generator, Iterable
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from adk_nb import clock
from adk_nb.errors import InputError, SessionNotFoundError
from adk_nb.events.event import Event
from adk_nb.sessions.session import ListSessionsResponse, Session
from adk_nb.sessions.state import committed, take_delta
from adk_nb.wire import json_problem

T = TypeVar("T")


class GetSessionConfig(BaseModel):
    """How much of a session's history to load. The state is always whole."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    num_recent_events: int | None = Field(default=None, ge=0)
    """Only the last so many events. None: all."""
    after_timestamp: float | None = None
    """Only events of this time and later; seconds since the epoch, UTC."""


class BaseSessionService(ABC):
    """Keeps sessions. A method may be a coroutine, or return an object that can be awaited."""

    keeps_only_json: ClassVar[bool] = False
    """True: a state value that is not JSON is refused where it is written, by its key."""
    _consumed: set[tuple[str, ...]] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Awaitable[Session]:
        """Make a session.

        Args:
            app_name: The app it belongs to.
            user_id: The user it belongs to.
            state: The first values; a prefix says how far a key reaches, `temp:` keys are dropped.
            session_id: Stripped; blank or None makes a fresh one.

        Raises:
            AlreadyExistsError: The user has a session with this id.
            InputError: A name is no text.
            ConfigurationError: `state` is no dict, or has what cannot be kept.
        """

    @abstractmethod
    def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Awaitable[Session | None]:
        """The session as it stands, or None. The caller's copy: later events do not reach it. The id is stripped."""

    @abstractmethod
    def list_sessions(self, *, app_name: str, user_id: str | None = None) -> Awaitable[ListSessionsResponse]:
        """The user's sessions, or everyone's; without events, least recently used first."""

    @abstractmethod
    def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> Awaitable[None]:
        """Forget a session. No error if there is none."""

    def get_user_state(self, *, app_name: str, user_id: str) -> Awaitable[dict[str, Any]]:
        """What the user's sessions share, without `user:` before the keys; the caller's copy, empty if there is none.

        Raises:
            NotImplementedError: The service cannot tell; read a session of the user's instead.
        """
        raise NotImplementedError(f"{type(self).__name__} does not tell a user's state; read a session of the user's")

    def append_event(self, session: Session, event: Event) -> Awaitable[Event]:
        """Make `event` history: in the store, and in the caller's `session`, together with its state delta.

        A partial event is returned as it is and not kept; one that is stored already is not stored again. This one
        changes the caller's session alone: a service stores the event, and calls it.

        Raises:
            SessionNotFoundError: The store has no such session.
            ConfigurationError: The state delta has what cannot be kept; nothing was.
            AlreadyExistsError: The session has another event of this id.
            StaleSessionError: Another wrote to the session since this copy was read; get it again. Only services that
                keep sessions on disk.
            SessionBusyError: Another run works on the session. These services too.
            InputError: The event holds what no JSON can. These services too.
        """
        if not event.partial:
            take_in(session, event)
        return Ready(event)

    def flush(self) -> Awaitable[None]:
        """Wait until all that was appended is in the store; here, it is so already."""
        return Ready(None)

    def is_current(self, session: Session) -> Awaitable[bool]:
        """True if `session` is still what `get_session` would give, so that reading it again can be spared."""
        return Ready(False)

    def consume(self, session: Session, key: str) -> Awaitable[bool]:
        """True the first time this session is asked for `key`: what may happen only once asks here first.

        Here that is so within this object; a service whose sessions several processes share overrides it.
        """
        use = (session.app_name, session.user_id, session.id, key)
        with _consuming:
            used = self._consumed = self._consumed or set()  # a subclass need not call this class's __init__
            first = use not in used
            used.add(use)
        return Ready(first)


_consuming = threading.Lock()


class Ready(Generic[T]):
    """What an answer is that need not be waited for, and may be awaited all the same."""

    def __init__(self, answer: T) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, None, T]:
        return self._answer
        yield

    def __bool__(self) -> bool:
        return bool(self._answer)


def checked_id(app_name: str, user_id: str, session_id: str | None) -> str:
    """The id of a session to be made: stripped, and a fresh one for a blank or None.

    Raises:
        InputError: A name is no text, or no text that can be stored.
    """
    names: dict[str, Any] = {"app_name": app_name, "user_id": user_id, "session_id": session_id or ""}
    for what, name in names.items():
        if not isinstance(name, str) or json_problem(name):
            raise InputError(f"the {what} of a session is a str, and not {name!r:.80}")
    return stripped(session_id or "") or clock.new_id()


def stripped(session_id: str) -> str:
    """The id by which a session is found that was made under `session_id`."""
    return session_id.strip() if isinstance(cast(Any, session_id), str) else session_id


def not_found(user_id: str, session_id: str, mine: Iterable[str]) -> SessionNotFoundError:
    """The error for an event whose session is not there: other users' sessions are neither read nor named.

    Args:
        user_id: Of the session.
        session_id: Its id.
        mine: Ids of the user's sessions.
    """
    return SessionNotFoundError("session", session_id, mine, hint=f"only those of user_id={user_id!r} were looked at")


def take_in(session: Session, event: Event) -> None:
    """Write `event` and its state delta into the caller's `session`; `temp:` keys stay there and leave the event.

    Raises:
        ConfigurationError: The state delta has what cannot be kept; nothing was changed.
    """
    if delta := vars(event.actions).get("state_delta"):  # a look at the field itself makes an empty dict
        event.actions.state_delta = kept = committed(delta, only_json=False)
        take_delta(session.state, delta, kept)
    session.events.append(event)
    session.last_update_time = event.timestamp
