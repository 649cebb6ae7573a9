"""A runner's sessions: found in its service, or as the last run left them."""

from collections import OrderedDict
from typing import Any

from adk_nb.errors import SessionNotFoundError
from adk_nb.events.unread import originals
from adk_nb.runtime.history import reading
from adk_nb.sessions.base_session_service import BaseSessionService, GetSessionConfig
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import State
from adk_nb.slices import in_slices

_KEPT_HOT = 256


class OpenSessions:
    """The sessions of one app."""

    def __init__(self, app_name: str, service: BaseSessionService) -> None:
        self._app_name = app_name
        self._service = service
        self._hot: OrderedDict[tuple[str, str], Session] = OrderedDict()
        """Sessions as the last run left them, so that the next one reads nothing back. One in use is not in here."""

    async def take(
        self, user_id: str, session_id: str, config: GetSessionConfig | None = None, *, create: bool = False
    ) -> Session:
        """The session, for one run to work on.

        Args:
            user_id: Whose it is.
            session_id: The session.
            config: How much of it is read. None: all.
            create: A missing one is made.

        Raises:
            SessionNotFoundError: There is none; the message says how to make it.
        """
        hot = self._hot.pop((user_id, session_id), None)
        if hot and config is None and await self._service.is_current(hot):
            return hot
        where: dict[str, Any] = {"app_name": self._app_name, "user_id": user_id, "session_id": session_id}
        found = await self._service.get_session(**where, config=config)
        if found:
            found.events = originals(found.events)
            await in_slices(reading(found))
            return found
        if create:
            return await self._service.create_session(**where)
        raise await self._not_found(user_id, session_id)

    async def look(self, user_id: str, session_id: str) -> Session | None:
        """The session as it stands, to be read only: the one that the next run gets, where nobody wrote to it since."""
        hot = self._hot.get((user_id, session_id))
        if hot and await self._service.is_current(hot):
            return hot
        return await self._service.get_session(app_name=self._app_name, user_id=user_id, session_id=session_id)

    async def put_back(self, session: Session) -> None:
        """Keep it as a run left it, for the next run."""
        for key in [key for key in list(session.state) if key.startswith(State.TEMP_PREFIX)]:
            del session.state[key]
        if not await self._service.is_current(session):
            return  # another run wrote meanwhile, or something was put into the state that no event carries
        self._hot[session.user_id, session.id] = session
        if len(self._hot) > _KEPT_HOT:
            self._hot.popitem(last=False)

    def forget(self) -> None:
        """Keep none."""
        self._hot.clear()

    async def _not_found(self, user_id: str, session_id: str) -> SessionNotFoundError:
        mine = (await self._service.list_sessions(app_name=self._app_name, user_id=user_id)).sessions
        hint = f"make it with session_service.create_session(app_name={self._app_name!r}, user_id={user_id!r}, ...)"
        return SessionNotFoundError("session", session_id, [one.id for one in mine], hint=hint)
