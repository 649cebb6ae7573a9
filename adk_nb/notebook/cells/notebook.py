"""What this notebook has defined: agents and tools by name, and the conversations with them."""

import shlex
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import ConfigurationError, InputError, UserError, closest
from adk_nb.events.event import Event
from adk_nb.models.registry import LLMRegistry, default_model
from adk_nb.notebook.cells import team_cell
from adk_nb.notebook.cells.addressed import last_spoken_to, spoken_to, told_of
from adk_nb.notebook.cells.by_name import ByName
from adk_nb.notebook.cells.cell_agent import CellAgent
from adk_nb.notebook.cells.definitions import AgentDefinition, ToolDefinition
from adk_nb.notebook.cells.not_yet import missing
from adk_nb.notebook.cells.session_store import APP, USER, SessionStore
from adk_nb.notebook.cells.templates import Template, read
from adk_nb.notebook.chat import Chat
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.display import Mode
from adk_nb.runtime.trace import Traces


class Notebook(ByName):
    """One per shell. Names, not objects: an agent keeps the names of its tools and looks them up at each turn.

    Args:
        variables: The user's namespace; agents are bound in it, and Python's own agents and tools are found in it.
    """

    def __init__(self, variables: MutableMapping[str, Any]) -> None:
        super().__init__(variables)
        self.sessions = SessionStore()
        self.root: str | None = None
        self.traces = Traces()
        """What models and tools were asked in the newest turns of all its chats."""
        """Who gets a line that names no agent."""
        self.last_asked: str | None = None
        self.removed: set[str] = set()
        """Agents that were taken out and are not defined again."""
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
        self.check_agent_name(name)
        is_llm = wanted.kind == "llm"
        template = None if wanted.raw or not is_llm else read(wanted.instruction, self.variables)
        wanted = replace(wanted, variables=template.variables if template else {})
        wanted = replace(wanted, members=team_cell.members_of(wanted, self))
        self._refuse_circle(wanted)
        if wanted.model and wanted.model_object is None:
            LLMRegistry.resolve(wanted.model)
        old = self.definitions.get(name)
        unchanged = old is not None and old.digest == wanted.digest and self.variables.get(name) is self.made[name]
        if old and unchanged:
            wanted, agent = replace(wanted, version=old.version), self.made[name]
        else:
            wanted = replace(wanted, version=old.version + 1 if old else 1)
            agent = self._built(wanted, template)
        self.definitions[name] = wanted
        self.made[name] = agent
        self.variables[name] = agent
        self.removed.discard(name)
        self._reload(name, agent)
        self._renew_teams()
        self.root = name if root else self.root
        return [self._told(wanted, old, unchanged=unchanged), *self._notes(wanted, template)]

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

    def forget_agent(self, name: str) -> str:
        """Take an agent out of the notebook; its sessions stay.

        Raises:
            AgentNotFoundError: There is none of that name.
        """
        agent = self.agent(name)
        self.definitions.pop(name, None)
        self.made.pop(name, None)
        self._made_of.pop(name, None)
        self._chats = {key: chat for key, chat in self._chats.items() if key[0] != name}
        if self.variables.get(name) is agent:
            del self.variables[name]
        self.removed.add(name)
        self.root = None if self.root == name else self.root
        self.last_asked = None if self.last_asked == name else self.last_asked
        return f"{name} is forgotten; the sessions are kept"

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
            self._chats[key].traces = self.traces
            self._chats[key].about = lambda: told_of(name, self.digest_of(name), self.versions_of(name))
        chat = self._chats[key]
        if chat.agent is not agent:
            chat.agent = agent
        chat.show = show
        return chat

    def is_edited(self, id: str, events: Sequence[Event]) -> str | None:
        """The agent that was spoken to when `id` was asked, if its cell says something else now.

        None: it is as it was, or waits as it was then, or nobody knows.
        """
        then = spoken_to(id, events)
        if not then.digest or any(name == then.name and chat.has_asked(id) for (name, _), chat in self._chats.items()):
            return None
        now = self.digest_of(then.name)
        return then.name if now and now != then.digest else None

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
            agent = self.made[name].clone({"sub_agents": team_cell.agents_under(definition, self)})
            self._made_of[name] = self._members(definition)
        else:
            agent = self._built(definition, None)
        self.variables[name] = self.made[name] = agent
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
