"""Agents called as tools in the session of their caller: what waits inside them, and the way of an answer there."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import REQUESTS
from adk_nb.runtime import approvals, credentials, inputs
from adk_nb.runtime.branches import calls_to, is_under, is_within, next_call, next_step
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.rewind import surviving
from adk_nb.runtime.tasks import TRANSFER, takers, talking_node, unfinished


def speaker(events: Sequence[Event], calls: Iterable[str | None], branch: str | None = None) -> str:
    """The agent at work on `branch` that is to hear of answers to `calls`: it made one, or the call that led to one.

    Returns:
        Its name; empty if no such call was made there.
    """
    wanted = set(calls)
    for event in reversed(events):
        if is_under(event.branch, branch) and any(one.id in wanted for one in event.get_function_calls()):
            leads = next_call(event.branch, branch)
            made = _maker(events, leads) if leads is not None else ""
            return made or event.author  # a step of a graph looks like a call, and nobody made that
    return next((key.partition("@")[0] for key in wanted if key and "/" in key), "")  # a node's, of the graph


def outermost(agent: Any, under: Any = None) -> Any:
    """The agent to run for an answer to `agent`: the outermost above it that decides when others work, or itself.

    `under`: look no higher than what is under this one.
    """
    first, above = agent, getattr(agent, "parent_agent", None)
    while above is not None and above is not under:
        first = above if getattr(above, "runs_others", False) else first
        above = above.parent_agent
    return first


def _maker(events: Sequence[Event], call_id: str) -> str:
    made = (event.author for event in reversed(events) if any(one.id == call_id for one in event.get_function_calls()))
    return next(made, "")


def leads_to(ctx: InvocationContext) -> list[types.FunctionCall]:
    """The agent's own calls inside which the user's message answers something, in the order of the answers.

    They are noted in `ctx.taken_up`, and their ids in `ctx.shared.taken_up`.
    """
    found: dict[str, types.FunctionCall] = {}
    events = surviving(ctx.session.events)
    for answered in ctx.calls_answered:
        for at in range(len(events) - 1, -1, -1):
            event = events[at]
            if is_under(event.branch, ctx.branch) and any(one.id == answered for one in event.get_function_calls()):
                step = next_step(event.branch, ctx.branch)
                name, key = step or (None, answered if answered == ctx.task else "")
                # Not a later call under the same id: sessions that were stored by 0.1.0 may have several.
                if key and key not in found and (call := _own_call(events[: at + 1], ctx, key, name)):
                    found[key] = call
                break
    ctx.taken_up = list(found.values())
    ctx.shared.taken_up.update(found)
    return list(found.values())


def _own_call(
    events: Sequence[Event], ctx: InvocationContext, key: str, name: str | None = None
) -> types.FunctionCall | None:
    """The agent's newest call of that id. `name`: of the called agent; None: any."""
    for event in reversed(events):
        if event.author == ctx.agent.name and is_within(event.branch, ctx.branch):
            for call in event.get_function_calls():
                if call.id == key and name in (None, call.name):
                    return call
    return None


def is_told(ctx: InvocationContext) -> bool:
    """True if the user's message has an outcome of one of the agent's own calls, and not of what it asked a person."""
    outcomes = set(ctx.calls_answered) - ctx.requests_answered  # a request may be answered under the id of its call
    for event in reversed(ctx.session.events if outcomes else ()):
        if event.author == ctx.agent.name and is_within(event.branch, ctx.branch):
            for call in event.get_function_calls():
                if call.id in outcomes and call.name not in REQUESTS:
                    return True
    return False


def waiting(agent: Any, events: Sequence[Event], branch: str | None = None) -> dict[str, str | None]:
    """What is to be answered from outside, on `branch` and under it: the branch of each, by the id of its call.

    A call that has had a first answer, and whose agent went on from that, is not among it. A task that is talked over
    with the user is. `agent` is any of the tree.
    """
    asked = [*approvals.pending(events), *credentials.pending(events)]
    tasks = unfinished(getattr(agent, "root_agent", agent), events, talking=True)
    found = {one.id: one.branch for one in asked} | _late(events) | tasks
    return {key: where for key, where in found.items() if is_under(where, branch)}


