"""Teams and graphs that a cell makes of what the notebook has: its agents, tools and functions, by their names."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Protocol

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.loop_agent import LoopAgent
from adk_nb.agents.parallel_agent import ParallelAgent
from adk_nb.agents.sequential_agent import SequentialAgent
from adk_nb.errors import (
    AgentNotFoundError,
    ConfigurationError,
    InputError,
    WorkflowConfigurationError,
    closest,
)
from adk_nb.events.event import Event
from adk_nb.expression import Expression
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.edges import WrittenEdge, place, written_edges
from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.function_node import FunctionNode
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, Edge, Route
from adk_nb.workflow.join_node import JoinNode
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.workflow import Workflow

_NAME = re.compile(r"[^\W\d]\w*")
_EXAMPLE = "until: session_state.get('score', 0) >= 8"
_UNTIL = re.compile(r"\s*until\s*:(.*)")
_BETWEEN = re.compile(r"->|→|,")


class Registry(Protocol):
    """What a team's cell needs of its notebook."""

    def agent(self, name: str, /) -> BaseAgent: ...
    def node_like(self, name: str, /) -> Any:
        """The agent, tool, function or node of that name; None: there is none."""
        ...

    def can_name_an_agent(self, name: str, /) -> bool: ...
    @property
    def agent_names(self) -> Sequence[str]: ...
    @property
    def node_names(self) -> Sequence[str]: ...
    @property
    def variables(self) -> Mapping[str, Any]: ...


class Placeholder(BaseAgent):
    """Stands for an agent, or a function, until its cell is run."""

    drawn_as: ClassVar[str] = "not defined yet"

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        raise missing_member(self.name, ctx.agent.name, (), in_a_graph=False)
        yield


def missing_member(name: str, team: str, known: Sequence[str], *, in_a_graph: bool) -> AgentNotFoundError:
    """The error for a member that is not defined when its team is to run. `known`: the agents."""
    what, known = ("agent, tool or function", ()) if in_a_graph else ("agent", known)
    begins = f"defines {name}" if in_a_graph else f"begins %%agent {name}"
    return AgentNotFoundError(what, name, known, hint=f"{team} needs it: run the cell that {begins}")


# ---- the names in a cell


def member_names(definition: AgentDefinition, registry: Registry) -> tuple[str, ...]:
    """The names in the body of a team or a workflow, or in `--sub` of any other agent; each once, in their order.

    A name may be defined in a later cell, unless it looks like a slip of a known one.

    Raises:
        UserError: A line cannot be read, or something cannot be a member; the message names the line.
    """
    if definition.kind == "workflow":
        names: dict[str, int] = {}
        for edge in written_edges(definition.instruction, definition.cell):
            names |= {name: edge.line for name in (*edge.starts, *edge.ends) if name not in (START, END, *names)}
        for name, line in names.items():
            _check_member(name, place(definition.cell, line), definition, registry)
        return tuple(names)
    if definition.kind == "llm":
        for name in definition.members:
            _check_member(name, f"%%agent {definition.name} --sub", definition, registry)
        return tuple(dict.fromkeys(definition.members))
    return _team_members(definition, registry)


def is_team(text: str, agents: Sequence[str]) -> bool:
    """Whether a text is nothing but names of agents with arrows or commas between them."""
    names = [name.strip() for name in _BETWEEN.split(text)]
    return len(names) > 1 and all(name in agents for name in names)


def condition_of(definition: AgentDefinition) -> str | None:
    """When a loop ends, as its cell says."""
    return next((text for _, text in _conditions(definition)), None)


