"""What is drawn of an agent, a team or a workflow: nodes and the ways between them, and the same as a text tree."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.loop_agent import LoopAgent
from adk_nb.agents.parallel_agent import ParallelAgent
from adk_nb.agents.sequential_agent import SequentialAgent
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.function_node import FunctionNode
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, Way
from adk_nb.workflow.join_node import JoinNode
from adk_nb.workflow.parallel_worker import ParallelWorker
from adk_nb.workflow.tool_node import ToolNode
from adk_nb.workflow.workflow import Workflow

Kind = Literal["agent", "team", "function", "tool", "join", "end"]
_LABEL = 40
"""Characters of a name."""
_CALLED = ("single_turn", "task")
"""Modes of agents that are called as tools, and not handed over to."""
_MOST_TOOLS = 6
_MOST_NODES = 200
_TEAMS: dict[type[BaseAgent], str] = {
    SequentialAgent: "sequential",
    ParallelAgent: "parallel",
    LoopAgent: "loop",
    Workflow: "workflow",
}


@dataclass(frozen=True)
class Node:
    """A box."""

    key: str
    label: str
    kind: Kind
    note: str = ""
    """A word under the name: of what kind it is."""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """An arrow from one node to another, by their keys."""

    start: str
    end: str
    label: str = ""
    routes: tuple[Any, ...] = ()
    may: bool = False
    """It hands over, or calls, as it sees fit: dashed."""


@dataclass
class Drawing:
    """Nodes in the order in which they are met, and the lines between them."""

    title: str
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    lines: list[Line] = field(default_factory=list[Line])
    within: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Node -> the teams around it, outermost first."""
    is_graph: bool = False
    """It is a workflow, whose nodes are told by the events' paths."""

    @property
    def has_picture(self) -> bool:
        """False for a single box, and for more than anyone could look at: their text tells as much."""
        return 1 < len(self.nodes) <= _MOST_NODES

    @property
    def mermaid(self) -> str:
        """The same in mermaid's language, for pages that draw it themselves."""
        ids = {key: f"n{number}" for number, key in enumerate(self.nodes)}
        told = ["flowchart TD"]
        for key, node in self.nodes.items():
            left, right = _MERMAID[node.kind]
            words = f"{node.label}<br/>{node.note}" if node.note and node.kind != "end" else node.label
            told.append(f"    {ids[key]}{left}{_quoted(words)}{right}")
        for line in self.lines:
            arrow = "-.->" if line.may else "-->"
            label = f"|{_quoted(line.label)}|" if line.label else ""
            told.append(f"    {ids[line.start]} {arrow}{label} {ids[line.end]}")
        return "\n".join(told)


_MERMAID = {
    "agent": ("[", "]"),
    "team": ("[[", "]]"),
    "function": ("(", ")"),
    "tool": ("([", "])"),
    "join": ("{{", "}}"),
    "end": ("((", "))"),
}


def _quoted(words: str) -> str:
    parts = ("<br/>".join(map(_entities, words.split("<br/>"))),)
    return f'"{parts[0]}"'


def _entities(words: str) -> str:
    return "".join(one if one.isalnum() or one in " _-.,:" else f"#{ord(one)};" for one in words)


# ---- drawings


def drawing_of(agent: BaseAgent) -> Drawing:
    """What is to be drawn of `agent`."""
    drawing = Drawing(title=one_line(agent.name, _LABEL))
    if isinstance(agent, Workflow):
        _draw_graph(agent, drawing)
    else:
        _draw(agent, drawing, [])
    return drawing


def _draw_graph(workflow: Workflow, drawing: Drawing) -> None:
    graph = workflow.graph
    drawing.is_graph = True
    drawing.nodes[START] = Node(START, START, "end")
    for name, node in graph.nodes.items():
        drawing.nodes[name] = _node_of(name, node)
    for ways in graph.ways.values():
        drawing.lines += [_line(way) for way in ways]
    if graph.endings:
        drawing.nodes[END] = Node(END, END, "end")
        drawing.lines += [_line(way) for ways in graph.endings.values() for way in ways]


def _line(way: Way) -> Line:
    return Line(way.start, way.end, _routes(way.routes), way.routes)


def _routes(routes: Sequence[Any]) -> str:
    return one_line(", ".join("otherwise" if one == DEFAULT_ROUTE else str(one) for one in routes), _LABEL)


def _node_of(name: str, node: BaseNode) -> Node:
    label = one_line(name, _LABEL)
    if isinstance(node, AgentNode):
        one = _agent_node(node.agent)
        return Node(name, label, one.kind, one.note, one.tools)
    if isinstance(node, ParallelWorker):
        one = _node_of(name, node.worker)
        return Node(name, label, one.kind, f"{one.note}, for each item".removeprefix(", "), one.tools)
    kinds: dict[type[BaseNode], tuple[Kind, str]] = {
        FunctionNode: ("function", "function"),
        ToolNode: ("tool", "tool"),
        JoinNode: ("join", "waits for all"),
    }
    kind, note = kinds.get(type(node), ("function", type(node).__name__))
    return Node(name, label, kind, note)


