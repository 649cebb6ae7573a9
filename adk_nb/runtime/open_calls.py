"""Close open calls: every call that a run leaves without a result gets one, however the run ended."""

from collections.abc import Iterable, Sequence
from typing import Any

from adk_nb import parts, types
from adk_nb.cells import in_a_cell
from adk_nb.errors import AdkNbError, ModelError, StorageError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.redaction import hidden
from adk_nb.runtime.approvals import REDEFINED
from adk_nb.runtime.branches import is_under, next_call
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import led_from
from adk_nb.runtime.stopping import Why
from adk_nb.wire import copied

Calls = Sequence[types.FunctionCall]
_Place = tuple[str, str | None, str | None]
"""Author, branch and isolation scope of an event."""


def closing_events(ctx: InvocationContext, why: Why) -> list[Event]:
    """The events that close a run which was stopped: one for each agent that leaves calls open, so that the next turn
    finds a history every model accepts; or one alone, if none does.
    """
    code, message = why
    groups = _by_author(ctx, _open_calls(ctx)) or [(_last_place(ctx), [])]
    return [_closing(ctx, place, calls, error_code=code, error_message=message) for place, calls in groups]


def close_lost_call(ctx: InvocationContext, call: types.FunctionCall) -> list[Event]:
    """Close the interrupts and calls inside `call`, and `call` itself: its tool is gone or was redefined."""
    history = history_of(ctx.session)
    made = next(iter(history.calls.all(call.id)), None)
    where = made.event.branch if made else None
    inside: dict[str | None, types.FunctionCall] = {}
    for interrupt in history.interrupts(under=where):
        if next_call(interrupt.branch, where) == call.id:
            inside |= {waiting.id: waiting for waiting in interrupt.waiting_calls}
    for record in history.calls.open():
        if is_under(record.event.branch, where) and next_call(record.event.branch, where) == call.id:
            inside[record.call.id] = record.call
    result = {"error": f"{REDEFINED}: {call.name}() cannot go on"}
    return [
        Event(author=author, branch=branch, isolation_scope=scope, content=_results(calls, result))
        for (author, branch, scope), calls in _by_author(ctx, [*inside.values(), call])
    ]


def has_open_calls(ctx: InvocationContext) -> bool:
    """True if this run made, or was let to make, a call that has no result."""
    return bool(_open_calls(ctx))


def failure_events(ctx: InvocationContext, error: Exception) -> list[Event]:
    """The events that close what an error ended; the last tells of the error, by the agent it came from.

    There is one before it for each other agent under this one that leaves calls open.
    """
    where = ctx.shared.failed[1] if ctx.shared.failed and ctx.shared.failed[0] is error else ctx
    place: _Place = (where.agent.name, where.branch, where.isolation_scope)
    # A run that could not be written down goes on where it was left; what is in the journal is told then.
    groups = dict(_by_author(ctx, () if isinstance(error, StorageError) else _open_calls(ctx)))
    told = _closing(
        ctx,
        place,
        groups.pop(place, ()),
        error_code=error.code if isinstance(error, AdkNbError) else type(error).__name__,
        error_message=hidden(str(error)),
        attempts=list(error.attempts) or None if isinstance(error, ModelError) else None,
        node_info=NodeInfo(path=where.node.path if where.node else ""),
        custom_metadata={"failed_at": cell} if (cell := in_a_cell(error)) else None,
    )
    return [*(_closing(ctx, other, calls) for other, calls in groups.items()), told]


def new_failure_events(ctx: InvocationContext, error: Exception) -> list[Event]:
    """The events that tell of `error`, once: none if one has told of it already, and no call is left open."""
    if ctx.shared.told is error and not _open_calls(ctx):
        return []
    ctx.shared.told = error
    return failure_events(ctx, error)


