"""What this notebook has defined: agents and tools by name, and the conversations with them."""

import builtins
import inspect
import keyword
import shlex
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import AgentNotFoundError, ConfigurationError, InputError, ToolNotFoundError, UserError, closest
from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.registry import LLMRegistry, default_model
from adk_nb.notebook.cells import team_cell
from adk_nb.notebook.cells.addressed import last_spoken_to, spoken_to, told_of
from adk_nb.notebook.cells.cell_agent import CellAgent
from adk_nb.notebook.cells.definitions import AgentDefinition, ToolDefinition, digest
from adk_nb.notebook.cells.not_yet import missing
from adk_nb.notebook.cells.session_store import APP, USER, SessionStore
from adk_nb.notebook.cells.templates import Template, read
from adk_nb.notebook.chat import Chat
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.display import Mode
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.foreign_tool import how_to_wrap
from adk_nb.workflow.base_node import BaseNode

RESERVED = ("all", "list", "rm", "help", "user", "state", "notebook")
"""Names no agent and no tool can have: they are words of the magics and of the event log."""
_OF_IPYTHON = ("In", "Out", "exit", "quit", "open", "get_ipython")


class Notebook:
    """One per shell. Names, not objects: an agent keeps the names of its tools and looks them up at each turn.

    Args:
        variables: The user's namespace; agents are bound in it, and Python's own agents and tools are found in it.
    """

    def __init__(self, variables: MutableMapping[str, Any]) -> None:
        self.variables = variables
        self.sessions = SessionStore()
        self.definitions: dict[str, AgentDefinition] = {}
        self.tools: dict[str, ToolDefinition] = {}
        self.root: str | None = None
        """Who gets a line that names no agent."""
        self.last_asked: str | None = None
        self.removed: set[str] = set()
        """Agents that were taken out and are not defined again."""
        self._agents: dict[str, BaseAgent] = {}
        self._made_of: dict[str, list[Any]] = {}
        """Team or workflow -> what it was made of, by the order of its members."""
        self._chats: dict[tuple[str, str], Chat] = {}

    def define_agent(self, wanted: AgentDefinition, *, root: bool = False) -> list[str]:
        """Define an agent, or a new version of it. Sessions are kept.

        Args:
            wanted: As the cell says; its version does not matter.
            root: It gets the lines that name no agent.

        Returns:
            What there is to say of it, a line each.

        Raises:
            UserError: The definition cannot be; all is as it was.
        """
        name = wanted.name
        self._check_agent_name(name)
        is_llm = wanted.kind == "llm"
        template = None if wanted.raw or not is_llm else read(wanted.instruction, self.variables)
        wanted = replace(wanted, variables=template.variables if template else {})
        wanted = replace(wanted, members=team_cell.members_of(wanted, self))
        self._refuse_circle(wanted)
        if wanted.model and wanted.model_object is None:
            LLMRegistry.resolve(wanted.model)
        old = self.definitions.get(name)
        unchanged = old is not None and old.digest == wanted.digest and self.variables.get(name) is self._agents[name]
        if old and unchanged:
            wanted, agent = replace(wanted, version=old.version), self._agents[name]
        else:
            wanted = replace(wanted, version=old.version + 1 if old else 1)
            agent = self._built(wanted, template)
        self.definitions[name] = wanted
        self._agents[name] = agent
        self.variables[name] = agent
        self.removed.discard(name)
        self._reload(name, agent)
        self._renew_teams()
        self.root = name if root else self.root
        return [self._told(wanted, old, unchanged=unchanged), *self._notes(wanted, template)]

    def model_named(self, name: str) -> BaseLlm | None:
        """The model that a variable of that name holds."""
        found = self.variables.get(name)
        return found if isinstance(found, BaseLlm) else None

    def define_tools(self, made: Sequence[tuple[BaseTool, str]], cell: int | None) -> list[str]:
        """Define tools, or new versions of them: all, or none if one cannot be.

        Args:
            made: Tools, each with the digest of its source and options.
            cell: n of `In[n]`.

        Returns:
            A line for each.

        Raises:
            ConfigurationError: A name is taken.
        """
        for tool, _ in made:
            self.check_function_name(tool.name)
        told = [self._define_tool(tool, digest, cell) for tool, digest in made]
        self._renew_teams()
        return told

    def node_like(self, name: str, /) -> Any:
        """What a graph can have as the node `name`: an agent, a tool, a function, or a node; None: nothing."""
        if name in self.agent_names:
            return self.agent(name)
        with suppress(ToolNotFoundError):
            return self.tool(name)
        held = self.variables.get(name)
        return held if isinstance(held, BaseNode) or inspect.isroutine(held) else None

    @property
    def node_names(self) -> list[str]:
        """The names that `node_like` knows."""
        held = [name for name in self.variables if name[0] != "_" and name not in _OF_IPYTHON]
        named = [name for name in held if self.node_like(name) is not None]
        return list(dict.fromkeys([*self.agent_names, *self.tool_names, *named]))

    def forget_agent(self, name: str) -> str:
        """Take an agent out of the notebook; its sessions stay.

        Raises:
            AgentNotFoundError: There is none of that name.
        """
        agent = self.agent(name)
        self.definitions.pop(name, None)
        self._agents.pop(name, None)
        self._made_of.pop(name, None)
        self._chats = {key: chat for key, chat in self._chats.items() if key[0] != name}
        if self.variables.get(name) is agent:
            del self.variables[name]
        self.removed.add(name)
        self.root = None if self.root == name else self.root
        self.last_asked = None if self.last_asked == name else self.last_asked
        return f"{name} is forgotten; the sessions are kept"

    @property
    def agent_names(self) -> list[str]:
        """Agents by the names they can be asked by: those that cells define, then those that variables hold."""
        held = [one for one, value in self.variables.items() if isinstance(value, BaseAgent) and one[0] != "_"]
        return list(dict.fromkeys([*self.definitions, *held]))

    @property
    def agent_words(self) -> list[str]:
        """What a line for an agent may begin with: the names it can be asked by, then what agents call themselves."""
        return list(dict.fromkeys([*self.agent_names, *(self.agent(one).name for one in self.agent_names)]))

    @property
    def conversations(self) -> dict[str, str]:
        """Variables that hold a chat or an app -> how one speaks to it."""
        ways = {Chat: "{}.ask('...')", App: "Chat({}).ask('...')"}
        return {
            name: way.format(name)
            for name, value in self.variables.items()
            for kind, way in ways.items()
            if isinstance(value, kind) and name[0] != "_"
        }

    @property
    def tool_names(self) -> list[str]:
        """Tools that cells define, then those that variables hold; toolsets by the names of their variables."""
        held = [
            value.name if isinstance(value, BaseTool) else one
            for one, value in self.variables.items()
            if isinstance(value, BaseTool | BaseToolset) and one[0] != "_" and not self._is_a_definitions(value)
        ]
        return list(dict.fromkeys([*self.tools, *held]))

    def agent(self, name: str) -> BaseAgent:
        """The agent of that name. A variable counts before a cell: it is what Python sees.

        Raises:
            AgentNotFoundError: There is none.
        """
        held = self.variables.get(name)
        if isinstance(held, BaseAgent):
            return held
        if name in self._agents:
            return self._agents[name]
        raise AgentNotFoundError("agent", name, self.agent_names, hint="" if self.agent_names else "see %%agent?")

    def is_of_its_cell(self, name: str) -> bool:
        """Whether the agent of that name is the one its cell has made, not one that Python put there later."""
        return name in self._agents and self.agent(name) is self._agents[name]

    def tool(self, name: str) -> BaseTool:
        """The tool of that name, as it is defined now.

        Raises:
            ToolNotFoundError: There is none.
        """
        if name in self.tools:
            return self.tools[name].tool
        held = self.variables.get(name)
        if isinstance(held, BaseTool):
            return held
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
        """The toolset that the variable of that name holds, if it is one."""
        held = self.variables.get(name)
        return held if isinstance(held, BaseToolset) and name not in self.tools else None

    def tools_named(self, names: Sequence[str], /) -> list[BaseTool | BaseToolset]:
        """Tools and toolsets as they are defined now.

        Raises:
            ToolNotFoundError: One is not.
        """
        return [self.toolset(name) or self.tool(name) for name in names]

    def is_key(self, name: str, /) -> bool:
        """Whether `{name}` in an instruction means the state, even if it is not in it now."""
        return name in self.sessions.keys or any(one.output_key == name for one in self.definitions.values())

    def agent_for_text(self) -> str:
        """Who gets a line that names no agent: the root agent, the only one, or the one last asked.

        Raises:
            InputError: There are several, or none.
        """
        names = self.agent_names
        if not names:
            raise InputError("no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
        chosen = self.root or (names[0] if len(names) == 1 else self.last_asked or self._asked_last())
        if chosen is None:
            raise InputError(f"which agent? begin the line with its name: {', '.join(names)}; or make one --root")
        return chosen

    def _asked_last(self) -> str | None:
        """Whom the current session was with, before this kernel."""
        name = last_spoken_to(self.sessions.events())
        return name if name in self.agent_names else None

    def keep_sessions_in(self, address: str, folder: Path) -> list[str]:
        """As `SessionStore.keep_in`."""
        told = self.sessions.keep_in(address, folder)
        self._chats.clear()
        return told

    def chat(self, name: str, session: str | None = None, *, show: Mode = "auto") -> Chat:
        """The conversation with an agent in a session; one object for each pair.

        Raises:
            AgentNotFoundError, ToolNotFoundError: The agent or a tool of it is not defined.
        """
        self._check_ready(name)
        agent = self.agent(name)
        key = name, session or self.sessions.current
        if key not in self._chats:
            self._chats[key] = Chat(
                agent,
                session=key[1],
                user_id=USER,
                app_name=APP,
                session_service=self.sessions.service,
                artifact_service=self.sessions.artifacts,
                memory_service=self.sessions.memory,
                credential_service=self.sessions.credentials,
            )
            self._chats[key].magic = lambda: self.confirm_magic(key[1])
            self._chats[key].on_reply = self._noted
            self._chats[key].about = lambda: told_of(name, self.digest_of(name))
        chat = self._chats[key]
        if chat.agent is not agent:
            chat.agent = agent
        chat.show = show
        return chat

    def version_in_words(self, name: str) -> str:
        """`v2`; empty for what no cell has defined."""
        definition = self.definitions.get(name)
        return f"v{definition.version}" if definition and self.is_of_its_cell(name) else ""

    def digest_of(self, name: str) -> str:
        """Of what an agent is as its cell and those of the agents under it say; empty for what no cell has defined."""
        if name not in self.definitions or not self.is_of_its_cell(name):
            return ""
        definition = self.definitions[name]
        return digest([definition.lasting_digest, *(self.digest_of(one) for one in definition.members)])

    def is_edited(self, id: str, events: Sequence[Event]) -> str | None:
        """The agent that was spoken to when `id` was asked, if its cell says something else now.

        None: it is as it was, or waits as it was then, or nobody knows.
        """
        then = spoken_to(id, events)
        if not then.digest or any(name == then.name and chat.has_asked(id) for (name, _), chat in self._chats.items()):
            return None
        now = self.digest_of(then.name)
        return then.name if now and now != then.digest else None

    def users_of(self, tool: str) -> list[str]:
        """The agents whose cells name a tool, workflows among them."""
        return [one.name for one in self.definitions.values() if tool in one.tools or tool in one.members]

    def name_of(self, agent: str) -> str | None:
        """By what name an agent that calls itself `agent` can be asked, its own first; None: it is gone."""
        names = [one for one in self.agent_names if self.agent(one).name == agent]
        return agent if agent in names else next(iter(names), None)

    def who_hears(self, id: str, agent: str, events: Sequence[Event]) -> str | None:
        """By what name one is asked who hears of the answer to what waits under `id`, and which `agent` asked for.

        Who was spoken to then, as a team goes on only as a whole; else the agent itself; None: both are gone.
        `events` are those of the session.
        """
        for (name, _), chat in self._chats.items():
            if chat.has_asked(id) and name in self.agent_names:
                return name
        team = spoken_to(id, events).name
        if team in self.agent_names and self.agent(team).find_agent(agent):
            return team
        return self.name_of(agent)

    def _noted(self, reply: Reply) -> None:
        self.variables["_run"] = reply

    def confirm_magic(self, session: str) -> str:
        """The `%confirm` that answers what is open in a session, as it has to be typed now."""
        return "%confirm" if session == self.sessions.current else f"%confirm -s {shlex.quote(session)}"

    def _check_ready(self, name: str) -> None:
        """See that all is there that an agent needs, down to the last member, and that it is of what there is now.

        Raises:
            UserError: Something is not.
        """
        definition = self.definitions.get(name)
        if not definition or not self.is_of_its_cell(name):
            return
        self.tools_named(definition.tools)
        if definition.members and self._made_of[name] != self._members(definition):
            self._renew(definition)
        for member in definition.members:
            self._check_ready(member)
            if self.node_like(member) is None:
                raise missing(member, name, self.agent_names)

    def _renew_teams(self) -> None:
        """Make teams and workflows anew that have a new member; those that cannot be stay as they are."""
        for name in self.definitions:
            with suppress(UserError):
                self._check_ready(name)

    def _renew(self, definition: AgentDefinition) -> None:
        name = definition.name
        if definition.kind == "llm":  # all else is as when its cell ran
            agent = self._agents[name].clone({"sub_agents": team_cell.agents_under(definition, self)})
            self._made_of[name] = self._members(definition)
        else:
            agent = self._built(definition, None)
        self.variables[name] = self._agents[name] = agent
        self._reload(name, agent)

    def _members(self, definition: AgentDefinition) -> list[Any]:
        return [self.node_like(one) for one in definition.members]

    def _refuse_circle(self, wanted: AgentDefinition) -> None:
        look = list(wanted.members)
        for one in look:
            if one == wanted.name:
                raise ConfigurationError(f"{wanted.name} would be a member of itself; leave it out of its own members")
            look += self.definitions[one].members if one in self.definitions else ()

    def _built(self, wanted: AgentDefinition, template: Template | None) -> BaseAgent:
        if wanted.kind != "llm":
            made = team_cell.built(wanted, self)
            self._made_of[wanted.name] = self._members(wanted)
            return made
        given: dict[str, Any] = {"max_iterations": wanted.max_iterations} if wanted.max_iterations else {}
        given |= {"mode": wanted.mode} if wanted.mode else {}
        self._made_of[wanted.name] = self._members(wanted)
        known = [one for one in wanted.tools if self.has_tool(one)]
        return CellAgent(
            name=wanted.name,
            model=wanted.model_object or wanted.model,
            instruction=wanted.instruction,
            template=not wanted.raw,
            description=wanted.description,
            output_key=wanted.output_key,
            tools=list(self.tools_named(known)),
            sub_agents=team_cell.agents_under(wanted, self),
            **given,
        ).bind(self, wanted.tools, template)

    def _reload(self, name: str, agent: BaseAgent) -> None:
        for (asked, _), chat in self._chats.items():
            if asked == name and chat.agent is not agent:
                chat.agent = agent

    def _told(self, wanted: AgentDefinition, old: AgentDefinition | None, *, unchanged: bool) -> str:
        if old is None:
            return self._introduced(wanted)
        if unchanged:
            return f"{wanted.name} v{wanted.version}, unchanged"
        changes = wanted.changes_from(old) or "the variable was something else"
        said = f"{wanted.name} v{old.version} -> v{wanted.version} ({changes})"
        events = self.sessions.mark("definition_changed", said)
        return said + (f"; session kept, {events} events" if events else "")

    def _introduced(self, wanted: AgentDefinition) -> str:
        told = [f"{wanted.name} v{wanted.version}"]
        if wanted.kind != "llm":
            return f"{told[0]} · {wanted.kind}"
        told.append(f"model {wanted.model or default_model()}")
        if wanted.tools:
            told.append("tools " + ", ".join(wanted.tools))
        if wanted.members:
            told.append("agents " + ", ".join(wanted.members))
        if wanted.mode:
            told.append(wanted.mode)
        return " · ".join(told)

    def _notes(self, wanted: AgentDefinition, template: Template | None) -> list[str]:
        notes = list(template.notes) if template else []
        later = [one for one in wanted.tools if not self.has_tool(one)]
        later += [one for one in wanted.members if self.node_like(one) is None]
        if later:
            own = [*self.tool_names, *self.agent_names] if wanted.members else self.tool_names
            known = own if wanted.kind == "llm" else self.node_names
            near = [found for one in later if (found := closest(one, known, cutoff=0.75))]
            meant = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            notes.append(f"not defined yet: {', '.join(later)}; define before you ask {wanted.name}{meant}")
        if wanted.kind == "llm" and team_cell.is_team(wanted.instruction, self.agent_names):
            notes.append(f"these are names of agents; a team of them is %%agent {wanted.name} --kind sequential")
        keys = template.keys if template else []
        known = self.sessions.state()
        open_ones = dict.fromkeys(
            key.spelled
            for key in keys
            if not (key.scoped or key.optional or key.name in known or self.is_key(key.name))
        )
        if open_ones:
            notes.append(f"left as text until the state has a key of that name: {', '.join(open_ones)}")
        return notes

    def _define_tool(self, tool: BaseTool, digest: str, cell: int | None) -> str:
        old = self.tools.get(tool.name)
        if old and old.digest == digest:
            self.tools[tool.name] = replace(old, tool=tool, cell=cell)
            return f"{tool.name} v{old.version}, unchanged"
        version = old.version + 1 if old else 1
        self.tools[tool.name] = ToolDefinition(tool=tool, version=version, cell=cell, digest=digest)
        users = self.users_of(tool.name)
        used = f"; used by {', '.join(users)}" if users else ""
        if old is None:
            return f"{tool.name} v1{used}"
        said = f"{tool.name} v{old.version} -> v{version}"
        self.sessions.mark("definition_changed", f"tool {said}")
        return said + used

    def can_name_an_agent(self, name: str, /) -> bool:
        """Whether a later cell may define an agent of that name."""
        try:
            self._check_agent_name(name)
        except UserError:
            return False
        return True

    def _check_agent_name(self, name: str) -> None:
        if name in RESERVED or keyword.iskeyword(name):
            raise InputError(
                f"an agent cannot be named {name!r}: the word has a meaning of its own; choose another name"
            )
        if hasattr(builtins, name):
            raise InputError(f"an agent named {name!r} would hide Python's own; choose another name, as {name}_agent")
        if name in self.tools:
            raise ConfigurationError(f"{name!r} is a tool {_where(self.tools[name].cell)}; give the agent another name")
        held = self.variables.get(name)
        if isinstance(held, BaseTool):
            raise ConfigurationError(f"{name!r} is a tool; give the agent another name")
        if name in self.variables and not isinstance(held, BaseAgent):
            kind = type(held).__name__
            raise InputError(f"{name!r} is a variable of type {kind}; give the agent another name, or: del {name}")

    def check_function_name(self, name: str) -> None:
        """Raise a UserError if a tool, or the function it is made of, cannot have that name."""
        if name in RESERVED:
            raise InputError(f"a tool cannot be named {name!r}: the word has a meaning of its own; use --rename")
        if name in self.agent_names:
            definition = self.definitions.get(name)
            where = _where(definition.cell) if definition else ""
            raise ConfigurationError(
                f"{name!r} is an agent {where}; give the tool another name, or: %agents --rm {name}"
            )

    def _is_a_definitions(self, tool: BaseTool | BaseToolset) -> bool:
        return any(one.tool is tool for one in self.tools.values())


def _where(cell: int | None) -> str:
    return f"(In[{cell}])" if cell is not None else "here"
