"""Close open calls: give every call without a result one, however the run ended."""

from collections.abc import Iterable, Sequence
from typing import Any

from adk_nb import parts, types
from adk_nb.cells import cell_location
from adk_nb.errors import AdkNbError, ModelError, StorageError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.redaction import hidden
from adk_nb.runtime.approvals import REDEFINED
from adk_nb.runtime.branches import is_under, next_call
from adk_nb.runtime.cancellation import StopReason
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import awaiting_calls
from adk_nb.wire import copy_model

Calls = Sequence[types.FunctionCall]
_EventOrigin = tuple[str, str | None, str | None]
"""Author, branch and isolation scope of an event."""


def closing_events(ctx: InvocationContext, reason: StopReason) -> list[Event]:
    """The events that close a stopped run: one for each agent with open calls, or a single one.

    Models reject a history with a call that has no result.
    """
    code, message = reason
    groups = _calls_by_origin(ctx, _open_calls(ctx)) or [(_last_origin(ctx), [])]
    return [_closing(ctx, place, calls, error_code=code, error_message=message) for place, calls in groups]


def close_lost_call(ctx: InvocationContext, call: types.FunctionCall) -> list[Event]:
    """Close the interrupts and calls inside `call`, and `call` itself: its tool was removed or redefined."""
    history = history_of(ctx.session)
    calling = next(iter(history.calls.all(call.id)), None)
    calling_branch = calling.event.branch if calling else None
    inside: dict[str | None, types.FunctionCall] = {}
    for interrupt in history.interrupts(under=calling_branch):
        if next_call(interrupt.branch, calling_branch) == call.id:
            inside |= {waiting_call.id: waiting_call for waiting_call in interrupt.waiting_calls}
    for record in history.calls.open():
        if is_under(record.event.branch, calling_branch) and next_call(record.event.branch, calling_branch) == call.id:
            inside[record.call.id] = record.call
    result = {"error": f"{REDEFINED}: {call.name}() cannot go on"}
    return [
        Event(author=author, branch=branch, isolation_scope=scope, content=_results(calls, result))
        for (author, branch, scope), calls in _calls_by_origin(ctx, [*inside.values(), call])
    ]


def has_open_calls(ctx: InvocationContext) -> bool:
    """True if this run made or resumed a call that has no result."""
    return bool(_open_calls(ctx))


def failure_events(ctx: InvocationContext, error: Exception) -> list[Event]:
    """The events that close a failed run: one for each other agent with open calls, then the error event.

    The author of the error event is the agent that raised it.
    """
    source = ctx.shared.last_failure[1] if ctx.shared.last_failure and ctx.shared.last_failure[0] is error else ctx
    origin: _EventOrigin = (source.agent.name, source.branch, source.isolation_scope)
    # After a storage error the calls stay open: the run is resumed with the outcomes in the journal.
    groups = dict(_calls_by_origin(ctx, () if isinstance(error, StorageError) else _open_calls(ctx)))
    failure = _closing(
        ctx,
        origin,
        groups.pop(origin, ()),
        error_code=error.code if isinstance(error, AdkNbError) else type(error).__name__,
        error_message=hidden(str(error)),
        attempts=list(error.attempts) or None if isinstance(error, ModelError) else None,
        node_info=NodeInfo(path=source.node.path if source.node else ""),
        custom_metadata={"failed_at": cell} if (cell := cell_location(error)) else None,
    )
    return [*(_closing(ctx, other_origin, calls) for other_origin, calls in groups.items()), failure]


def new_failure_events(ctx: InvocationContext, error: Exception) -> list[Event]:
    """`failure_events` once per error: none if `error` was reported and no call is open."""
    if ctx.shared.reported_error is error and not _open_calls(ctx):
        return []
    ctx.shared.reported_error = error
    return failure_events(ctx, error)


def without_results(event: Event) -> Event:
    """A closing event without the results of its calls, which a plugin failed to handle."""
    result: dict[str, Any] = {"error": "this call ran; its result is withheld because a plugin failed to handle it"}
    calls = [types.FunctionCall(id=response.id, name=response.name) for response in event.get_function_responses()]
    return copy_model(event, content=_results(calls, result) if calls else None, actions=no_actions())


