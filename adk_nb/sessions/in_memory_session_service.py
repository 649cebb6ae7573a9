"""Sessions in memory: lost with the process, usable with and without `await`."""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from adk_nb import clock
from adk_nb.errors import AlreadyExistsError, InputError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.events.lazy_event import lazy_copy
from adk_nb.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    Ready,
    append_to_copy,
    check_session_id,
    session_not_found,
    strip_id,
)
from adk_nb.sessions.session import ListSessionsResponse, NoSession, OwnResult, Session
from adk_nb.sessions.state import State, apply_delta, detached, is_same, storable_delta
from adk_nb.wire import copy_model

_session_numbers = itertools.count()


class _UserState(dict[str, Any], OwnResult):
    """The state of a user; it can be awaited, and is its own result."""


@dataclass
class _Shared:
    """State that several sessions share, and the number of its changes."""

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    changes: int = 0


@dataclass
class _StoredSession:
    """A stored session. Its `state` has only the session's own keys."""

    id: str
    app_name: str
    user_id: str
    app: _Shared
    user: _Shared
    last_update_time: float
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    initial_state: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its `state` before the first event; never changed."""
    events: list[Event] = field(default_factory=list[Event])
    event_ids: dict[str, Event] = field(default_factory=dict[str, Event])
    consumed: set[str] = field(default_factory=set[str])
    number: int = field(default_factory=_session_numbers.__next__)
    """Unique in this process: a session that is deleted and created again gets another number."""


class InMemorySessionService(BaseSessionService):
    """Sessions of one process. Safe to call from several threads."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str, str], _StoredSession] = {}
        self._apps: dict[str, _Shared] = {}
        self._users: dict[tuple[str, str], _Shared] = {}
        self._lock = threading.RLock()

    @property
    def sessions(self) -> "Mapping[str, Mapping[str, Mapping[str, Session]]]":
        """View of the stored sessions: `sessions[app_name][user_id][session_id]`; of a session, `state` can be written.

        Such a write has no event, so a rewind does not undo it; a run in progress sees it in its next turn.
        """
        return _View(self._lookup, ())

    def _lookup(self, path: tuple[str, ...]) -> "dict[str, Any] | Session":
        """Look up a path: a dict of names of apps, users or sessions, or a session.

        Raises:
            KeyError: There is no such path.
        """
        with self._lock:
            if len(path) == 3:
                stored = self._sessions[path]

                def store(delta: dict[str, Any]) -> None:
                    storable = storable_delta(delta, only_json=False)
                    with self._lock:
                        _apply_scoped_delta(stored, storable)

                session = _copy_of(stored)
                session.state, session.events = _StoredState(session.state, store), _ReadOnlyEvents(session.events)
                return session
            depth = len(path)
            names = {key[depth]: None for key in self._sessions if key[:depth] == path}
        if path and not names:
            raise KeyError(path[-1])
        return names

    def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Create a session, as BaseSessionService does; await is optional."""
        key = check_session_id(app_name, user_id, session_id)
        initial = storable_delta(state or {}, only_json=False)
        with self._lock:
            if (app_name, user_id, key) in self._sessions:
                raise AlreadyExistsError(f"user {user_id!r} of app {app_name!r} has a session {key!r} already")
            app = self._apps.setdefault(app_name, _Shared())
            user = self._users.setdefault((app_name, user_id), _Shared())
            stored = _StoredSession(key, app_name, user_id, app, user, clock.now())
            self._sessions[app_name, user_id, key] = stored
            _apply_scoped_delta(stored, initial)
            stored.initial_state = _detached_state(stored.state)
            return _copy_of(stored)

    def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | NoSession:
        """Load a copy of a session; without `await`, a missing session is a false `NoSession`."""
        with self._lock:
            stored = self._sessions.get((app_name, user_id, strip_id(session_id)))
            return _copy_of(stored, config) if stored else NoSession()

    def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """List sessions, as BaseSessionService does; await is optional."""
        with self._lock:
            matches = [
                stored
                for stored in self._sessions.values()
                if stored.app_name == app_name and user_id in (None, stored.user_id)
            ]
            matches.sort(key=lambda stored: stored.last_update_time)
            return ListSessionsResponse(
                sessions=[_copy_of(stored, GetSessionConfig(num_recent_events=0)) for stored in matches]
            )

    def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> Ready[None]:
        """Delete a session when called, not when awaited."""
        with self._lock:
            self._sessions.pop((app_name, user_id, strip_id(session_id)), None)
        return Ready(None)

    def get_user_state(self, *, app_name: str, user_id: str) -> "_UserState":
        """Copy the state that the user's sessions share; await is optional."""
        with self._lock:
            shared = self._users.get((app_name, user_id))
            return _UserState(_detached_state(shared.state) if shared else {})

    def append_event(self, session: Session, event: Event) -> Ready[Event]:
        """Append an event when called, not when awaited; values need not be JSON."""
        if event.partial:
            return Ready(event)
        with self._lock:
            stored = self._sessions.get((session.app_name, session.user_id, session.id))
            if stored is None:
                ids = [key[2] for key in self._sessions if key[:2] == (session.app_name, session.user_id)]
                raise session_not_found(session.user_id, session.id, ids)
            existing = stored.event_ids.get(event.id)
            if existing is not None:
                # Equal but for the time: the same step, repeated after a restart.
                if existing is event or existing == copy_model(event, timestamp=existing.timestamp):
                    return Ready(event)
                raise AlreadyExistsError(f"session {session.id!r} has another event of the id {event.id!r}")
            # Compared before the append: a copy that lacks earlier events is not current afterwards either.
            is_newest = session.revision == _revision(stored)
            append_to_copy(session, event, only_json=False)
            # `append_to_copy` has removed the `temp:` keys.
            if delta := vars(event.actions).get("state_delta"):
                _apply_scoped_delta(stored, delta)
            stored.events.append(event)
            stored.event_ids[event.id] = event
            stored.last_update_time = event.timestamp
            if is_newest:
                session.revision = _revision(stored)
        return Ready(event)

    def is_current(self, session: Session) -> Ready[bool]:
        """Compare revisions and states; O(number of state keys)."""
        with self._lock:
            stored = self._sessions.get((session.app_name, session.user_id, session.id))
            if stored is None or session.revision != _revision(stored) or len(session.events) != len(stored.events):
                return Ready(False)
            return Ready(is_same(session.state, _state_of(stored)))

    create_session_sync = create_session
    list_sessions_sync = list_sessions
    delete_session_sync = delete_session

    def get_session_sync(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """`get_session` that returns None for a missing session. Source: google-adk 2.13."""
        session = self.get_session(app_name=app_name, user_id=user_id, session_id=session_id, config=config)
        return session if isinstance(session, Session) else None

    def consume(self, session: Session, key: str) -> Ready[bool]:
        """Use up a key that may be used once: True for the first call with `key` in this session."""
        with self._lock:
            stored = self._sessions.get((session.app_name, session.user_id, session.id))
            is_first = stored is not None and key not in stored.consumed
            if stored is not None:
                stored.consumed.add(key)
            return Ready(is_first)


class _View(Mapping[str, Any]):
    """One level of `InMemorySessionService.sessions`."""

    def __init__(self, lookup: Callable[[tuple[str, ...]], Any], path: tuple[str, ...]) -> None:
        self._lookup = lookup
        self._path = path

    def __getitem__(self, name: str) -> Any:
        path = (*self._path, name)
        value = self._lookup(path)
        return value if isinstance(value, Session) else _View(self._lookup, path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lookup(self._path))

    def __len__(self) -> int:
        return len(self._lookup(self._path))

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})


