"""Look up what a notebook has by name: agents, tools and nodes of cells and of Python."""

import builtins
import inspect
import keyword
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import AgentNotFoundError, ConfigurationError, InputError, ToolNotFoundError, UserError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.chat import Chat
from adk_nb.notebook.registry.definitions import AgentDefinition, ToolDefinition, digest
from adk_nb.notebook.registry.versions import as_in_force
from adk_nb.notebook.variables import user_variables
from adk_nb.runners import Runner
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.foreign_tool import how_to_wrap
from adk_nb.workflow.base_node import BaseNode

_RESERVED = ("all", "list", "rm", "help", "user", "state", "notebook")
"""Names no agent and no tool can have: they are words of the magics and of the event log."""


class Names:
    """Looks names up. Nothing is made here.

    Args:
        variables: The user's namespace; Python's own agents and tools are found in it.
    """

    def __init__(self, variables: MutableMapping[str, Any]) -> None:
        self.variables = variables
        self.definitions: dict[str, AgentDefinition] = {}
        self.tools: dict[str, ToolDefinition] = {}
        self.made: dict[str, BaseAgent] = {}
        """The agents that cells have made."""

    def model_named(self, name: str) -> BaseLlm | None:
        """The model that a variable of that name holds."""
        found = self.variables.get(name)
        return found if isinstance(found, BaseLlm) else None

    @property
    def agent_names(self) -> list[str]:
        """Agents by the names they can be asked by: those that cells define, then those that variables hold."""
        held = [one for one, value in self.variables.items() if isinstance(value, BaseAgent) and one[0] != "_"]
        return list(dict.fromkeys([*self.definitions, *held]))

    @property
    def addressees(self) -> list[str]:
        """The names that can be asked: those of agents, then variables that hold an app or a runner."""
        held = [one for one, value in self.variables.items() if isinstance(value, App | Runner) and one[0] != "_"]
        return list(dict.fromkeys([*self.agent_names, *held]))

    @property
    def agent_words(self) -> list[str]:
        """What a line for an agent may begin with: the names that can be asked, then what agents call themselves."""
        return list(dict.fromkeys([*self.addressees, *(self.agent(one).name for one in self.agent_names)]))

    @property
    def conversations(self) -> dict[str, str]:
        """Variables that hold a chat -> how one speaks to it."""
        held = [name for name, value in self.variables.items() if isinstance(value, Chat) and name[0] != "_"]
        return {name: f"{name}.ask('...')" for name in held}

    def has_own_sessions(self, name: str) -> bool:
        """Whether the variable of that name holds a runner, whose sessions are not those of the notebook."""
        return isinstance(self.variables.get(name), Runner)

    @property
    def tool_names(self) -> list[str]:
        """Tools that cells define, then those that variables hold; toolsets by the names of their variables."""
        held = [
            value.name if isinstance(value, BaseTool) else one
            for one, value in self.variables.items()
            if isinstance(value, BaseTool | BaseToolset) and one[0] != "_" and not self._is_a_definitions(value)
        ]
        return list(dict.fromkeys([*self.tools, *held]))

    @property
    def node_names(self) -> list[str]:
        """The names that `node_like` knows."""
        named = [name for name in user_variables(self.variables) if self.node_like(name) is not None]
        return list(dict.fromkeys([*self.agent_names, *self.tool_names, *named]))

    def agent(self, name: str) -> BaseAgent:
        """The agent of that name, or the root agent of that app or runner. A variable counts before a cell.

        Raises:
            AgentNotFoundError: There is none.
        """
        held = self.variables.get(name)
        held = held.root_agent if isinstance(held, App) else held.agent if isinstance(held, Runner) else held
        if isinstance(held, BaseAgent):
            return held
        if name in self.made:
            return self.made[name]
        raise AgentNotFoundError("agent", name, self.addressees, hint="" if self.addressees else "see %%agent?")

    def is_of_its_cell(self, name: str) -> bool:
        """Whether the agent of that name is the one its cell has made, not one that Python put there later."""
        return name in self.made and self.agent(name) is self.made[name]

    def tool(self, name: str) -> BaseTool:
        """The tool of that name, as it is defined now.

        Raises:
            ToolNotFoundError: There is none.
        """
        defined = self.tools[name].tool if name in self.tools else None
        held = self.variables.get(name)
        if isinstance(defined or held, BaseTool):
            return cast(BaseTool, defined or held)
        for value in self.variables.values():
            if isinstance(value, BaseTool) and value.name == name:
                return value
        hint = f"{name} is a function here, type: %tool {name}" if callable(held) else ""
        if wrapped := how_to_wrap(held):
            hint = f"{name} is a tool of another library here; write {name}_tool = {wrapped.format(name)}"
        raise ToolNotFoundError("tool", name, self.tool_names, hint=hint)

    def has_tool(self, name: str) -> bool:
        """Whether `tool` or `toolset` finds one of that name."""
        return name in self.tool_names or isinstance(self.variables.get(name), BaseTool)

    def toolset(self, name: str) -> BaseToolset | None:
        """The toolset that a cell has made, or that the variable of that name holds, if it is one."""
        held = self.tools[name].tool if name in self.tools else self.variables.get(name)
        return held if isinstance(held, BaseToolset) else None

    def tools_named(self, names: Sequence[str], /) -> list[BaseTool | BaseToolset]:
        """Tools and toolsets as they are defined now.

        Raises:
            ToolNotFoundError: One is not.
        """
        return [as_in_force(self.toolset(name) or self.tool(name)) for name in names]

    def node_like(self, name: str, /) -> Any:
        """What a graph can have as the node `name`: an agent, a tool, a function, or a node; None: nothing."""
        if name in self.agent_names:
            return self.agent(name)
        with suppress(ToolNotFoundError):
            return self.tool(name)
        held = self.variables.get(name)
        return held if isinstance(held, BaseNode) or inspect.isroutine(held) else None

    def name_of(self, agent: str) -> str | None:
        """By what name an agent that calls itself `agent` can be asked, its own first; None: it is gone."""
        names = [one for one in self.agent_names if self.agent(one).name == agent]
        return agent if agent in names else next(iter(names), None)

    def users_of(self, tool: str) -> list[str]:
        """The agents whose cells name a tool, workflows among them."""
        return [one.name for one in self.definitions.values() if tool in one.tools or tool in one.members]

    def version_in_words(self, name: str) -> str:
        """`v2`; empty for what no cell has defined."""
        definition = self.definitions.get(name)
        return f"v{definition.version}" if definition and self.is_of_its_cell(name) else ""

    def versions_of(self, name: str) -> dict[str, int]:
        """Of an agent and of those under it that cells have defined, by their names."""
        found: dict[str, int] = {}
        for one in [name, *self.definitions[name].members] if name in self.definitions else ():
            if one in self.definitions and self.is_of_its_cell(one):
                found |= {one: self.definitions[one].version} if one == name else self.versions_of(one)
        return found

    def digest_of(self, name: str) -> str:
        """Of what an agent is as its cell and those of the agents under it say; empty for what no cell has defined."""
        if name not in self.definitions or not self.is_of_its_cell(name):
            return ""
        definition = self.definitions[name]
        return digest([definition.lasting_digest, *(self.digest_of(one) for one in definition.members)])

    def can_name_an_agent(self, name: str, /) -> bool:
        """Whether a later cell may define an agent of that name."""
        try:
            self.check_agent_name(name)
        except UserError:
            return False
        return True

    def check_agent_name(self, name: str, *, replace: bool = False) -> None:
        """Raise a UserError if an agent cannot have that name. `replace`: it takes it from what else has it."""
        if name in _RESERVED or keyword.iskeyword(name):
            raise InputError(
                f"an agent cannot be named {name!r}: the word has a meaning of its own; choose another name"
            )
        if hasattr(builtins, name):
            raise InputError(f"an agent named {name!r} would hide Python's own; choose another name, as {name}_agent")
        if replace:
            return
        held = self.variables.get(name)
        if name in self.tools or isinstance(held, BaseTool | BaseToolset):
            where = _where(self.tools[name].cell) if name in self.tools else "here"
            raise ConfigurationError(
                f"{name!r} is a tool {where}; give the agent another name, or add --replace to take this one"
            )
        if name in self.variables and not isinstance(held, BaseAgent):
            kind = type(held).__name__
            raise InputError(f"{name!r} is a variable of type {kind}; give the agent another name, or: del {name}")

    def check_function_name(self, name: str, *, replace: bool = False) -> None:
        """Raise a UserError if a tool, or the function it is made of, cannot have that name.

        `replace`: it takes it from the agent that has it.
        """
        if name in _RESERVED:
            raise InputError(f"a tool cannot be named {name!r}: the word has a meaning of its own; use --rename")
        if name in self.agent_names and not replace:
            definition = self.definitions.get(name)
            where = _where(definition.cell) if definition else "here"
            raise ConfigurationError(
                f"{name!r} is an agent {where}; give the tool another name, or add --replace to take this one"
            )

    def _is_a_definitions(self, tool: BaseTool | BaseToolset) -> bool:
        return any(one.tool is tool for one in self.tools.values())


def _where(cell: int | None) -> str:
    return f"(In[{cell}])" if cell is not None else "here"
