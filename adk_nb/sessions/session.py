"""A session: its events and state."""

from collections.abc import Generator, Hashable
from typing import Any, Self

from pydantic import Field

from adk_nb.events.event import Event
from adk_nb.wire import WireModel


class OwnResult:
    """An object that can be awaited, and is its own result."""

    def __await__(self) -> Generator[Any, None, Self]:
        return self
        yield  # never reached: it makes this a generator, as `await` needs


class Session(WireModel, OwnResult):
    """One conversation of a user with an app. Can be awaited, and is its own result."""

    id: str
    app_name: str = ""
    user_id: str = ""
    state: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The sum of the events' state deltas, with the `app:` and `user:` keys of the session's app and user.

    Change it through an event: a value written here directly is not stored.
    """
    events: list[Event] = Field(default_factory=list[Event])
    """Oldest first."""
    last_update_time: float = 0.0
    """Seconds since the epoch, UTC."""
    views: dict[Hashable, Any] = Field(default_factory=dict[Hashable, Any], exclude=True, repr=False)
    """Read models of `events` that are updated by each turn's new events only, by key."""
    initial_state: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)
    """The session's own keys that it was created with, as no event has them. None: its service does not say."""
    revision: Any = Field(default=None, exclude=True, repr=False)
    """The service's mark of the version of the session that this copy has."""
    lease: Any = Field(default=None, exclude=True, repr=False)
    """The `journal.Lease` of the run that works on this copy; appends to the copy are written under it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and all(getattr(self, name) == getattr(other, name) for name in _COMPARED)


_COMPARED = [name for name, field in Session.model_fields.items() if not field.exclude]


class NoSession:
    """A missing session: false, and None when awaited."""

    def __bool__(self) -> bool:
        return False

    def __await__(self) -> Generator[Any, None, None]:
        return None
        yield  # as in `OwnResult`

    def __repr__(self) -> str:
        return "NoSession()"


class ListSessionsResponse(WireModel, OwnResult):
    """A list of sessions without events, least recently used first. Can be awaited, and is its own result."""

    sessions: list[Session] = Field(default_factory=list[Session])
