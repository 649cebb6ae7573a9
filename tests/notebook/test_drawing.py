"""Agents, teams and workflows draw themselves."""

import itertools
import re
from collections.abc import Iterator
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from IPython.core.interactiveshell import InteractiveShell

from adk_nb.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.events.event import Event
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.view.drawing import Drawing, Line, Node, drawing_of, tree_of
from adk_nb.notebook.view.drawing_layout import CHAR, SMALL, Layout, layout_of, text_width
from adk_nb.notebook.view.panels.graph import drawn, live_drawing, picture
from adk_nb.notebook.view.writers import html
from adk_nb.tools import AgentTool, FunctionTool
from adk_nb.workflow import DEFAULT_ROUTE, START, Edge, JoinNode, Workflow, node
from adk_nb.workflow.function_node import FunctionNode
from tests.notebook.conftest import Shell
from tests.support.each import each
from tests.support.hostile_texts import PAYLOADS


def svg(drawing: Drawing) -> str:
    return html.write([picture(drawing)])


SVG = "{http://www.w3.org/2000/svg}"
TAGS = {f"{SVG}{tag}" for tag in ("svg", "rect", "path", "text", "tspan")}
_PLACED = "role aria-label viewBox width height style x y rx d text-anchor font-family font-size font-weight"
ATTRIBUTES = {*_PLACED.split(), "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-dasharray"}


def look(city: str) -> str:
    """Looks."""
    return f"{city}: sunny"


def agent(name: str, *answers: object, **kwargs: object) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*(answers or ("done",))), **kwargs)


def team() -> SequentialAgent:
    refine = LoopAgent(
        name="refine", max_iterations=2, sub_agents=[agent("draft", "a", "b"), agent("review", "c", "d")]
    )
    sub_agent = ParallelAgent(
        name="both", sub_agents=[agent("weather", call("look", city="Oslo"), "sun", tools=[look]), agent("news")]
    )
    return SequentialAgent(name="pipeline", sub_agents=[refine, sub_agent, agent("editor")])


def choose(node_input: object) -> Event:
    return Event(output="x", route="ok")


def flow() -> Workflow:
    draft, join = agent("draft"), JoinNode(name="join")
    edges = [
        ("START", draft, choose, {"revise": draft, "ok": (agent("left"), agent("right")), "no": "END"}),
        (("left", "right"), join),
    ]
    remaining, right = edges[0][3]["ok"]
    return Workflow(name="flow", edges=[edges[0], ((remaining, right), join, agent("last"), "END")])


def framed(drawing: Drawing) -> dict[str, list[str]]:
    """Frame -> the arrows inside it."""
    return {node.key: arrows(node.inside) for node, _ in drawing.walk() if node.inside}


def arrows(drawing: Drawing) -> list[str]:
    return [
        f"{line.start} -{line.label}-> {line.end}" if line.label else f"{line.start} -> {line.end}"
        for line in drawing.lines
    ]


# ---- what is drawn


def test_a_team_is_drawn_as_the_ways_its_kinds_lead() -> None:
    drawing = drawing_of(team())

    assert {node.key: (node.kind, node.note) for node, _ in drawing.walk()} == {
        "pipeline": ("team", "sequential"),
        "refine": ("team", "loop, at most " + "2 times"),
        "draft": ("agent", "scripted"),
        "review": ("agent", "scripted"),
        "both": ("team", "parallel"),
        "weather": ("agent", "scripted"),
        "news": ("agent", "scripted"),
        "editor": ("agent", "scripted"),
    }
    assert framed(drawing) == {
        "pipeline": ["refine -> both", "both -> editor"],
        "refine": ["draft -> review", "review -again-> draft"],
        "both": [],
    }