def _team_members(definition: AgentDefinition, registry: Registry) -> tuple[str, ...]:
    lines: dict[str, int] = {}
    for number, text in enumerate(definition.instruction.split("\n"), 2):
        line = "" if _UNTIL.match(text) else text.partition("#")[0]
        where = place(definition.cell, number)
        names = [name for part in _BETWEEN.split(line) if (name := part.strip())]
        if definition.kind == "parallel" and re.search("->|→", line):
            raise InputError(f"{where}: parallel agents have no order; write commas between: {', '.join(names)}")
        for name in names:
            _check_member(name, where, definition, registry)
            if name in lines:
                raise InputError(
                    f"{where}: {name} is in the team already, in line {lines[name]}; leave one out, or use %%workflow, "
                    "where edges can lead back"
                )
            lines[name] = number
    _check_conditions(definition)
    if not lines:
        raise InputError(
            f"%%agent {definition.name} --kind {definition.kind} names no agents; write draft -> review below"
        )
    return tuple(lines)


def _check_member(name: str, where: str, definition: AgentDefinition, registry: Registry) -> None:
    """Refuse a name that neither is a member now nor may become one in a later cell."""
    in_a_graph = definition.kind == "workflow"
    if wrong := _misused_name(name, definition):
        pass
    elif name in registry.agent_names or (in_a_graph and registry.node_like(name) is not None):
        return
    elif name in registry.variables and in_a_graph:
        kind = type(registry.variables[name]).__name__
        wrong = f"{name!r} is a variable of type {kind}; a node is an agent, a tool or a function"
    elif registry.node_like(name) is not None:
        use = f"give it with -t {name}" if definition.kind == "llm" else "only %%workflow takes those"
        wrong = f"{name!r} is a tool or a function, not an agent; {use}"
    elif slip := _slip(name, in_a_graph, registry):
        wrong = f"no {'agent, tool or function' if in_a_graph else 'agent'} is named {name!r}; {slip}"
    if wrong:
        raise (WorkflowConfigurationError if in_a_graph else InputError)(f"{where}: {wrong}")


def _misused_name(name: str, definition: AgentDefinition) -> str:
    """Why no agent can be meant by the name; empty if one can."""
    if not _NAME.fullmatch(name):
        between = "commas" if definition.kind in ("parallel", "llm") else "arrows"
        example = {"parallel": "draft, review", "llm": "--sub a,b"}.get(definition.kind, "draft -> review")
        return f"{name!r:.60} is no name of an agent; write names with {between} between them, as {example}"
    if name == definition.name:
        return f"{name} cannot be a {'node' if definition.kind == 'workflow' else 'member'} of itself; leave it out"
    if name.upper() in (START, END) and definition.kind == "workflow":
        return f"{name!r} is written in capitals: {name.upper()}"
    if name in (START, END):
        return f"a team has no {name}; leave it out, or write %%workflow {definition.name}"
    return ""


def _slip(name: str, in_a_graph: bool, registry: Registry) -> str:
    """Why no later cell will define the name, and what to write; empty if one may."""
    known = [*registry.node_names, START, END] if in_a_graph else registry.agent_names
    near = closest(name, known, cutoff=0.8)
    if near and abs(len(near) - len(name)) < 2 and re.findall(r"\d", near) == re.findall(r"\d", name):
        return f"did you mean {near!r}? If not, run the cell that defines {name} first"
    return "" if registry.can_name_an_agent(name) else "an agent cannot have that name; choose another"


def _conditions(definition: AgentDefinition) -> list[tuple[int, str]]:
    """The text behind each `until:`, with its line."""
    lines = enumerate(definition.instruction.split("\n"), 2)
    return [(number, match[1].strip()) for number, text in lines if (match := _UNTIL.match(text))]


def _check_conditions(definition: AgentDefinition) -> None:
    for index, (number, text) in enumerate(_conditions(definition)):
        where = place(definition.cell, number)
        if definition.kind != "loop":
            raise InputError(f"{where}: only a loop ends by a condition, not {definition.name}; write --kind loop")
        if index:
            raise InputError(f"{where}: a second until:; write one condition, with `and` or `or`")
        try:
            Expression(text, ("session_state",))
        except ConfigurationError as wrong:
            raise InputError(f"{where}: {wrong}; for instance {_EXAMPLE}") from None


