"""The commit loop: the only place where events become history."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

from adk_nb.errors import ConfigurationError, PluginError, SessionNotFoundError, StaleSessionError
from adk_nb.events.event import Event, as_content
from adk_nb.runtime.hooks import Hook, first_answer, tell
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import closing_events, has_open_calls, new_failure_events, without_results
from adk_nb.runtime.side_by_side import SideBySide
from adk_nb.runtime.stopping import STOPPED, Stop, Why, foreign_cancellation

_GRACE_SECONDS = 0.2
"""How long a run that is past its timeout waits for its agent to let go."""


async def invoke(ctx: InvocationContext, first: Event | None) -> AsyncGenerator[Event, None]:
    """Write the user's event down, run the agent, write each whole event down, pass it on.

    An event is history before anyone sees it, and the agent goes on only after its event is taken: so what the
    agent does next already reads the state it just wrote.

    Yields:
        `first`, if the user has said something by now, then what the agent says. A run that is stopped, or takes too
        long, ends with the events that close it.

    Raises:
        Exception: What the agent raised, after one event that carries it as `error_code` and `error_message`; what
            came to an end beside it may have told of that since.
    """
    stop, on_event = ctx.shared.stop, ctx.plugin_manager.hooks("on_event")
    if first:
        await commit(ctx, first)
        yield first
    try:
        with stop.hearing(ctx.abort_signal, ctx.run_config.timeout):
            stop.within = asyncio.current_task(stop.loop)
            events = await _begun(ctx, stop)
            try:  # what `aclosing` does, at a quarter of its price: each run comes by here
                async for event in events:
                    stop.within = None
                    event = await commit(ctx, event, on_event)
                    yield event
                    if stop.why or (stop.listens and stop.is_asked()):
                        stop.request()
                        break
                    stop.within = asyncio.current_task(stop.loop)
            finally:
                await events.aclose()
        for event in await _seal(ctx, stop.why):
            yield event
        await first_answer(ctx.plugin_manager.hooks("after_run"), invocation_context=ctx)
    except BaseException as raised:
        error = foreign_cancellation(raised, f"agent {ctx.agent.name!r}") or raised
        if isinstance(error, Exception):
            for failed in await _failed(ctx, error):
                yield failed
            raise error from error.__cause__
        with suppress(StaleSessionError):  # the session is another's by now
            await (_left(ctx) if isinstance(raised, GeneratorExit) else _seal(ctx, stop.why or STOPPED))
        raise


async def _begun(ctx: InvocationContext, stop: Stop) -> AsyncGenerator[Event, None]:
    """The agent's events; or what a plugin answers in its place; or nothing, if the run is to stop before it begins."""
    if stop.why:
        return _only()
    if before := ctx.plugin_manager.hooks("before_run"):
        answer = await first_answer(before, invocation_context=ctx)
        if answer is not None:
            return _only(Event(author="model", content=as_content(answer, role="model")))
    events = ctx.agent.run_live(ctx) if ctx.live_request_queue else ctx.agent.run_async(ctx)
    return _in_time(ctx, events) if ctx.run_config.timeout else events


async def _in_time(ctx: InvocationContext, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """`events` from a task of their own, so that the run ends in time even if its agent catches the cancellation."""
    streams: SideBySide[str] = SideBySide(grace=_GRACE_SECONDS)
    streams.start(ctx.agent.name, events)
    try:
        async with aclosing(streams.taken()) as taken:
            async for _, news in taken:
                if isinstance(news, Event):
                    yield news
                elif news.error:
                    raise news.error
    finally:
        ctx.shared.is_abandoned = streams.is_abandoned


async def _only(*events: Event) -> AsyncGenerator[Event, None]:
    for event in events:
        yield event


async def _left(ctx: InvocationContext) -> None:
    """A reader that has seen enough is no abort, unless a call is open."""
    if has_open_calls(ctx):
        await _seal(ctx, STOPPED)
    await tell(ctx.plugin_manager.hooks("after_run"), invocation_context=ctx)


async def _failed(ctx: InvocationContext, error: Exception) -> list[Event]:
    """The events that tell of `error`, stored, if none has told of it yet; the plugins have heard of both."""
    is_ours = not isinstance(error, StaleSessionError)  # else the session is another's now
    failed = [await _close(ctx, event) for event in new_failure_events(ctx, error)] if is_ours else []
    await tell(ctx.plugin_manager.hooks("on_run_error"), invocation_context=ctx, error=error)
    return failed


async def _close(ctx: InvocationContext, event: Event) -> Event:
    """Store an event that closes calls, as plugins say."""
    try:
        return await commit(ctx, event, ctx.plugin_manager.hooks("on_event"))
    except PluginError:  # the plugin that raised may be the one that is asked about every event
        return await commit(ctx, without_results(event))


async def commit(ctx: InvocationContext, event: Event, hooks: Sequence[Hook] = ()) -> Event:
    """Make `event`, or what a hook puts in its place, history; unless it is a piece."""
    if hooks:
        event = await _as_plugins_say(ctx, hooks, event)
    _stamp(ctx, event)
    if not event.partial and not (ctx.live_request_queue and _passes_by(event)):
        await ctx.session_service.append_event(ctx.session, event)
    return event


def _passes_by(event: Event) -> bool:
    """True for the sound of a live conversation, which no session could hold."""
    return any(part.inline_data for part in event.parts)


async def _as_plugins_say(ctx: InvocationContext, hooks: Sequence[Hook], event: Event) -> Event:
    _stamp(ctx, event)
    other = await first_answer(hooks, invocation_context=ctx, event=event)
    if other is None:
        return event
    if not isinstance(other, Event):
        raise ConfigurationError(f"on_event_callback returned a {type(other).__name__}; return an Event, or None")
    said = other.model_fields_set - {"id", "invocation_id", "timestamp"}
    return event.model_copy(update={name: getattr(other, name) for name in said})


def _stamp(ctx: InvocationContext, event: Event) -> None:
    if not event.invocation_id:
        event.invocation_id = ctx.invocation_id
    if metadata := ctx.run_config.custom_metadata:
        event.custom_metadata = metadata | (event.custom_metadata or {})


def _still_running(ctx: InvocationContext) -> str:
    """The functions that go on after the run, as the end of a message; what they still write is dropped."""
    shared = ctx.shared
    names = [name for name, outcome in shared.abandoned if not outcome.done()]
    if shared.is_abandoned:
        names += list(shared.at_work.values()) or [f"agent {ctx.agent.name!r}"]
        for context, name in shared.at_work.items():
            context.close(name)
    return f"; still running, and may take effect: {', '.join(dict.fromkeys(names))}" if names else ""


async def _seal(ctx: InvocationContext, why: Why | None) -> list[Event]:
    if why is None:
        return []
    events = closing_events(ctx, (why[0], why[1] + _still_running(ctx)))
    with suppress(SessionNotFoundError):  # deleted meanwhile: there is nothing left to seal
        return [await _close(ctx, event) for event in events]
    return events
