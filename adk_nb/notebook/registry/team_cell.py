"""Teams and graphs that a cell makes of what the notebook has: its agents, tools and functions, by their names."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Protocol

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.loop_agent import LoopAgent
from adk_nb.agents.parallel_agent import ParallelAgent
from adk_nb.agents.sequential_agent import SequentialAgent
from adk_nb.errors import AgentNotFoundError, ConfigurationError, InputError, WorkflowConfigurationError, closest
from adk_nb.events.event import Event
from adk_nb.expression import Expression
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.edges import Lead, leads_of, place
from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.function_node import FunctionNode
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, Edge, Route
from adk_nb.workflow.join_node import JoinNode
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.workflow import Workflow

_WORD = re.compile(r"[^\W\d]\w*")
_EXAMPLE = "until: session_state.get('score', 0) >= 8"
_UNTIL = re.compile(r"\s*until\s*:(.*)")
_BETWEEN = re.compile(r"->|→|,")


class Knows(Protocol):
    """What a team's cell asks its notebook."""

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


def members_of(wanted: AgentDefinition, knows: Knows) -> tuple[str, ...]:
    """The names in the body of a team's or a workflow's cell, each once, in the order of the text; of any other agent
    those that its line has. A name may be defined later; one that looks like a slip may not.

    Raises:
        UserError: A line cannot be read, or something cannot be a member; the message names the line.
    """
    if wanted.kind == "llm":
        return _under(wanted, knows)
    if wanted.kind != "workflow":
        return _team(wanted, knows)
    leads = leads_of(wanted.instruction, wanted.cell)
    for lead in leads:
        for name in (*lead.starts, *lead.ends):
            if name not in (START, END):
                _check_node(name, place(wanted.cell, lead.line), wanted, knows)
    named = (name for lead in leads for name in (*lead.starts, *lead.ends))
    return tuple(dict.fromkeys(one for one in named if one not in (START, END)))


def built(wanted: AgentDefinition, knows: Knows) -> BaseAgent:
    """The agent that the cell defines, with copies of its members as they are now, and something in the place of
    those that are not defined.

    Raises:
        UserError: They cannot be put together.
    """
    if wanted.kind == "workflow":
        return _workflow(wanted, knows)
    said: dict[str, Any] = {"name": wanted.name, "description": wanted.description}
    said["sub_agents"] = agents_under(wanted, knows)
    if wanted.kind == "parallel":
        return ParallelAgent(**said)
    if wanted.kind == "sequential":
        return SequentialAgent(**said)
    return LoopAgent(max_iterations=wanted.max_iterations, exit_condition=condition_of(wanted), **said)


def condition_of(wanted: AgentDefinition) -> str | None:
    """When a loop ends, as its cell says."""
    return next((text for _, text in _conditions(wanted)), None)


def agents_under(wanted: AgentDefinition, knows: Knows) -> list[BaseAgent]:
    """Copies of its members as they are now, so that one agent may be under several; something in the place of those
    that are not defined.
    """
    there = knows.agent_names
    return [knows.agent(name).clone() if name in there else NotYet(name=name) for name in wanted.members]


# ---- teams


def _under(wanted: AgentDefinition, knows: Knows) -> tuple[str, ...]:
    where = f"%%agent {wanted.name} --sub"
    for name in wanted.members:
        if not _WORD.fullmatch(name):
            raise InputError(f"{where}: {name!r:.60} is no name of an agent; write names with commas, as --sub a,b")
        if name == wanted.name:
            raise ConfigurationError(f"{where}: {name} cannot be under itself; leave it out")
        if name not in knows.agent_names and knows.node_like(name) is not None:
            raise InputError(f"{where}: no agent is named {name!r}; a tool is given with -t {name}")
        if name not in knows.agent_names and (slip := _not_later(name, knows.agent_names, knows)):
            raise InputError(f"{where}: no agent is named {name!r}; {slip}")
    return tuple(dict.fromkeys(wanted.members))


def _team(wanted: AgentDefinition, knows: Knows) -> tuple[str, ...]:
    found: dict[str, int] = {}
    for number, text in enumerate(wanted.instruction.split("\n"), 2):
        words = "" if _UNTIL.match(text) else text.partition("#")[0].strip()
        where = place(wanted.cell, number)
        if wanted.kind == "parallel" and re.search("->|→", words):
            raise InputError(f"{where}: these work at once, so no arrow is between them; write {_commas(words)}")
        _check_words(words, where, wanted, knows)
        for name in filter(None, map(str.strip, _BETWEEN.split(words))):
            _check_member(name, where, wanted, knows)
            if name in found:
                raise ConfigurationError(
                    f"{where}: {name} is in the team already, in line {found[name]}; leave one out, or use %%workflow, "
                    "where edges can lead back"
                )
            found[name] = number
    _check_conditions(wanted)
    if found and re.search(r"(->|→)\s*$", _without_remarks(wanted)):
        raise InputError(f"%%agent {wanted.name}: nothing follows the last arrow; write a name behind it")
    if not found:
        raise InputError(f"%%agent {wanted.name} --kind {wanted.kind} names no agents; write draft -> review below")
    return tuple(found)


def _without_remarks(wanted: AgentDefinition) -> str:
    lines = (line for line in wanted.instruction.split("\n") if not _UNTIL.match(line))
    return "\n".join(line.partition("#")[0] for line in lines)


def is_team(text: str, agents: Sequence[str]) -> bool:
    """Whether a text is nothing but names of agents with arrows or commas between them."""
    names = [name.strip() for name in _BETWEEN.split(text)]
    return len(names) > 1 and all(name in agents for name in names)


