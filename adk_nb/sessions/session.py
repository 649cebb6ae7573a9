"""One conversation: its events and the state they add up to."""

from collections.abc import Generator, Hashable
from typing import Any

from pydantic import Field

from adk_nb.events.event import Event
from adk_nb.wire import WireModel


class Session(WireModel):
    """One conversation of one user with one app. May be awaited, and then is itself."""

    id: str
    app_name: str = ""
    user_id: str = ""
    state: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What the events' state deltas add up to, with the `app:` and `user:` keys that reach here.

    Change it through an event; what is written here directly is not kept.
    """
    events: list[Event] = Field(default_factory=list[Event])
    """Oldest first."""
    last_update_time: float = 0.0
    """Seconds since the epoch, UTC."""
    views: dict[Hashable, Any] = Field(default_factory=dict[Hashable, Any], exclude=True, repr=False)
    """What readers made of `events` and go on with next turn, so that a turn looks only at what is new."""
    revision: Any = Field(default=None, exclude=True, repr=False)
    """The service's mark of how new this copy is."""
    lease: Any = Field(default=None, exclude=True, repr=False)
    """The `journal.Lease` of the run that works on this copy. What is appended to the copy is written under it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and all(getattr(self, name) == getattr(other, name) for name in _SAID)

    def __await__(self) -> "Generator[Any, None, Session]":
        return self
        yield


_SAID = [name for name, field in Session.model_fields.items() if not field.exclude]


class NoSession:
    """A session that is not there: false, and None when awaited."""

    def __bool__(self) -> bool:
        return False

    def __await__(self) -> Generator[Any, None, None]:
        return None
        yield

    def __repr__(self) -> str:
        return "NoSession()"


class ListSessionsResponse(WireModel):
    """The sessions of a user, without their events, least recently used first. May be awaited, and then is itself."""

    sessions: list[Session] = Field(default_factory=list[Session])

    def __await__(self) -> "Generator[Any, None, ListSessionsResponse]":
        return self
        yield