def without_results(event: Event) -> Event:
    """A closing event that tells nothing of what the calls came to, since a plugin that sees all events refused it."""
    told: dict[str, Any] = {"error": "this call was made; its result is not told, since a plugin failed over it"}
    calls = [types.FunctionCall(id=one.id, name=one.name) for one in event.get_function_responses()]
    return copied(event, content=_results(calls, told) if calls else None, actions=no_actions())


def _closing(ctx: InvocationContext, place: _Place, calls: Calls, **told: Any) -> Event:
    """The event with the results of `calls`: what they came to in this run, if that is known."""
    author, branch, scope = place
    actions, answers = no_actions(), list[types.Part]()
    for call in calls:
        known = ctx.shared.results.get(call.id or "")
        if known:
            did = known[1]
            actions.merge(EventActions(state_delta=did.state_delta, artifact_delta=did.artifact_delta))
        answers.append(known[0] if known else parts.result(call.id, call.name or "", _CUT_SHORT))
    content = parts.content("user", answers) if answers else None
    return Event(author=author, branch=branch, isolation_scope=scope, content=content, actions=actions, **told)


def _by_author(ctx: InvocationContext, calls: Calls) -> list[tuple[_Place, Calls]]:
    groups: dict[_Place, list[types.FunctionCall]] = {}
    for call in calls:
        made = history_of(ctx.session).calls.newest(call.id)
        groups.setdefault(_place(ctx, made.event if made else None), []).append(call)
    return list(groups.items())


def _last_place(ctx: InvocationContext) -> _Place:
    mine = reversed(history_of(ctx.session).run(ctx.invocation_id))
    return _place(ctx, next((event for event in mine if event.author not in ("user", "model")), None))


def _place(ctx: InvocationContext, event: Event | None) -> _Place:
    return (event.author, event.branch, event.isolation_scope) if event else (ctx.agent.name, ctx.branch, None)


def _open_calls(ctx: InvocationContext) -> Calls:
    return list({call.id: call for call in [*open_calls_of(ctx), *_released_calls(ctx)]}.values())


def open_calls_of(ctx: InvocationContext) -> Calls:
    """The calls this run made, in the agent or node of `ctx`, and leaves open, without those that wait for a person."""
    path = ctx.node.path if ctx.node else ""
    history = history_of(ctx.session)
    mine = [
        record.call
        for record in history.calls.open()
        if record.event.invocation_id == ctx.invocation_id
        and is_under(record.event.branch, ctx.branch)
        and record.event.node_info.path.startswith(path)
    ]
    asked = history.interrupts(kinds=APPROVALS) if mine else ()
    waiting = {interrupt.call.id for interrupt in asked} | led_from(ctx) if mine else ()
    return [call for call in mine if call.id not in waiting]


def _released_calls(ctx: InvocationContext) -> Calls:
    """The calls that this run was let to make, or to go on with, and leaves open."""
    approved = _approved_calls(ctx)
    led = set[str]() if approved else led_from(ctx)
    again = ctx.shared.taken_up - led
    made = history_of(ctx.session).calls.open() if again else ()
    within = [record.call for record in made if is_under(record.event.branch, ctx.branch)]
    return [*approved, *(call for call in within if call.id in again)]


def _approved_calls(ctx: InvocationContext) -> Calls:
    """The calls this run was let to make and leaves open: an answer counts once, so nobody can let them again."""
    kinds, answered = (*APPROVALS, *CREDENTIALS), ctx.requests_answered
    open_now = history_of(ctx.session).interrupts(kinds=kinds, under=ctx.branch) if answered else ()
    return [call for asked in open_now if answered.intersection(asked.answer_ids) for call in asked.waiting_calls]


_CUT_SHORT = {"error": "the run ended before this call was answered; it may or may not have taken effect"}


def _results(calls: Iterable[types.FunctionCall], result: dict[str, Any]) -> types.Content:
    answers = [types.FunctionResponse(id=call.id, name=call.name, response=result) for call in calls]
    return types.Content(role="user", parts=[types.Part(function_response=one) for one in answers])
