"""The path of a run through a drawing: which node works, which have worked, which lines were gone."""

from adk_nb.events.event import Event
from adk_nb.notebook.view.drawing import Drawing, Line
from adk_nb.runtime.branches import is_under
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START

Marks = dict[str, str]
"""A shape's key -> `now`, `was` or `failed`; what is not in it was not reached."""


class VisitedPath:
    """Follows the events of one run."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._marks: Marks = {}
        self._works: dict[str, str | None] = {}
        """Nodes that work -> the branch that they work on."""
        self._tools: dict[str, str] = {}
        """Call id -> the key of its tool."""
        self._routes: dict[str, list[object]] = {}
        """Node -> the routes that it chose last."""
        self._leading: dict[str, list[tuple[int, Line]]] = {}
        for number, line in enumerate(drawing.lines):
            self._leading.setdefault(line.end, []).append((number, line))

    def feed(self, event: Event) -> Marks:
        """What one more event changes; empty for most."""
        node = self._node_of(event)
        if node is None or (event.partial and node in self._works):
            return {}
        changed: Marks = {}
        if self._drawing.is_graph:
            self._enter(START, changed)
            changed[f"n:{START}"] = "was"
        for team in self._drawing.within.get(node, ()):
            if f"n:{team}" not in self._marks:
                self._enter(team, changed)
                changed[f"n:{team}"] = "was"
        self._leave_before(node, event.branch, changed)
        if node not in self._works:
            self._enter(node, changed)
        self._works[node] = event.branch
        changed[f"n:{node}"] = "now"
        self._tell_tools(node, event, changed)
        self._settle(node, event, changed)
        return self._new(changed)

    def end(self, status: str) -> Marks:
        """What the end of the run changes; where it waits for someone, who asked is still at work."""
        changed: Marks = {}
        if status != "pending":
            for node in list(self._works):
                self._leave(node, changed)
        if status == "done" and END in self._drawing.nodes:
            self._enter(END, changed)
            if any(key.startswith("e:") for key in changed):
                changed[f"n:{END}"] = "was"
        return self._new(changed)

    def _new(self, changed: Marks) -> Marks:
        changed = {key: mark for key, mark in changed.items() if self._marks.get(key) != mark}
        self._marks |= changed
        return changed

    def _node_of(self, event: Event) -> str | None:
        steps = [step.partition("@")[0] for step in event.node_info.path.split("/")]
        if not self._drawing.is_graph:
            return next((one for one in (event.author, steps[0]) if one in self._drawing.nodes), None)
        return steps[1] if len(steps) > 1 and steps[1] in self._drawing.nodes else None

    def _leave_before(self, node: str, branch: str | None, changed: Marks) -> None:
        """Those that worked before on the same branch have ended, as this one works now."""
        for other, own in list(self._works.items()):
            if other != node and (is_under(branch, own) or is_under(own, branch)):
                self._leave(other, changed)

    def _leave(self, node: str, changed: Marks) -> None:
        del self._works[node]
        changed[f"n:{node}"] = "was"

    def _enter(self, node: str, changed: Marks) -> None:
        """Mark the lines by which one may have come."""
        lines = self._leading.get(node, [])
        if len(lines) == 1 and node != END:  # a node that says nothing was passed through all the same
            self._pass(lines[0][1].start, changed)
        for number, line in lines:
            if self._reached(line.start, changed) and self._fits(line):
                changed[f"e:{number}"] = "was"

    def _pass(self, node: str, changed: Marks) -> None:
        if not self._reached(node, changed):
            changed[f"n:{node}"] = "was"
            self._enter(node, changed)

    def _reached(self, node: str, changed: Marks) -> bool:
        return f"n:{node}" in changed or f"n:{node}" in self._marks

    def _fits(self, line: Line) -> bool:
        """Whether the line is one that its node's last choice leads along."""
        chosen = self._routes.get(line.start, [])
        if DEFAULT_ROUTE not in line.routes:
            return not line.routes or any(one in line.routes for one in chosen)
        others = [one for one in self._drawing.lines if one.start == line.start and one is not line]
        return not any(one in other.routes for other in others for one in chosen)

    def _tell_tools(self, node: str, event: Event, changed: Marks) -> None:
        for call in event.get_function_calls():
            self._tools[call.id or ""] = key = f"t:{node}/{call.name}"
            changed[key] = "now"
        for response in event.get_function_responses():
            if key := self._tools.get(response.id or ""):
                changed[key] = "was"

    def _settle(self, node: str, event: Event, changed: Marks) -> None:
        if event.partial:
            return
        if event.actions.route is not None:
            route = event.actions.route
            self._routes[node] = list(route) if isinstance(route, list) else [route]
        if event.error_code:
            changed[f"n:{node}"] = "failed"
            self._works.pop(node, None)
        elif event.is_final_response() and not event.long_running_tool_ids:
            self._leave(node, changed)
