"""Where the nodes and lines of a drawing go: a chain from left to right if it fits, else layers from top to bottom.

The method for layers is Sugiyama's: layers by longest path, order within a layer by the mean of the neighbours, then
places. The label of a line that leads down has a place of its own in a layer between, so that no other line crosses it.
Source: Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system structures", 1981.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from unicodedata import east_asian_width

from adk_nb.notebook.view.drawing import Drawing, Line, Node

CHAR = 7.8
"""Width of a letter at the size of a label, in pixels, rather too much than too little."""
SMALL = 6.3
ROW = 15
"""Height of each further line in a box."""
_PAD = 14
_GAP = 24
"""Between boxes side by side."""
_SWEEPS = 8
_COLUMNS = 5
_LABEL_HEIGHT = 15
_BASE = 4
"""From the middle of a label down to what its letters stand on."""
_PORT = 12
"""Between lines that lead to the same side of a box."""
_TOP = -5
"""Above what is inside a frame, below its title."""
_ARROW = 34
"""Between the boxes of a chain."""
_WIDE = 560
"""Pixels that a chain may take: more would be shrunk on a narrow page."""
_RETURN = 14
"""From the boxes of a loop down to the line that leads back."""
Point = tuple[float, float]


@dataclass
class Box:
    """A node's place; of a line that passes through a layer, or of its label there, a place without a node."""

    node: Node | None
    layer: int
    inside: "Layout | None" = None
    """Of a frame, at its place in the whole."""
    width: float = 2
    height: float = 0
    x: float = 0
    """Of the middle."""
    y: float = 0
    """Of the top."""
    rank: int = 0
    """Its place in its layer, from the left."""


@dataclass
class Route:
    """A line's places, from its start to its end."""

    line: Line
    points: list[Point]
    back: bool = False
    """It leads up, around the boxes between, at the right. If it leads down, its label stands in a gap between its
    second point and its third."""
    label_at: Point = (0, 0)
    """The middle of its label, on the line that the letters stand on."""


@dataclass
class Layout:
    """All places, in pixels from the upper left corner."""

    width: float
    height: float
    boxes: list[Box]
    routes: list[Route]

    def move(self, right: float, down: float) -> None:
        """Put all of it elsewhere."""
        for box in self.boxes:
            box.x, box.y = box.x + right, box.y + down
            if box.inside:
                box.inside.move(right, down)
        for route in self.routes:
            route.points = [(x + right, y + down) for x, y in route.points]
            x, y = route.label_at
            route.label_at = (x + right, y + down)


@dataclass
class _Grid:
    boxes: dict[str, Box]
    layers: list[list[Box]]
    before: dict[int, list[Box]] = field(default_factory=dict[int, list[Box]])
    after: dict[int, list[Box]] = field(default_factory=dict[int, list[Box]])

    def join(self, upper: Box, lower: Box) -> None:
        self.after.setdefault(id(upper), []).append(lower)
        self.before.setdefault(id(lower), []).append(upper)


def layout_of(drawing: Drawing) -> Layout:
    """Places for a drawing; equal for equal drawings."""
    chain = _chain_of(drawing)
    if chain and chain.width <= _WIDE:
        return chain
    back = _leading_back(drawing)
    layer = _with_labels(drawing, _layers(drawing, back), back) if drawing.lines else _rows(drawing)
    grid = _Grid({}, [[] for _ in range(max(layer.values(), default=0) + 1)])
    for key, node in drawing.nodes.items():
        box = grid.boxes[key] = _box(node, layer[key])
        grid.layers[layer[key]].append(box)
    passing = {number: _pass(grid, line) for number, line in enumerate(drawing.lines) if number not in back}
    _order(grid)
    _spread(grid)
    return _placed(drawing, grid, passing)


def text_width(text: str, char: float = CHAR) -> float:
    """Of one line; letters of East Asia are twice as wide."""
    # fsum: `sum` rounds in another way from Python 3.12 on, and saved drawings are compared
    return math.fsum(char * 1.8 if east_asian_width(letter) in "WF" else char for letter in text)


def _box(node: Node, layer: int) -> Box:
    width, height = _size(node)
    if not node.inside or not node.inside.nodes:
        return Box(node, layer, None, width, height)
    inside = layout_of(node.inside)
    return Box(node, layer, inside, max(width, inside.width + 2 * _PAD), height + inside.height + _PAD)


