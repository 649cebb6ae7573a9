"""Close a run whose process ended: each call that it left open gets a result."""

from collections.abc import Iterator
from typing import Any

from adk_nb import parts, types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.runtime.approvals import IN_DOUBT
from adk_nb.runtime.branches import is_under, next_call
from adk_nb.runtime.durable import Step, recall, step_of
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import open_calls_of
from adk_nb.wire import but

NOT_MADE = "the run was cut before this call was made"
Calls = list[types.FunctionCall]


async def close_interrupted_run(ctx: InvocationContext, run_id: str) -> None:
    """Append what is known of the calls that the interrupted run left open; open interrupts stay open."""
    cut = but(ctx, invocation_id=run_id)
    for made, calls in list(_left_open(cut)):
        at = but(cut, branch=made.branch)
        await recall(at, calls)
        steps = [step_of(at, call, call.name or "", "once") for call in calls]
        results = [_result(cut, made, call, step) for call, step in zip(calls, steps, strict=True)]
        actions, told = no_actions(), list[types.Part]()
        for said, did in results:
            actions.merge(did)
            told += said
        event = Event(
            author=made.author,
            invocation_id=run_id,
            branch=made.branch,
            isolation_scope=made.isolation_scope,
            content=parts.content("user", told),
            actions=actions,
        )
        await ctx.session_service.append_event(ctx.session, event)


def _left_open(cut: InvocationContext) -> Iterator[tuple[Event, Calls]]:
    """The events that made such calls, oldest first, with these."""
    left = {call.id for call in open_calls_of(cut)}
    made: list[tuple[Event, Calls]] = []
    for event in reversed(history_of(cut.session).run(cut.invocation_id)):
        calls = [call for call in event.get_function_calls() if call.id in left]
        if calls:
            left -= {call.id for call in calls}  # a service may use an id again: the newest call is the open one
            made.append((event, calls))
    return reversed(made)


def _result(
    cut: InvocationContext, made: Event, call: types.FunctionCall, step: Step | None
) -> tuple[list[types.Part], EventActions]:
    """What is told of a call, and what its tool did besides."""
    said: dict[str, Any] = (step and step.recorded(answered=True)) or {}
    if part := said.get("part"):
        words = [parts.words(said["words"])] if said["words"] else []
        return [types.Part.model_validate(part), *words], EventActions.model_validate(said["actions"])
    is_begun = (step and step.event_id) or _worked(cut, made.branch, call.id)
    told = {"error": IN_DOUBT if is_begun else NOT_MADE}
    return [parts.result(call.id, call.name or "", told)], no_actions()


def _worked(cut: InvocationContext, branch: str | None, call_id: str | None) -> bool:
    """True if an agent that was called as a tool has done something for that call."""
    inside = (one for one in history_of(cut.session).branches if is_under(one, branch))
    return any(next_call(one, branch) == call_id for one in inside)
