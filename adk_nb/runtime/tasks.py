"""Tasks: agents that were called as tools, and talk with the user until they hand back what came of it."""

from collections.abc import Iterable, Sequence
from typing import Any

from adk_nb.events.event import Event
from adk_nb.runtime.branches import calls_to, is_under
from adk_nb.runtime.rewind import surviving

TRANSFER = "transfer_to_agent"
"""Name of the tool that hands the conversation over."""
STANDS = "workflow"
"""Key of an event's agent_state: where a graph stands that waits."""


def takers(agent: Any) -> set[str]:
    """The names of the agents with `mode="task"` under `agent`, and under those that it calls in its own session."""
    found: set[str] = set()
    seen: set[int] = set()
    left = [agent]
    while left:
        one = left.pop()
        seen.add(id(one))
        if getattr(one, "mode", None) == "task":
            found.add(one.name)
        left += getattr(one, "members", ())
        for tool in getattr(one, "tools", ()):
            if getattr(tool, "takes_up", False) and id(tool.agent) not in seen:
                left.append(tool.agent)
    return found


def unfinished(
    agent: Any, events: Iterable[Event], branch: str | None = None, *, talking: bool = False
) -> dict[str, str]:
    """The tasks that were begun and not handed back, on `branch` and under it; who worked last is the last.

    Args:
        agent: Those under it count, and those that it calls.
        events: The session's.
        branch: None: anywhere.
        talking: Only those whose agent has said something to the user: a run may end while they are open.

    Returns:
        The branch of each, by the id of the call that gave the task.
    """
    names = takers(agent)
    if not names:
        return {}
    found: dict[str, str] = {}
    said = set[str]()
    for event in surviving(events):
        for response in event.get_function_responses() if found else ():
            found.pop(response.id or "", None)
        key, led = event.isolation_scope, calls_to(event.branch)
        if key and led and led[-1][1] == key and event.author != "user" and led[-1][0] in names:
            said.discard(key) if key not in found else None  # some services number calls anew
            found.pop(key, None)
            found[key] = event.branch or ""
            if speaks(event):
                said.add(key)
    return {key: where for key, where in found.items() if is_under(where, branch) and (key in said or not talking)}


def asked_by(event: Event) -> list[str]:
    """What is waited for by a graph that says where it stands: ids of calls, and paths of nodes that wait for words."""
    stands = event.actions.agent_state.get(STANDS) if event.actions.agent_state else None
    return [key for run in stands["waiting"] for key in run["asked"]] if stands else []


def talking_node(events: Sequence[Event], branch: str | None = None) -> str | None:
    """The path of a graph's node that waits for the user's words, on `branch` or under it, since they spoke last."""
    if _talking(events, branch) is None:
        return None
    return _talking(surviving(events), branch)


def _talking(events: Sequence[Event], branch: str | None) -> str | None:
    told = set[str]()
    for event in reversed(events):
        if event.author == "user" and event.text:
            return None
        where = event.node_info.path
        if (state := event.actions.agent_state) and STANDS in state and where not in told:
            told.add(where)
            found = next((key for key in asked_by(event) if key.startswith(f"{where}/")), None)
            if found and is_under(event.branch, branch):
                return found
    return None


def speaks(event: Event) -> bool:
    """True if an event is words to the user, with which its agent leaves the rest to them."""
    return bool(event.text) and not event.error_code and event.is_final_response()