def _chain_of(drawing: Drawing) -> Layout | None:
    """The nodes from left to right, if each leads to the next alone, and the last perhaps back to the first."""
    keys = list(drawing.nodes)
    ways = [(line.start, line.end) for line in drawing.lines]
    onward = list(itertools.pairwise(keys))
    loops = ways == [*onward, (keys[-1], keys[0])] if onward else False
    forward = drawing.lines[: len(onward)]
    if not onward or not (loops or ways == onward) or any(line.may or line.label for line in forward):
        return None
    boxes = [_box(node, layer) for layer, node in enumerate(drawing.nodes.values())]
    left, height = 2.0, max(box.height for box in boxes)
    for box in boxes:
        box.x, box.y = left + box.width / 2, 14 + (height - box.height) / 2
        left += box.width + _ARROW
        _move_inside(box)
    middle = 14 + height / 2
    routes = [
        Route(line, [(start.x + start.width / 2, middle), (end.x - end.width / 2, middle)])
        for line, (start, end) in zip(forward, itertools.pairwise(boxes), strict=True)
    ]
    bottom = 14 + height + 2
    if loops:
        if text_width(drawing.lines[-1].label, SMALL) > boxes[-1].x - boxes[0].x:
            return None
        routes.append(_return(drawing.lines[-1], boxes[-1], boxes[0], bottom + _RETURN))
        bottom += _RETURN + _LABEL_HEIGHT + 2
    return Layout(left - _ARROW + 4, bottom, boxes, routes)


def _return(line: Line, last: Box, first: Box, low: float) -> Route:
    """The way below a chain, back to its first box."""
    points = [(last.x, last.y + last.height), (last.x, low), (first.x, low), (first.x, first.y + first.height)]
    return Route(line, points, back=True, label_at=((first.x + last.x) / 2, low + _LABEL_HEIGHT / 2 + _BASE + 2))


