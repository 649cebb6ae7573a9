"""Concurrent runs of one session: load what the others wrote, and decide which one calls the model."""

from adk_nb.events.event import Event
from adk_nb.events.lazy_event import originals
from adk_nb.events.requests import REQUESTS
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.state import State


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
    if not stored or not {event.id for event in session.events} < {event.id for event in events}:
        return False
    temporary = {key: value for key, value in dict(session.state).items() if key.startswith(State.TEMP_PREFIX)}
    session.state.clear()
    session.state.update(stored.state | temporary)
    session.events[:] = events
    session.views.clear()
    session.revision = stored.revision
    return True


async def is_first(ctx: InvocationContext) -> bool:
    """True for exactly one of the concurrent runs that would call the model about the newest tool result."""
    newest = next((event for event in history_of(ctx.session).newest() if _is_result(ctx, event)), None)
    if newest is None or ctx.session.lease is not None:
        return True
    return await ctx.session_service.consume(ctx.session, f"asked:{newest.id}")


def _is_result(ctx: InvocationContext, event: Event) -> bool:
    if event.author not in (ctx.agent.name, "user") or not is_within(event.branch, ctx.branch):
        return False
    return any(response.name not in REQUESTS for response in event.get_function_responses())