def _refuse_write(*_: Any, **__: Any) -> Any:
    raise InputError(
        "the events of InMemorySessionService.sessions are read-only; write with "
        "service.append_event(session, Event(author='user', state={'key': 'value'}))"
    )


class _StoredState(dict[str, Any]):
    """The state of a stored session; what is set or removed here is stored at once, as in google-adk 2.13.

    A value that is changed in place is not: its owner is a copy.
    """

    def __init__(self, state: dict[str, Any], store: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(state)
        self._store = store

    def __setitem__(self, key: str, value: Any) -> None:
        self._store({key: value})
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        if key in self:
            self._store({key: DELETED})
        super().__delitem__(key)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        key = next(reversed(self), None)
        if key is None:
            raise KeyError("the state is empty")
        return key, self.pop(key)

    def clear(self) -> None:
        for key in list(self):
            del self[key]

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class _ReadOnlyEvents(list[Event]):
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse_write
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse_write

    def __reduce__(self) -> Any:
        return list, (list(self),)


def _revision(stored: _StoredSession) -> tuple[int, int, int, int]:
    return stored.number, len(stored.events), stored.app.changes, stored.user.changes


def _apply_scoped_delta(stored: _StoredSession, delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        scope, _, name = key.partition(":")
        shared = {"app": stored.app, "user": stored.user}.get(scope) if name else None
        if shared:
            apply_delta(shared.state, {name: value})
            shared.changes += 1
        else:
            apply_delta(stored.state, {key: value})


def _state_of(stored: _StoredSession) -> dict[str, Any]:
    state = dict(stored.state)
    state |= {State.APP_PREFIX + key: value for key, value in stored.app.state.items()}
    state |= {State.USER_PREFIX + key: value for key, value in stored.user.state.items()}
    return state


def _detached_state(state: dict[str, Any]) -> dict[str, Any]:
    return {key: detached(value) for key, value in state.items()}


def _copy_of(stored: _StoredSession, config: GetSessionConfig | None = None) -> Session:
    """A copy with lazy copies of the events that `config` selects."""
    count, earliest = (config.num_recent_events, config.after_timestamp) if config else (None, None)
    events = stored.events if count is None else stored.events[len(stored.events) - min(count, len(stored.events)) :]
    session = Session(id=stored.id, app_name=stored.app_name, user_id=stored.user_id)
    session.state = _detached_state(_state_of(stored))
    session.initial_state = stored.initial_state
    session.events = [lazy_copy(event) for event in events if earliest is None or event.timestamp >= earliest]
    session.last_update_time = stored.last_update_time
    # Without a revision a copy is never current; one with a part of the events has none.
    session.revision = _revision(stored) if config is None else None
    return session
