"""Calls that are open: which wait for an answer, which agent gets it, and how the others are closed.

An agent that is called as a tool works in its caller's session, so an interrupt may be inside a call.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from adk_nb import clock, parts, types
from adk_nb.errors import AdkNbError, ModelError, StorageError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.events.requests import NODE_APPROVAL, REQUESTS
from adk_nb.locations import cell_location
from adk_nb.redaction import hidden
from adk_nb.runtime.approvals import IN_DOUBT, NOT_MADE, REDEFINED
from adk_nb.runtime.branches import calls_to, graph_of, is_under, is_within, next_call, next_step
from adk_nb.runtime.cancellation import StopReason
from adk_nb.runtime.durable import durable_call, load_attempts
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, NODE, TOOLSET
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.wire import copy_model, replace_fields, replace_surrogates

TRANSFER = "transfer_to_agent"
"""Name of the tool that hands the conversation over."""
FunctionCalls = Sequence[types.FunctionCall]
_EventOrigin = tuple[str, str | None, str | None]
"""Author, branch and isolation scope of an event."""
CUT_SHORT = {"error": "the run ended before this call was answered; it may or may not have taken effect"}
_RESERVED_PREFIXES = (NODE, NODE_APPROVAL, TOOLSET)
"""Prefixes of the ids of toolsets and nodes; a model's calls must not use them."""


def task_agents(agent: RunnableAgent) -> set[str]:
    """Names of the agents with `mode="task"` under `agent`, and under agents that it calls in its session."""
    names: set[str] = set()
    seen: set[int] = set()
    pending: list[RunnableAgent] = [agent]
    while pending:
        member = pending.pop()
        seen.add(id(member))
        if member.is_task:
            names.add(member.name)
        pending += member.members
        pending += [called for called in member.called_agents if id(called) not in seen]
    return names


def open_tasks(
    agent: RunnableAgent,
    history: History,
    branch: str | None = None,
    *,
    has_spoken: bool = False,
    run: str | None = None,
) -> dict[str, str]:
    """`History.tasks` of the task agents under `agent`, as `task_agents` finds them."""
    if not history.has_scoped_work:
        return {}
    return history.tasks(task_agents(agent), branch, has_spoken=has_spoken, run=run)


def recipient(history: History, calls: Iterable[str | None], branch: str | None = None) -> str:
    """The agent on `branch` that receives answers to `calls`: it made one of them, or a call that led to one.

    Returns:
        Its name; empty if no such call was made there.
    """
    call_ids = set(calls)
    records = [record for key in call_ids if (record := history.calls.newest(key, under=branch))]
    if records:
        event = max(records, key=lambda record: record.event_index).event
        outer_call_id = next_call(event.branch, branch)
        caller = history.calls.newest(outer_call_id) if outer_call_id is not None else None
        return caller.event.author if caller else event.author  # no caller: the step is a graph node, not a call
    return next(filter(None, (graph_of(key) for key in call_ids if key)), "")


def outermost(agent: RunnableAgent, under: RunnableAgent | None = None) -> RunnableAgent:
    """The agent to run for an answer to `agent`: the outermost parent that runs others, or itself.

    `under`: stop below this parent.
    """
    outermost_agent, above = agent, agent.parent_agent
    while above is not None and above is not under:
        outermost_agent = above if above.runs_others else outermost_agent
        above = above.parent_agent
    return outermost_agent


def without_answers(ctx: InvocationContext, *, is_resumed: bool = False) -> InvocationContext:
    """`ctx` for an agent that runs after the one that received the answers.

    Its message is the user's last text. `is_resumed`: it keeps its checkpoints instead of starting from the beginning.
    """
    checkpoints = ctx.checkpoints if is_resumed else None
    if not ctx.task_call_id and not ctx.responses:
        return ctx if checkpoints is ctx.checkpoints else replace_fields(ctx, checkpoints=checkpoints)
    text = history_of(ctx.session).last_text(ctx.isolation_scope)
    return replace_fields(ctx, user_content=text, task_call_id=None, checkpoints=checkpoints)


def mark_resumed_calls(ctx: InvocationContext) -> list[types.FunctionCall]:
    """Mark the agent's calls that have an interrupt answered inside them as resumed, and return them.

    They are in the order of the answers. Sets `ctx.resumed_calls` and `ctx.shared.resumed_call_ids`.
    """
    resumed_calls: dict[str, types.FunctionCall] = {}
    calls = history_of(ctx.session).calls
    for answered in ctx.calls_answered:
        record = calls.newest(answered, under=ctx.branch)
        if record is None:
            continue
        if step := next_step(record.event.branch, ctx.branch):
            name, key = step
        else:  # the agent's own call, not one inside it: only the call of a task is resumed itself
            name, key = None, answered if answered == ctx.task_call_id else ""
        if key and key not in resumed_calls:
            # Not a later call with the same id, where calls share one.
            own_record = calls.newest_of(ctx.agent.name, key, ctx.branch, name=name, until_index=record.event_index)
            resumed_calls |= {key: own_record.call} if own_record else {}
    ctx.resumed_calls = list(resumed_calls.values())
    ctx.shared.resumed_call_ids.update(resumed_calls)
    return list(resumed_calls.values())