def test_a_workflow_or_a_team_in_a_workflow_is_a_frame_with_its_own_nodes() -> None:
    refine = LoopAgent(name="refine", max_iterations=2, sub_agents=[agent("draft"), agent("review")])
    outer = Workflow(name="outer", edges=[("START", agent("plan"), flow(), refine, "END")])
    drawing = drawing_of(outer)
    text = drawing.mermaid

    assert arrows(drawing) == ["START -> plan", "plan -> flow", "flow -> refine", "refine -> END"]
    inside = drawing.nodes["flow"].inside
    assert inside is not None
    assert "choose -ok-> left" in arrows(inside)
    assert framed(drawing)["refine"] == ["draft' -> review", "review -again-> draft'"]  # its own, beside the flow's
    assert [node.name for node in inside.nodes.values()][:2] == ["START", "draft"]
    lines = [line.strip() for line in text.splitlines()]
    assert lines[lines.index('subgraph n2["flow<br/>workflow"]') + 1] == 'n3(("START"))'
    assert text.count("    end\n") == 2
    assert "END" in svg(drawing)


def test_agents_that_are_called_as_tools_are_drawn_once_even_if_they_call_each_other() -> None:
    sub_agent = agent("one")
    other_agent = agent("other", tools=[AgentTool(sub_agent)])
    sub_agent.tools = [look, AgentTool(other_agent)]

    drawing = drawing_of(sub_agent)

    assert sorted(arrows(drawing)) == ["one -calls-> other", "other -calls-> one"]
    assert drawing.nodes["one"].tools == ("look",)


def test_an_agent_has_its_tools_in_its_box_and_dashed_lines_to_those_it_may_hand_over_to() -> None:
    drawing = drawing_of(agent("guide", tools=[look], sub_agents=[agent("other")]))

    assert drawing.nodes["guide"].tools == ("look",)
    assert drawing.lines == [Line("guide", "other", may=True)]


def test_a_workflow_is_drawn_with_its_routes_and_its_ends() -> None:
    drawing = drawing_of(flow())

    assert [*drawing.nodes] == ["START", "draft", "choose", "left", "right", "join", "last", "END"]
    assert "choose -revise-> draft" in arrows(drawing)
    assert "choose -no-> END" in arrows(drawing)
    assert "last -> END" in arrows(drawing)
    assert (drawing.nodes["choose"].kind, drawing.nodes["join"].kind) == ("function", "join")


def test_who_is_called_and_what_runs_for_each_item_says_so() -> None:
    guide = agent("guide", sub_agents=[agent("other", mode="single_turn")])
    workflow = Workflow(name="each", edges=[("START", node(look, parallel_worker=True))])

    assert arrows(drawing_of(guide)) == ["guide -calls-> other"]
    assert drawing_of(workflow).nodes["look"].note.startswith("function, ")


def test_the_tree_says_the_same_in_text() -> None:
    assert tree_of(team(), lambda name: "v2" if name == "refine" else "") == (
        "pipeline (sequential)\n"
        "├─ refine (loop, at most 2 times) v2\n"
        "│  ├─ draft (scripted)\n"
        "│  └─ review (scripted)\n"
        "├─ both (parallel)\n"
        "│  ├─ weather (scripted)  tools: look\n"
        "│  └─ news (scripted)\n"
        "└─ editor (scripted)"
    )
    head, *edges = tree_of(flow()).splitlines()[3].split(" -")
    assert (head, edges) == (
        "├─ choose (function)",
        ["[revise]-> draft,", "[ok]-> left,", "[ok]-> right,", "[no]-> END"],
    )


def test_several_routes_between_two_nodes_are_one_way_with_all_their_words() -> None:
    mend, ask = agent("mend"), agent("ask")
    edges = [
        ("START", choose, {"pothole": mend, "no": "END", "crack": mend, "lamp": ask, DEFAULT_ROUTE: "END"}),
        Edge(from_node=choose, to_node=ask),
        (ask, "END"),
    ]
    roads = Workflow(name="roads", edges=edges)
    drawing = drawing_of(roads)

    assert arrows(drawing)[1:] == [
        f"choose {arrow}" for arrow in ("-pothole, crack-> mend", "-always, lamp-> ask", "-no, otherwise-> END")
    ] + ["ask -> END"]
    assert svg(drawing).count(">pothole, crack</text>") == 1
    assert '-->|"pothole, crack"| ' in drawing.mermaid
    head, *edges = tree_of(roads).splitlines()[2].split(" -")
    assert head == "├─ choose (function)"
    assert edges == ["[pothole, crack]-> mend,", "[always, lamp]-> ask,", "[no, otherwise]-> END"]


