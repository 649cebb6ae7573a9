"""Teams and graphs that a cell makes of what the notebook has: its agents, tools and functions, by their names."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.loop_agent import LoopAgent
from adk_nb.agents.parallel_agent import ParallelAgent
from adk_nb.agents.sequential_agent import SequentialAgent
from adk_nb.errors import AgentNotFoundError, ConfigurationError, InputError, WorkflowConfigurationError, closest
from adk_nb.events.event import Event
from adk_nb.notebook.cells.definitions import AgentDefinition
from adk_nb.notebook.cells.edges import Lead, leads_of, place
from adk_nb.runtime.context import Context
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, Edge, Route
from adk_nb.workflow.join_node import JoinNode
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.workflow import Workflow

_WORD = re.compile(r"[^\W\d]\w*")
_BETWEEN = re.compile(r"->|→|,")


class Knows(Protocol):
    """What a team's cell asks its notebook."""

    def agent(self, name: str, /) -> BaseAgent: ...
    def node_like(self, name: str, /) -> Any:
        """The agent, tool, function or node of that name; None: there is none."""
        ...

    @property
    def agent_names(self) -> Sequence[str]: ...
    @property
    def node_names(self) -> Sequence[str]: ...
    @property
    def variables(self) -> Mapping[str, Any]: ...


def members_of(wanted: AgentDefinition, knows: Knows) -> tuple[str, ...]:
    """The names in the body of a team's or a workflow's cell, each once, in the order of the text.

    Raises:
        UserError: A line cannot be read, or a name is not defined; the message names the line.
    """
    if wanted.kind != "workflow":
        return _team(wanted, knows)
    leads = leads_of(wanted.instruction, wanted.cell)
    for lead in leads:
        for name in (*lead.starts, *lead.ends):
            if name not in (START, END) and knows.node_like(name) is None:
                raise _no_node(name, place(wanted.cell, lead.line), knows)
    named = (name for lead in leads for name in (*lead.starts, *lead.ends))
    return tuple(dict.fromkeys(one for one in named if one not in (START, END)))


def built(wanted: AgentDefinition, knows: Knows) -> BaseAgent:
    """The agent that the cell defines, with copies of its members as they are now.

    Raises:
        UserError: A member is gone, or they cannot be put together.
    """
    if wanted.kind == "workflow":
        return _workflow(wanted, knows)
    said: dict[str, Any] = {"name": wanted.name, "description": wanted.description}
    said["sub_agents"] = [knows.agent(name).clone() for name in wanted.members]
    if wanted.kind == "parallel":
        return ParallelAgent(**said)
    if wanted.kind == "sequential":
        return SequentialAgent(**said)
    return LoopAgent(max_iterations=wanted.max_iterations, **said)


# ---- teams


def _team(wanted: AgentDefinition, knows: Knows) -> tuple[str, ...]:
    found: dict[str, int] = {}
    for number, text in enumerate(wanted.instruction.split("\n"), 2):
        words = text.partition("#")[0].strip()
        where = place(wanted.cell, number)
        if wanted.kind == "parallel" and re.search("->|→", words):
            raise InputError(f"{where}: these work at once, so no arrow is between them; write {_commas(words)}")
        for name in filter(None, map(str.strip, _BETWEEN.split(words))):
            _check_member(name, where, wanted, knows)
            if name in found:
                raise ConfigurationError(
                    f"{where}: {name} is in the team already, in line {found[name]}; leave one out, or use %%workflow, "
                    "where edges can lead back"
                )
            found[name] = number
    if not found:
        raise InputError(f"%%agent {wanted.name} --kind {wanted.kind} names no agents; write draft -> review below")
    return tuple(found)


def _commas(words: str) -> str:
    return ", ".join(filter(None, map(str.strip, _BETWEEN.split(words))))