def _agent_node(agent: BaseAgent) -> Node:
    label = one_line(agent.name, _LABEL)
    if team := _team(agent):
        return Node(agent.name, label, "team", team)
    return Node(agent.name, label, "agent", _model(agent), tuple(_tools(agent)))


def _draw(agent: BaseAgent, drawing: Drawing, around: list[str]) -> tuple[list[str], list[str]]:
    """Add an agent and those under it; the nodes at which one enters it, and from which one leaves."""
    node = _agent_node(agent)
    key = node.key
    while key in drawing.nodes:
        key += "'"  # a namesake: only one of them is told from events
    drawing.nodes[key] = Node(key, node.label, node.kind, node.note, node.tools)
    drawing.within[key] = around
    before = [key]
    if isinstance(agent, Workflow):
        return before, before
    first: list[str] = []
    gone: list[str] = []
    for one in agent.sub_agents:
        enter, leave = _draw(one, drawing, [*around, key])
        first, gone = first or enter, [*gone, *leave]
        chained = isinstance(agent, SequentialAgent | LoopAgent)
        starts = before if chained else [key]
        may = not (chained or isinstance(agent, ParallelAgent))
        label = "calls" if may and getattr(one, "mode", None) in _CALLED else ""
        drawing.lines += [Line(start, end, label, may=may) for start in starts for end in enter]
        before = leave if chained else before
    if isinstance(agent, LoopAgent) and first:
        drawing.lines += [Line(start, end, "again") for start in before for end in first]
    return [key], gone if isinstance(agent, ParallelAgent) and gone else before


def kind_of(agent: BaseAgent) -> str:
    """What kind of team it is; empty for an agent that works itself."""
    return next((word for cls, word in _TEAMS.items() if isinstance(agent, cls)), "")


def _team(agent: BaseAgent) -> str:
    kind = kind_of(agent)
    if isinstance(agent, LoopAgent) and agent.max_iterations:
        return f"{kind}, at most {agent.max_iterations} times"
    return kind


def _model(agent: BaseAgent) -> str:
    """The model that it names itself: the default is another one on another machine."""
    if not isinstance(agent, LlmAgent):
        return "" if type(agent) is BaseAgent else type(agent).__name__
    return one_line(agent.model.model if isinstance(agent.model, BaseLlm) else agent.model, _LABEL)


def _tools(agent: BaseAgent) -> list[str]:
    named = [_tool_name(one) for one in getattr(agent, "tools", ())]
    return (
        named if len(named) <= _MOST_TOOLS else [*named[: _MOST_TOOLS - 1], f"and {len(named) - _MOST_TOOLS + 1} more"]
    )


def _tool_name(tool: Any) -> str:
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__
    return one_line(str(name), _LABEL)


# ---- trees


def tree_of(agent: BaseAgent, version: Callable[[str], str] = lambda name: "") -> str:
    """The agents as a tree of text, a line each.

    Args:
        agent: The topmost.
        version: What to say behind a name, as `v2`; empty: nothing.
    """
    return "\n".join(_tree(agent, version))


def _tree(agent: BaseAgent, version: Callable[[str], str], more: str = "") -> Iterator[str]:
    node = _agent_node(agent)
    about = f" ({node.note})" if node.note else ""
    mark = f" {said}" if (said := version(agent.name)) else ""
    tools = f"  tools: {', '.join(node.tools)}" if node.tools else ""
    yield f"{node.label}{about}{mark}{tools}{more}"
    if isinstance(agent, Workflow):
        yield from _branches(list(_graph_parts(agent, version)))
    else:
        yield from _branches([list(_tree(one, version)) for one in agent.sub_agents])


def _graph_parts(workflow: Workflow, version: Callable[[str], str]) -> Iterator[list[str]]:
    graph = workflow.graph
    for name in (START, *graph.nodes):
        ways = [*graph.ways.get(name, ()), *graph.endings.get(name, ())]
        leads = ", ".join(f"{_arrow(way)} {one_line(way.end, _LABEL)}" for way in ways)
        more = f" {leads}" if leads else ""
        node = graph.nodes.get(name)
        if isinstance(node, AgentNode) and node.agent.name == name:
            yield list(_tree(node.agent, version, more))
        elif node is None:
            yield [f"{START}{more}"]
        else:
            one = _node_of(name, node)
            yield [f"{one.label} ({one.note}){more}" if one.note else f"{one.label}{more}"]


def _arrow(way: Way) -> str:
    return f"-[{_routes(way.routes)}]->" if way.routes else "->"


def _branches(parts: Sequence[list[str]]) -> Iterator[str]:
    for number, (first, *rest) in enumerate(parts, 1):
        last = number == len(parts)
        yield f"{'└─' if last else '├─'} {first}"
        for line in rest:
            yield f"{'  ' if last else '│ '} {line}"
