"""Agents called as tools in their caller's session: interrupts inside a call, and which agent gets an answer."""

from collections.abc import Collection, Iterable

from adk_nb import types
from adk_nb.events.requests import REQUESTS
from adk_nb.runtime.branches import calls_to, is_within, next_call, next_step
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.wire import replace_fields

TRANSFER = "transfer_to_agent"
"""Name of the tool that hands the conversation over."""


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
    return next((key.partition("@")[0] for key in call_ids if key and "/" in key), "")  # a node path: name of the graph


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


def calls_with_answers(ctx: InvocationContext) -> list[types.FunctionCall]:
    """The agent's calls that have an interrupt answered inside them, in the order of the answers.

    Sets `ctx.resumed_calls` and `ctx.shared.resumed_call_ids`.
    """
    resumed_calls: dict[str, types.FunctionCall] = {}
    calls = history_of(ctx.session).calls
    for answered in ctx.calls_answered:
        record = calls.newest(answered, under=ctx.branch)
        if record is None:
            continue
        name, key = next_step(record.event.branch, ctx.branch) or (
            None,
            answered if answered == ctx.task_call_id else "",
        )
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
    awaiting = awaiting_calls(ctx) if calls else ()
    return [call for call in calls if call.id not in awaiting]


def calls_with_interrupts(ctx: InvocationContext) -> set[str]:
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


def awaiting_calls(ctx: InvocationContext) -> set[str]:
    """Ids of all calls with an interrupt inside them, and of the transfer and task calls queued behind them."""
    history = history_of(ctx.session)
    call_ids = {key for branch in awaited_branches(ctx.agent, history).values() for _, key in calls_to(branch)}
    later = {TRANSFER, *task_agents(ctx.agent.root_agent)} if call_ids else ()
    steps = [record.event for key in call_ids for record in history.calls.all(key)]
    return call_ids.union(call.id or "" for step in steps for call in step.get_function_calls() if call.name in later)


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
            queued = [call for call in calls if call.name in deferrable and not history.calls.is_answered(call.id)]
            return [] if queued and calls_with_interrupts(ctx) else queued
    return []