def test_a_node_is_noted_by_its_kind_or_the_name_of_its_own_public_class() -> None:
    class Sorter(FunctionNode):
        pass

    class _Private(FunctionNode):
        pass

    def sort(node_input: str) -> str:
        return node_input

    def note(cls: type[FunctionNode]) -> str:
        workflow = Workflow(name="flow", edges=[(START, cls(func=sort, name="sort"))])
        return drawing_of(workflow).nodes["sort"].note

    assert [note(cls) for cls in (FunctionNode, Sorter, _Private)] == ["function", "Sorter", "function"]


def test_mermaid_is_an_extra() -> None:
    text = drawing_of(flow()).mermaid

    assert text.startswith('flowchart TD\n    n0(("START"))')
    assert '    n2 -->|"revise"| n1' in text


# ---- where it goes


def layouts(layout: Layout) -> Iterator[Layout]:
    """It, and those inside its frames."""
    yield layout
    for box in layout.boxes:
        if box.inside:
            yield from layouts(box.inside)


def test_boxes_do_not_touch_and_lines_lead_down_but_for_those_that_lead_back() -> None:
    labels = []
    for drawing in (drawing_of(team()), drawing_of(flow())):
        whole = layout_of(drawing)
        for layout in layouts(whole):
            for box in layout.boxes:
                assert box.x - box.width / 2 >= 0
                assert box.x + box.width / 2 <= whole.width
                assert box.y + box.height <= whole.height
                for other_box in layout.boxes:
                    apart = abs(box.x - other_box.x) >= (box.width + other_box.width) / 2
                    assert box is other_box or apart or abs(box.y - other_box.y) >= min(box.height, other_box.height)
            labels += [route.line.label for route in layout.routes if route.back]
            for route in layout.routes:
                assert route.back or [y for _, y in route.points] == sorted(y for _, y in route.points)
    assert labels == ["again", "revise"]


def test_what_is_inside_a_frame_stays_inside_it() -> None:
    for layout in layouts(layout_of(drawing_of(team()))):
        for frame in layout.boxes:
            for box in frame.inside.boxes if frame.inside else ():
                assert frame.x - frame.width / 2 < box.x - box.width / 2
                assert box.x + box.width / 2 < frame.x + frame.width / 2
                assert frame.y + 35 < box.y  # below its title
                assert box.y + box.height < frame.y + frame.height


def walked(path: str) -> Iterator[tuple[float, float]]:
    """Points along a path, each near the next."""
    bend = (0.0, 0.0)
    for step, numbers in re.findall(r"([MLCQ])([^MLCQZ]*)", path):
        xs = [float(item) for item in numbers.split()]
        bends = [bend, *zip(xs[::2], xs[1::2], strict=True)]
        for part in range(0 if step == "M" else 201):
            between = bends
            while len(between) > 1:
                between = [
                    tuple(a + (b - a) * part / 200 for a, b in zip(earlier, other_later, strict=True))
                    for earlier, other_later in itertools.pairwise(between)
                ]
            yield between[0]
        bend = bends[-1]


