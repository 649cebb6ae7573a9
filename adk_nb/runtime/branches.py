"""Where in a session something happened: the branch, step by step, and the calls of tools that led to it."""

from urllib.parse import unquote


def for_call(branch: str | None, name: str, call_id: str | None) -> str:
    """The branch of what `name` does for a call that was made on `branch`: `branch.name@id`.

    Source of the form: google-adk 2.13.
    """
    key = (call_id or "").replace("%", "%25").replace(".", "%2E").replace("@", "%40")  # as some services number calls
    return f"{branch}.{name}@{key}" if branch else f"{name}@{key}"


def calls_to(branch: str | None, path: str = "") -> list[tuple[str, str]]:
    """The calls for which happens what is on `branch`, outermost first: who works for each, and its id.

    `path`: of the graph's node where it happens; the steps that lead to that, and those of the nodes that it follows,
    are no calls. Such steps have the number of a run for an id.
    """
    if not branch or "@" not in branch:
        return []
    nodes = path.split("/") if path else ()
    steps = [step.rpartition("@") for step in branch.split(".") if step not in nodes]
    return [(name, unquote(key)) for name, _, key in steps if name and not (nodes and key.isdecimal())]


def lane_of(branch: str | None, path: str = "") -> str:
    """Whose work it is of those that work at once; empty if it is not done beside others. `path` as in `calls_to`."""
    if not branch:
        return ""
    nodes = path.split("/") if path else ()
    lanes = [step.partition("@")[0] for step in branch.split(".") if "@" not in step or step in nodes]
    return lanes[-1] if lanes else ""


def is_under(branch: str | None, outer: str | None) -> bool:
    """True if `branch` is `outer`, or leads on from there; all of them do from None."""
    return not outer or branch == outer or bool(branch and branch.startswith(f"{outer}."))


def next_step(branch: str | None, outer: str | None) -> tuple[str, str] | None:
    """The first call between `outer` and `branch`, which is under it: who works for it, and its id. None: none."""
    further = branch[len(outer) + 1 :] if branch and outer else branch
    return next(iter(calls_to(further)), None)


def next_call(branch: str | None, outer: str | None) -> str | None:
    """The id of the first call between `outer` and `branch`, which is under it. None: there is none."""
    step = next_step(branch, outer)
    return step[1] if step else None


def is_within(branch: str | None, outer: str | None) -> bool:
    """True if what is on `branch` is the work of the agents of `outer`, and not of one that they called as a tool."""
    return is_under(branch, outer) and next_call(branch, outer) is None
