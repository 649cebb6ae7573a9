"""Close a run whose process ended: give each open call a result."""

from collections.abc import Iterator
from typing import Any

from adk_nb import parts, types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.runtime.approvals import IN_DOUBT
from adk_nb.runtime.branches import is_under, next_call
from adk_nb.runtime.durable import DurableCall, durable_call, load_attempts
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import open_calls_of
from adk_nb.wire import replace_fields

NOT_MADE = "the run was cut before this call was made"
Calls = list[types.FunctionCall]


async def close_interrupted_run(ctx: InvocationContext, run_id: str) -> None:
    """Append the journal's outcome, or an error, for each open call of the run; open interrupts stay open."""
    interrupted = replace_fields(ctx, invocation_id=run_id)
    for calling, calls in list(_open_calls_by_event(interrupted)):
        ctx_at_call = replace_fields(interrupted, branch=calling.branch)
        await load_attempts(ctx_at_call, calls)
        durable_calls = [durable_call(ctx_at_call, call, call.name or "", "once") for call in calls]
        results = [
            _result_of(interrupted, calling, call, step) for call, step in zip(calls, durable_calls, strict=True)
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


def _open_calls_by_event(ctx: InvocationContext) -> Iterator[tuple[Event, Calls]]:
    """The open calls of the run, by the event that made them, oldest first."""
    open_ids = {call.id for call in open_calls_of(ctx)}
    groups: list[tuple[Event, Calls]] = []
    for event in reversed(history_of(ctx.session).run(ctx.invocation_id)):
        calls = [call for call in event.get_function_calls() if call.id in open_ids]
        if calls:
            open_ids -= {call.id for call in calls}  # some model services reuse ids: the newest call is the open one
            groups.append((event, calls))
    return reversed(groups)


def _result_of(
    ctx: InvocationContext, calling: Event, call: types.FunctionCall, durable_call: DurableCall | None
) -> tuple[list[types.Part], EventActions]:
    """The result parts of a call, and the actions of its tool."""
    outcome: dict[str, Any] = (durable_call and durable_call.recorded_outcome(has_answers=True)) or {}
    if part := outcome.get("part"):
        text_parts = [parts.text_part(outcome["words"])] if outcome["words"] else []
        return [types.Part.model_validate(part), *text_parts], EventActions.model_validate(outcome["actions"])
    is_begun = (durable_call and durable_call.event_id) or _has_nested_events(ctx, calling.branch, call.id)
    result = {"error": IN_DOUBT if is_begun else NOT_MADE}
    return [parts.result(call.id, call.name or "", result)], no_actions()


def _has_nested_events(ctx: InvocationContext, branch: str | None, call_id: str | None) -> bool:
    """True if an agent called as a tool has events for that call."""
    inside = (nested_branch for nested_branch in history_of(ctx.session).branches if is_under(nested_branch, branch))
    return any(next_call(nested_branch, branch) == call_id for nested_branch in inside)
