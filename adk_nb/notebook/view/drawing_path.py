"""The path of a run through a drawing: which nodes work, wait or failed, which lines were taken, and how often."""

from collections.abc import Callable, Iterator, Sequence

from adk_nb.events.event import Event
from adk_nb.notebook.view.drawing import Drawing, Line, Node
from adk_nb.notebook.view.event_words import STOPPED
from adk_nb.runtime.branches import is_under
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START

Likely = Callable[[Sequence[str]], str]
"""Which of several namesakes it is, by their keys."""


class Places:
    """What stands where in a drawing."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._around: dict[str, Node | None] = {}
        self.nodes: dict[str, Node] = {}
        """All of them by their keys, those inside frames too."""
        self.leading: dict[str, list[tuple[str, Line]]] = {}
        """Node -> the lines that lead to it, each with the key of its shape."""
        self.leaving: dict[str, list[tuple[str, Line]]] = {}
        self.frames: list[tuple[str, Drawing]] = []
        """With what is inside each, innermost first."""
        self._read(drawing, None)

    def _read(self, drawing: Drawing, frame: Node | None) -> None:
        for key, node in drawing.nodes.items():
            self.nodes[key], self._around[key] = node, frame
            self.leading[key], self.leaving[key] = [], []
            if node.inside:
                self._read(node.inside, node)
                self.frames.append((key, node.inside))
        for number, line in enumerate(drawing.lines):
            shape = f"e:{frame.key}/{number}" if frame else f"e:{number}"
            self.leading[line.end].append((shape, line))
            self.leaving[line.start].append((shape, line))

    def of(self, author: str, path: str, likely: Likely) -> list[tuple[str, int]]:
        """The frames around what happens, outermost first, and at last the node: each with the number of its run, 1
        where that is not known. Empty: it is not in the drawing.
        """
        steps = [_step(step) for step in path.split("/")] if path else []
        here, key, numbers = self._drawing, None, dict[str, int]()
        if self._drawing.kind == "workflow":
            steps = steps[1:]
        elif steps and (frames := [frame for frame, _ in self.frames if self.nodes[frame].name == steps[0][0]]):
            key = likely(frames)
            here, steps = self.nodes[key].inside or here, steps[1:]
        for name, number in steps:
            match = next((node_key for node_key, node in here.nodes.items() if node.name == name), None)
            if match is None:
                break
            key, numbers[match] = match, number
            if not (inside := self.nodes[match].inside):
                break
            here = inside
        if key is None or self.nodes[key].inside:
            named = [node.key for node, _ in here.walk() if node.name == author and node.kind != "end"]
            key = likely(named) if named else key
        if key is None:
            return []
        frames = [frame.key for frame, _, _ in self.ways(key)][::-1]
        return [(node, numbers.get(node, 1)) for node in (*frames, key)]

    def ways(self, key: str) -> Iterator[tuple[Node, Drawing, str]]:
        """Each frame around a node, innermost first, with what is inside it, and which of that leads to the node."""
        while (frame := self._around[key]) and frame.inside:
            yield frame, frame.inside, key
            key = frame.key

    def around(self, key: str) -> Iterator[Drawing]:
        """The drawings that a node stands in, innermost first."""
        for _, inside, _ in self.ways(key):
            yield inside
        yield self._drawing

    def start_of(self, drawing: Drawing) -> str | None:
        """Where a graph begins; None: it is none."""
        first = next(iter(drawing.nodes.values()), None)
        return first.key if first and first.kind == "end" and first.name == START else None

    def leads_back(self, line: Line) -> bool:
        """Whether it is where a loop begins again."""
        frame = self._around[line.start]
        return bool(frame and frame.inside and frame.inside.kind == "loop" and not line.may and line.label)

    def turn(self, inside: Drawing, key: str) -> int | None:
        """Which of a team's members it is, by number. None: it works for one of them."""
        if any(line.may for _, line in self.leading[key]):
            return None
        return list(inside.nodes).index(key)


def _step(step: str) -> tuple[str, int]:
    name, _, number = step.partition("@")
    return name, int(number) if number.isdecimal() else 1


