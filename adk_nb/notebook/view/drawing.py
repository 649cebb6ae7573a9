"""The drawing of an agent, a team or a workflow: nodes and the lines between them, and the same as a text tree."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard

from adk_nb import agents, workflow
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.events.requests import INPUT_REQUEST
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.workflow.base_node import BaseNode, JoinNode
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, NamedEdge
from adk_nb.workflow.node_context import ParallelWorker

Kind = Literal["agent", "team", "function", "tool", "join", "end"]
_LABEL = 40
"""Characters of a name."""
_CALLED = ("single_turn", "task")
"""Modes of agents that are called as tools; to others an agent transfers."""
_MOST_TOOLS = 6
_MOST_NODES = 200


@dataclass(frozen=True)
class Node:
    """A box."""

    key: str
    """Unique in the whole drawing."""
    label: str
    kind: Kind
    note: str = ""
    """The kind or model, under the name."""
    tools: tuple[str, ...] = ()
    name: str = ""
    """Its name in events."""
    inside: "Drawing | None" = None
    """The members of a team or a workflow: the box is a frame around them."""


@dataclass(frozen=True)
class Line:
    """An arrow from one node to another, by their keys."""

    start: str
    end: str
    label: str = ""
    routes: tuple[Any, ...] = ()
    may: bool = False
    """A transfer or a call that a model may choose: drawn dashed."""


@dataclass
class Drawing:
    """Nodes and the lines between them."""

    title: str
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    lines: list[Line] = field(default_factory=list[Line])
    kind: str = ""
    """The kind of team with these members: `sequential`, `parallel`, `loop` or `workflow`; empty: no team."""

    def walk(self) -> "Iterator[tuple[Node, Drawing]]":
        """Each node with the drawing it is in; a frame comes before its members."""
        for node in self.nodes.values():
            yield node, self
            if node.inside:
                yield from node.inside.walk()

    @property
    def has_picture(self) -> bool:
        """False for a single box and for too many: the text tree is enough."""
        return 1 < sum(1 for _ in self.walk()) <= _MOST_NODES

    @property
    def mermaid(self) -> str:
        """The drawing as a mermaid flowchart."""
        ids = {node.key: f"n{number}" for number, (node, _) in enumerate(self.walk())}
        return "\n".join(["flowchart TD", *self._in_mermaid(ids, "    ")])

    def _in_mermaid(self, ids: dict[str, str], indent: str) -> Iterator[str]:
        for key, node in self.nodes.items():
            label = _quoted(f"{node.label}<br/>{node.note}" if node.note and node.kind != "end" else node.label)
            opening, closing = _MERMAID[node.kind]
            if node.inside and node.inside.nodes:
                yield f"{indent}subgraph {ids[key]}[{label}]"
                yield from node.inside._in_mermaid(ids, f"{indent}    ")
                yield f"{indent}end"
            else:
                yield f"{indent}{ids[key]}{opening}{label}{closing}"
        for line in self.lines:
            arrow = "-.->" if line.may else "-->"
            label = f"|{_quoted(line.label)}|" if line.label else ""
            yield f"{indent}{ids[line.start]} {arrow}{label} {ids[line.end]}"


_MERMAID = {
    "agent": ("[", "]"),
    "team": ("[[", "]]"),
    "function": ("(", ")"),
    "tool": ("([", "])"),
    "join": ("{{", "}}"),
    "end": ("((", "))"),
}


def _quoted(text: str) -> str:
    """A label; other characters than letters, digits and a few signs are entities."""
    lines = [
        "".join(char if char.isalnum() or char in " _-.,:" else f"#{ord(char)};" for char in line)
        for line in text.split("<br/>")
    ]
    return f'"{"<br/>".join(lines)}"'


# ---- drawings


def drawing_of(agent: BaseAgent) -> Drawing:
    """The drawing of `agent`, with its sub-agents or nodes."""
    drawing = Drawing(title=one_line(agent.name, _LABEL))
    drawer = _Drawer()
    if _is_graph(agent):
        drawer.draw_graph(agent, drawing)
    else:
        drawer.draw(agent, drawing)
    return drawing


class _Drawer:
    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._drawn: dict[int, str] = {}
        """Id of an agent -> its key: agents that call each other are drawn once."""

    def draw(self, agent: BaseAgent, drawing: Drawing) -> str:
        """Add an agent and its sub-agents; returns its key."""
        if agent.team_kind:
            return self._add(_agent_node(agent), drawing, self._inside(agent))
        tools = [tool.agent for tool in getattr(agent, "tools", ()) if isinstance(tool, AgentTool)]
        called = [
            callee
            for callee in tools
            if isinstance(callee, BaseAgent) and self._drawn.get(id(callee), "") in ("", *drawing.nodes)
        ]
        node = replace(_agent_node(agent), tools=tuple(_tools(agent, called)))
        key = self._drawn[id(agent)] = self._add(node, drawing, None)
        for target in (*agent.sub_agents, *called):
            calls = target in called or getattr(target, "mode", None) in _CALLED
            end = self._drawn.get(id(target)) or self.draw(target, drawing)
            drawing.lines.append(Line(key, end, "calls" if calls else "", may=True))
        return key

    def draw_graph(self, agent: "workflow.Workflow", drawing: Drawing) -> None:
        """Add the nodes and edges of a workflow."""
        graph, drawing.kind = agent.graph, "workflow"
        ends = [END] if graph.edges_to_end else []
        keys = {name: self._key(name) for name in (START, *graph.nodes, *ends)}
        for name, key in keys.items():
            node = graph.nodes.get(name)
            member = node.agent if isinstance(node, workflow.AgentNode) else None
            inside = self._inside(member) if member and member.team_kind else None
            drawn = _node_of(name, node) if node else Node(name, name, "end", name=name)
            drawing.nodes[key] = replace(drawn, key=key, inside=inside)
        for edges in (*graph.edges_from.values(), *graph.edges_to_end.values()):
            for edge, label in _joined(edges):
                drawing.lines.append(Line(keys[edge.start], keys[edge.end], label, edge.routes))

    def _inside(self, agent: BaseAgent) -> Drawing:
        inside = Drawing(one_line(agent.name, _LABEL), kind=agent.team_kind)
        if _is_graph(agent):
            self.draw_graph(agent, inside)
            return inside
        members = [self.draw(member, inside) for member in agent.sub_agents]
        if inside.kind != "parallel":
            inside.lines += [Line(start, end) for start, end in itertools.pairwise(members)]
        if inside.kind == "loop" and members:
            inside.lines.append(Line(members[-1], members[0], "again"))
        return inside

    def _add(self, node: Node, drawing: Drawing, inside: Drawing | None) -> str:
        key = self._key(node.key)
        drawing.nodes[key] = replace(node, key=key, inside=inside)
        return key

    def _key(self, name: str) -> str:
        while name in self._keys:
            name += "'"
        self._keys.add(name)
        return name


def _joined(edges: Iterable[NamedEdge]) -> Iterator[tuple[NamedEdge, str]]:
    """The edges of a node with their labels; edges to the same end are merged."""
    by_end: dict[str, list[NamedEdge]] = {}
    for edge in edges:
        by_end.setdefault(edge.end, []).append(edge)
    for end, same in by_end.items():
        routes = [route for edge in same for route in edge.routes]
        names = dict.fromkeys("otherwise" if route == DEFAULT_ROUTE else str(route) for route in routes)
        always = any(not edge.routes for edge in same)
        labels = ["always", *names] if always and names else names
        yield NamedEdge(same[0].start, end, () if always else tuple(routes)), one_line(", ".join(labels), _LABEL)


def _node_of(name: str, node: BaseNode) -> Node:
    label = one_line(name, _LABEL)
    if isinstance(node, workflow.AgentNode):
        inner = _agent_node(node.agent)
        return Node(name, label, inner.kind, inner.note, inner.tools, name)
    if isinstance(node, ParallelWorker):
        inner = _node_of(name, node.worker)
        return Node(name, label, inner.kind, f"{inner.note}, for each item".removeprefix(", "), inner.tools, name)
    kinds: dict[type[BaseNode], tuple[Kind, str]] = {
        workflow.FunctionNode: ("function", "function"),
        workflow.ToolNode: ("tool", "tool"),
        JoinNode: ("join", "waits for all"),
    }
    kind, note = next((kinds[cls] for cls in type(node).__mro__ if cls in kinds), ("function", ""))
    class_name = type(node).__name__
    has_own_class = type(node) not in kinds and not class_name.startswith("_")
    return Node(name, label, kind, class_name if has_own_class else note, name=name)


def _agent_node(agent: BaseAgent) -> Node:
    label = one_line(agent.name, _LABEL)
    if kind := agent.team_kind:
        facts = [kind]
        if isinstance(agent, agents.LoopAgent) and agent.max_iterations:
            facts.append(f"at most {agent.max_iterations} times")
        if isinstance(agent, agents.LoopAgent) and (condition := agent.exit_condition):
            text = condition if isinstance(condition, str) else getattr(condition, "__name__", "a function says so")
            facts.append(f"until {one_line(text, _LABEL)}")
        return Node(agent.name, label, "team", ", ".join(facts), name=agent.name)
    return Node(agent.name, label, "agent", _model(agent), tuple(_tools(agent)), agent.name)


def _is_graph(agent: BaseAgent) -> TypeGuard["workflow.Workflow"]:
    return agent.team_kind == "workflow"


def _model(agent: BaseAgent) -> str:
    """The agent's own model, not the default, which differs between machines."""
    if not isinstance(agent, LlmAgent):
        kind = getattr(type(agent), "drawn_as", type(agent).__name__)
        return "" if type(agent) is BaseAgent else kind
    return one_line(agent.model.model if isinstance(agent.model, BaseLlm) else agent.model, _LABEL)


