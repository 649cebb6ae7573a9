"""Teams and graphs of cells: their grammar, and the teams built of what the notebook has under those names."""

import ast
import itertools
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from adk_nb import agents
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import AgentNotFoundError, ConfigurationError, InputError, WorkflowConfigurationError, closest
from adk_nb.events.event import Event
from adk_nb.expression import Expression
from adk_nb.notebook.cells.definitions import AgentDefinition
from adk_nb.notebook.cells.names import Names
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, Route

_NAME = re.compile(r"[^\W\d]\w*")
_UNTIL = re.compile(r"^[ \t]*until[ \t]*:(.*)$", re.MULTILINE)
_SEPARATOR = re.compile(r"->|→|,")
_TOKEN = re.compile(
    r"(?P<arrow>-\[(?P<routes>[^\]]*)\]->|->|→)|(?P<name>[^\W\d]\w*)|\((?P<set>[\w\s,]*)\)"
    r"|(?P<unknown>[\[{(].*?[)\]}]|[^\w\s,;]+\w*[^\w\s,;]*|\S)"
)
_SYNTAX = f"write names and arrows, as {START} -> draft, draft -[route]-> review, or (draft, review) -> {END}"
_LIKE_DEFAULT = ("default", "else", "otherwise", "any")


# ---- the text of a cell


@dataclass(frozen=True)
class CellEdge:
    """An edge of a `%%workflow` cell, from each of `starts` to each of `ends`."""

    starts: tuple[str, ...]
    ends: tuple[str, ...]
    routes: tuple[Route, ...]
    """Empty: always taken."""
    line: int
    """Line of the cell, counted from that of the magic."""

    @property
    def is_join(self) -> bool:
        """True if the ends wait for all of several starts."""
        return len(self.starts) > 1


def parse_edges(definition: AgentDefinition) -> list[CellEdge]:
    """Read the edges of a `%%workflow` cell, in the order of the text.

    Raises:
        WorkflowConfigurationError: A line cannot be read; the message names it.
    """
    edges: list[CellEdge] = []
    for number, text in enumerate(definition.instruction.split("\n"), 2):
        if line := text.partition("#")[0].strip():
            location = location_of(definition, number)
            for (starts, _), (ends, routes) in itertools.pairwise(_parse_chain(line, location)):
                if routes and len(starts) > 1:
                    refuse(location, f"a route is chosen by one node; write {starts[0]} -[...]-> {ends[0]} alone")
                edges.append(CellEdge(starts, ends, routes, number))
    return edges


def member_names(definition: AgentDefinition, names: Names) -> tuple[str, ...]:
    """Names in the body of a team or a workflow, or in `--sub` of any other agent; each once, in their order.

    A name may be defined in a later cell, unless it looks like a slip of a known one.

    Raises:
        UserError: A line cannot be read, or something cannot be a member; the message names the line.
    """
    members: dict[str, str] = {}  # the name of each -> the first line that has it
    if definition.kind == "workflow":
        for edge in parse_edges(definition):
            for name in (*edge.starts, *edge.ends):
                if name not in (START, END):
                    members.setdefault(name, location_of(definition, edge.line))
    elif definition.kind == "llm":
        members = dict.fromkeys(definition.members, f"%%agent {definition.name} --sub")
    else:
        members = _team_members(definition)
    for name, location in members.items():
        if fault := _member_fault(name, definition, names):
            error = WorkflowConfigurationError if definition.kind == "workflow" else InputError
            raise error(f"{location}: {fault}")
    below = list(members)
    for name in below:  # grows while it is read: members of members follow
        if name == definition.name:
            raise ConfigurationError(f"{name} cannot be a member of itself; leave it out")
        below += names.definitions[name].members if name in names.definitions else ()
    return tuple(members)


def is_team(text: str, agents: Sequence[str]) -> bool:
    """True for names of agents with arrows or commas between them, and nothing else."""
    names = [name.strip() for name in _SEPARATOR.split(text)]
    return len(names) > 1 and all(name in agents for name in names)


