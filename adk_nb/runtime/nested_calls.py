"""Agents called as tools in the session of their caller: what waits inside a call, and which agent gets its answer."""

from collections.abc import Collection, Iterable

from adk_nb import types
from adk_nb.events.requests import REQUESTS
from adk_nb.runtime.branches import calls_to, is_within, next_call, next_step
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.invocation_context import InvocationContext, Runs
from adk_nb.wire import but

TRANSFER = "transfer_to_agent"
"""Name of the tool that hands the conversation over."""


def task_agents(agent: Runs) -> set[str]:
    """The names of the agents with `mode="task"` under `agent`, and under those that it calls in its own session."""
    names: set[str] = set()
    seen: set[int] = set()
    left: list[Runs] = [agent]
    while left:
        member = left.pop()
        seen.add(id(member))
        if member.is_task:
            names.add(member.name)
        left += member.members
        left += [called for called in member.called_agents if id(called) not in seen]
    return names


def open_tasks(
    agent: Runs, history: History, branch: str | None = None, *, talking: bool = False, run: str | None = None
) -> dict[str, str]:
    """`History.tasks` of the agents under `agent`, and of those that it calls."""
    if not history.has_scoped_work:
        return {}
    return history.tasks(task_agents(agent), branch, talking=talking, run=run)


def recipient(history: History, calls: Iterable[str | None], branch: str | None = None) -> str:
    """The agent at work on `branch` that receives answers to `calls`: it made one, or the call that led to one.

    Returns:
        Its name; empty if no such call was made there.
    """
    wanted = set(calls)
    found = [record for key in wanted if (record := history.calls.newest(key, under=branch))]
    if found:
        event = max(found, key=lambda record: record.at).event
        leads = next_call(event.branch, branch)
        caller = history.calls.newest(leads) if leads is not None else None
        return caller.event.author if caller else event.author  # a step of a graph looks like a call that nobody made
    return next((key.partition("@")[0] for key in wanted if key and "/" in key), "")  # of a node: the graph's name


def outermost(agent: Runs, under: Runs | None = None) -> Runs:
    """The agent to run for an answer to `agent`: the outermost above it that decides when others work, or itself.

    `under`: look no higher than what is under this one.
    """
    first, above = agent, agent.parent_agent
    while above is not None and above is not under:
        first = above if above.runs_others else first
        above = above.parent_agent
    return first


def after_answers(ctx: InvocationContext, *, goes_on: bool = False) -> InvocationContext:
    """`ctx` for an agent that comes after the one whose call or request was answered: the answer is not its.

    It is there for the user's last words instead. It begins, unless it `goes_on` with what it had begun.
    """
    checkpoints = ctx.checkpoints if goes_on else None
    if not ctx.task and not ctx.responses:
        return ctx if checkpoints is ctx.checkpoints else but(ctx, checkpoints=checkpoints)
    text = history_of(ctx.session).last_text(ctx.isolation_scope)
    return but(ctx, user_content=text, task=None, checkpoints=checkpoints)


def calls_with_answers(ctx: InvocationContext) -> list[types.FunctionCall]:
    """The agent's own calls inside which the user's message answers something, in the order of the answers.

    They are noted in `ctx.taken_up`, and their ids in `ctx.shared.taken_up`.
    """
    found: dict[str, types.FunctionCall] = {}
    calls = history_of(ctx.session).calls
    for answered in ctx.calls_answered:
        record = calls.newest(answered, under=ctx.branch)
        if record is None:
            continue
        name, key = next_step(record.event.branch, ctx.branch) or (None, answered if answered == ctx.task else "")
        if key and key not in found:
            # Not a later call under the same id: sessions that were stored by 0.1.0 may have several.
            own = calls.newest_of(ctx.agent.name, key, ctx.branch, name=name, until=record.at)
            found |= {key: own.call} if own else {}
    ctx.taken_up = list(found.values())
    ctx.shared.taken_up.update(found)
    return list(found.values())