def has_results(ctx: InvocationContext) -> bool:
    """True if the user's message has a result of one of the agent's calls, beside answers to requests."""
    calls = history_of(ctx.session).calls
    for key in set(ctx.calls_answered) - ctx.requests_answered:  # an answer to a request may use the id of its call
        own_record = calls.newest_of(ctx.agent.name, key, ctx.branch)
        if own_record and own_record.call.name not in REQUESTS:
            return True
    return False


def awaited_branches(
    agent: RunnableAgent, history: History, branch: str | None = None, *, since: int = 0, run: str | None = None
) -> dict[str, str | None]:
    """Open interrupts and talking tasks on `branch` and below it: id -> branch.

    Without long-running calls that have a first result. `agent`: any agent of the tree. `since` and `run` as in
    `History.interrupts`.
    """
    interrupts = history.interrupts(under=branch, since=since, run=run)
    tasks = open_tasks(agent.root_agent, history, branch, has_spoken=True, run=run)
    return {interrupt.id: interrupt.branch for interrupt in interrupts if not interrupt.has_progress} | tasks


def unanswered_calls(ctx: InvocationContext) -> list[types.FunctionCall]:
    """The agent's calls of this invocation that have no result and no interrupt."""
    names = (ctx.agent.name, "user")  # both write the result of a task
    calls = [
        record.call
        for record in history_of(ctx.session).calls.open()
        if record.event.invocation_id == ctx.invocation_id
        and record.event.branch == ctx.branch
        and record.event.author in names
    ]
    awaiting = awaiting_call_ids(ctx) if calls else ()
    return [call for call in calls if call.id not in awaiting]


def interrupted_call_ids(ctx: InvocationContext) -> set[str]:
    """Ids of the agent's calls without a result that have an interrupt inside them."""
    history = history_of(ctx.session)
    inside = {
        next_call(branch, ctx.branch) or "" for branch in awaited_branches(ctx.agent, history, ctx.branch).values()
    } - {""}
    unsettled = history.calls.without_result(inside)
    return {key for key in unsettled if history.calls.newest_of(ctx.agent.name, key, ctx.branch)}


def is_paused(
    agent: RunnableAgent, history: History, branch: str | None, *, may_interrupt: bool, since: int = 0
) -> bool:
    """True if `agent` on `branch` cannot continue without input: it has a talking task or an open interrupt.

    `may_interrupt`: False skips the search for interrupts. Interrupts before the user's last text do not count: a
    message instead of an answer lets everything continue.
    """
    if open_tasks(agent, history, branch, has_spoken=True):
        return True
    if not may_interrupt:
        return False
    since = max(since, history.last_text_index)
    return bool(history.listening_node(branch) or history.interrupts(under=branch, since=since))


def awaiting_call_ids(ctx: InvocationContext) -> set[str]:
    """Ids of all calls with an interrupt inside them, and of the transfer and task calls of the same step.

    Those run after all other calls of their step, wherever they stand in it.
    """
    history = history_of(ctx.session)
    call_ids = {key for branch in awaited_branches(ctx.agent, history).values() for _, key in calls_to(branch)}
    run_last = {TRANSFER, *task_agents(ctx.agent.root_agent)} if call_ids else ()
    steps = [record.event for key in call_ids for record in history.calls.all(key)]
    return call_ids.union(
        call.id or "" for step in steps for call in step.get_function_calls() if call.name in run_last
    )


def queued_calls(ctx: InvocationContext, deferrable: Collection[str]) -> list[types.FunctionCall]:
    """The calls of the agent's last step that wait for another call of that step.

    Args:
        ctx: While one of the agent's calls has an interrupt, no call is queued.
        deferrable: Names of the tools whose calls may be queued.
    """
    history = history_of(ctx.session)
    for event in history.newest() if deferrable else ():
        calls = event.get_function_calls()
        if calls and event.author == ctx.agent.name and is_within(event.branch, ctx.branch):
            queued = [call for call in calls if call.name in deferrable and not history.calls.has_response(call.id)]
            return [] if queued and interrupted_call_ids(ctx) else queued
    return []