def _check_member(name: str, where: str, wanted: AgentDefinition, knows: Knows) -> None:
    if not _WORD.fullmatch(name):
        apart = _WORD.findall(name)
        arrow = ", " if wanted.kind == "parallel" else " -> "
        if all(one in knows.agent_names for one in apart) and len(apart) > 1:
            raise InputError(f"{where}: {name!r} is no name; write {arrow.join(apart)}")
        raise InputError(f"{where}: {name!r:.60} is no name of an agent; write names alone, as draft{arrow}review")
    if name == wanted.name:
        raise ConfigurationError(f"{where}: {name} cannot be a member of itself")
    if name not in knows.agent_names:
        near = closest(name, knows.agent_names)
        hint = f"did you mean {near!r}?" if near else f"begin a cell with %%agent {name}"
        if not near and knows.node_like(name) is not None:
            hint = f"{name} is a tool or a function, and only %%workflow takes those"
        raise InputError(f"{where}: no agent is named {name!r}; {hint}")


# ---- workflows


def _no_node(name: str, where: str, knows: Knows) -> WorkflowConfigurationError:
    if name.upper() in (START, END):
        return WorkflowConfigurationError(f"{where}: {name!r} is written in capitals: {name.upper()}")
    if name in knows.variables:
        kind = type(knows.variables[name]).__name__
        return WorkflowConfigurationError(
            f"{where}: {name!r} is a variable of type {kind}, and a node is an agent, a tool or a function"
        )
    near = closest(name, [*knows.node_names, START, END])
    hint = f"did you mean {near!r}?" if near else f"define it in a cell above, as %%agent {name}"
    return WorkflowConfigurationError(f"{where}: no agent, tool or function is named {name!r}; {hint}")


def _workflow(wanted: AgentDefinition, knows: Knows) -> Workflow:
    leads = leads_of(wanted.instruction, wanted.cell)
    nodes: dict[str, BaseNode] = {name: _node(name, leads, wanted, knows) for name in wanted.members}
    joins: dict[tuple[str, ...], JoinNode] = {}
    edges: list[Edge] = []

    for lead in leads:
        start = nodes.get(lead.starts[0], lead.starts[0])
        if lead.joins and not (start := joins.get(lead.starts)):
            start = joins[lead.starts] = JoinNode(name=f"join_{'_'.join(lead.starts)}")
            edges += [Edge(from_node=nodes[one], to_node=start) for one in lead.starts]
        route = list(lead.routes) if len(lead.routes) > 1 else next(iter(lead.routes), None)
        edges += [Edge(from_node=start, to_node=nodes.get(end, end), route=route) for end in lead.ends]
    return Workflow(
        name=wanted.name, description=wanted.description, edges=edges, max_concurrency=wanted.max_concurrency
    )


def _node(name: str, leads: Sequence[Lead], wanted: AgentDefinition, knows: Knows) -> BaseNode:
    found = knows.node_like(name)
    if found is None:
        raise AgentNotFoundError("node", name, knows.node_names, hint=f"{wanted.name} leads there; define it again")
    node = build_node(found)
    if node.name != name:
        node = build_node(found, name=name)
    routes = [route for lead in leads if name in lead.starts for route in lead.routes if route != DEFAULT_ROUTE]
    if routes and isinstance(node, AgentNode) and not node.agent.runs_others:
        return _Chooser(**{one: getattr(node, one) for one in AgentNode.model_fields}, routes=routes)
    return node


class _Chooser(AgentNode):
    """An agent after which routes lead on: it chooses the one that its answer names."""

    routes: list[Any]

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(super()._run_impl(ctx=ctx, node_input=node_input)) as events:
            async for event in events:
                if isinstance(event, Event) and event.actions.route is None and event.is_answer():
                    event.actions.route = chosen(event.text, self.routes)
                yield event


def chosen(answer: str, routes: Sequence[Route]) -> Route | None:
    """The route that an answer is, or else the only one that stands in it as a word; case does not matter."""
    words = answer.strip().strip(".!*\"'` ").casefold()
    for one in routes:
        if words == str(one).casefold():
            return one
    found = [one for one in dict.fromkeys(routes) if re.search(rf"\b{re.escape(str(one))}\b", answer, re.IGNORECASE)]
    return found[0] if len(found) == 1 else None
