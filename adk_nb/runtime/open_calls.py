"""Close open calls: give every call without a result one, however the run ended."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from adk_nb import clock, parts, types
from adk_nb.errors import AdkNbError, ModelError, StorageError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.events.requests import NODE_APPROVAL
from adk_nb.locations import cell_location
from adk_nb.redaction import hidden
from adk_nb.runtime.approvals import IN_DOUBT, NOT_MADE, REDEFINED
from adk_nb.runtime.branches import is_under, next_call
from adk_nb.runtime.cancellation import StopReason
from adk_nb.runtime.durable import DurableCall, durable_call, load_attempts
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, NODE, TOOLSET
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import awaiting_calls
from adk_nb.wire import copy_model, replace_fields, replace_surrogates

Calls = Sequence[types.FunctionCall]
_EventOrigin = tuple[str, str | None, str | None]
"""Author, branch and isolation scope of an event."""

CUT_SHORT = {"error": "the run ended before this call was answered; it may or may not have taken effect"}
_RESERVED_PREFIXES = (NODE, NODE_APPROVAL, TOOLSET)
"""Prefixes of the ids of toolsets and nodes; a model's calls must not use them."""


def closing_events(ctx: InvocationContext, reason: StopReason) -> list[Event]:
    """The events that close a stopped run: one for each agent with open calls, or a single one.

    Models reject a history with a call that has no result.
    """
    code, message = reason
    groups = _calls_by_origin(ctx, _open_calls(ctx)) or [(_last_origin(ctx), [])]
    return [_closing_event(ctx, origin, calls, error_code=code, error_message=message) for origin, calls in groups]


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
    failure = _closing_event(
        ctx,
        origin,
        groups.pop(origin, ()),
        error_code=error.code if isinstance(error, AdkNbError) else type(error).__name__,
        error_message=hidden(str(error)),
        attempts=list(error.attempts) or None if isinstance(error, ModelError) else None,
        node_info=NodeInfo(path=source.node.path if source.node else ""),
        custom_metadata={"failed_at": cell} if (cell := cell_location(error)) else None,
    )
    return [*(_closing_event(ctx, other_origin, calls) for other_origin, calls in groups.items()), failure]


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


def _closing_event(ctx: InvocationContext, origin: _EventOrigin, calls: Calls, **fields: Any) -> Event:
    """The event with the results of `calls`, as far as known in this run, else with an error."""
    author, branch, scope = origin
    actions, answers = no_actions(), list[types.Part]()
    for call in calls:
        result = ctx.shared.results.get(call.id or "")
        if result:
            performed = result[1]
            # Only what has happened already: a transfer or an escalation has no effect in a run that is over.
            actions.merge(EventActions(state_delta=performed.state_delta, artifact_delta=performed.artifact_delta))
        answers.append(result[0] if result else parts.result(call.id, call.name or "", CUT_SHORT))
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


def _results(calls: Iterable[types.FunctionCall], result: dict[str, Any]) -> types.Content:
    answers = [types.FunctionResponse(id=call.id, name=call.name, response=result) for call in calls]
    return types.Content(role="user", parts=[types.Part(function_response=response) for response in answers])


async def close_interrupted_run(ctx: InvocationContext, run_id: str) -> None:
    """Append the journal's outcome, or an error, for each open call of the run; open interrupts stay open."""
    interrupted = replace_fields(ctx, invocation_id=run_id)
    for calling, calls in _open_calls_by_event(interrupted):
        ctx_at_call = replace_fields(interrupted, branch=calling.branch)
        await load_attempts(ctx_at_call, calls)
        # "once" is arbitrary: reading an outcome does not depend on the effect.
        durable_calls = [durable_call(ctx_at_call, call, call.name or "", "once") for call in calls]
        results = [
            _result_of(interrupted, calling, call, durable) for call, durable in zip(calls, durable_calls, strict=True)
        ]
        actions, result_parts = no_actions(), list[types.Part]()
        for parts_of_call, actions_of_call in results:
            actions.merge(actions_of_call)
            result_parts += parts_of_call
        event = Event(
            author=calling.author,
            invocation_id=run_id,
            branch=calling.branch,
            isolation_scope=calling.isolation_scope,
            content=parts.content("user", result_parts),
            actions=actions,
        )
        await ctx.session_service.append_event(ctx.session, event)


def _open_calls_by_event(ctx: InvocationContext) -> Iterator[tuple[Event, list[types.FunctionCall]]]:
    """The open calls of the run, by the event that made them, oldest first."""
    open_ids = {call.id for call in open_calls_of(ctx)}
    groups: list[tuple[Event, list[types.FunctionCall]]] = []
    for event in reversed(history_of(ctx.session).run(ctx.invocation_id)):
        calls = [call for call in event.get_function_calls() if call.id in open_ids]
        if calls:
            open_ids -= {call.id for call in calls}  # some model services reuse ids: the newest call is the open one
            groups.append((event, calls))
    return reversed(groups)


def _result_of(
    ctx: InvocationContext, calling: Event, call: types.FunctionCall, durable: DurableCall | None
) -> tuple[list[types.Part], EventActions]:
    """The result parts of a call, and the actions of its tool."""
    outcome: dict[str, Any] = (durable and durable.recorded_outcome(has_answers=True)) or {}
    if part := outcome.get("part"):
        text_parts = [parts.text_part(outcome["words"])] if outcome["words"] else []
        return [types.Part.model_validate(part), *text_parts], EventActions.model_validate(outcome["actions"])
    # A called agent has no outcome in the journal: its events show that it began.
    is_begun = (durable and durable.event_id) or _has_nested_events(ctx, calling.branch, call.id)
    result = {"error": IN_DOUBT if is_begun else NOT_MADE}
    return [parts.result(call.id, call.name or "", result)], no_actions()


def _has_nested_events(ctx: InvocationContext, branch: str | None, call_id: str | None) -> bool:
    """True if an agent called as a tool has events for that call."""
    inside = (nested_branch for nested_branch in history_of(ctx.session).branches if is_under(nested_branch, branch))
    return any(next_call(nested_branch, branch) == call_id for nested_branch in inside)


def new_call_id() -> str:
    """A fresh id, as ADK spells it."""
    return f"adk-{clock.new_id()}"


def claim_call_id(ctx: InvocationContext, proposed: str | None) -> str:
    """The id of a new call from a model: `proposed`, or a fresh id if that is taken, reserved or not valid text.

    Ids are also unique among agents that run in parallel.
    """
    # The history lacks events that are not stored yet: parallel agents share new ids here.
    claimed = ctx.shared.call_ids
    is_free = (
        proposed
        and not proposed.startswith(_RESERVED_PREFIXES)
        and replace_surrogates(proposed) == proposed
        and proposed not in claimed
    )
    if not proposed or not is_free or proposed in history_of(ctx.session).call_ids:
        proposed = new_call_id()
    claimed.add(proposed)
    return proposed