def _conditions(wanted: AgentDefinition) -> list[tuple[int, str]]:
    """What stands behind each `until:`, with its line."""
    lines = enumerate(wanted.instruction.split("\n"), 2)
    return [(number, found[1].strip()) for number, text in lines if (found := _UNTIL.match(text))]


def _check_conditions(wanted: AgentDefinition) -> None:
    for count, (number, text) in enumerate(_conditions(wanted)):
        where = place(wanted.cell, number)
        if wanted.kind != "loop":
            raise InputError(f"{where}: until: is when a loop ends, and {wanted.name} is none; write --kind loop")
        if not text:
            raise InputError(f"{where}: no condition stands behind until:; write {_EXAMPLE}")
        if count:
            raise InputError(f"{where}: until: is there already; write one condition, with and, or")
        try:
            Expression(text, ("session_state",))
        except ConfigurationError as wrong:
            raise InputError(f"{where}: {wrong}; for instance {_EXAMPLE}") from None


def _commas(words: str) -> str:
    return ", ".join(filter(None, map(str.strip, _BETWEEN.split(words))))


def _check_words(words: str, where: str, wanted: AgentDefinition, knows: Knows) -> None:
    """What is wrong with a line as a whole: marks that mean nothing here, or no mark between names."""
    found = [name for name in map(str.strip, _BETWEEN.split(words)) if name and not _WORD.fullmatch(name)]
    if not found:
        return
    if re.match(r"until\s+\w", words):
        raise InputError(f"{where}: a colon stands behind until; write until: {words[5:].strip()}")
    apart, arrow = _WORD.findall(words), ", " if wanted.kind == "parallel" else " -> "
    if apart and all(one in knows.agent_names for one in apart):
        raise InputError(f"{where}: {found[0]!r} is no name; write {arrow.join(apart)}")
    raise InputError(f"{where}: {found[0]!r:.60} is no name of an agent; write names alone, as draft{arrow}review")


def _check_member(name: str, where: str, wanted: AgentDefinition, knows: Knows) -> None:
    if name in (START, END):
        raise InputError(f"{where}: a team has no {name}; leave it out, or write %%workflow {wanted.name}")
    if name == wanted.name:
        raise ConfigurationError(f"{where}: {name} cannot be a member of itself")
    if name in knows.agent_names:
        return
    if knows.node_like(name) is not None:
        raise InputError(
            f"{where}: no agent is named {name!r}; {name} is a tool or a function, and only %%workflow takes those"
        )
    if slip := _not_later(name, knows.agent_names, knows):
        raise InputError(f"{where}: no agent is named {name!r}; {slip}")


# ---- workflows


def _check_node(name: str, where: str, wanted: AgentDefinition, knows: Knows) -> None:
    if name == wanted.name:
        raise WorkflowConfigurationError(f"{where}: {name} cannot be a node of itself; lead to its first node instead")
    if knows.node_like(name) is not None:
        return
    if name.upper() in (START, END):
        raise WorkflowConfigurationError(f"{where}: {name!r} is written in capitals: {name.upper()}")
    if name in knows.variables:
        kind = type(knows.variables[name]).__name__
        raise WorkflowConfigurationError(
            f"{where}: {name!r} is a variable of type {kind}, and a node is an agent, a tool or a function"
        )
    if slip := _not_later(name, [*knows.node_names, START, END], knows):
        raise WorkflowConfigurationError(f"{where}: no agent, tool or function is named {name!r}; {slip}")


def _not_later(name: str, known: Sequence[str], knows: Knows) -> str:
    """Why no later cell will define it, and what to write; empty if one may."""
    if near := typo_of(name, known):
        return f"did you mean {near!r}? If not, run the cell that defines {name} first"
    return "" if knows.can_name_an_agent(name) else "an agent cannot be named so either; choose another name"


def _workflow(wanted: AgentDefinition, knows: Knows) -> Workflow:
    leads = leads_of(wanted.instruction, wanted.cell)
    nodes: dict[str, BaseNode] = {name: _node(name, leads, knows) for name in wanted.members}
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


def _node(name: str, leads: Sequence[Lead], knows: Knows) -> BaseNode:
    found = knows.node_like(name)
    node = build_node(NotYet(name=name) if found is None else found)
    if node.name != name:
        node = build_node(found, name=name)
    routes = [route for lead in leads if name in lead.starts for route in lead.routes if route != DEFAULT_ROUTE]
    if routes and isinstance(node, AgentNode) and not node.agent.runs_others:
        return _Chooser(**{one: getattr(node, one) for one in AgentNode.model_fields}, routes=routes)
    if routes and type(node) is FunctionNode:
        return _Sorter(**{one: getattr(node, one) for one in FunctionNode.model_fields}, routes=routes)
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


class NotYet(BaseAgent):
    """Holds the place of an agent, or of a function, until its cell is run."""

    drawn_as: ClassVar[str] = "not defined yet"

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        raise missing(self.name, ctx.agent.name, (), in_a_graph=False)
        yield


def missing(name: str, team: str, known: Sequence[str], *, in_a_graph: bool) -> AgentNotFoundError:
    """The error for a member that is not there when its team is to run. `known`: the agents."""
    if in_a_graph:
        return AgentNotFoundError(
            "agent, tool or function", name, hint=f"{team} needs it: run the cell that defines {name}"
        )
    return AgentNotFoundError("agent", name, known, hint=f"{team} needs it: run the cell that begins %%agent {name}")


def typo_of(name: str, known: Sequence[str]) -> str | None:
    """The known name of which `name` is most likely a slip: about as long, almost the same, the same digits."""
    near = closest(name, known, cutoff=0.8)
    same = near and abs(len(near) - len(name)) < 2 and _digits(near) == _digits(name)
    return near if same else None


def _digits(name: str) -> list[str]:
    return [one for one in name if one.isdigit()]