# ---- the agents


def build(definition: AgentDefinition, registry: Registry) -> BaseAgent:
    """The team or workflow of a cell, with copies of its members as they are now.

    Raises:
        UserError: They cannot be put together.
    """
    if definition.kind == "workflow":
        return _workflow(definition, registry)
    common: dict[str, Any] = {"name": definition.name, "description": definition.description}
    common["sub_agents"] = clone_members(definition, registry)
    if definition.kind == "parallel":
        return ParallelAgent(**common)
    if definition.kind == "sequential":
        return SequentialAgent(**common)
    return LoopAgent(max_iterations=definition.max_iterations, exit_condition=condition_of(definition), **common)


def clone_members(definition: AgentDefinition, registry: Registry) -> list[BaseAgent]:
    """Copies of the members as they are now, so that one agent may be under several."""
    known = registry.agent_names
    return [registry.agent(name).clone() if name in known else Placeholder(name=name) for name in definition.members]


def _workflow(definition: AgentDefinition, registry: Registry) -> Workflow:
    written = written_edges(definition.instruction, definition.cell)
    nodes: dict[str, BaseNode] = {name: _node(name, written, registry) for name in definition.members}
    joins: dict[tuple[str, ...], JoinNode] = {}
    edges: list[Edge] = []
    for edge in written:
        start = nodes.get(edge.starts[0], edge.starts[0])
        if edge.joins and not (start := joins.get(edge.starts)):
            start = joins[edge.starts] = JoinNode(name=f"join_{'_'.join(edge.starts)}")
            edges += [Edge(from_node=nodes[name], to_node=start) for name in edge.starts]
        route = list(edge.routes) if len(edge.routes) > 1 else next(iter(edge.routes), None)
        edges += [Edge(from_node=start, to_node=nodes.get(end, end), route=route) for end in edge.ends]
    return Workflow(
        name=definition.name,
        description=definition.description,
        edges=edges,
        max_concurrency=definition.max_concurrency,
    )


def _node(name: str, edges: Sequence[WrittenEdge], registry: Registry) -> BaseNode:
    member = registry.node_like(name)
    member = Placeholder(name=name) if member is None else member
    node = build_node(member)
    if node.name != name:
        node = build_node(member, name=name)
    routes = [route for edge in edges if name in edge.starts for route in edge.routes if route != DEFAULT_ROUTE]
    if routes and isinstance(node, AgentNode) and not node.agent.runs_others:
        return _Chooser(**{field: getattr(node, field) for field in AgentNode.model_fields}, routes=routes)
    if routes and type(node) is FunctionNode:
        return _Sorter(**{field: getattr(node, field) for field in FunctionNode.model_fields}, routes=routes)
    return node


class _Sorter(FunctionNode):
    """A function after which routes lead on: it chooses the one that it returns."""

    routes: list[Any]

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(super()._run_impl(ctx=ctx, node_input=node_input)) as values:
            async for value in values:
                if ctx.route is None and any(type(value) is type(route) and value == route for route in self.routes):
                    ctx.route = value
                yield value


class _Chooser(AgentNode):
    """An agent after which routes lead on: it chooses the one that its answer names."""

    routes: list[Any]

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(super()._run_impl(ctx=ctx, node_input=node_input)) as events:
            async for event in events:
                if isinstance(event, Event) and event.actions.route is None and event.is_answer():
                    event.actions.route = chosen_route(event.text, self.routes)
                yield event


def chosen_route(answer: str, routes: Sequence[Route]) -> Route | None:
    """The route that an answer is, or else the only one that stands in it as a word; case does not matter."""
    text = answer.strip().strip(".!*\"'` ").casefold()
    for route in routes:
        if text == str(route).casefold():
            return route
    named = [route for route in dict.fromkeys(routes) if re.search(rf"\b{re.escape(str(route))}\b", answer, re.I)]
    return named[0] if len(named) == 1 else None
