"""A runner's sessions, loaded from its service or cached after the last run."""

from collections import OrderedDict
from typing import Any

from adk_nb.errors import SessionNotFoundError
from adk_nb.events.lazy_event import originals
from adk_nb.runtime.history import read_stepwise
from adk_nb.sessions.base_session_service import BaseSessionService, GetSessionConfig
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import State
from adk_nb.slices import run_in_slices

_MAX_CACHED = 256


class OpenSessions:
    """The sessions of one app."""

    def __init__(self, app_name: str, service: BaseSessionService) -> None:
        self._app_name = app_name
        self._service = service
        self._cached: OrderedDict[tuple[str, str], Session] = OrderedDict()
        """User and session id -> session as the last run left it. Sessions in use are not cached."""

    async def take(
        self, user_id: str, session_id: str, config: GetSessionConfig | None = None, *, create: bool = False
    ) -> Session:
        """The session, exclusively for one run.

        Args:
            user_id: Owner of the session.
            session_id: Id of the session.
            config: How much history to load. None: all.
            create: Create a missing session.

        Raises:
            SessionNotFoundError: It does not exist; the message says how to create it.
        """
        cached = self._cached.pop((user_id, session_id), None)
        if cached and config is None and await self._service.is_current(cached):
            return cached
        key: dict[str, Any] = {"app_name": self._app_name, "user_id": user_id, "session_id": session_id}
        session = await self._service.get_session(**key, config=config)
        if session:
            session.events = originals(session.events)
            await run_in_slices(read_stepwise(session))
            return session
        if create:
            return await self._service.create_session(**key)
        raise await self._not_found(user_id, session_id)

    async def peek(self, user_id: str, session_id: str) -> Session | None:
        """The current session, read-only: the cached object if it is current. None: it does not exist."""
        cached = self._cached.get((user_id, session_id))
        if cached and await self._service.is_current(cached):
            return cached
        return await self._service.get_session(app_name=self._app_name, user_id=user_id, session_id=session_id)

    async def put_back(self, session: Session) -> None:
        """Cache a session after a run, without its temporary state."""
        for key in [key for key in list(session.state) if key.startswith(State.TEMP_PREFIX)]:
            del session.state[key]
        if not await self._service.is_current(session):
            return  # another run wrote meanwhile, or the state has a value that is in no event
        self._cached[session.user_id, session.id] = session
        if len(self._cached) > _MAX_CACHED:
            self._cached.popitem(last=False)

    def forget(self) -> None:
        """Clear the cache."""
        self._cached.clear()

    async def _not_found(self, user_id: str, session_id: str) -> SessionNotFoundError:
        sessions = (await self._service.list_sessions(app_name=self._app_name, user_id=user_id)).sessions
        hint = f"make it with session_service.create_session(app_name={self._app_name!r}, user_id={user_id!r}, ...)"
        return SessionNotFoundError("session", session_id, [session.id for session in sessions], hint=hint)
