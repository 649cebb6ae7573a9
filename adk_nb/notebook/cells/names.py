"""Look up what a notebook has by name: agents, tools and nodes of cells and of Python."""

import builtins
import inspect
import keyword
from collections.abc import Collection, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import AgentNotFoundError, ConfigurationError, InputError, ToolNotFoundError, UserError
from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.cells.definitions import AgentDefinition, ToolDefinition, digest, tool_in_force
from adk_nb.notebook.cells.session_store import SessionStore
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.variables import user_variables
from adk_nb.runners import Runner
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.foreign_tool import wrapper_template
from adk_nb.workflow.base_node import BaseNode

_RESERVED = ("all", "list", "rm", "help", "user", "state", "notebook")
"""Words of the magics and authors of the event log, which agents and tools must not be named."""


class Names:
    """The names of a notebook, read only. A variable that Python has assigned wins over a cell.

    Args:
        variables: The user's namespace; Python's own agents and tools are found in it.
    """

    def __init__(self, variables: MutableMapping[str, Any]) -> None:
        self.variables = variables
        self.definitions: dict[str, AgentDefinition] = {}
        self.tools: dict[str, ToolDefinition] = {}
        self.cell_agents: dict[str, BaseAgent] = {}
        """The agents that cells have built."""
        self.failed: dict[str, str] = {}
        """Name -> the cell that was to define an agent of it and failed, and why."""
        self.removed: set[str] = set()
        """Agents that were removed, and not defined again since."""
        self.sessions = SessionStore(lambda: self.addressees)
        self.strict = False
        """Refuse a cell that names what is not defined yet."""

    # ---- agents

    @property
    def agent_names(self) -> list[str]:
        """Agents of cells, then those in variables."""
        return list(dict.fromkeys([*self.definitions, *self._variables_of(BaseAgent)]))

    @property
    def addressees(self) -> list[str]:
        """Names that can be chatted with: agents, then variables with an app or a runner."""
        return list(dict.fromkeys([*self.agent_names, *self._variables_of(App, Runner)]))

    @property
    def root_names(self) -> list[str]:
        """The addressees that are under no other one, as members of a team or in an app."""
        below = {member for name in self.addressees for member in self.members_of(name) if member != name}
        roots = {id(self.variables.get(name, name)): name for name in reversed(self.addressees) if name not in below}
        return [*reversed(roots.values())] or self.addressees

    def members_of(self, name: str) -> Collection[str]:
        """The agents directly under an addressee: in its team, or in its app."""
        if self.is_of_its_cell(name):
            return self.definitions[name].members
        value = self.variables.get(name)
        agent = self.agent(name)
        members = {id(member) for member in (agent.members if value is agent else [agent])}
        return {other for other in self.agent_names if id(self.agent(other)) in members}

    def speaker_of(self, name: str) -> str:
        """The agent whose session an agent speaks in: the root of its team, if it has not spoken without that."""
        below: set[str] = set()
        while name not in below:
            below.add(name)
            roots = [root for root in self.addressees if root != name and name in self.members_of(root)]
            if len(roots) != 1 or self.has_own_sessions(roots[0]):
                break
            own = self.sessions.where_spoken(name)
            if own is not None and roots[0] not in self.sessions.speakers(own):
                break
            [name] = roots
        return name

    def session_of(self, name: str) -> str:
        """The session in which an agent speaks, unless a line names another one."""
        return self.sessions.of_agent(self.speaker_of(name))

    def events_of(self, name: str) -> list[Event]:
        """The events of the session in which an agent speaks; none if there is none yet."""
        return self.sessions.events_if_any(self.session_of(name))

    def state_of(self, name: str) -> dict[str, Any]:
        """A copy of the state of that session."""
        return self.sessions.state_if_any(self.session_of(name))

    @property
    def agent_words(self) -> list[str]:
        """First words that address an agent: the addressees, then the agents' own names."""
        return list(dict.fromkeys([*self.addressees, *(self.agent(name).name for name in self.agent_names)]))

    @property
    def conversations(self) -> dict[str, str]:
        """Variables that hold a chat -> how to use it."""
        return {name: f"{name}.ask('...')" for name in self._variables_of(Chat)}

    def agent(self, name: str) -> BaseAgent:
        """The agent of that name, or the root agent of an app or runner.

        Raises:
            AgentNotFoundError: There is none.
        """
        value = self.variables.get(name)
        value = value.root_agent if isinstance(value, App) else value.agent if isinstance(value, Runner) else value
        if isinstance(value, BaseAgent):
            return value
        if name not in self.cell_agents:
            hint = self.failed.get(name) or ("" if self.addressees else "see %%agent?")
            raise AgentNotFoundError("agent", name, self.addressees, hint=hint)
        return self.cell_agents[name]

    def is_of_its_cell(self, name: str) -> bool:
        """True for the agent that its cell has built, and Python has not replaced."""
        return name in self.cell_agents and self.agent(name) is self.cell_agents[name]

    def has_own_sessions(self, name: str) -> bool:
        """True for a variable with a runner, whose sessions are not the notebook's."""
        return isinstance(self.variables.get(name), Runner)

    def name_of(self, agent: str) -> str | None:
        """The addressee whose agent is named `agent`, preferring that name itself; None: it is gone."""
        names = [name for name in self.agent_names if self.agent(name).name == agent]
        return agent if agent in names else next(iter(names), None)

    def model_named(self, word: str) -> BaseLlm | str:
        """The model in a variable, or the name of one; that may be in a variable, too."""
        value = self.variables.get(word)
        return value if isinstance(value, BaseLlm) or (value and isinstance(value, str)) else word

    def version_in_words(self, name: str) -> str:
        """`v2`; empty for an agent that no cell has defined."""
        return f"v{self.definitions[name].version}" if self.is_of_its_cell(name) else ""

    def versions_of(self, name: str) -> dict[str, int]:
        """Versions of an agent and of those under it that cells have defined, by name."""
        if not self.is_of_its_cell(name):
            return {}
        versions = {name: self.definitions[name].version}
        for member in self.definitions[name].members:
            versions |= self.versions_of(member)
        return versions

    def digest_of(self, name: str) -> str:
        """Digest of the cells of an agent and of those under it; empty for an agent that no cell has defined."""
        if not self.is_of_its_cell(name):
            return ""
        definition = self.definitions[name]
        return digest([definition.lasting_digest, *map(self.digest_of, definition.members)])

    def _variables_of(self, *kinds: type) -> list[str]:
        return [name for name, value in self.variables.items() if isinstance(value, kinds) and name[0] != "_"]

    # ---- tools, nodes, keys

    @property
    def tool_names(self) -> list[str]:
        """Tools of cells, then those in variables; a toolset has the name of its variable."""
        cell_tools = {id(definition.tool) for definition in self.tools.values()}
        names = [
            value.name if isinstance(value, BaseTool) else variable
            for variable in self._variables_of(BaseTool, BaseToolset)
            if id(value := self.variables[variable]) not in cell_tools
        ]
        return list(dict.fromkeys([*self.tools, *names]))

    @property
    def node_names(self) -> list[str]:
        """The names that `node_like` knows."""
        nodes = [name for name in user_variables(self.variables) if self.node_like(name) is not None]
        return list(dict.fromkeys([*self.agent_names, *self.tool_names, *nodes]))

    def tool(self, name: str) -> BaseTool:
        """The tool of that name, as it is defined now.

        Raises:
            ToolNotFoundError: There is none.
        """
        variable = self.variables.get(name)
        tool = self.tools[name].tool if name in self.tools else variable
        for value in (tool, *self.variables.values()):
            if isinstance(value, BaseTool) and (value is tool or value.name == name):
                return value
        hint = f"{name} is a function here, type: %tool {name}" if callable(variable) else ""
        if wrapper := wrapper_template(variable):
            hint = f"{name} is a tool of another library here; write {name}_tool = {wrapper.format(name)}"
        raise ToolNotFoundError("tool", name, self.tool_names, hint=hint)

    def has_tool(self, name: str) -> bool:
        """True if `tools_named` finds a tool or toolset of that name."""
        return name in self.tool_names or isinstance(self.variables.get(name), BaseTool)

    def toolset(self, name: str) -> BaseToolset | None:
        """The toolset of a cell or in a variable."""
        value = self.tools[name].tool if name in self.tools else self.variables.get(name)
        return value if isinstance(value, BaseToolset) else None

    def tools_named(self, names: Sequence[str]) -> list[BaseTool | BaseToolset]:
        """Tools and toolsets as they are defined now.

        Raises:
            ToolNotFoundError: One is not.
        """
        return [tool_in_force(self.toolset(name) or self.tool(name)) for name in names]

    def users_of(self, tool: str) -> list[str]:
        """The agents and workflows whose cells name a tool."""
        definitions = self.definitions.values()
        return [definition.name for definition in definitions if tool in (*definition.tools, *definition.members)]

    def node_like(self, name: str) -> Any:
        """The agent, tool, function or node that a graph can have by that name; None: there is none."""
        if name in self.agent_names:
            return self.agent(name)
        with suppress(ToolNotFoundError):
            return self.tool(name)
        value = self.variables.get(name)
        return value if isinstance(value, BaseNode) or inspect.isroutine(value) else None

    def is_key(self, name: str) -> bool:
        """True if `{name}` in an instruction means the state, even if the key is not set now."""
        return name in self.sessions.keys or any(name == agent.output_key for agent in self.definitions.values())

    # ---- new names

    def can_name_an_agent(self, name: str) -> bool:
        """True if a later cell may define an agent of that name."""
        try:
            self.check_agent_name(name)
        except UserError:
            return False
        return True

    def check_agent_name(self, name: str, *, replace: bool = False) -> None:
        """Raise a UserError if an agent cannot have that name. `replace`: a tool may lose it."""
        if name in _RESERVED or keyword.iskeyword(name):
            raise InputError(f"an agent cannot be named {name!r}, a reserved word; choose another name")
        if hasattr(builtins, name):
            raise InputError(f"an agent named {name!r} would hide Python's own; choose another name, as {name}_agent")
        if replace:
            return
        value = self.variables.get(name)
        if name in self.tools or isinstance(value, BaseTool | BaseToolset):
            raise ConfigurationError(
                f"{name!r} is a tool {_cell_label(self.tools.get(name))}; give the agent another name, or add "
                "--replace to take this one"
            )
        if name in self.variables and not isinstance(value, BaseAgent):
            kind = type(value).__name__
            raise InputError(f"{name!r} is a variable of type {kind}; give the agent another name, or: del {name}")

    def check_function_name(self, name: str, *, replace: bool = False) -> None:
        """Raise a UserError if a tool, or its function, cannot have that name. `replace`: an agent may lose it."""
        if name in _RESERVED:
            raise InputError(f"a tool cannot be named {name!r}, a reserved word; use --rename {name}=NAME")
        if name in self.agent_names and not replace:
            raise ConfigurationError(
                f"{name!r} is an agent {_cell_label(self.definitions.get(name))}; give the tool another name, or add "
                "--replace to take this one"
            )


def _cell_label(definition: AgentDefinition | ToolDefinition | None) -> str:
    return f"(In[{definition.cell}])" if definition else "here"
