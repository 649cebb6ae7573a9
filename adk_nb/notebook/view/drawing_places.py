"""Where in a drawing something happens: who said it, and for which node of a graph, as a way through its frames."""

from collections.abc import Callable, Iterator, Sequence

from adk_nb.notebook.view.drawing import Drawing, Line, Node
from adk_nb.workflow.graph import START

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
        elif steps and (found := [one for one, _ in self.frames if self.nodes[one].name == steps[0][0]]):
            key = likely(found)
            here, steps = self.nodes[key].inside or here, steps[1:]
        for name, number in steps:
            found = next((one for one, node in here.nodes.items() if node.name == name), None)
            if found is None:
                break
            key, numbers[found] = found, number
            if not (inside := self.nodes[found].inside):
                break
            here = inside
        if key is None or self.nodes[key].inside:
            named = [node.key for node, _ in here.walk() if node.name == author and node.kind != "end"]
            key = likely(named) if named else key
        if key is None:
            return []
        frames = [frame.key for frame, _, _ in self.ways(key)][::-1]
        return [(one, numbers.get(one, 1)) for one in (*frames, key)]

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
