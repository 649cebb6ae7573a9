"""A runner's sessions: loaded from its service, cached after a run, and updated from concurrent runs."""

from collections import OrderedDict
from typing import Any

from adk_nb.concurrency.generators import run_in_slices
from adk_nb.errors import SessionNotFoundError
from adk_nb.events.lazy_event import originals
from adk_nb.events.requests import REQUESTS
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.history import history_of, read_stepwise
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.base_session_service import BaseSessionService, GetSessionConfig
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import State

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
        # Out of the cache while in use: two runs must not change one object.
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
        sessions = (await self._service.list_sessions(app_name=self._app_name, user_id=user_id)).sessions
        hint = f"make it with session_service.create_session(app_name={self._app_name!r}, user_id={user_id!r}, ...)"
        raise SessionNotFoundError("session", session_id, [session.id for session in sessions], hint=hint)

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
            return  # another run wrote meanwhile, or a state value was changed without an event
        self._cached[session.user_id, session.id] = session
        if len(self._cached) > _MAX_CACHED:
            self._cached.popitem(last=False)

    def forget(self) -> None:
        """Clear the cache."""
        self._cached.clear()


async def catch_up(ctx: InvocationContext) -> bool:
    """Load what other runs wrote to the session since this run read it. False: nothing new."""
    session, service = ctx.session, ctx.session_service
    if await service.is_current(session):
        return False
    stored = await service.get_session(
        app_name=session.app_name,
        user_id=session.user_id,
        session_id=session.id,
        config=ctx.run_config.get_session_config,
    )
    events = originals(stored.events) if stored else []
    # Only if nothing of this run is missing: a limited or rewritten history would hide its own events.
    if not stored or not {event.id for event in session.events} < {event.id for event in events}:
        return False
    temporary = {key: value for key, value in dict(session.state).items() if key.startswith(State.TEMP_PREFIX)}
    # In place: contexts and tools of this run refer to this dict and this list.
    session.state.clear()
    session.state.update(stored.state | temporary)
    session.events[:] = events
    session.views.clear()
    session.revision = stored.revision
    return True


async def is_first_to_continue(ctx: InvocationContext) -> bool:
    """True for exactly one of the concurrent runs that would call the model about the newest tool result."""
    if ctx.session.lease is not None:
        return True
    for event in history_of(ctx.session).newest():
        is_own = event.author in (ctx.agent.name, "user") and is_within(event.branch, ctx.branch)
        if is_own and any(response.name not in REQUESTS for response in event.get_function_responses()):
            return await ctx.session_service.consume(ctx.session, f"asked:{event.id}")
    return True