def _late(events: Iterable[Event]) -> dict[str, str | None]:
    """The calls whose results come from outside, and are not there yet."""
    found: dict[str, str | None] = {}
    for event in events:
        if found:
            for response in event.get_function_responses():
                found.pop(response.id or "", None)
        if later := event.long_running_tool_ids:
            requests = {call.id for call in event.get_function_calls() if call.name in REQUESTS}
            found |= dict.fromkeys(later - requests, event.branch)
    return found


def unanswered(ctx: InvocationContext) -> list[types.FunctionCall]:
    """The agent's own calls of this invocation that have no result, and wait for nobody's answer."""
    names = (ctx.agent.name, "user")  # who tells what a task came to
    mine = [
        event
        for event in surviving(ctx.session.events)
        if event.invocation_id == ctx.invocation_id and event.branch == ctx.branch and event.author in names
    ]
    calls = approvals.unanswered_calls(mine)
    led = led_from(ctx) if calls else ()
    return [call for call in calls if call.id not in led]


def waits_inside(ctx: InvocationContext) -> bool:
    """True if one of the agent's own calls has no result since something inside it waits for one."""
    return bool(held(ctx))


def held(ctx: InvocationContext) -> set[str]:
    """The ids of the agent's own calls that have no result since something inside them waits for one."""
    events = surviving(ctx.session.events)
    inside = {next_call(branch, ctx.branch) or "" for branch in waiting(ctx.agent, events, ctx.branch).values()} - {""}
    return {key for key in without_result(inside, events) if _own_call(events, ctx, key)}


def without_result(calls: Collection[str], events: Sequence[Event]) -> set[str]:
    """Those of the `calls`, by their ids, that have no result yet."""
    left = set(calls)
    for event in events if left else ():
        placeholders = event.actions.requested_tool_confirmations.keys() | event.actions.requested_auth_configs.keys()
        left -= {one.id or "" for one in event.get_function_responses()} - placeholders
    return left


def pauses(agent: Any, events: Sequence[Event], branch: str | None, *, asked: bool) -> bool:
    """True if the work of `agent` on `branch` cannot go on before something comes from outside.

    That is what the user says to a task; and, if it may have `asked` something, the answer. Only what was asked since
    the user's last words counts: with words instead of an answer all goes on.
    """
    if unfinished(agent, events, branch, talking=True):
        return True
    if not asked:
        return False
    if talking_node(events, branch):
        return True
    events = surviving(events)
    recent = events[_last_words(events) :]
    open_now = [*approvals.pending(recent), *credentials.pending(recent), *inputs.pending(recent)]
    return any(is_under(one.branch, branch) for one in open_now)


def _last_words(events: Sequence[Event]) -> int:
    found = (at for at in range(len(events) - 1, -1, -1) if events[at].author == "user" and events[at].text)
    return next(found, 0)


def led_from(ctx: InvocationContext) -> set[str]:
    """The ids of all calls inside which something waits for an answer from outside, and of those that come after."""
    led = {key for branch in waiting(ctx.agent, ctx.session.events).values() for _, key in calls_to(branch)}
    later = {TRANSFER, *takers(getattr(ctx.agent, "root_agent", ctx.agent))} if led else ()
    steps = [event.get_function_calls() for event in ctx.session.events] if led else ()
    held = [
        call.id or "" for calls in steps if any(one.id in led for one in calls) for call in calls if call.name in later
    ]
    return led.union(held)


def in_line(ctx: InvocationContext, later: Collection[str]) -> list[types.FunctionCall]:
    """What the agent called in its last step and is not begun, since another of its calls is to be done first.

    Args:
        ctx: Nothing is in line while something inside one of the agent's calls waits.
        later: The names of the tools that may have to wait for others.
    """
    events = surviving(ctx.session.events) if later else []
    for event in reversed(events):
        if event.author == ctx.agent.name and is_within(event.branch, ctx.branch) and event.get_function_calls():
            answered = {one.id for event in events for one in event.get_function_responses()}
            left = [call for call in event.get_function_calls() if call.name in later and call.id not in answered]
            return [] if left and waits_inside(ctx) else left
    return []