def _tools(agent: BaseAgent, called: Sequence[BaseAgent] = ()) -> list[str]:
    """Names of the tools, without the agents that are drawn as `called`."""
    names = [_tool_name(tool) for tool in getattr(agent, "tools", ()) if getattr(tool, "agent", None) not in called]
    if len(names) > _MOST_TOOLS:
        names[_MOST_TOOLS - 1 :] = [f"and {len(names) - _MOST_TOOLS + 1} more"]
    return names


_TOOL_NAMES = {INPUT_REQUEST: "request_input"}
"""Name of a tool for models -> for users."""


def _tool_name(tool: Any) -> str:
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__
    return one_line(_TOOL_NAMES.get(str(name), str(name)), _LABEL)


# ---- trees


def tree_of(agent: BaseAgent, version: Callable[[str], str] = lambda name: "") -> str:
    """The agents as a text tree.

    Args:
        agent: The root.
        version: Returns the version of an agent, as `v2`, or nothing.
    """
    return "\n".join(_tree(agent, version))


def _tree(agent: BaseAgent, version: Callable[[str], str], more: str = "") -> Iterator[str]:
    node = _agent_node(agent)
    note = f" ({node.note})" if node.note else ""
    mark = f" {text}" if (text := version(agent.name)) else ""
    tools = f"  tools: {', '.join(node.tools)}" if node.tools else ""
    yield f"{node.label}{note}{mark}{tools}{more}"
    if not _is_graph(agent):
        yield from _branches([list(_tree(member, version)) for member in agent.sub_agents])
        return
    graph, parts = agent.graph, list[list[str]]()
    for name in (START, *graph.nodes):
        edges = _joined([*graph.edges_from.get(name, ()), *graph.edges_to_end.get(name, ())])
        arrows = ", ".join(f"{f'-[{label}]' if label else ''}-> {one_line(edge.end, _LABEL)}" for edge, label in edges)
        more = f" {arrows}" if arrows else ""
        node = graph.nodes.get(name)
        if isinstance(node, workflow.AgentNode) and node.agent.name == name:
            parts.append(list(_tree(node.agent, version, more)))
        elif node is None:
            parts.append([f"{START}{more}"])
        else:
            drawn = _node_of(name, node)
            parts.append([f"{drawn.label} ({drawn.note}){more}" if drawn.note else f"{drawn.label}{more}"])
    yield from _branches(parts)


def _branches(parts: Sequence[list[str]]) -> Iterator[str]:
    for number, (first, *rest) in enumerate(parts, 1):
        last = number == len(parts)
        yield f"{'└─' if last else '├─'} {first}"
        for line in rest:
            yield f"{'  ' if last else '│ '} {line}"
