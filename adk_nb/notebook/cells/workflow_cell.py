"""Workflows of cells: the graph built of what the notebook has under the names of its edges."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from adk_nb.errors import WorkflowConfigurationError
from adk_nb.events.event import Event
from adk_nb.notebook.cells.definitions import AgentDefinition
from adk_nb.notebook.cells.names import Names
from adk_nb.notebook.cells.team_cell import Placeholder, location_of, parse_edges, refuse
from adk_nb.runtime.context import Context
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode, JoinNode
from adk_nb.workflow.function_node import FunctionNode
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, Edge, Route
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.workflow import Workflow


def build(definition: AgentDefinition, names: Names) -> Workflow:
    """The workflow of a cell, with copies of its members as they are now.

    Raises:
        UserError: They cannot be put together.
    """
    cell_edges = parse_edges(definition)
    if not any(START in edge.starts and END not in edge.ends for edge in cell_edges):
        example = f"{START} -> {next(iter(definition.members), 'draft')}"
        refuse(location_of(definition, 2), f"no edge leads from {START} to a node; write {example}")
    nodes: dict[str, BaseNode] = {}
    for name in definition.members:
        member = names.node_like(name)
        member = Placeholder(name=name) if member is None else member
        node = build_node(member)
        if node.name != name:
            node = build_node(member, name=name)
        leaving = [edge for edge in cell_edges if name in edge.starts]
        routes = [route for edge in leaving for route in edge.routes if route != DEFAULT_ROUTE]
        if routes and isinstance(node, AgentNode) and not node.agent.runs_others:
            node = _RoutingAgent(**{field: getattr(node, field) for field in AgentNode.model_fields}, routes=routes)
        elif routes and type(node) is FunctionNode:
            fields = {field: getattr(node, field) for field in FunctionNode.model_fields}
            node = _RoutingFunction(**fields, routes=routes)
        nodes[name] = node
    joins: dict[tuple[str, ...], JoinNode] = {}
    edges: list[Edge] = []
    for edge in cell_edges:
        start = nodes.get(edge.starts[0], edge.starts[0])
        if edge.is_join and not (start := joins.get(edge.starts)):
            start = joins[edge.starts] = JoinNode(name=f"join_{'_'.join(edge.starts)}")
            edges += [Edge(from_node=nodes[name], to_node=start) for name in edge.starts]
        route = list(edge.routes) if len(edge.routes) > 1 else next(iter(edge.routes), None)
        edges += [Edge(from_node=start, to_node=nodes.get(end, end), route=route) for end in edge.ends]
    try:
        return Workflow(
            name=definition.name,
            description=definition.description,
            edges=edges,
            max_concurrency=definition.max_concurrency,
        )
    except WorkflowConfigurationError as error:
        raise WorkflowConfigurationError(f"In[{definition.cell}]: {error}") from None


class _RoutingFunction(FunctionNode):
    """A function with routes behind it: it takes the route that it returns."""

    routes: list[Any]

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(super()._run_impl(ctx=ctx, node_input=node_input)) as values:
            async for value in values:
                if ctx.route is None and any(type(value) is type(route) and value == route for route in self.routes):
                    ctx.route = value
                yield value


class _RoutingAgent(AgentNode):
    """An agent with routes behind it: it takes the route that its answer names."""

    routes: list[Any]

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(super()._run_impl(ctx=ctx, node_input=node_input)) as events:
            async for event in events:
                if isinstance(event, Event) and event.actions.route is None and event.is_answer():
                    event.actions.route = chosen_route(event.text, self.routes)
                yield event


def chosen_route(answer: str, routes: Sequence[Route]) -> Route | None:
    """The route that equals an answer, or else the only one that it contains as a word; case does not matter."""
    text = answer.strip().strip(".!*\"'` ").casefold()
    for route in routes:
        if text == str(route).casefold():
            return route
    matches = [route for route in dict.fromkeys(routes) if re.search(rf"\b{re.escape(str(route))}\b", answer, re.I)]
    return matches[0] if len(matches) == 1 else None