Marks = dict[str, str]
"""A shape's key -> `now`, `waits`, `was`, `failed` or `stopped`; what is not in it was not reached. `c:` and a node's
key -> how often it has run, in words."""
_AT_ONCE = ("function", "tool")
"""Kinds of nodes that say nothing when they begin, as agents do."""


class VisitedPath:
    """Follows the events of one run, and what is told of agents that begin and end."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._places = Places(drawing)
        self._marks: Marks = {}
        self._works: dict[str, str | None] = {}
        """Nodes that work -> the branch that they work on."""
        self._guessed: set[str] = set()
        """Those of them that only follow on a node which has ended."""
        self._waits: set[str] = set()
        """Those of them that wait for someone, whatever else becomes of their calls."""
        self._settled: set[str] = set()
        """Nodes that gave a last answer."""
        self._calls: dict[str, str] = {}
        """Call id -> the key of its tool, or of the agent that it calls."""
        self._routes: dict[str, list[object]] = {}
        """Node -> the routes that it chose last."""
        self._last: dict[str, tuple[int, ...]] = {}
        """Loop -> which of its members worked last."""
        self._passes: dict[str, int] = {}

    def begin(self) -> Marks:
        """What it changes that the run begins, or goes on."""
        self._waits.clear()
        changed: Marks = {}
        if not self._marks and (start := self._places.start_of(self._drawing)):
            changed[f"n:{start}"] = "was"
            self._guess_what_follows(start, changed)
        return self._new(changed)

    def agent_begins(self, name: str, branch: str | None, path: str) -> Marks:
        """What it changes that an agent begins to work; `path`: of the graph's node for which it does, if for one."""
        if not (steps := self._steps(name, path)):
            return {}
        changed: Marks = {}
        self._work(steps, branch, changed)
        return self._new(changed)

    def agent_ends(self, name: str, path: str) -> Marks:
        """What it changes that an agent has ended, or waits now."""
        steps = self._steps(name, path)
        changed: Marks = {}
        if steps and (node := steps[-1][0]) in self._works and self._marks.get(f"n:{node}") == "now":
            self._leave(node, changed)
        return self._new(changed)

    def feed(self, event: Event) -> Marks:
        """What one more event changes; empty for most."""
        steps = self._places.of(event.author, event.node_info.path, self._likely)
        if not steps:
            return {}
        node = steps[-1][0]
        if event.partial and self._marks.get(f"n:{node}") == "now":
            return {}
        if node in self._settled and _says_nothing(event):  # as a callback that writes to the state
            return {}
        changed: Marks = {}
        if self._places.nodes[node].inside:
            if event.error_code:
                changed[f"n:{node}"] = "failed"
            return self._new(changed)
        self._work(steps, event.branch, changed)
        self._tell_calls(node, event, changed)
        self._settle(node, event, changed)
        return self._new(changed)

    def end(self, status: str) -> Marks:
        """What the end of the run changes; where it waits for someone, who asked is still at work."""
        changed: Marks = {}
        for node in list(self._works):
            if status == "pending":
                changed[f"n:{node}"] = "waits"
            else:
                self._leave(node, changed, "was" if status == "done" else "stopped")
        if status == "done":
            self._enter_end(self._drawing, changed)
        return self._new(changed)

    def _new(self, changed: Marks) -> Marks:
        for frame, inside in self._places.frames:
            self._mark_frame(frame, inside, changed)
        changed = {key: mark for key, mark in changed.items() if self._marks.get(key) != mark}
        self._marks |= changed
        return changed

    def _mark_frame(self, frame: str, inside: Drawing, changed: Marks) -> None:
        """A frame stands as what is inside it."""
        marks = {self._mark(key, changed) for key in inside.nodes} - {None}
        if not marks or (self._mark(frame, changed) == "failed" and "now" not in marks):
            return
        changed[f"n:{frame}"] = next((mark for mark in ("now", "waits", "failed", "stopped") if mark in marks), "was")
        if changed[f"n:{frame}"] == "was":
            self._enter_end(inside, changed)

    def _mark(self, node: str, changed: Marks) -> str | None:
        return changed.get(f"n:{node}") or self._marks.get(f"n:{node}")

    def _steps(self, agent: str, path: str) -> list[tuple[str, int]]:
        """Where an agent works; nothing for a team, whose members are told of."""
        steps = self._places.of(agent, path, self._likely)
        return [] if not steps or self._places.nodes[steps[-1][0]].inside else steps

    def _likely(self, keys: Sequence[str]) -> str:
        """Which of several namesakes it is: one that works, else the first that has not been reached, else the last."""
        at_work = [key for key in keys if key in self._works]
        return next(iter(at_work or [key for key in keys if f"n:{key}" not in self._marks]), keys[-1])

    # -- what works

    def _work(self, steps: Sequence[tuple[str, int]], branch: str | None, changed: Marks) -> None:
        """A node works; the frames around it are `steps`, each with how often it has run."""
        node = steps[-1][0]
        self._count(steps, changed)
        for frame, _ in steps[:-1]:
            if self._mark(frame, changed) != "now":
                self._enter(frame, changed)
                changed[f"n:{frame}"] = "now"
        for drawing in self._places.around(node):
            if start := self._places.start_of(drawing):
                changed[f"n:{start}"] = "was"
        self._leave_before(node, branch, changed)
        if node not in self._works:
            self._enter(node, changed)
        self._works[node] = branch
        self._guessed.discard(node)
        changed[f"n:{node}"] = "waits" if node in self._waits else "now"

    def _leave_before(self, node: str, branch: str | None, changed: Marks) -> None:
        """Those that worked before on the same branch have ended, as this one works now."""
        lines = self._places.leading[node]
        for other, own in list(self._works.items()):
            if other in self._guessed:
                over = any(line.start == other for _, line in lines)
            else:
                over = is_under(branch, own) or is_under(own, branch)
            called = any(line.start == other and line.label == "calls" for _, line in lines)
            if over and other != node and not called and other not in self._waits:
                self._leave(other, changed)

    def _leave(self, node: str, changed: Marks, mark: str = "was") -> None:
        del self._works[node]
        self._guessed.discard(node)
        changed[f"n:{node}"] = mark

    def _enter(self, node: str, changed: Marks) -> None:
        """Mark the lines by which one may have come."""
        lines = self._places.leading[node]
        only = lines[0][1] if len(lines) == 1 else None
        passed = only and not only.may and not self._places.leads_back(only)
        if only and passed and self._places.nodes[node].name != END:
            self._pass(only.start, changed)  # a node that says nothing was passed through all the same
        for key, line in lines:
            if self._mark(line.start, changed) and self._fits(line):
                changed[key] = "was"

    def _enter_end(self, drawing: Drawing, changed: Marks) -> None:
        end = next((key for key, node in drawing.nodes.items() if node.kind == "end" and node.name == END), None)
        if end:
            self._enter(end, changed)
            if any(key in changed or key in self._marks for key, _ in self._places.leading[end]):
                changed[f"n:{end}"] = "was"

    def _pass(self, node: str, changed: Marks) -> None:
        if not self._mark(node, changed):
            changed[f"n:{node}"] = "was"
            self._enter(node, changed)

    def _fits(self, line: Line) -> bool:
        """Whether the line is one that its node's last choice leads along."""
        chosen = self._routes.get(line.start, [])
        if not line.routes or any(route in line.routes for route in chosen):
            return True
        if DEFAULT_ROUTE not in line.routes:
            return False
        others = [other for _, other in self._places.leaving[line.start] if other is not line]
        return not any(route in other.routes for other in others for route in chosen)

    def _guess_what_follows(self, node: str, changed: Marks) -> None:
        for key, line in self._places.leaving[node]:
            follows = self._places.nodes[line.end]
            if follows.kind in _AT_ONCE and not line.may and self._fits(line):
                changed[key], changed[f"n:{line.end}"] = "was", "now"
                self._works[line.end] = None
                self._guessed.add(line.end)

    # -- what an event tells

    def _tell_calls(self, node: str, event: Event, changed: Marks) -> None:
        for call in event.get_function_calls():
            called = (line.end for _, line in self._places.leaving[node] if line.may)
            agent = next((key for key in called if self._places.nodes[key].name == call.name), None)
            self._calls[call.id or ""] = key = f"n:{agent}" if agent else f"t:{node}/{call.name}"
            changed[key] = "now"
            if agent:
                self._enter(agent, changed)
        for response in event.get_function_responses():
            if (key := self._calls.get(response.id or "")) and key[2:] not in self._works:
                changed[key] = "was"

    def _settle(self, node: str, event: Event, changed: Marks) -> None:
        if event.partial:
            return
        if event.actions.route is not None:
            route = event.actions.route
            self._routes[node] = list(route) if isinstance(route, list) else [route]
        if event.error_code:
            self._leave(node, changed, "stopped" if event.error_code == STOPPED else "failed")
        elif event.long_running_tool_ids:
            self._waits.add(node)
            changed[f"n:{node}"] = "waits"
        elif event.is_final_response() and node not in self._waits:
            self._settled.add(node)
            self._leave(node, changed)
            self._guess_what_follows(node, changed)

    # -- how often

    def _count(self, steps: Sequence[tuple[str, int]], changed: Marks) -> None:
        for key, number in steps:
            if number > 1:
                changed[f"c:{key}"] = f"{number}x"
        node = steps[-1][0]
        if node in self._works:
            return
        for loop, order in self._orders(node):
            last = self._last.get(loop)
            again = last is not None and (order < last or (order == last and node in self._settled))
            self._last[loop] = order
            if again:
                self._passes[loop] = self._passes.get(loop, 1) + 1
                changed[f"c:{loop}"] = f"pass {self._passes[loop]}"
        self._settled.discard(node)

    def _orders(self, node: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Each loop around a node, with the node's place in the order of a pass."""
        way: list[tuple[Node, int]] = []
        for frame, inside, key in self._places.ways(node):
            if (number := self._places.turn(inside, key)) is None:
                return
            way.insert(0, (frame, number))
            if inside.kind == "loop":
                yield frame.key, tuple(place for _, place in _one_by_one(way))


def _says_nothing(event: Event) -> bool:
    return event.content is None and event.output is None and not event.error_code


def _one_by_one(way: Sequence[tuple[Node, int]]) -> Iterator[tuple[Node, int]]:
    """The places along a way down, as far as one follows after another."""
    for depth, (frame, place) in enumerate(way):
        if depth and (frame.inside is None or frame.inside.kind != "sequential"):
            return
        yield frame, place


def path_of(drawing: Drawing, events: Sequence[Event], history: Sequence[Event], status: str) -> Marks:
    """The marks at the end of a run; the same on every run, as they are made of the events alone.

    Args:
        drawing: Of the agent that was asked.
        events: Of the turn, oldest first, the user's included.
        history: The session before it, where the turn goes on with what was begun there.
        status: How the turn ended: `done`, `pending`, `cancelled` or `error`.
    """
    path, marks = VisitedPath(drawing), Marks()
    turns = [*_turns(_begun(history)), list(events)]
    for number, turn in enumerate(turns, 1):
        marks |= path.begin()
        for event in turn:
            marks |= path.feed(event)
        marks |= path.end(status if number == len(turns) else "pending")
    return marks


def _begun(history: Sequence[Event]) -> Sequence[Event]:
    """What belongs to the run that paused: all since the user's last message that answers nothing."""
    starts = [at for at, event in enumerate(history) if _is_users(event) and not event.get_function_responses()]
    return history[starts[-1] :] if starts else history


def _turns(events: Sequence[Event]) -> Iterator[list[Event]]:
    turn: list[Event] = []
    for event in events:
        if _is_users(event) and turn:
            yield turn
            turn = []
        turn.append(event)
    if turn:
        yield turn


def _is_users(event: Event) -> bool:
    return event.author == "user" and event.content is not None