def has_results(ctx: InvocationContext) -> bool:
    """True if the user's message holds a result of one of the agent's own calls, beside answers to its requests."""
    calls = history_of(ctx.session).calls
    for key in set(ctx.calls_answered) - ctx.requests_answered:  # a request may be answered under the id of its call
        own = calls.newest_of(ctx.agent.name, key, ctx.branch)
        if own and own.call.name not in REQUESTS:
            return True
    return False


def waiting(
    agent: Runs, history: History, branch: str | None = None, *, since: int = 0, run: str | None = None
) -> dict[str, str | None]:
    """What is to be answered from outside, on `branch` and under it: the branch of each, by the id of its call.

    A call that has had a first answer, and whose agent continued from that, is not among it. A task that is talked
    over with the user is. `agent` is any of the tree; `since` and `run` as in `History.interrupts`.
    """
    asked = history.interrupts(under=branch, since=since, run=run)
    tasks = open_tasks(agent.root_agent, history, branch, talking=True, run=run)
    return {interrupt.id: interrupt.branch for interrupt in asked if not interrupt.has_news} | tasks


def unanswered(ctx: InvocationContext) -> list[types.FunctionCall]:
    """The agent's own calls of this invocation that have no result, and wait for nobody's answer."""
    names = (ctx.agent.name, "user")  # who tells the result of a task
    calls = [
        record.call
        for record in history_of(ctx.session).calls.open()
        if record.event.invocation_id == ctx.invocation_id
        and record.event.branch == ctx.branch
        and record.event.author in names
    ]
    held = led_from(ctx) if calls else ()
    return [call for call in calls if call.id not in held]


def held_calls(ctx: InvocationContext) -> set[str]:
    """The ids of the agent's own calls that have no result since something inside them waits for one."""
    history = history_of(ctx.session)
    inside = {next_call(branch, ctx.branch) or "" for branch in waiting(ctx.agent, history, ctx.branch).values()} - {""}
    left = history.calls.without_result(inside)
    return {key for key in left if history.calls.newest_of(ctx.agent.name, key, ctx.branch)}


def pauses(agent: Runs, history: History, branch: str | None, *, asked: bool, since: int = 0) -> bool:
    """True if the work of `agent` on `branch` cannot go on before something comes from outside.

    That is what the user says to a task; and, if it may have `asked` something, the answer. Only what was asked since
    the user's last words counts: with words instead of an answer all goes on.
    """
    if open_tasks(agent, history, branch, talking=True):
        return True
    if not asked:
        return False
    since = max(since, history.last_text_at)
    return bool(history.talking_node(branch) or history.interrupts(under=branch, since=since))


def led_from(ctx: InvocationContext) -> set[str]:
    """The ids of all calls inside which something waits for an answer from outside, and of those that come after."""
    history = history_of(ctx.session)
    led = {key for branch in waiting(ctx.agent, history).values() for _, key in calls_to(branch)}
    later = {TRANSFER, *task_agents(ctx.agent.root_agent)} if led else ()
    steps = [record.event for key in led for record in history.calls.all(key)]
    return led.union(call.id or "" for step in steps for call in step.get_function_calls() if call.name in later)


def in_line(ctx: InvocationContext, later: Collection[str]) -> list[types.FunctionCall]:
    """What the agent called in its last step and is not begun, since another of its calls is to be done first.

    Args:
        ctx: Nothing is in line while something inside one of the agent's calls waits.
        later: The names of the tools that may have to wait for others.
    """
    history = history_of(ctx.session)
    for event in history.newest() if later else ():
        calls = event.get_function_calls()
        if calls and event.author == ctx.agent.name and is_within(event.branch, ctx.branch):
            left = [call for call in calls if call.name in later and not history.calls.is_answered(call.id)]
            return [] if left and held_calls(ctx) else left
    return []
