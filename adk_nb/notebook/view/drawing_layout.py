"""The layout of a drawing: a chain from left to right if it fits, else layers from top to bottom.

Layers follow Sugiyama's method: reverse the lines that lead back, assign layers by longest path, order each layer by
the mean position of neighbours, then assign coordinates. Labels have layers of their own, so no line crosses them.
Source: Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system structures", 1981.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from unicodedata import east_asian_width

from adk_nb.notebook.view.drawing import Drawing, Line, Node

CHAR = 7.8
"""Width of a letter in a label, in pixels; an overestimate, so that text fits its box."""
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
"""From the middle of a label down to its baseline."""
_PORT = 12
"""From the middle of a box's side to a line that leads back."""
_TOP = -5
"""Above the inside of a frame, below its title."""
_ARROW = 34
"""Between the boxes of a chain."""
_WIDE = 560
"""Widest chain in pixels; a narrow page would shrink a wider one."""
_RETURN = 14
"""From the boxes of a loop down to the line that leads back."""
_LOOP = 22
"""From a box to the right end of a line that leads back to it."""
Point = tuple[float, float]


@dataclass(eq=False)
class Box:
    """The place of a node, or without a node that of a line or its label in a layer that the line passes."""

    node: Node | None
    layer: int
    inside: "Layout | None" = None
    """The layout within a frame, in coordinates of the whole drawing."""
    width: float = 2
    height: float = 0
    x: float = 0
    """The middle. While layers are ordered: the number within the layer."""
    y: float = 0
    """The top."""
    beside: float = 0
    """Width at the right for a line from the box to itself."""
    upper: "list[Box]" = field(default_factory=list["Box"])
    lower: "list[Box]" = field(default_factory=list["Box"])


@dataclass
class Route:
    """The points of a line, from its start to its end."""

    line: Line
    points: list[Point]
    back: bool = False
    """It closes a cycle."""
    corners: bool = False
    """True: straight pieces with rounded corners. False: a curve."""
    gap: int | None = None
    """Index of the point after which a label interrupts it."""
    label_at: Point = (0, 0)
    """The middle of its label's baseline."""


@dataclass
class Layout:
    """The places of all boxes and lines, in pixels from the upper left corner."""

    width: float
    height: float
    boxes: list[Box]
    routes: list[Route]

    def move(self, right: float, down: float) -> None:
        """Shift all places."""
        for box in self.boxes:
            box.x, box.y = box.x + right, box.y + down
            if box.inside:
                box.inside.move(right, down)
        for route in self.routes:
            route.points = [(x + right, y + down) for x, y in route.points]
            x, y = route.label_at
            route.label_at = (x + right, y + down)


def layout_of(drawing: Drawing) -> Layout:
    """The layout of a drawing; equal for equal drawings."""
    chain = _chain(drawing)
    if chain and chain.width <= _WIDE:
        return chain
    back = _leading_back(drawing)
    layer_of = _layers(drawing, back) if drawing.lines else _rows(drawing)
    layers: list[list[Box]] = [[] for _ in range(max(layer_of.values(), default=0) + 1)]
    boxes: dict[str, Box] = {}
    for key, node in drawing.nodes.items():
        boxes[key] = _box(node, layer_of[key])
        layers[layer_of[key]].append(boxes[key])
    tracks = [_track(line, boxes, layers, back=number in back) for number, line in enumerate(drawing.lines)]
    # Order each layer by the mean position of the neighbours above and below, in turns; then place the boxes.
    for layer in layers:
        _number(layer)
    for layer, means in _sweeps(layers):
        order = sorted(range(len(layer)), key=means.__getitem__)
        layer[:] = [layer[number] for number in order]
        _number(layer)
    for layer in layers:
        _apart(layer, [0.0] * len(layer))
    for layer, means in _sweeps(layers):
        _apart(layer, means)
    _stack(layers, gap=30 if drawing.lines else 16)
    for box in boxes.values():
        _move_inside(box)
    routes = [
        _route(line, track, back=n in back) for n, (line, track) in enumerate(zip(drawing.lines, tracks, strict=True))
    ]
    everything = [box for layer in layers for box in layer]
    left_edge = min((box.x - box.width / 2 for box in everything), default=0)
    right = max((box.x + box.width / 2 + box.beside for box in everything), default=0)
    bottom = max((box.y + box.height for box in everything), default=0)
    layout = Layout(right - left_edge + 6, bottom + 2, list(boxes.values()), routes)
    layout.move(2 - left_edge, 0)
    return layout


