"""Sessions in this process's memory: gone with the kernel, usable with and without await."""

import itertools
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adk_nb import clock
from adk_nb.errors import AlreadyExistsError, InputError, SessionNotFoundError
from adk_nb.events.event import Event
from adk_nb.events.lazy_event import lazy_copy
from adk_nb.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    Ready,
    checked_id,
    not_found,
    stripped,
    take_in,
)
from adk_nb.sessions.session import ListSessionsResponse, NoSession, Session
from adk_nb.sessions.state import State, apply_delta, committed, detached, is_same
from adk_nb.wire import copy_model

_marks = itertools.count()


class _UserState(dict[str, Any]):
    """A dict that may be awaited, and then is itself."""

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        return self
        yield


@dataclass
class _Shared:
    """State that several sessions see, and how often it changed."""

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    changes: int = 0


@dataclass
class _Kept:
    """One stored session. Its `state` has neither the prefixes' keys nor `temp:` ones."""

    id: str
    app_name: str
    user_id: str
    app: _Shared
    user: _Shared
    last_update_time: float
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[Event] = field(default_factory=list[Event])
    event_ids: dict[str, Event] = field(default_factory=dict[str, Event])
    consumed: set[str] = field(default_factory=set[str])
    mark: int = field(default_factory=_marks.__next__)
    """Tells it from a session of the same id that was deleted."""


class InMemorySessionService(BaseSessionService):
    """Sessions of one process. Safe to call from several threads."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str, str], _Kept] = {}
        self._apps: dict[str, _Shared] = {}
        self._users: dict[tuple[str, str], _Shared] = {}
        self._lock = threading.RLock()

    @property
    def sessions(self) -> "Mapping[str, Mapping[str, Mapping[str, Session]]]":
        """`sessions[app_name][user_id][session_id]`: what is stored now, for reading."""
        return _View(self._stored, ())

    def _stored(self, path: tuple[str, ...]) -> "dict[str, Any] | Session":
        """What lies under `path`: names of apps, users and sessions, or one session.

        Raises:
            KeyError: Nothing does.
        """
        with self._lock:
            if len(path) == 3:
                return _to_read(self._sessions[path])
            depth = len(path)
            names = {key[depth]: None for key in self._sessions if key[:depth] == path}
        if path and not names:
            raise KeyError(path[-1])
        return names

    def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        key = checked_id(app_name, user_id, session_id)
        first = committed(state or {}, only_json=False)
        with self._lock:
            if (app_name, user_id, key) in self._sessions:
                raise AlreadyExistsError(f"user {user_id!r} of app {app_name!r} has a session {key!r} already")
            app = self._apps.setdefault(app_name, _Shared())
            user = self._users.setdefault((app_name, user_id), _Shared())
            kept = _Kept(key, app_name, user_id, app, user, clock.now())
            self._sessions[app_name, user_id, key] = kept
            _store(kept, first)
            return _copy_of(kept)

    def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | NoSession:
        with self._lock:
            kept = self._sessions.get((app_name, user_id, stripped(session_id)))
            return _copy_of(kept, config) if kept else NoSession()

    def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        with self._lock:
            mine = [
                kept
                for kept in self._sessions.values()
                if kept.app_name == app_name and user_id in (None, kept.user_id)
            ]
            mine.sort(key=lambda kept: kept.last_update_time)
            return ListSessionsResponse(
                sessions=[_copy_of(kept, GetSessionConfig(num_recent_events=0)) for kept in mine]
            )

    def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> Ready[None]:
        with self._lock:
            self._sessions.pop((app_name, user_id, stripped(session_id)), None)
        return Ready(None)

    def get_user_state(self, *, app_name: str, user_id: str) -> "_UserState":
        with self._lock:
            kept = self._users.get((app_name, user_id))
            return _UserState(_detached(kept.state) if kept else {})

    def append_event(self, session: Session, event: Event) -> Ready[Event]:
        if event.partial:
            return Ready(event)
        with self._lock:
            kept = self._sessions.get((session.app_name, session.user_id, session.id))
            if kept is None:
                raise self._not_found(session)
            same = kept.event_ids.get(event.id)
            if same is not None:
                if same is event or same == copy_model(event, timestamp=same.timestamp):
                    return Ready(event)
                raise AlreadyExistsError(f"session {session.id!r} has another event of the id {event.id!r}")
            newest = session.revision == _revision(kept)
            take_in(session, event)
            if delta := vars(event.actions).get("state_delta"):
                _store(kept, delta)
            kept.events.append(event)
            kept.event_ids[event.id] = event
            kept.last_update_time = event.timestamp
            if newest:
                session.revision = _revision(kept)
        return Ready(event)

    def _not_found(self, session: Session) -> SessionNotFoundError:
        mine = (session.app_name, session.user_id)
        return not_found(session.user_id, session.id, [key[2] for key in self._sessions if key[:2] == mine])

    def is_current(self, session: Session) -> Ready[bool]:
        with self._lock:
            kept = self._sessions.get((session.app_name, session.user_id, session.id))
            if kept is None or session.revision != _revision(kept) or len(session.events) != len(kept.events):
                return Ready(False)
            return Ready(is_same(session.state, _state_of(kept)))

    create_session_sync = create_session
    list_sessions_sync = list_sessions
    delete_session_sync = delete_session

    def get_session_sync(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """`get_session` under the name, and with the None, that google-adk's has for sync code."""
        found = self.get_session(app_name=app_name, user_id=user_id, session_id=session_id, config=config)
        return found if isinstance(found, Session) else None

    def consume(self, session: Session, key: str) -> Ready[bool]:
        """True the first time this session is asked for `key`: what may happen only once asks here first."""
        with self._lock:
            kept = self._sessions.get((session.app_name, session.user_id, session.id))
            first = kept is not None and key not in kept.consumed
            if kept is not None:
                kept.consumed.add(key)
            return Ready(first)