def condition_of(definition: AgentDefinition) -> str | None:
    """The condition that ends a loop, as its cell says."""
    match = _UNTIL.search(definition.instruction)
    return match[1].strip() if match else None


def location_of(definition: AgentDefinition, line: int) -> str:
    """`In[3] line 2`."""
    return f"In[{definition.cell}] line {line}"


def refuse(location: str, fault: str) -> NoReturn:
    """Raise the error of a line that is no edge."""
    raise WorkflowConfigurationError(f"{location}: {fault}")


def _parse_chain(line: str, location: str) -> list[tuple[tuple[str, ...], tuple[Route, ...]]]:
    """Names and sets of names, each with the routes on the arrow before it."""
    chain: list[tuple[tuple[str, ...], tuple[Route, ...]]] = []
    routes: tuple[Route, ...] | None = ()
    for token in _TOKEN.finditer(line):
        is_arrow = token["arrow"] is not None
        if token["unknown"] or is_arrow is not (routes is None):
            expected = "an arrow" if routes is None else "a name"
            refuse(location, f"expected {expected}, got {token.group()!r}; {_SYNTAX}")
        if is_arrow:
            routes = _parse_routes(token["routes"], location)
        else:
            names = [token["name"]]
            if token["name"] is None:
                names = [name.strip() for name in token["set"].split(",")]
                for name in names:
                    if not name.isidentifier():
                        refuse(location, f"({token['set']}) is not a set of names; write (draft, review)")
                    if names.count(name) > 1:
                        refuse(location, f"{name} is in the brackets twice; leave one out")
                    if name in (START, END):
                        refuse(location, f"{name} stands alone and not in brackets")
            chain.append((tuple(names), routes or ()))
            routes = None
    if routes is not None:
        refuse(location, f"nothing follows the last arrow; write a name behind it, or {END}")
    if len(chain) == 1:
        example = f"{line} -> draft" if line == START else f"{START} -> {line}"
        refuse(location, f"{line} is not an edge; write where it leads, as {example}")
    return chain


def _parse_routes(text: str | None, location: str) -> tuple[Route, ...]:
    if text is None:
        return ()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not name:
            refuse(location, "the route is empty; write its name, as -[ok]->, or -[*]-> for any other")
        if name == "*" and len(names) > 1:
            refuse(location, "* is any other route and stands alone: -[*]->")
        if name.lower() in _LIKE_DEFAULT:
            refuse(location, f"any other route is written -[*]->; a route named {name} is quoted: -['{name}']->")
        if "|" in name and name[0] not in "'\"":
            refuse(location, f"commas stand between routes: -[{name.replace('|', ', ')}]->")
    routes: list[Route] = []
    for name in names:
        value = name
        with suppress(SyntaxError, ValueError):  # a number, a bool, or quoted text as in Python; else text as it is
            value = ast.literal_eval(name)
        value = value if isinstance(value, bool | int | str) else name
        routes.append(DEFAULT_ROUTE if name == "*" else value)
    return tuple(routes)


def _team_members(definition: AgentDefinition) -> dict[str, str]:
    """Name of each member -> its line."""
    members: dict[str, str] = {}
    has_condition = False
    for number, text in enumerate(definition.instruction.split("\n"), 2):
        location = location_of(definition, number)
        if condition := _UNTIL.match(text):
            if definition.kind != "loop":
                raise InputError(
                    f"{location}: only a loop ends by a condition, not {definition.name}; write --kind loop"
                )
            if has_condition:
                raise InputError(f"{location}: a second until:; write one condition, with `and` or `or`")
            try:
                Expression(condition[1].strip(), ("session_state",))
            except ConfigurationError as error:
                example = "until: session_state.get('score', 0) >= 8"
                raise InputError(f"{location}: {error}; for instance {example}") from None
            has_condition = True
            continue
        line = text.partition("#")[0]
        names = [name for part in _SEPARATOR.split(line) if (name := part.strip())]
        if definition.kind == "parallel" and re.search("->|→", line):
            raise InputError(f"{location}: parallel agents have no order; write commas between: {', '.join(names)}")
        for name in names:
            if name in members:
                raise InputError(
                    f"{location}: {name} is in the team already, in {members[name].partition(' ')[2]}; leave one out, "
                    "or use %%workflow, where edges can lead back"
                )
            members[name] = location
    if not members:
        raise InputError(
            f"%%agent {definition.name} --kind {definition.kind} names no agents; write draft -> review below"
        )
    return members