def crossed(drawing: Drawing) -> list[str]:
    """The labels of lines that a line, a box or another label runs through."""
    shapes = live_drawing(drawing)["shapes"]
    points = [point for shape in shapes if shape["tag"] == "path" for point in walked(shape["at"]["d"])]
    labels: list[tuple[str, float, float, float, float]] = []
    for shape in shapes:
        if shape["tag"] == "text" and shape["key"].startswith("e:"):
            x, y, half = float(shape["at"]["x"]), float(shape["at"]["y"]), text_width(shape["text"], SMALL) / 2
            labels.append((shape["text"], x - half, x + half, y - 9, y + 2))
    result = [
        label
        for label, *position in labels
        if any(position[0] < x < position[1] and position[2] < y < position[3] for x, y in points)
    ]
    boxes = [
        [float(shape["at"][name]) for name in ("x", "y", "width", "height")]
        for shape in shapes
        if shape["tag"] == "rect"
    ]
    rivals = [("", x, x + width, y, y + height) for x, y, width, height in boxes]
    for shape, second in itertools.product(labels, [*labels, *rivals]):
        label, remaining, right, top, bottom = shape
        if (
            shape is not second
            and remaining < second[2]
            and second[1] < right
            and top < second[4]
            and second[3] < bottom
        ):
            result.append(label)
    return result


@pytest.mark.parametrize(
    "routes",
    [
        "ab:lamp ac:pothole,crack ad:otherwise",
        "ab:one ac:a-rather-long-route ad:three ae:a-rather-long-route-too af:five bg cg dg eg fg",
        "ab bb:again ba:revise bc:ok cb:once-more cc:wait ca:from-the-start cd dc:back",
        "ab bc:yes bd:perhaps be:otherwise cd ce:stop de",
        "ab:yes ac:no bb:again ca:revise bd cd",
    ],
)
def test_nothing_runs_through_the_label_of_a_line(routes: str) -> None:
    lines = [Line(mode[0], mode[1], mode[3:]) for mode in routes.split()]
    keys = sorted({key for line in lines for key in (line.start, line.end)})

    assert crossed(Drawing("d", {key: Node(key, f"node {key}", "agent") for key in keys}, lines)) == []


def chain(*labels: str, back: str = "") -> Drawing:
    keys = "abcdefghijkl"[: len(labels)]
    lines = [Line(start, end) for start, end in itertools.pairwise(keys)]
    lines += [Line(keys[-1], keys[0], back)] if back else []
    return Drawing("d", {key: Node(key, label, "agent") for key, label in zip(keys, labels, strict=True)}, lines)


def test_a_chain_leads_from_left_to_right_if_it_fits_and_a_loop_back_below_it() -> None:
    drawing = chain("one", "two", "three", back="again")
    layout = layout_of(drawing)

    assert [box.x for box in layout.boxes] == sorted(box.x for box in layout.boxes)
    assert len({box.y for box in layout.boxes}) == 1
    *onward, back = layout.routes
    assert all(start[0] < end[0] and start[1] == end[1] for start, end in (route.points for route in onward))
    assert min(y for _, y in back.points[1:3]) > layout.boxes[0].y + layout.boxes[0].height
    assert crossed(drawing) == []


@pytest.mark.parametrize(
    "drawing",
    [chain(*["a rather long name"] * 8), chain("one", "two", back="a route whose name is rather long for it")],
)
def test_a_chain_that_does_not_fit_leads_down(drawing: Drawing) -> None:
    layout = layout_of(drawing)

    assert len({box.y for box in layout.boxes}) == len(layout.boxes)
    assert layout.width < 560


def test_no_label_is_cut_off_at_either_side() -> None:
    long = "a route whose name is rather long for that"
    drawing = Drawing(
        "d", {key: Node(key, key, "agent") for key in "abc"}, [Line("a", "b", long), Line("a", "c", long)]
    )

    layout = layout_of(drawing)

    for route in layout.routes:
        x, half = route.label_at[0], text_width(route.line.label, SMALL) / 2
        assert x - half >= 0
        assert x + half <= layout.width


def test_a_line_that_leads_back_passes_no_box() -> None:
    nodes = {key: Node(key, key, "agent") for key in "abcdef"}
    texts = ["ab", "ac", "bd", "ce", "df", "db", "fb", "dd", "ed"]
    layout = layout_of(Drawing("d", nodes, [Line(*text) for text in texts]))
    back = [route for route in layout.routes if route.back]

    assert len(back) == 3
    for route in back:
        for (x, y), (to_x, to_y) in itertools.pairwise(route.points):
            for box in layout.boxes:
                remaining, right = sorted((x, to_x))
                top, bottom = sorted((y, to_y))
                apart = right <= box.x - box.width / 2 or remaining >= box.x + box.width / 2
                assert apart or bottom <= box.y or top >= box.y + box.height