def text_width(text: str, char: float = CHAR) -> float:
    """Width of one line; East Asian letters are wider."""
    # fsum: `sum` of floats rounds differently from Python 3.12 on, and tests compare saved drawings
    return math.fsum(char * 1.8 if east_asian_width(letter) in "WF" else char for letter in text)


def _box(node: Node, layer: int) -> Box:
    small = [node.note, *(f"⚙ {tool}" for tool in node.tools)]
    width = max(64, text_width(node.label) + 2 * _PAD, *(text_width(text, SMALL) + 2 * _PAD for text in small))
    height = 30 + ROW * (bool(node.note) + len(node.tools))
    if node.kind == "end":
        width, height = text_width(node.label) + 2 * _PAD, 26
    if not node.inside or not node.inside.nodes:
        return Box(node, layer, None, width, height)
    inside = layout_of(node.inside)
    return Box(node, layer, inside, max(width, inside.width + 2 * _PAD), height + inside.height + _PAD)


def _move_inside(box: Box) -> None:
    if box.inside:
        box.inside.move(box.x - box.inside.width / 2, box.y + box.height - box.inside.height - _PAD + _TOP)


# ---- a chain


def _chain(drawing: Drawing) -> Layout | None:
    """The nodes from left to right, if each has a line to the next only, and the last perhaps one to the first."""
    keys = list(drawing.nodes)
    pairs = [(line.start, line.end) for line in drawing.lines]
    onward = list(itertools.pairwise(keys))
    loops = pairs == [*onward, (keys[-1], keys[0])] if onward else False
    forward = drawing.lines[: len(onward)]
    if not onward or not (loops or pairs == onward) or any(line.may or line.label for line in forward):
        return None
    boxes = [_box(node, layer) for layer, node in enumerate(drawing.nodes.values())]
    left_edge, height = 2.0, max(box.height for box in boxes)
    for box in boxes:
        box.x, box.y = left_edge + box.width / 2, 14 + (height - box.height) / 2
        left_edge += box.width + _ARROW
        _move_inside(box)
    middle = 14 + height / 2
    routes = [
        Route(line, [(start.x + start.width / 2, middle), (end.x - end.width / 2, middle)])
        for line, (start, end) in zip(forward, itertools.pairwise(boxes), strict=True)
    ]
    bottom = 14 + height + 2
    if loops:
        line, first, last, low = drawing.lines[-1], boxes[0], boxes[-1], bottom + _RETURN
        if text_width(line.label, SMALL) > last.x - first.x:
            return None
        points = [(last.x, last.y + last.height), (last.x, low), (first.x, low), (first.x, first.y + first.height)]
        label_at = (first.x + last.x) / 2, low + _LABEL_HEIGHT / 2 + _BASE + 2
        routes.append(Route(line, points, back=True, corners=True, label_at=label_at))
        bottom = low + _LABEL_HEIGHT + 2
    return Layout(left_edge - _ARROW + 4, bottom, boxes, routes)


# ---- layers