def _member_fault(name: str, definition: AgentDefinition, names: Names) -> str:
    """Why a name is no member and cannot become one in a later cell; empty if it is or can."""
    is_graph = definition.kind == "workflow"
    if not _NAME.fullmatch(name):
        separators = "commas" if definition.kind in ("parallel", "llm") else "arrows"
        example = {"parallel": "draft, review", "llm": "--sub a,b"}.get(definition.kind, "draft -> review")
        return f"{name!r:.60} is not the name of an agent; write names with {separators} between them, as {example}"
    if name == definition.name:
        return f"{name} cannot be a {'node' if is_graph else 'member'} of itself; leave it out"
    if is_graph and name.upper() in (START, END):
        return f"{name!r} is written in capitals: {name.upper()}"
    if name in (START, END):
        return f"a team has no {name}; leave it out, or write %%workflow {definition.name}"
    node = names.node_like(name)
    if name in names.agent_names or (is_graph and node is not None):
        return ""
    if is_graph and name in names.variables:
        kind = type(names.variables[name]).__name__
        return f"{name!r} is a variable of type {kind}; a node is an agent, a tool or a function"
    if node is not None:
        hint = f"give it with -t {name}" if definition.kind == "llm" else "only %%workflow takes those"
        return f"{name!r} is a tool or a function, not an agent; {hint}"
    fault = f"no {'agent, tool or function' if is_graph else 'agent'} is named {name!r}"
    near = closest(name, [*names.node_names, START, END] if is_graph else names.agent_names, cutoff=0.8)
    if near and abs(len(near) - len(name)) < 2 and re.findall(r"\d", near) == re.findall(r"\d", name):
        return f"{fault}; did you mean {near!r}? If not, run the cell that defines {name} first"
    return "" if names.can_name_an_agent(name) else f"{fault}; an agent cannot have that name; choose another"


# ---- the agents


class Placeholder(BaseAgent):
    """Stands for an agent, or a function, until its cell is run."""

    drawn_as: ClassVar[str] = "not defined yet"

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        raise missing_member(self.name, ctx.agent.name, (), is_graph=False)
        yield


def missing_member(name: str, team: str, agents: Sequence[str], *, is_graph: bool) -> AgentNotFoundError:
    """The error for a member that is not defined when its team is to run."""
    kind = "agent, tool or function" if is_graph else "agent"
    cell = f"defines {name}" if is_graph else f"begins %%agent {name}"
    return AgentNotFoundError(kind, name, () if is_graph else agents, hint=f"{team} needs it: run the cell that {cell}")


def build(definition: AgentDefinition, names: Names) -> BaseAgent:
    """The team of a cell, with copies of its members as they are now.

    Raises:
        UserError: They cannot be put together.
    """
    fields: dict[str, Any] = {"name": definition.name, "description": definition.description}
    fields["sub_agents"] = clone_members(definition, names)
    if definition.kind == "parallel":
        return agents.ParallelAgent(**fields)
    if definition.kind == "sequential":
        return agents.SequentialAgent(**fields)
    return agents.LoopAgent(max_iterations=definition.max_iterations, exit_condition=condition_of(definition), **fields)


def clone_members(definition: AgentDefinition, names: Names) -> list[BaseAgent]:
    """Copies of the members as they are now, so that one agent may be under several."""
    agents = names.agent_names
    return [names.agent(name).clone() if name in agents else Placeholder(name=name) for name in definition.members]
