"""The path of a run through a drawing: nodes at work, paused or failed, lines taken, and counts of both."""

import itertools
from collections.abc import Callable, Iterator, Sequence

from adk_nb.events.event import Event
from adk_nb.notebook.view.drawing import Drawing, Line, Node
from adk_nb.runtime.branches import is_under
from adk_nb.runtime.cancellation import INVOCATION_ABORTED
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START

Likely = Callable[[Sequence[str]], str]
"""Chooses one of several namesakes, by their keys."""


class Places:
    """The nodes of a drawing with their lines and frames."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._around: dict[str, Node | None] = {}
        self.nodes: dict[str, Node] = {}
        """By key, including nodes inside frames."""
        self.leading: dict[str, list[tuple[str, Line]]] = {}
        """Key of a node -> the lines that lead to it, each with the key of its shape."""
        self.leaving: dict[str, list[tuple[str, Line]]] = {}
        self.frames: list[tuple[str, Drawing]] = []
        """Key and inside of each frame, innermost first."""
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

    def find(self, author: str, path: str, likely: Likely) -> list[tuple[str, int]]:
        """The node of an event after the frames around it, outermost first, each with the number of its run.

        The number is 1 if it is unknown. Empty: the node is not in the drawing.
        """
        steps = [_step(step) for step in path.split("/")] if path else []
        drawing, key, numbers = self._drawing, None, dict[str, int]()
        if self._drawing.kind == "workflow":
            steps = steps[1:]
        elif steps and (frames := [frame for frame, _ in self.frames if self.nodes[frame].name == steps[0][0]]):
            key = likely(frames)
            drawing, steps = self.nodes[key].inside or drawing, steps[1:]
        for name, number in steps:
            match = next((node_key for node_key, node in drawing.nodes.items() if node.name == name), None)
            if match is None:
                break
            key, numbers[match] = match, number
            if not (inside := self.nodes[match].inside):
                break
            drawing = inside
        if key is None or self.nodes[key].inside:
            namesakes = [node.key for node, _ in drawing.walk() if node.name == author and node.kind != "end"]
            key = likely(namesakes) if namesakes else key
        if key is None:
            return []
        frames = [frame.key for frame, _, _ in self.frames_around(key)][::-1]
        return [(node, numbers.get(node, 1)) for node in (*frames, key)]

    def frames_around(self, key: str) -> Iterator[tuple[Node, Drawing, str]]:
        """Each frame around a node, innermost first, with its inside, and the key of the node or frame in that."""
        while (frame := self._around[key]) and frame.inside:
            yield frame, frame.inside, key
            key = frame.key

    def around(self, key: str) -> Iterator[Drawing]:
        """The drawings around a node, innermost first."""
        for _, inside, _ in self.frames_around(key):
            yield inside
        yield self._drawing

    def start_of(self, drawing: Drawing) -> str | None:
        """Key of the START of a graph. None: the drawing is not of a graph."""
        first = next(iter(drawing.nodes.values()), None)
        return first.key if first and first.kind == "end" and first.name == START else None

    def leads_back(self, line: Line) -> bool:
        """True for the line with which a loop begins again."""
        frame = self._around[line.start]
        return bool(frame and frame.inside and frame.inside.kind == "loop" and not line.may and line.label)

    def turn(self, inside: Drawing, key: str) -> int | None:
        """Number of a member in its team. None: a member calls it."""
        if any(line.may for _, line in self.leading[key]):
            return None
        return list(inside.nodes).index(key)


def _step(step: str) -> tuple[str, int]:
    name, _, number = step.partition("@")
    return name, int(number) if number.isdecimal() else 1


Marks = dict[str, str]
"""Key of a shape -> `now`, `waits`, `was`, `failed` or `stopped`; shapes without a mark were not reached. `c:` and the
key of a node -> the count of its runs, as text."""
_SILENT = ("function", "tool")
"""Kinds of nodes that do not report when they begin, as agents do."""


class VisitedPath:
    """Follows the events of a run, and the begin and end of each agent. Each method returns the changed marks."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._places = Places(drawing)
        self._marks: Marks = {}
        self._works: dict[str, str | None] = {}
        """Nodes at work -> their branch."""
        self._guessed: set[str] = set()
        """Nodes assumed to be at work, since they follow a node that has ended."""
        self._waits: set[str] = set()
        """Nodes with an open interrupt, whatever other results come in."""
        self._settled: set[str] = set()
        """Nodes with a final answer."""
        self._calls: dict[str, str] = {}
        """Call id -> the key of its tool or agent."""
        self._routes: dict[str, list[object]] = {}
        """Node -> the routes of its last choice."""
        self._last: dict[str, tuple[int, ...]] = {}
        """Key of a loop -> the position of its last member at work."""
        self._passes: dict[str, int] = {}

    def begin(self) -> Marks:
        """The run begins, or resumes."""
        self._waits.clear()
        changed: Marks = {}
        if not self._marks and (start := self._places.start_of(self._drawing)):
            changed[f"n:{start}"] = "was"
            self._guess_what_follows(start, changed)
        return self._new(changed)

    def agent_begins(self, name: str, branch: str | None, path: str) -> Marks:
        """An agent begins. `path`: of the graph's node that runs it, if there is one."""
        if not (steps := self._steps(name, path)):
            return {}
        changed: Marks = {}
        self._work(steps, branch, changed)
        return self._new(changed)

    def agent_ends(self, name: str, path: str) -> Marks:
        """An agent has ended, or pauses."""
        steps = self._steps(name, path)
        changed: Marks = {}
        if steps and (node := steps[-1][0]) in self._works and self._marks.get(f"n:{node}") == "now":
            self._leave(node, changed)
        return self._new(changed)

    def feed(self, event: Event) -> Marks:
        """Take in an event; most change no marks."""
        steps = self._places.find(event.author, event.node_info.path, self._likely)
        if not steps:
            return {}
        node = steps[-1][0]
        if event.partial and self._marks.get(f"n:{node}") == "now":
            return {}
        if node in self._settled and event.content is None and event.output is None and not event.error_code:
            return {}  # a callback wrote to the state after the node's answer
        changed: Marks = {}
        if self._places.nodes[node].inside:
            if event.error_code:
                changed[f"n:{node}"] = "failed"
            return self._new(changed)
        self._work(steps, event.branch, changed)
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
        self._settle(node, event, changed)
        return self._new(changed)

    def end(self, status: str) -> Marks:
        """The run has ended; at a pause, the nodes with open interrupts are still at work."""
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
        for frame, inside in self._places.frames:  # a frame is marked as its inside
            marks = {self._mark(key, changed) for key in inside.nodes} - {None}
            if not marks or (self._mark(frame, changed) == "failed" and "now" not in marks):
                continue
            mark = next((mark for mark in ("now", "waits", "failed", "stopped") if mark in marks), "was")
            changed[f"n:{frame}"] = mark
            if mark == "was":
                self._enter_end(inside, changed)
        changed = {key: mark for key, mark in changed.items() if self._marks.get(key) != mark}
        self._marks |= changed
        return changed

    def _mark(self, node: str, changed: Marks) -> str | None:
        return changed.get(f"n:{node}") or self._marks.get(f"n:{node}")

    def _steps(self, agent: str, path: str) -> list[tuple[str, int]]:
        """The frames and the node of an agent; empty for a team, since its members report their work."""
        steps = self._places.find(agent, path, self._likely)
        return [] if not steps or self._places.nodes[steps[-1][0]].inside else steps

    def _likely(self, keys: Sequence[str]) -> str:
        """Of several nodes with one name, the one at work, else the first that was not reached, else the last."""
        at_work = [key for key in keys if key in self._works]
        return next(iter(at_work or [key for key in keys if f"n:{key}" not in self._marks]), keys[-1])

    # -- nodes at work

    def _work(self, steps: Sequence[tuple[str, int]], branch: str | None, changed: Marks) -> None:
        """Mark a node as at work. `steps`: as `Places.find` returns them."""
        node = steps[-1][0]
        self._count(steps, changed)
        for frame, _ in steps[:-1]:
            if self._mark(frame, changed) != "now":
                self._enter(frame, changed)
                changed[f"n:{frame}"] = "now"
        for drawing in self._places.around(node):
            if start := self._places.start_of(drawing):
                changed[f"n:{start}"] = "was"
        # Nodes before it on the same branch are done.
        lines = self._places.leading[node]
        for earlier, its_branch in list(self._works.items()):
            if earlier in self._guessed:
                over = any(line.start == earlier for _, line in lines)
            else:
                over = is_under(branch, its_branch) or is_under(its_branch, branch)
            calls = any(line.start == earlier and line.label == "calls" for _, line in lines)
            if over and earlier != node and not calls and earlier not in self._waits:
                self._leave(earlier, changed)
        if node not in self._works:
            self._enter(node, changed)
        self._works[node] = branch
        self._guessed.discard(node)
        changed[f"n:{node}"] = "waits" if node in self._waits else "now"

    def _leave(self, node: str, changed: Marks, mark: str = "was") -> None:
        del self._works[node]
        self._guessed.discard(node)
        changed[f"n:{node}"] = mark

    def _enter(self, node: str, changed: Marks) -> None:
        """Mark the lines that may have led to a node."""
        lines = self._places.leading[node]
        only = lines[0][1] if len(lines) == 1 else None
        passed = only and not only.may and not self._places.leads_back(only)
        if only and passed and self._places.nodes[node].name != END:
            self._pass(only.start, changed)  # that node may not have reported its begin
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
        """True if the route that its start node chose last leads along the line."""
        chosen = self._routes.get(line.start, [])
        if not line.routes or any(route in line.routes for route in chosen):
            return True
        if DEFAULT_ROUTE not in line.routes:
            return False
        siblings = [sibling for _, sibling in self._places.leaving[line.start] if sibling is not line]
        return not any(route in sibling.routes for sibling in siblings for route in chosen)

    def _guess_what_follows(self, node: str, changed: Marks) -> None:
        for key, line in self._places.leaving[node]:
            follows = self._places.nodes[line.end]
            if follows.kind in _SILENT and not line.may and self._fits(line):
                changed[key], changed[f"n:{line.end}"] = "was", "now"
                self._works[line.end] = None
                self._guessed.add(line.end)

    # -- events

    def _settle(self, node: str, event: Event, changed: Marks) -> None:
        if event.partial:
            return
        if event.actions.route is not None:
            route = event.actions.route
            self._routes[node] = list(route) if isinstance(route, list) else [route]
        if event.error_code:
            self._leave(node, changed, "stopped" if event.error_code == INVOCATION_ABORTED else "failed")
        elif event.long_running_tool_ids:
            self._waits.add(node)
            changed[f"n:{node}"] = "waits"
        elif event.is_final_response() and node not in self._waits:
            self._settled.add(node)
            self._leave(node, changed)
            self._guess_what_follows(node, changed)

    # -- counts

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
        """Each loop around a node, with the node's position within a pass."""
        kinds, numbers = list[str](), list[int]()
        for frame, inside, key in self._places.frames_around(node):
            if (number := self._places.turn(inside, key)) is None:
                return
            # below the loop, the order is known as far down as all teams are sequential
            ordered = list(itertools.takewhile(lambda kind: kind == "sequential", kinds))
            kinds.insert(0, inside.kind)
            numbers.insert(0, number)
            if inside.kind == "loop":
                yield frame.key, tuple(numbers[: len(ordered) + 1])


def path_of(drawing: Drawing, events: Sequence[Event], history: Sequence[Event], status: str) -> Marks:
    """The marks at the end of a run, from its events alone, so that they are the same in every kernel.

    Args:
        drawing: The drawing of the turn's agent.
        events: The turn's events, oldest first, the user's included.
        history: The session before the turn, if the turn resumes a run; else empty.
        status: `done`, `pending`, `cancelled` or `error`.
    """
    path, marks = VisitedPath(drawing), Marks()
    # The run that is paused: since the user's last message that answers no interrupt.
    starts = [number for number, event in enumerate(history) if _is_users(event) and not event.get_function_responses()]
    turns = [*_turns(history[starts[-1] :] if starts else history), list(events)]
    for number, turn in enumerate(turns, 1):
        marks |= path.begin()
        for event in turn:
            marks |= path.feed(event)
        marks |= path.end(status if number == len(turns) else "pending")
    return marks


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
