"""Where sessions are kept: the interface."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any

from pydantic import BaseModel, Field

from adk_nb.events.event import Event
from adk_nb.sessions.session import ListSessionsResponse, Session


class GetSessionConfig(BaseModel):
    """How much of a session's history to load. The state is always whole."""

    num_recent_events: int | None = Field(default=None, ge=0)
    """Only the last so many events. None: all."""
    after_timestamp: float | None = None
    """Only events of this time and later; seconds since the epoch, UTC."""


class BaseSessionService(ABC):
    """Keeps sessions. A method may be a coroutine, or return an object that can be awaited."""

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
        """

    @abstractmethod
    def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Awaitable[Session | None]:
        """The session as it stands, or None. The caller's copy: later events do not reach it."""

    @abstractmethod
    def list_sessions(self, *, app_name: str, user_id: str | None = None) -> Awaitable[ListSessionsResponse]:
        """The user's sessions, or everyone's; without events, least recently used first."""

    @abstractmethod
    def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> Awaitable[None]:
        """Forget a session. No error if there is none."""

    @abstractmethod
    def append_event(self, session: Session, event: Event) -> Awaitable[Event]:
        """Make `event` history: in the store, and in the caller's `session`, together with its state delta.

        A partial event is returned as it is and not kept; one that is stored already is not stored again.

        Raises:
            SessionNotFoundError: The store has no such session.
        """

    def is_current(self, session: Session) -> bool:
        """True if `session` is still what `get_session` would give, so that reading it again can be spared."""
        return False