def _rows(drawing: Drawing) -> dict[str, int]:
    """Of nodes without lines: several rows rather than a long one."""
    columns = max(_COLUMNS, math.ceil(math.sqrt(len(drawing.nodes))))
    return {key: number // columns for number, key in enumerate(drawing.nodes)}


def _size(node: Node) -> tuple[float, float]:
    small = [node.note, *(f"⚙ {text}" for text in node.tools)]
    width = max(text_width(node.label), *(text_width(text, SMALL) for text in small)) + 2 * _PAD
    if node.kind == "end":
        return text_width(node.label) + 2 * _PAD, 26
    return max(64, width), 30 + ROW * (bool(node.note) + len(node.tools))


def _leading_back(drawing: Drawing) -> set[int]:
    """The lines that lead back to where one has come from, on a walk from the first node."""
    ways: dict[str, list[tuple[int, str]]] = {}
    for number, line in enumerate(drawing.lines):
        ways.setdefault(line.start, []).append((number, line.end))
    back, done, on_path = set[int](), set[str](), set[str]()
    for first in drawing.nodes:
        path = [(first, iter(ways.get(first, ())))] if first not in done else []
        on_path.update(key for key, _ in path)
        while path:
            key, left = path[-1]
            number, end = next(left, (-1, ""))
            if number < 0:
                path.pop()
                on_path.discard(key)
                done.add(key)
            elif end in on_path:
                back.add(number)
            elif end not in done:
                on_path.add(end)
                path.append((end, iter(ways.get(end, ()))))
    return back


def _layers(drawing: Drawing, back: set[int]) -> dict[str, int]:
    """Each node below all that lead to it."""
    ways: dict[str, list[str]] = {}
    wait = dict.fromkeys(drawing.nodes, 0)
    for number, line in enumerate(drawing.lines):
        if number not in back:
            ways.setdefault(line.start, []).append(line.end)
            wait[line.end] += 1
    layer = dict.fromkeys(drawing.nodes, 0)
    ready = [key for key, count in wait.items() if not count]
    for key in ready:
        for end in ways.get(key, ()):
            layer[end] = max(layer[end], layer[key] + 1)
            wait[end] -= 1
            if not wait[end]:
                ready.append(end)
    return layer


def _with_labels(drawing: Drawing, layer: dict[str, int], back: set[int]) -> dict[str, int]:
    """Another layer below each from which a line with a label leads down."""
    with_labels = {layer[line.start] for number, line in enumerate(drawing.lines) if line.label and number not in back}
    return {key: at + sum(label < at for label in with_labels) for key, at in layer.items()}


def _pass(grid: _Grid, line: Line) -> list[Box]:
    """The places of a line, one in each layer from its start to its end: the second is that of its label."""
    here, end = grid.boxes[line.start], grid.boxes[line.end]
    places = [here]
    for layer in range(here.layer + 1, end.layer):
        box = Box(None, layer)
        if line.label and len(places) == 1:
            box.width, box.height = text_width(line.label, SMALL), _LABEL_HEIGHT
        grid.layers[layer].append(box)
        places.append(box)
    places.append(end)
    for upper, lower in itertools.pairwise(places):
        grid.join(upper, lower)
    return places


def _order(grid: _Grid) -> None:
    """Put each box below the mean of those it hangs on, and above the mean of those that hang on it, in turns."""
    for layer in grid.layers:
        for rank, box in enumerate(layer):
            box.rank = rank
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in grid.layers if down else reversed(grid.layers):
            near = grid.before if down else grid.after
            means = {id(box): _mean([neighbour.rank for neighbour in near.get(id(box), ())], box.rank) for box in layer}
            layer.sort(key=lambda box, means=means: means[id(box)])
            for rank, box in enumerate(layer):
                box.rank = rank


def _spread(grid: _Grid) -> None:
    for layer in grid.layers:
        _apart(layer, [0.0] * len(layer))
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = grid.before if down else grid.after
        for layer in grid.layers if down else reversed(grid.layers):
            wanted = [_mean([neighbour.x for neighbour in near.get(id(box), ())], box.x) for box in layer]
            _apart(layer, wanted)


def _mean(near: Sequence[float], own: float) -> float:
    return math.fsum(near) / len(near) if near else own


def _apart(layer: list[Box], wanted: list[float]) -> None:
    """Put boxes as near as may be to where each is wanted, in their order, none touching another.

    Those that would touch are moved as one, to the mean of where they are wanted (pool adjacent violators).
    """
    offsets: list[float] = []
    at = 0.0
    for left, box in zip([None, *layer], layer, strict=False):
        at += (left.width + box.width) / 2 + _GAP if left else 0
        offsets.append(at)
    pools: list[tuple[float, int]] = []  # sum of what is wanted, how many
    for want, offset in zip(wanted, offsets, strict=True):
        total, count = want - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, more = pools.pop()
            total, count = total + before, count + more
        pools.append((total, count))
    starts = [total / count for total, count in pools for _ in range(count)]
    for box, start, offset in zip(layer, starts, offsets, strict=True):
        box.x = start + offset


def _placed(drawing: Drawing, grid: _Grid, passing: dict[int, list[Box]]) -> Layout:
    top = 14.0  # above a box stands how it does
    has_nodes = [any(box.node for box in layer) for layer in grid.layers]
    for number, layer in enumerate(grid.layers):
        height = max((box.height for box in layer), default=0)
        for box in layer:
            box.y = top + (height - box.height) / 2 if box.node else top
            box.height = box.height if box.node else height
        to_labels = not all(has_nodes[number : number + 2])
        top += height + (26 if not has_nodes[number] else 20 if to_labels else 30 if drawing.lines else 16)
    around = _around(drawing, grid, passing)
    routes = [
        _route(line, passing[number]) if number in passing else around[number]
        for number, line in enumerate(drawing.lines)
    ]
    boxes = list(grid.boxes.values())
    for box in boxes:
        _move_inside(box)
    left, right = _sides([box for layer in grid.layers for box in layer], routes)
    reach = [y for route in routes for _, y in route.points]
    bottom = max([*reach, *(box.y + box.height for box in boxes)], default=0) + 2
    layout = Layout(right - left + 6, bottom, boxes, routes)
    layout.move(2 - left, 0)
    return layout


def _move_inside(box: Box) -> None:
    if box.inside:
        box.inside.move(box.x - box.inside.width / 2, box.y + box.height - box.inside.height - _PAD + _TOP)


def _sides(boxes: Sequence[Box], routes: Sequence[Route]) -> tuple[float, float]:
    """How far all of it goes to the left and to the right."""
    reach = [(box.x - box.width / 2, box.x + box.width / 2) for box in boxes]
    reach += [(x, x) for route in routes for x, _ in route.points]
    for route in routes:
        x, half = route.label_at[0], text_width(route.line.label, SMALL) / 2
        reach += [(x - half, x + half)] if route.line.label else []
    return min((left for left, _ in reach), default=0), max((right for _, right in reach), default=0)


def _route(line: Line, places: list[Box]) -> Route:
    points: list[Point] = []
    for box in places:
        if box is not places[0]:
            points.append((box.x, box.y))
        if box is not places[-1]:
            points.append((box.x, box.y + box.height))
    x, y = points[1]
    return Route(line, points, label_at=(x, y + _LABEL_HEIGHT / 2 + _BASE))


def _around(drawing: Drawing, grid: _Grid, passing: dict[int, list[Box]]) -> dict[int, Route]:
    """The ways up at the right of all that is between: the longer a way, the further out its lane."""
    back = {number: line for number, line in enumerate(drawing.lines) if number not in passing}
    ends = {number: _ends(line, grid, back.values()) for number, line in back.items()}
    levels = {number: (high[0][1], low[-1][1]) for number, (low, high) in ends.items()}
    routes: dict[int, Route] = {}
    taken: list[tuple[float, float, float]] = []  # top, bottom, how far to the right
    for number in sorted(back, key=lambda number: levels[number][1] - levels[number][0]):
        line, (low, high), (top, bottom) = back[number], ends[number], levels[number]
        between = grid.layers[grid.boxes[line.end].layer : grid.boxes[line.start].layer + 1]
        lane = max(box.x + box.width / 2 for layer in between for box in layer) + 22
        middle = _free(top, bottom, [y for other in back if other != number for y in levels[other]])
        reach = min(top, middle - _PORT), max(bottom, middle + _PORT)
        lane = max([lane, *(right + 10 for above, below, right in taken if above < reach[1] and below > reach[0])])
        width = text_width(line.label, SMALL)
        taken.append((*reach, lane + (6 + width if line.label else 0)))
        points = [*low, (lane, bottom), (lane, top), *high]
        routes[number] = Route(line, points, back=True, label_at=(lane + 6 + width / 2, middle + _BASE))
    return routes


def _free(top: float, bottom: float, others: Sequence[float]) -> float:
    """A level as near as may be to the middle, at which no other line leads to the right."""
    middle = (top + bottom) / 2
    steps = [sign * 4 * step for step in range(int((bottom - top) / 8) + 1) for sign in (-1, 1)]
    return next((middle + by for by in steps if all(abs(middle + by - y) >= _PORT - 2 for y in others)), middle)


def _ends(line: Line, grid: _Grid, back: Iterable[Line]) -> tuple[list[Point], list[Point]]:
    """The points of a way up before its lane, and those after it. Past boxes beside it, it leads below its start, and
    above its end.
    """
    low, high = grid.boxes[line.start], grid.boxes[line.end]
    leaving, coming = _shifts(line.start, back)[0], _shifts(line.end, back)[1]
    if low is high:
        leaving, coming = _PORT / 2 - 1, 1 - _PORT / 2
    start = [(low.x + low.width / 2, low.y + low.height / 2 + leaving)]
    if _is_beside(low, grid):
        start = [(low.x + _PAD, low.y + low.height), (low.x + _PAD, _bottom(low, grid) + 9)]
    end = [(high.x + high.width / 2, high.y + high.height / 2 + coming)]
    if _is_beside(high, grid):
        above = min(box.y for box in grid.layers[high.layer] if box.node)
        end = [(high.x + _PAD, above - 12), (high.x + _PAD, high.y)]
    return start, end


def _shifts(key: str, back: Iterable[Line]) -> tuple[float, float]:
    """How far from the middle of a box's side ways up leave it, and come to it."""
    uses = {
        ("leaves" if line.end != key else "stays") if line.start == key else "comes"
        for line in back
        if key in (line.start, line.end)
    }
    return (-_PORT, _PORT) if len(uses) > 1 else (0, 0)


def _is_beside(box: Box, grid: _Grid) -> bool:
    """Whether another box stands at its right."""
    return any(other.node and other.rank > box.rank for other in grid.layers[box.layer])


def _bottom(box: Box, grid: _Grid) -> float:
    return max(other.y + other.height for other in grid.layers[box.layer] if other.node)