def test_many_that_work_at_once_stand_in_several_rows() -> None:
    layout = layout_of(drawing_of(ParallelAgent(name="all", sub_agents=[agent(f"a{n}") for n in range(60)])))

    assert layout.width < layout.height * 2


def test_a_thousand_nodes_are_laid_out_and_told_as_text() -> None:
    nodes = {str(number): Node(str(number), f"node {number}", "agent") for number in range(1000)}
    lines = [Line(str(number // 3), str(number)) for number in range(1, 1000)]
    drawing = Drawing("large", nodes, lines)

    assert len(layout_of(drawing).boxes) == 1000
    assert not drawing.has_picture
    assert "<svg" not in html.write(drawn(drawing, "the tree"))


def test_equal_drawings_are_equal_to_the_byte() -> None:
    assert svg(drawing_of(team())) == svg(drawing_of(team()))


# ---- how it is shown


@each("payload", PAYLOADS)
def test_hostile_names_stay_words(payload: str) -> None:
    tool = FunctionTool(look)
    tool.name = payload
    root = agent("root", tools=[tool], sub_agents=[agent("sub")])
    root.description = payload
    drawing = drawing_of(root)
    drawing.lines.append(Line("sub", "root", payload))

    tree = ElementTree.fromstring(svg(drawing))
    view = html.write(drawn(drawing, tree_of(root)))

    assert {item.tag for item in tree.iter()} <= TAGS
    assert {name for item in tree.iter() for name in item.attrib} <= ATTRIBUTES
    allowed = {"section", "svg", "rect", "path", "text", "tspan", "details", "summary", "pre", "code", "p"}
    assert set(re.findall(r"</?([^\s>/]*)", view)) <= allowed
    assert all(shape["tag"] in ("rect", "path", "text") for shape in live_drawing(drawing)["shapes"])
    assert not re.search(r"[^<>\s][$\\]|[$\\][^<\s]", "".join(re.findall(r"<text[^>]*>(.*?)</text>", svg(drawing))))


def test_an_agent_at_the_end_of_a_cell_draws_itself(shell: Shell) -> None:
    shell.cell("%%agent draft\nBe brief.")
    shell.cell("%%agent pipeline --kind sequential\ndraft")

    view = shown_of(shell.ip, shell.names["pipeline"])
    alone = shown_of(shell.ip, shell.names["draft"])

    assert view["text/plain"] == "pipeline (sequential) v1\n└─ draft v1"
    assert "<svg" in view["text/html"]
    assert "<code>pipeline (sequential) v1\n└─ draft v1" in view["text/html"]
    assert alone["text/plain"] == "draft v1"
    assert "<svg" not in alone["text/html"]


def test_widths_are_the_same_in_every_version_of_python() -> None:
    assert [text_width("m" * count) for count in range(1, 40)] == [
        float(count * Fraction(CHAR)) for count in range(1, 40)
    ]


def test_without_the_magics_an_agent_is_shown_as_python_shows_it(bare: Shell) -> None:
    bare.cell("%load_ext adk_nb")
    bare.cell("%unload_ext adk_nb")

    assert shown_of(bare.ip, agent("draft")) == {"text/plain": repr(agent("draft"))}


def test_the_drawing_of_an_agent_is_asked_for_by_its_name(shell: Shell) -> None:
    shell.cell("%%agent draft\nBe brief.")
    shell.cell("%%workflow flow\nSTART -> draft -> END")

    reply = shell.cell("%agents --graph flow")

    assert reply.mermaid.splitlines()[0] == "flowchart TD"
    assert reply.svg.startswith("<svg ")
    assert "'flow'?" in shell.fails("%agents --graph flaw")


def shown_of(ip: InteractiveShell, value: object) -> dict[str, str]:
    return ip.display_formatter.format(value)[0]  # type: ignore[union-attr]