def closing_events(ctx: InvocationContext, reason: StopReason) -> list[Event]:
    """The events that close a stopped run: one for each agent with open calls, or a single one.

    Models reject a history with a call that has no result.
    """
    code, message = reason
    groups = _calls_by_origin(ctx, _open_calls(ctx))
    if not groups:
        events = reversed(history_of(ctx.session).run(ctx.invocation_id))
        last = next((event for event in events if event.author not in ("user", "model")), None)
        groups.append((_origin(ctx, last), ()))
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


def _closing_event(ctx: InvocationContext, origin: _EventOrigin, calls: FunctionCalls, **fields: Any) -> Event:
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


def _calls_by_origin(ctx: InvocationContext, calls: FunctionCalls) -> list[tuple[_EventOrigin, FunctionCalls]]:
    groups: dict[_EventOrigin, list[types.FunctionCall]] = {}
    for call in calls:
        record = history_of(ctx.session).calls.newest(call.id)
        groups.setdefault(_origin(ctx, record.event if record else None), []).append(call)
    return list(groups.items())


def _origin(ctx: InvocationContext, event: Event | None) -> _EventOrigin:
    return (event.author, event.branch, event.isolation_scope) if event else (ctx.agent.name, ctx.branch, None)


def _open_calls(ctx: InvocationContext) -> FunctionCalls:
    """The calls that this run leaves open: its own, the approved and the resumed ones."""
    history, answered = history_of(ctx.session), ctx.requests_answered
    # Approvals are consumed, and cannot be given again.
    interrupts = history.interrupts(kinds=(*APPROVALS, *CREDENTIALS), under=ctx.branch) if answered else ()
    approved = [
        call
        for interrupt in interrupts
        if answered.intersection(interrupt.answer_ids)
        for call in interrupt.waiting_calls
    ]
    resumed = set(ctx.shared.resumed_call_ids)
    if resumed and not approved:
        resumed -= awaiting_call_ids(ctx)
    open_records = history.calls.open() if resumed else ()
    calls = [record.call for record in open_records if is_under(record.event.branch, ctx.branch)]
    calls = [*open_calls_of(ctx), *approved, *(call for call in calls if call.id in resumed)]
    return list({call.id: call for call in calls}.values())


def open_calls_of(ctx: InvocationContext) -> FunctionCalls:
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
    waiting_ids = {interrupt.call.id for interrupt in approvals} | awaiting_call_ids(ctx) if open_calls else ()
    return [call for call in open_calls if call.id not in waiting_ids]


def _results(calls: Iterable[types.FunctionCall], result: dict[str, Any]) -> types.Content:
    answers = [types.FunctionResponse(id=call.id, name=call.name, response=result) for call in calls]
    return types.Content(role="user", parts=[types.Part(function_response=response) for response in answers])


async def close_interrupted_run(ctx: InvocationContext, run_id: str) -> None:
    """Append the journal's outcome, or an error, for each open call of the run; open interrupts stay open."""
    interrupted, history = replace_fields(ctx, invocation_id=run_id), history_of(ctx.session)
    open_ids = {call.id for call in open_calls_of(interrupted)}
    groups: list[tuple[Event, FunctionCalls]] = []
    for event in reversed(history.run(run_id)):
        if calls := [call for call in event.get_function_calls() if call.id in open_ids]:
            open_ids -= {call.id for call in calls}  # where calls share an id, the newest is the open one
            groups.append((event, calls))
    for calling, calls in reversed(groups):
        ctx_at_call = replace_fields(interrupted, branch=calling.branch)
        await load_attempts(ctx_at_call, calls)
        actions, results = no_actions(), list[types.Part]()
        for call in calls:
            # "once" is arbitrary: reading an outcome does not depend on the effect.
            durable = durable_call(ctx_at_call, call, call.name or "", "once")
            outcome: dict[str, Any] = (durable and durable.recorded_outcome(has_answers=True)) or {}
            if part := outcome.get("part"):
                results.append(types.Part.model_validate(part))
                results += [parts.text_part(outcome["words"])] if outcome["words"] else []
                actions.merge(EventActions.model_validate(outcome["actions"]))
                continue
            # A called agent has no outcome in the journal: its events show that it began.
            inside = [branch for branch in history.branches if is_under(branch, calling.branch)]
            is_begun = any(next_call(branch, calling.branch) == call.id for branch in inside)
            result = {"error": IN_DOUBT if is_begun or (durable and durable.event_id) else NOT_MADE}
            results.append(parts.result(call.id, call.name or "", result))
        event = Event(
            author=calling.author,
            invocation_id=run_id,
            branch=calling.branch,
            isolation_scope=calling.isolation_scope,
            content=parts.content("user", results),
            actions=actions,
        )
        await ctx.session_service.append_event(ctx.session, event)


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
