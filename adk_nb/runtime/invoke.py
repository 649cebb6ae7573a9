"""The commit loop: the only place where events become history."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress

from adk_nb import types
from adk_nb.errors import AdkNbError, ConfigurationError, PluginError, SessionNotFoundError
from adk_nb.events.event import Event, as_content
from adk_nb.runtime.approvals import pending, unanswered_calls
from adk_nb.runtime.hooks import Hook, first_answer, tell
from adk_nb.runtime.invocation_context import InvocationContext

INVOCATION_ABORTED = "INVOCATION_ABORTED"
"""Error code of the event that closes a run which was stopped from outside."""


async def invoke(ctx: InvocationContext, first: Event) -> AsyncGenerator[Event, None]:
    """Write the user's event down, run the agent, write each whole event down, pass it on.

    An event is history before anyone sees it, and the agent goes on only after its event is taken: so what the
    agent does next already reads the state it just wrote.

    Yields:
        `first`, then what the agent says.

    Raises:
        Exception: What the agent raised, after one event that carries it as `error_code` and `error_message`.
    """
    await _append(ctx, first)
    yield first
    try:
        early = await _early(ctx, before) if (before := ctx.plugins.hooks("before_run")) else None
        async with aclosing(_only(early) if early else ctx.agent.run_async(ctx)) as events:
            async for event in events:
                event = await _commit(ctx, event)
                yield event
        if after := ctx.plugins.hooks("after_run"):
            await first_answer(after, invocation_context=ctx)
    except asyncio.CancelledError:
        await _seal(ctx, always=True)
        raise
    except GeneratorExit:
        await _seal(ctx, always=False)  # a reader that has seen enough is no abort, unless a call is open
        await tell(ctx.plugins.hooks("after_run"), invocation_context=ctx)
        raise
    except Exception as error:
        yield await _failed(ctx, error)
        raise


async def _early(ctx: InvocationContext, hooks: Iterable[Hook]) -> Event | None:
    """What a plugin answers in the agent's place."""
    answer = await first_answer(hooks, invocation_context=ctx)
    return None if answer is None else Event(author="model", content=as_content(answer, role="model"))


async def _only(event: Event) -> AsyncGenerator[Event, None]:
    yield event


async def _failed(ctx: InvocationContext, error: Exception) -> Event:
    """The event that tells of `error`, stored; the plugins have heard of both."""
    failed = Event(
        author=ctx.agent.name,
        content=_cut_short(_approved_calls(ctx)),
        error_code=error.code if isinstance(error, AdkNbError) else type(error).__name__,
        error_message=str(error),
        branch=ctx.branch,
    )
    try:
        failed = await _commit(ctx, failed)
    except PluginError:  # the plugin that raised may be the one that is asked about every event
        await _append(ctx, failed)
    await tell(ctx.plugins.hooks("on_run_error"), invocation_context=ctx, error=error)
    return failed


async def _commit(ctx: InvocationContext, event: Event) -> Event:
    if hooks := ctx.plugins.hooks("on_event"):
        event = await _as_plugins_say(ctx, hooks, event)
    if event.partial:
        _stamp(ctx, event)
    else:
        await _append(ctx, event)
    return event


async def _as_plugins_say(ctx: InvocationContext, hooks: Iterable[Hook], event: Event) -> Event:
    _stamp(ctx, event)
    other = await first_answer(hooks, invocation_context=ctx, event=event)
    if other is None:
        return event
    if not isinstance(other, Event):
        raise ConfigurationError(f"on_event_callback returned a {type(other).__name__}; return an Event, or None")
    said = other.model_fields_set - {"id", "invocation_id", "timestamp"}
    return event.model_copy(update={name: getattr(other, name) for name in said})


async def _append(ctx: InvocationContext, event: Event) -> None:
    _stamp(ctx, event)
    await ctx.session_service.append_event(ctx.session, event)


def _stamp(ctx: InvocationContext, event: Event) -> None:
    if not event.invocation_id:
        event.invocation_id = ctx.invocation_id
    if metadata := ctx.run_config.custom_metadata:
        event.custom_metadata = metadata | (event.custom_metadata or {})


async def _seal(ctx: InvocationContext, *, always: bool) -> None:
    """Answer the calls that a stopped run leaves open, so that the next turn finds a history every model accepts."""
    content = _cut_short([*_own_calls(ctx), *_approved_calls(ctx)])
    if not (content or always):
        return
    sealed = Event(
        author=ctx.agent.name,
        content=content,
        error_code=INVOCATION_ABORTED,
        error_message="the run was stopped",
        branch=ctx.branch,
    )
    with suppress(SessionNotFoundError):  # deleted meanwhile: there is nothing left to seal
        await _append(ctx, sealed)


def _own_calls(ctx: InvocationContext) -> list[types.FunctionCall]:
    """The calls this run made and leaves open, without those that wait for a person."""
    mine = unanswered_calls(event for event in ctx.session.events if event.invocation_id == ctx.invocation_id)
    waiting = {one.call.id for one in pending(ctx.session.events)} if mine else set[str | None]()
    return [call for call in mine if call.id not in waiting]


def _approved_calls(ctx: InvocationContext) -> list[types.FunctionCall]:
    """The calls this run was let to make and leaves open: an approval counts once, so nobody can let them again."""
    said = ctx.approvals_answered
    return [one.call for one in pending(ctx.session.events) if one.id in said or one.call.id in said] if said else []


def _cut_short(calls: list[types.FunctionCall]) -> types.Content | None:
    """What stands as the results of `calls`. None: there are none."""
    told = {"error": "the run ended before this call was answered; it may or may not have taken effect"}
    answers = [types.FunctionResponse(id=call.id, name=call.name, response=told) for call in calls]
    return types.Content(role="user", parts=[types.Part(function_response=one) for one in answers]) if calls else None