class _View(Mapping[str, Any]):
    """A level of `InMemorySessionService.sessions`."""

    def __init__(self, stored: Callable[[tuple[str, ...]], Any], path: tuple[str, ...]) -> None:
        self._stored = stored
        self._path = path

    def __getitem__(self, name: str) -> Any:
        path = (*self._path, name)
        found = self._stored(path)
        return found if isinstance(found, Session) else _View(self._stored, path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored(self._path))

    def __len__(self) -> int:
        return len(self._stored(self._path))

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})


def _refuse_write(*_: Any, **__: Any) -> Any:
    raise InputError(
        "InMemorySessionService.sessions is for reading; write with "
        "service.append_event(session, Event(author='user', state={'key': 'value'}))"
    )


class _ReadState(dict[str, Any]):
    __setitem__ = __delitem__ = __ior__ = _refuse_write
    update = setdefault = pop = popitem = clear = _refuse_write

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class _ReadEvents(list[Event]):
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse_write
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse_write

    def __reduce__(self) -> Any:
        return list, (list(self),)


def _to_read(kept: _Kept) -> Session:
    session = _copy_of(kept)
    session.state, session.events = _ReadState(session.state), _ReadEvents(session.events)
    return session


def _revision(kept: _Kept) -> tuple[int, int, int, int]:
    return kept.mark, len(kept.events), kept.app.changes, kept.user.changes


def _store(kept: _Kept, delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        scope, _, name = key.partition(":")
        shared = {"app": kept.app, "user": kept.user}.get(scope) if name else None
        if shared:
            apply_delta(shared.state, {name: value})
            shared.changes += 1
        else:
            apply_delta(kept.state, {key: value})


def _state_of(kept: _Kept) -> dict[str, Any]:
    state = dict(kept.state)
    state |= {State.APP_PREFIX + key: value for key, value in kept.app.state.items()}
    state |= {State.USER_PREFIX + key: value for key, value in kept.user.state.items()}
    return state


def _detached(state: dict[str, Any]) -> dict[str, Any]:
    return {key: detached(value) for key, value in state.items()}


def _copy_of(kept: _Kept, config: GetSessionConfig | None = None) -> Session:
    session = Session(id=kept.id, app_name=kept.app_name, user_id=kept.user_id)
    session.state = _detached(_state_of(kept))
    session.events = _recent(kept.events, config)
    session.last_update_time = kept.last_update_time
    session.revision = _revision(kept) if config is None else None
    return session


def _recent(events: list[Event], config: GetSessionConfig | None) -> list[Event]:
    """Copies for the caller, cut as `config` says, each made when it is first looked at."""
    count, after = (config.num_recent_events, config.after_timestamp) if config else (None, None)
    kept = events if count is None else events[len(events) - min(count, len(events)) :]
    return [lazy_copy(event) for event in kept if after is None or event.timestamp >= after]