def _closing(ctx: InvocationContext, origin: _EventOrigin, calls: Calls, **fields: Any) -> Event:
    """The event with the results of `calls`, as far as known in this run, else with an error."""
    author, branch, scope = origin
    actions, answers = no_actions(), list[types.Part]()
    for call in calls:
        result = ctx.shared.results.get(call.id or "")
        if result:
            performed = result[1]
            actions.merge(EventActions(state_delta=performed.state_delta, artifact_delta=performed.artifact_delta))
        answers.append(result[0] if result else parts.result(call.id, call.name or "", _CUT_SHORT))
    content = parts.content("user", answers) if answers else None
    return Event(author=author, branch=branch, isolation_scope=scope, content=content, actions=actions, **fields)


def _calls_by_origin(ctx: InvocationContext, calls: Calls) -> list[tuple[_EventOrigin, Calls]]:
    groups: dict[_EventOrigin, list[types.FunctionCall]] = {}
    for call in calls:
        record = history_of(ctx.session).calls.newest(call.id)
        groups.setdefault(_origin(ctx, record.event if record else None), []).append(call)
    return list(groups.items())


def _last_origin(ctx: InvocationContext) -> _EventOrigin:
    events = reversed(history_of(ctx.session).run(ctx.invocation_id))
    return _origin(ctx, next((event for event in events if event.author not in ("user", "model")), None))


def _origin(ctx: InvocationContext, event: Event | None) -> _EventOrigin:
    return (event.author, event.branch, event.isolation_scope) if event else (ctx.agent.name, ctx.branch, None)


def _open_calls(ctx: InvocationContext) -> Calls:
    return list({call.id: call for call in [*open_calls_of(ctx), *_released_calls(ctx)]}.values())


def open_calls_of(ctx: InvocationContext) -> Calls:
    """The open calls of this run in the agent or node of `ctx`, without calls that wait for an answer."""
    path = ctx.node.path if ctx.node else ""
    history = history_of(ctx.session)
    open_calls = [
        record.call
        for record in history.calls.open()
        if record.event.invocation_id == ctx.invocation_id
        and is_under(record.event.branch, ctx.branch)
        and record.event.node_info.path.startswith(path)
    ]
    approvals = history.interrupts(kinds=APPROVALS) if open_calls else ()
    waiting_ids = {interrupt.call.id for interrupt in approvals} | awaiting_calls(ctx) if open_calls else ()
    return [call for call in open_calls if call.id not in waiting_ids]


def _released_calls(ctx: InvocationContext) -> Calls:
    """The approved and the resumed calls that this run leaves open."""
    approved = _approved_calls(ctx)
    awaiting = set[str]() if approved else awaiting_calls(ctx)
    resumed = ctx.shared.resumed_call_ids - awaiting
    open_records = history_of(ctx.session).calls.open() if resumed else ()
    calls = [record.call for record in open_records if is_under(record.event.branch, ctx.branch)]
    return [*approved, *(call for call in calls if call.id in resumed)]


def _approved_calls(ctx: InvocationContext) -> Calls:
    """The approved calls that this run leaves open: their approvals are consumed and cannot be given again."""
    kinds, answered = (*APPROVALS, *CREDENTIALS), ctx.requests_answered
    interrupts = history_of(ctx.session).interrupts(kinds=kinds, under=ctx.branch) if answered else ()
    return [
        call
        for interrupt in interrupts
        if answered.intersection(interrupt.answer_ids)
        for call in interrupt.waiting_calls
    ]


_CUT_SHORT = {"error": "the run ended before this call was answered; it may or may not have taken effect"}


def _results(calls: Iterable[types.FunctionCall], result: dict[str, Any]) -> types.Content:
    answers = [types.FunctionResponse(id=call.id, name=call.name, response=result) for call in calls]
    return types.Content(role="user", parts=[types.Part(function_response=response) for response in answers])
