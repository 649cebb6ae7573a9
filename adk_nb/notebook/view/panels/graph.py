"""A team or a workflow drawn as SVG, and its panel, which marks the path of the run."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

from adk_nb.events.event import Event
from adk_nb.notebook.view.document import Block, Code, Fold, Lines, Picture, Section, Text, in_html, plain
from adk_nb.notebook.view.drawing import Drawing, Kind, drawing_of
from adk_nb.notebook.view.drawing_layout import ROW, Box, Layout, Point, Route, layout_of
from adk_nb.notebook.view.drawing_path import Marks, VisitedPath, path_of
from adk_nb.notebook.view.panels import Follower, Json, Panel, PanelRun, add
from adk_nb.notebook.view.plain_text import one_line

Shape = dict[str, Any]
"""`{"tag": "rect" | "path" | "text", "at": {attribute: value}, "text": str, "key": str}`. The key is `n:` and a node,
`t:` and a node with a tool, or `e:` and a frame with the number of a line. Two texts are empty at first: `s:` and a
node, its state; `c:` and a node, the count of its runs."""

_CORNERS: dict[Kind, int] = {"agent": 4, "team": 4, "function": 12, "tool": 15, "join": 15, "end": 13}
_FILL: dict[Kind, float] = {"end": 0.14}
_MIDDLE = {"text_anchor": "middle", "fill": "currentColor"}
_STATES = {"waits": ("⚠", "waits"), "was": ("✓", "done"), "failed": ("✗", "failed"), "stopped": ("■", "stopped")}
"""Mark of a node at the end of a run -> a sign, and the text for screen readers."""
_PATH = "#1e88e5"
_COLOURS = {"waits": "#c47a00", "failed": "#e0464e", "stopped": "currentColor"}
"""Contrast of at least 3:1 on a white and on a black page."""
_NONE: Mapping[str, str] = {}


def live_drawing(drawing: Drawing) -> dict[str, Any]:
    """The drawing for a live view: `title`, `kind`, `width`, `height` and `shapes`, as JSON."""
    layout = layout_of(drawing)
    size = {"width": round(layout.width), "height": round(layout.height)}
    return {"title": _title(drawing), "kind": drawing.kind, **size, "shapes": _shapes(layout)}


def picture(drawing: Drawing, marks: Mapping[str, str] = _NONE, text: str = "") -> Picture:
    """The drawing as a block.

    Args:
        drawing: The drawing.
        marks: The path of a run, as `drawing_path.Marks`.
        text: The drawing in the text form.
    """
    layout = layout_of(drawing)
    shapes = [_marked(shape, marks) for shape in _shapes(layout)]
    states = [_title(drawing)]
    for mark, (_, state) in _STATES.items():  # for screen readers
        names = [node.label for node, _ in drawing.walk() if node.kind != "end" and marks.get(f"n:{node.key}") == mark]
        if names:
            states.append(f"{state}: {', '.join(dict.fromkeys(names))}")
    title = "; ".join(states)
    drawn = [shape for shape in shapes if shape["tag"] != "text" or shape["text"]]
    return Picture(drawn, round(layout.width), round(layout.height), title, text)


def drawn(drawing: Drawing, tree: str, *lines: str) -> tuple[Block, ...]:
    """The picture, with a text tree below it.

    Args:
        drawing: The drawing; if it needs no picture only the tree is shown.
        tree: As `drawing.tree_of` returns it.
        lines: Text above the picture.
    """
    parts: tuple[Block, ...] = plain(Lines(tuple(tree.split("\n")))), in_html(Code(tree))
    if drawing.has_picture:
        parts = picture(drawing, text=tree), in_html(Fold("as text", (Code(tree),)))
    return (Section((*map(Text, lines), *parts)),)


def _title(drawing: Drawing) -> str:
    return f"{drawing.title}: {', '.join(node.label for node, _ in drawing.walk())}"


# ---- marks


def _marked(shape: Shape, marks: Mapping[str, str]) -> Shape:
    key, attributes = shape["key"], shape["at"]
    mark = marks.get(f"n:{key[2:]}" if key.startswith("s:") else key, "")
    if not mark:
        return shape
    if shape["tag"] == "text":
        text = _STATES[mark][0] if key.startswith("s:") and mark in _STATES else shape["text"]
        bold = {"font-weight": "600", "fill-opacity": "1"} if key.startswith(("s:", "c:", "t:")) else {}
        return {**shape, "at": {**attributes, **bold}, "text": mark if key.startswith("c:") else text}
    colour = _COLOURS.get(mark, _PATH)
    line = {"stroke": colour, "stroke-opacity": "1", "stroke-width": "2" if colour == _PATH else "2.5"}
    opaque = "1" if shape["tag"] == "path" else "0.14"
    filled = {} if attributes["fill"] == "none" or mark == "stopped" else {"fill": colour, "fill-opacity": opaque}
    return {**shape, "at": {**attributes, **line, **filled}}


# ---- shapes


def _shapes(layout: Layout, within: str = "") -> list[Shape]:
    """`within`: the key of the frame around it, and a slash."""
    shapes: list[Shape] = []
    for number, route in enumerate(layout.routes):
        key, line = f"e:{within}{number}", {"stroke_dasharray": "4 3"} if route.line.may else {}
        path = _rounded(route.points) if route.corners else _curved(route.points, route.gap)
        shapes.append(_shape("path", key, d=path, fill="none", stroke="currentColor", stroke_opacity=0.55, **line))
        shapes.append(_shape("path", key, d=_head(route), fill="currentColor", fill_opacity=0.7))
        if route.line.label:
            x, y = route.label_at
            shapes.append(_shape("text", key, route.line.label, x=x, y=y, font_size=11, **_MIDDLE))
    for box in layout.boxes:
        shapes += _box_shapes(box)
    return shapes


def _shape(tag: str, key: str, text: str = "", **attributes: Any) -> Shape:
    attributes = {name.rstrip("_").replace("_", "-"): _number(value) for name, value in attributes.items()}
    return {"tag": tag, "at": attributes, "text": one_line(text), "key": key}


def _number(value: Any) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def _box_shapes(box: Box) -> list[Shape]:
    node = box.node
    if node is None:
        return []
    key, edge = f"n:{node.key}", box.x - box.width / 2
    dashed = {"stroke_dasharray": "5 3"} if node.kind == "team" else {}
    filled = {"fill": "none"} if box.inside else {"fill": "currentColor", "fill_opacity": _FILL.get(node.kind, 0.05)}
    rect = _shape(
        "rect", key, x=edge, y=box.y, width=box.width, height=box.height, rx=_CORNERS[node.kind], stroke="currentColor",
        stroke_opacity=0.55, **filled, **dashed,
    )  # fmt: skip
    y = box.y + (17 if node.kind == "end" else 20)
    shapes = [rect, _shape("text", key, node.label, x=box.x, y=y, font_weight=600, **_MIDDLE)]
    if node.kind != "end":
        stands = {"y": box.y - 4, "font_size": 12, "fill": "currentColor"}
        shapes.append(_shape("text", f"s:{node.key}", "", x=edge + box.width - 2, text_anchor="end", **stands))
        shapes.append(_shape("text", f"c:{node.key}", "", x=edge + 2, **stands))
    lines = [(node.note, key)] if node.note and node.kind != "end" else []
    lines += [(f"⚙ {tool}", f"t:{node.key}/{tool}") for tool in node.tools]
    for number, (text, part) in enumerate(lines, 1):
        shapes.append(
            _shape("text", part, text, x=box.x, y=y + number * ROW, font_size=11, fill_opacity=0.8, **_MIDDLE)
        )
    return shapes + (_shapes(box.inside, f"{node.key}/") if box.inside else [])


def _coordinates(*points: Point) -> str:
    return " ".join(f"{_number(float(x))} {_number(float(y))}" for x, y in points)


def _curved(points: list[Point], gap: int | None = None) -> str:
    """`gap`: index of the point after which the line is interrupted up to the next point."""
    path = [f"M{_coordinates(points[0])}"]
    for number, ((x, y), (end_x, end_y)) in enumerate(itertools.pairwise(points)):
        if number == gap:
            path.append(f"M{_coordinates((end_x, end_y))}")
        elif x == end_x or y == end_y:
            path.append(f"L{_coordinates((end_x, end_y))}")
        else:
            middle = (y + end_y) / 2
            path.append(f"C{_coordinates((x, middle), (end_x, middle), (end_x, end_y))}")
    return "".join(path)


def _rounded(points: list[Point]) -> str:
    path = [f"M{_coordinates(points[0])}"]
    for start, corner, end in zip(points, points[1:], points[2:], strict=False):
        turn = min(8.0, math.dist(start, corner) / 2, math.dist(corner, end) / 2)
        path.append(
            f"L{_coordinates(_towards(corner, start, turn))}Q{_coordinates(corner, _towards(corner, end, turn))}"
        )
    return "".join([*path, f"L{_coordinates(points[-1])}"])


def _towards(start: Point, end: Point, distance: float) -> Point:
    """The point at `distance` from `start` on the line to `end`."""
    part = distance / (math.dist(start, end) or 1)
    return start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part


def _head(route: Route) -> str:
    """The head of an arrow, in the direction of the end of its line."""
    (x, y), (from_x, from_y) = route.points[-1], route.points[-2]
    if y == from_y:
        back = 8 if from_x > x else -8
        return f"M{_coordinates((x, y), (x + back, y - 4), (x + back, y + 4))}Z"
    back = 8 if from_y > y else -8
    return f"M{_coordinates((x, y), (x - 4, y + back), (x + 4, y + back))}Z"


class _Path(Follower):
    def __init__(self, run: PanelRun) -> None:
        self._drawing = drawing_of(run.agent) if run.agent else Drawing("")
        self._path = VisitedPath(self._drawing)
        self._is_drawn = not self._drawing.has_picture

    def begin(self) -> list[Json]:
        """Push the drawing at the first begin, and the marks."""
        drawn: list[Json] = [] if self._is_drawn else [{"op": "drawing", "drawing": live_drawing(self._drawing)}]
        self._is_drawn = True
        return drawn + self._marked(self._path.begin())

    def event(self, event: Event) -> list[Json]:
        """Push the marks that the event changes."""
        return self._marked(self._path.feed(event))

    def agent_begins(self, name: str, branch: str | None, path: str) -> list[Json]:
        """Mark the agent's node as at work."""
        return self._marked(self._path.agent_begins(name, branch, path))

    def agent_ends(self, name: str, branch: str | None, path: str) -> list[Json]:
        """Mark the agent's node as done."""
        return self._marked(self._path.agent_ends(name, path))

    def end(self, status: str) -> list[Json]:
        """Push the final marks."""
        return self._marked(self._path.end(status))

    def _marked(self, marks: Marks) -> list[Json]:
        return [{"op": "mark", "marks": marks}] if marks and self._drawing.has_picture else []


def _saved(run: PanelRun) -> tuple[Block, ...]:
    if not run.agent:
        return ()
    drawing = drawing_of(run.agent)
    return (picture(drawing, path_of(drawing, run.events, run.history, run.status)),)


add(
    Panel(
        name="graph",
        title="Graph",
        order=40,
        exists=lambda run: run.agent is not None and drawing_of(run.agent).has_picture,
        follow=_Path,
        saved=_saved,
    )
)
