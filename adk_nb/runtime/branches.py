"""Branches: which agents and tool calls an event of a session belongs to, as a dotted path."""

from urllib.parse import unquote


def for_call(branch: str | None, name: str, call_id: str | None) -> str:
    """The branch on which agent `name` works for a call made on `branch`: `branch.name@id`.

    Source of the form: google-adk 2.13.
    """
    key = (
        (call_id or "").replace("%", "%25").replace(".", "%2E").replace("@", "%40")
    )  # ids of some services contain these
    return f"{branch}.{name}@{key}" if branch else f"{name}@{key}"


def calls_to(branch: str | None, path: str = "") -> list[tuple[str, str]]:
    """The tool calls that lead to `branch`, outermost first: agent name and call id.

    `path`: path of the event's graph node. Steps of nodes are not calls: they have a run number in place of an id.
    """
    if not branch or "@" not in branch:
        return []
    nodes = path.split("/") if path else ()
    steps = [step.rpartition("@") for step in branch.split(".") if step not in nodes]
    return [(name, unquote(key)) for name, _, key in steps if name and not (nodes and key.isdecimal())]


def lane_of(branch: str | None, path: str = "") -> str:
    """The lane of parallel work: agent or node name, empty if nothing runs in parallel. `path` as in `calls_to`."""
    if not branch:
        return ""
    nodes = path.split("/") if path else ()
    lanes = [step.partition("@")[0] for step in branch.split(".") if "@" not in step or step in nodes]
    return lanes[-1] if lanes else ""


def is_under(branch: str | None, outer: str | None) -> bool:
    """True if `branch` is `outer` or below it; every branch is below None."""
    return not outer or branch == outer or bool(branch and branch.startswith(f"{outer}."))


def next_step(branch: str | None, outer: str | None) -> tuple[str, str] | None:
    """Agent name and id of the first call from `outer` down to `branch`, which is under it. None: there is no call."""
    rest = branch[len(outer) + 1 :] if branch and outer else branch
    return next(iter(calls_to(rest)), None)


def next_call(branch: str | None, outer: str | None) -> str | None:
    """The id of the first call from `outer` down to `branch`, which is under it. None: there is no call."""
    step = next_step(branch, outer)
    return step[1] if step else None


def graph_of(key: str) -> str:
    """Name of the graph that a node's path begins with, as in `graph@1/node@2`; empty for the id of a call."""
    return key.partition("@")[0] if "/" in key else ""


def is_within(branch: str | None, outer: str | None) -> bool:
    """True if `branch` is under `outer` with no tool call between them."""
    return is_under(branch, outer) and next_call(branch, outer) is None
