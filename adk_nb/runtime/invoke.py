"""The commit loop: the only place that stores a run's events."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

from adk_nb.concurrency.threads import farewell
from adk_nb.errors import ConfigurationError, PluginError, SessionNotFoundError, StaleSessionError
from adk_nb.events.event import Event, as_content
from adk_nb.runtime.cancellation import INTERRUPTED, STOPPED, Stop, StopReason, foreign_cancellation
from adk_nb.runtime.hooks import Hook, first_result, notify
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import closing_events, has_open_calls, new_failure_events, without_results
from adk_nb.runtime.parallel_streams import ParallelStreams

_GRACE_SECONDS = 0.2
"""How long a run waits, after its timeout, for the cancelled agent to end."""


async def invoke(ctx: InvocationContext, first: Event | None) -> AsyncGenerator[Event, None]:
    """Store the user's event, run the agent, and store and yield each of its events.

    An event is stored before it is yielded, and the agent continues only after the reader asks for the next event: so
    the agent's next step reads the state it just wrote. Partial events are not stored.

    Yields:
        `first`, if there is one, then the agent's events. A stopped run, or one past its timeout, ends with closing
        events.

    Raises:
        Exception: What the agent raised, after an event with its `error_code` and `error_message`.
    """
    stop, on_event = ctx.shared.stop, ctx.plugin_manager.hooks("on_event")
    if first:
        await commit(ctx, first)
        yield first
    try:
        with stop.watching(ctx.abort_signal, ctx.run_config.timeout):
            stop.step_task = asyncio.current_task(stop.loop)
            events = await _start(ctx, stop)
            try:  # as `aclosing`, at a quarter of its cost: every run passes here
                async for event in events:
                    # A stop between steps cancels nothing: storing an event is never cut in half.
                    stop.step_task = None
                    event = await commit(ctx, event, on_event)
                    yield event
                    # Checked here, too: a step may never await, or catch its cancellation.
                    if stop.reason or (stop.has_trigger and stop.is_due()):
                        stop.request()
                        break
                    # Set again: another task may request the next event.
                    stop.step_task = asyncio.current_task(stop.loop)
            finally:
                await events.aclose()
        for event in await _close_stopped_run(ctx, stop.reason) if stop.reason else ():
            yield event
        await first_result(ctx.plugin_manager.hooks("after_run"), invocation_context=ctx)
    except BaseException as raised:
        error = foreign_cancellation(raised, f"agent {ctx.agent.name!r}") or raised
        if isinstance(error, Exception):
            for failed in await _report_failure(ctx, error):
                yield failed
            raise error from error.__cause__
        with suppress(StaleSessionError):  # another process holds the session now
            if not isinstance(raised, GeneratorExit):
                await _close_stopped_run(ctx, stop.reason or STOPPED)
            else:
                # The reader has left: events can be stored but not yielded. Only open calls make it a stop.
                if has_open_calls(ctx):
                    await _close_stopped_run(ctx, STOPPED)
                await notify(ctx.plugin_manager.hooks("after_run"), invocation_context=ctx)
        raise


async def _start(ctx: InvocationContext, stop: Stop) -> AsyncGenerator[Event, None]:
    """The agent's events; or a plugin's answer instead; or none, if the run is stopped already."""
    if stop.reason:
        return _events_only()
    if hooks := ctx.plugin_manager.hooks("before_run"):
        answer = await first_result(hooks, invocation_context=ctx)
        if answer is not None:
            return _events_only(Event(author="model", content=as_content(answer, role="model")))
    events = ctx.agent.run_live(ctx) if ctx.live_request_queue else ctx.agent.run_async(ctx)
    return _with_timeout(ctx, events) if ctx.run_config.timeout else events


async def _with_timeout(ctx: InvocationContext, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """Run `events` in a task of their own, so that the run ends in time even if the agent catches the cancellation."""
    streams: ParallelStreams[str] = ParallelStreams(grace=_GRACE_SECONDS)
    streams.start(ctx.agent.name, events)
    try:
        async with aclosing(streams.merged()) as merged:
            async for _, item in merged:
                if isinstance(item, Event):
                    yield item
                elif item.error:
                    raise item.error
    finally:
        ctx.shared.is_abandoned = streams.is_abandoned


async def _events_only(*events: Event) -> AsyncGenerator[Event, None]:
    for event in events:
        yield event


async def _report_failure(ctx: InvocationContext, error: Exception) -> list[Event]:
    """Store the events for `error`, unless it has one already, and notify the plugins."""
    holds_session = not isinstance(error, StaleSessionError)  # else another process holds it now
    events = [await _close(ctx, event) for event in new_failure_events(ctx, error)] if holds_session else []
    await notify(ctx.plugin_manager.hooks("on_run_error"), invocation_context=ctx, error=error)
    return events


async def _close(ctx: InvocationContext, event: Event) -> Event:
    """Store a closing event, through the plugins."""
    try:
        return await commit(ctx, event, ctx.plugin_manager.hooks("on_event"))
    except PluginError:  # `on_event` sees every event: it would fail on each closing event too
        return await commit(ctx, without_results(event))


async def commit(ctx: InvocationContext, event: Event, hooks: Sequence[Hook] = ()) -> Event:
    """Store `event`, or its replacement by a hook, unless it is partial; return what was stored."""
    _stamp(ctx, event)
    if hooks:
        replacement = await first_result(hooks, invocation_context=ctx, event=event)
        if isinstance(replacement, Event):
            # Other events, checkpoints and the journal refer to id, invocation and timestamp.
            changed = replacement.model_fields_set - {"id", "invocation_id", "timestamp"}
            event = event.model_copy(update={name: getattr(replacement, name) for name in changed})
        elif replacement is not None:
            raise ConfigurationError(
                f"on_event_callback returned a {type(replacement).__name__}; return an Event, or None"
            )
        _stamp(ctx, event)
    # Audio and video of a live conversation are too large for a session.
    is_media = ctx.live_request_queue is not None and any(part.inline_data for part in event.parts)
    if not (event.partial or is_media):
        await ctx.session_service.append_event(ctx.session, event)
    return event


def _stamp(ctx: InvocationContext, event: Event) -> None:
    if not event.invocation_id:
        event.invocation_id = ctx.invocation_id
    if metadata := ctx.run_config.custom_metadata:
        event.custom_metadata = metadata | (event.custom_metadata or {})


async def _close_stopped_run(ctx: InvocationContext, reason: StopReason) -> list[Event]:
    """Store the events that close a stopped run; they name the functions that still run.

    A run that is stopped because its process ends stays open, where a later process can resume it.
    """
    shared, (code, message) = ctx.shared, reason
    if ctx.session.lease and reason == STOPPED and (why := farewell.reason):
        note = Event(author="notebook", custom_metadata={INTERRUPTED: why})
        await ctx.session_service.append_event(ctx.session, note)
        return []
    names = [name for name, outcome in shared.abandoned_functions if not outcome.done()]
    if shared.is_abandoned:
        names += list(shared.running_functions.values()) or [f"agent {ctx.agent.name!r}"]
        for context, name in shared.running_functions.items():
            context.state.close(name)  # later writes are ignored
    if names:
        message += f"; still running, and may take effect: {', '.join(dict.fromkeys(names))}"
    events = closing_events(ctx, (code, message))
    with suppress(SessionNotFoundError):  # deleted meanwhile
        return [await _close(ctx, event) for event in events]
    return events
