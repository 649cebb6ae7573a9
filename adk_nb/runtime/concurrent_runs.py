"""Concurrent runs of one session: read what the others wrote, and decide which one asks the model."""

from adk_nb.events.event import Event
from adk_nb.events.requests import REQUESTS
from adk_nb.events.unread import originals
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.state import State


async def caught_up(ctx: InvocationContext) -> bool:
    """Take in what other runs wrote to the session since this one read it. False: there is nothing of that."""
    session, service = ctx.session, ctx.session_service
    if await service.is_current(session):
        return False
    found = await service.get_session(
        app_name=session.app_name,
        user_id=session.user_id,
        session_id=session.id,
        config=ctx.run_config.get_session_config,
    )
    events = originals(found.events) if found else []
    if not found or not {event.id for event in session.events} < {event.id for event in events}:
        return False
    own = {key: value for key, value in dict(session.state).items() if key.startswith(State.TEMP_PREFIX)}
    session.state.clear()
    session.state.update(found.state | own)
    session.events[:] = events
    session.views.clear()
    session.revision = found.revision
    return True


async def is_first(ctx: InvocationContext) -> bool:
    """True for one of the runs alone that would ask the agent's model of the newest result of its calls."""
    newest = next((event for event in history_of(ctx.session).newest() if _is_result(ctx, event)), None)
    if newest is None or ctx.session.lease is not None:
        return True
    return await ctx.session_service.consume(ctx.session, f"asked:{newest.id}")


def _is_result(ctx: InvocationContext, event: Event) -> bool:
    if event.author not in (ctx.agent.name, "user") or not is_within(event.branch, ctx.branch):
        return False
    return any(response.name not in REQUESTS for response in event.get_function_responses())
