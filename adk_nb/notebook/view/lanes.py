"""Lanes: the name and state of each of several agents that work at once."""

from collections.abc import Iterable, Iterator

from adk_nb.events.event import Event
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.view_state import Json
from adk_nb.runtime.cancellation import INVOCATION_ABORTED


class Lanes:
    """Follows the events of a run, and the begin and end of each agent. Each method returns ops for a live view."""

    def __init__(self) -> None:
        self._lanes: dict[str, Json] = {}
        """Branch -> lane."""
        self._waits: set[str] = set()
        """Branches with an open interrupt, whatever other results come in."""
        self._nodes: set[str] = set()
        """Path steps of graph nodes so far, to tell them from calls of tools in a branch."""

    def begin(self) -> None:
        """The run begins, or resumes."""
        self._waits.clear()

    def agent_begins(self, name: str, branch: str | None, path: str) -> list[Json]:
        """An agent begins. `path`: of the graph's node that runs it; empty if there is none."""
        self._note_nodes(path)
        return self._set_states(branch, "now")

    def agent_ends(self, name: str, branch: str | None, path: str) -> list[Json]:
        """An agent has ended, or pauses; a called agent does not end the lane of its caller."""
        lane = self._lanes.get(branch or "")
        return self._set(lane, "was") if lane and lane["name"] == name and lane["state"] == "now" else []

    def feed(self, event: Event) -> list[Json]:
        """Take in an event; most change no lane."""
        self._note_nodes(event.node_info.path)
        if event.error_code:
            return self._set_states(event.branch, "stopped" if event.error_code == INVOCATION_ABORTED else "failed")
        if event.long_running_tool_ids:
            return self._set_states(event.branch, "waits")
        ops = self._set_states(event.branch, "now")
        lane = self._lanes.get(event.branch or "")
        if lane and event.output is not None and event.node_info.name == lane["name"]:
            ops += self._set(lane, "was")
        return ops

    def end(self, status: str) -> list[Json]:
        """The run has ended; at a pause, all lanes at work wait."""
        at_work = [lane for lane in self._lanes.values() if lane["state"] == "now"]
        state = {"pending": "waits", "done": "was"}.get(status, "stopped")
        return [op for lane in at_work for op in self._set(lane, state)]

    def lane_of(self, event: Event) -> str:
        """The lane of an event; empty if it has none."""
        return next(iter([*self._lanes_along(event.branch)][::-1]), "")

    def _note_nodes(self, path: str) -> None:
        self._nodes.update(path.split("/") if path else ())

    def _set_states(self, branch: str | None, state: str) -> list[Json]:
        """Set the innermost lane along a branch to `state`, and the others to `now`."""
        lanes = [self._lanes.get(step) or self._new(step) for step in self._lanes_along(branch)]
        return [op for lane in lanes for op in self._set(lane, state if lane is lanes[-1] else "now")]

    def _new(self, key: str) -> Json:
        names = [step.rpartition(".")[2] for step in self._lanes_along(key)]
        label = " / ".join(_numbered(name) for name in names)
        name = names[-1].partition("@")[0]
        self._lanes[key] = lane = {"id": key, "name": name, "label": one_line(label, 100), "state": ""}
        return lane

    def _set(self, lane: Json, state: str) -> list[Json]:
        if lane["state"] == state or (lane["id"] in self._waits and state != "failed"):
            return []
        if state == "waits":
            self._waits.add(lane["id"])
        lane["state"] = state
        return [{"op": "lane", "lane": dict(lane)}]

    def _lanes_along(self, branch: str | None) -> Iterator[str]:
        """The branches of the lanes along a branch, outermost first; each ends with a graph's step or a member."""
        if branch:
            steps = branch.split(".")
            yield from (".".join(steps[: place + 1]) for place in _members(steps, self._nodes))


def _members(steps: list[str], nodes: Iterable[str]) -> Iterator[int]:
    """Indices of the steps at which lanes end. Without `@`, names of teams and members alternate."""
    is_team = True
    for place, step in enumerate(steps):
        if "@" in step:
            is_team = True
            if step in nodes:
                yield place
        else:
            if not is_team:
                yield place
            is_team = not is_team


def _numbered(step: str) -> str:
    name, _, number = step.partition("@")
    return name if number in ("", "1") else f"{name} {number}"