def _rows(drawing: Drawing) -> dict[str, int]:
    """Layers of nodes without lines: several short rows instead of a long one."""
    columns = max(_COLUMNS, math.ceil(math.sqrt(len(drawing.nodes))))
    return {key: number // columns for number, key in enumerate(drawing.nodes)}


def _leading_back(drawing: Drawing) -> set[int]:
    """Indices of the lines that close a cycle, found by depth-first search from the first node."""
    leaving: dict[str, list[tuple[int, str]]] = {}
    for number, line in enumerate(drawing.lines):
        leaving.setdefault(line.start, []).append((number, line.end))
    back, done, on_path = set[int](), set[str](), set[str]()
    for first in drawing.nodes:
        path = [(first, iter(leaving.get(first, ())))] if first not in done else []
        on_path.update(key for key, _ in path)
        while path:
            key, lines = path[-1]
            number, end = next(lines, (-1, ""))
            if number < 0:
                path.pop()
                on_path.discard(key)
                done.add(key)
            elif end in on_path:
                back.add(number)
            elif end not in done:
                on_path.add(end)
                path.append((end, iter(leaving.get(end, ()))))
    return back


def _layers(drawing: Drawing, back: set[int]) -> dict[str, int]:
    """Layer of each node: below all nodes that lead to it, with extra layers for labels and lines that lead back."""
    above: dict[str, list[str]] = {key: [] for key in drawing.nodes}
    for number, line in enumerate(drawing.lines):
        if number not in back:
            above[line.end].append(line.start)
    layer: dict[str, int] = {}
    for key in TopologicalSorter(above).static_order():
        layer[key] = max((layer[start] + 1 for start in above[key]), default=0)
    between = {layer[line.start] for number, line in enumerate(drawing.lines) if line.label and number not in back}
    turned = [drawing.lines[number] for number in back]
    between |= {layer[line.end] for line in turned if line.start != line.end}
    return {key: position + sum(label < position for label in between) for key, position in layer.items()}


def _track(line: Line, boxes: dict[str, Box], layers: list[list[Box]], *, back: bool) -> list[Box]:
    """The boxes of a line from top to bottom, one in each layer; the second is that of its label."""
    upper, lower = (boxes[line.end], boxes[line.start]) if back else (boxes[line.start], boxes[line.end])
    if upper is lower:
        upper.beside = _LOOP + 6 + text_width(line.label, SMALL)
        return [upper]
    track = [upper]
    for layer in range(upper.layer + 1, lower.layer):
        box = Box(None, layer)
        if line.label and len(track) == 1:
            box.width, box.height = text_width(line.label, SMALL), _LABEL_HEIGHT
        layers[layer].append(box)
        track.append(box)
    track.append(lower)
    for above, below in itertools.pairwise(track):
        above.lower.append(below)
        below.upper.append(above)
    return track


def _sweeps(layers: list[list[Box]]) -> Iterator[tuple[list[Box], list[float]]]:
    """The layers in alternating sweeps, down and up, each with the mean position of the neighbours of its boxes."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            neighbours = [(box.upper if down else box.lower) or [box] for box in layer]
            yield layer, [math.fsum(box.x for box in near) / len(near) for near in neighbours]


def _number(layer: list[Box]) -> None:
    for number, box in enumerate(layer):
        box.x = number


def _apart(layer: list[Box], goals: list[float]) -> None:
    """Place boxes as near to their goals as possible, in their order and without overlap.

    Boxes that would overlap are moved together, to the mean of their goals (pool adjacent violators).
    """
    offsets = [0.0]
    for neighbour, box in itertools.pairwise(layer):
        offsets.append(offsets[-1] + ((neighbour.width + box.width) / 2 + neighbour.beside + _GAP))
    pools: list[tuple[float, int]] = []  # sum of the goals, count
    for goal, offset in zip(goals, offsets, strict=False):
        total, count = goal - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            earlier_total, more = pools.pop()
            total, count = total + earlier_total, count + more
        pools.append((total, count))
    starts = [total / count for total, count in pools for _ in range(count)]
    for box, start, offset in zip(layer, starts, offsets, strict=False):
        box.x = start + offset


def _stack(layers: list[list[Box]], gap: int) -> None:
    """Assign heights to the layers. `gap`: between two layers of boxes."""
    top = 14.0  # room for the state and count above a box
    has_nodes = [any(box.node for box in layer) for layer in layers]
    for number, layer in enumerate(layers):
        height = max((box.height for box in layer), default=0)
        for box in layer:
            box.y = top + (height - box.height) / 2 if box.node else top
            box.height = box.height if box.node else height
        to_labels = not all(has_nodes[number : number + 2])
        top += height + (26 if not has_nodes[number] else 20 if to_labels else gap)


def _route(line: Line, track: list[Box], *, back: bool) -> Route:
    upper, lower = track[0], track[-1]
    if upper is lower:
        side, middle = upper.x + upper.width / 2, upper.y + upper.height / 2
        low, high, right = middle + _PORT / 2 - 1, middle + 1 - _PORT / 2, side + _LOOP
        label_at = right + 6 + text_width(line.label, SMALL) / 2, middle + _BASE
        return Route(line, [(side, low), (right, low), (right, high), (side, high)], True, True, None, label_at)
    points = [point for box in track for point in ((box.x, box.y), (box.x, box.y + box.height))][1:-1]
    x, y = points[1]
    gap = 1
    if back:
        points[0], points[-1] = _port(points[0], points[1]), _port(points[-1], points[-2])
        points.reverse()
        gap = len(points) - 3
    return Route(line, points, back, False, gap if line.label else None, (x, y + _LABEL_HEIGHT / 2 + _BASE))


def _port(end: Point, neighbour: Point) -> Point:
    """The end of a line that leads back: beside the middle, where lines that lead down end."""
    return end[0] + (-_PORT if neighbour[0] < end[0] else _PORT), end[1]
