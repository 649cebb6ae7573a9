"""What this notebook has defined: agents and tools by name, and the conversations with them."""

import shlex
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import replace as with_
from pathlib import Path
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import ConfigurationError, InputError, UserError
from adk_nb.models.default_model import default_model
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.chat import Chat
from adk_nb.notebook.registry import team_cell
from adk_nb.notebook.registry.agent_cell import CellAgent, introduced, lost_parameters, notes_of, unfit_history
from adk_nb.notebook.registry.definitions import AgentDefinition, ToolDefinition
from adk_nb.notebook.registry.names import Names
from adk_nb.notebook.registry.session_store import APP, USER, SessionStore, counted
from adk_nb.notebook.registry.team_cell import missing_member
from adk_nb.notebook.registry.templates import Place, Template, read
from adk_nb.notebook.registry.versions import EarlierTools, last_addressed, of_call, run_metadata
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.display import Mode
from adk_nb.runners import DEBUG_SESSION, DEBUG_USER, Runner
from adk_nb.runtime.history import History
from adk_nb.runtime.trace import Traces
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.function_tool import FunctionTool


class Notebook(Names):
    """What a shell has defined. Agents keep the names of their tools and look them up at each turn.

    Args:
        variables: The user's namespace; agents are bound in it, and Python's own agents and tools are found in it.
    """

    def __init__(self, variables: MutableMapping[str, Any]) -> None:
        super().__init__(variables)
        self.sessions = SessionStore()
        self.traces = Traces()
        """Requests and responses of the newest turns of all chats."""
        self.root: str | None = None
        """The agent that gets messages which name none."""
        self.last_asked: str | None = None
        self.strict = False
        """Refuse a cell that names what is not defined yet."""
        self.cell_number: Callable[[], int] = lambda: 0
        """Returns n of the `In[n]` that runs."""
        self.used: dict[str, int] = {}
        """Agent -> n of the `In[n]` in which it ran last."""
        self.removed: set[str] = set()
        """Agents that were removed and are not defined again."""
        self.earlier = EarlierTools()
        self._members_of: dict[str, list[Any]] = {}
        """Agent -> its members as they were when it was built."""
        self._chats: dict[tuple[str, str], tuple[App | Runner | None, Chat]] = {}
        """Name and session -> the chat, and the app or runner it was made of."""

    # ---- definitions

    def define_agent(self, definition: AgentDefinition, *, root: bool = False, replace: bool = False) -> list[str]:
        """Define an agent, or a new version of it. Sessions are kept.

        Args:
            definition: As the cell says; its version does not matter.
            root: It gets the messages that name no agent.
            replace: It may take the name of a tool.

        Returns:
            A report, a line each.

        Raises:
            UserError: The definition cannot be used; nothing is changed.
        """
        name = definition.name
        self.check_agent_name(name, replace=replace)
        place = Place.found(definition.cell, definition.source, definition.instruction)
        has_braces = definition.kind == "llm" and not definition.raw
        template = read(definition.instruction, self.variables, place=place) if has_braces else None
        definition = with_(definition, variables=template.variables if template else {})
        definition = with_(definition, members=team_cell.member_names(definition, self), default_model=default_model())
        self._refuse_circle(definition)
        if definition.model and definition.model_object is None:
            LLMRegistry.resolve(definition.model)
        notes = notes_of(self, definition, template)
        old = self.definitions.get(name)
        unchanged = old is not None and old.digest == definition.digest and self.variables.get(name) is self.made[name]
        if old and unchanged:
            definition, agent = with_(definition, version=old.version), self.made[name]
        else:
            definition = with_(definition, version=old.version + 1 if old else 1)
            agent = self._build(definition, template)
        self.tools.pop(name, None)
        self.definitions[name] = definition
        self.removed.discard(name)
        self._put(name, agent)
        self._rebuild_teams()
        self.root = name if root else self.root
        return [*self._report(definition, old, unchanged=unchanged), *notes]

    def define_tools(self, definitions: Mapping[str, ToolDefinition], *, replace: bool = False) -> list[str]:
        """Define tools and toolsets, or new versions of them: all, or none if one cannot be.

        Args:
            definitions: Name -> as its cell says; its version does not matter.
            replace: They may take the names of agents.

        Returns:
            A report, a line each.

        Raises:
            UserError: A name is taken.
        """
        for name in definitions:
            self.check_function_name(name, replace=replace)
        report = [line for name, definition in definitions.items() for line in self._define_tool(name, definition)]
        self._rebuild_teams()
        for _, chat in self._chats.values():
            chat.tools_changed()
        return report

    def forget_agent(self, name: str) -> str:
        """Remove an agent; its sessions stay.

        Raises:
            AgentNotFoundError: There is none of that name.
        """
        agent = self.agent(name)
        if name not in self.agent_names:
            kind = type(self.variables[name]).__name__
            raise InputError(f"{name!r} is no agent but of type {kind}; type: del {name}")
        self.definitions.pop(name, None)
        self.made.pop(name, None)
        self._members_of.pop(name, None)
        self._chats = {key: entry for key, entry in self._chats.items() if key[0] != name}
        if self.variables.get(name) is agent:
            del self.variables[name]
        self.removed.add(name)
        self.root = None if self.root == name else self.root
        self.last_asked = None if self.last_asked == name else self.last_asked
        return f"{name} is forgotten; the sessions are kept"

    def is_key(self, name: str, /) -> bool:
        """Whether `{name}` in an instruction means the state, even if the key is not set now."""
        return name in self.sessions.keys or any(name == agent.output_key for agent in self.definitions.values())

    def _define_tool(self, name: str, definition: ToolDefinition) -> list[str]:
        if name in self.agent_names:
            self.forget_agent(name)
        old = self.tools.get(name)
        if old and old.digest == definition.digest:
            self.tools[name] = with_(definition, version=old.version)
            return [f"{name} v{old.version}, unchanged"]
        self.tools[name] = definition = with_(definition, version=old.version + 1 if old else 1)
        users = self.users_of(name)
        used = f"; used by {', '.join(users)}" if users else ""
        if old is None:
            return [f"{name} v1{used}"]
        change = f"{name} v{old.version} → v{definition.version}"
        before = self.sessions.events()
        self.sessions.mark("definition_changed", f"tool {change}")
        self.earlier.keep(old)
        return [change + used, *lost_parameters(name, definition.tool, old.tool, before)]

    def _build(self, definition: AgentDefinition, template: Template | None) -> BaseAgent:
        members = self._members(definition)
        agent = self._llm_agent(definition, template) if definition.kind == "llm" else team_cell.build(definition, self)
        self._members_of[definition.name] = members
        return agent

    def _llm_agent(self, definition: AgentDefinition, template: Template | None) -> BaseAgent:
        fields: dict[str, Any] = {name: field.value for name, field in definition.fields.items()}
        if definition.max_iterations:
            fields["max_iterations"] = definition.max_iterations
        if definition.mode:
            fields["mode"] = definition.mode
        return CellAgent(
            name=definition.name,
            model=definition.model_object or definition.model,
            instruction=definition.instruction,
            template=not definition.raw,
            description=definition.description,
            output_key=definition.output_key,
            tools=list(self.tools_named([tool for tool in definition.tools if self.has_tool(tool)])),
            sub_agents=team_cell.clone_members(definition, self),
            **fields,
        ).bind(self, definition.tools, template)

    def _put(self, name: str, agent: BaseAgent) -> None:
        """Bind an agent to its name, also in its chats."""
        self.variables[name] = self.made[name] = agent
        for (addressee, _), (_, chat) in self._chats.items():
            if addressee == name and chat.agent is not agent:
                chat.agent = agent

    def _members(self, definition: AgentDefinition) -> list[Any]:
        return [self.node_like(name) for name in definition.members]

    def _refuse_circle(self, definition: AgentDefinition) -> None:
        names = list(definition.members)
        for name in names:
            if name == definition.name:
                raise ConfigurationError(f"{name} would be a member of itself; leave it out of its own members")
            names += self.definitions[name].members if name in self.definitions else ()

    def _check_ready(self, name: str) -> None:
        """Check that everything is defined that an agent needs, and rebuild teams with a changed member.

        Raises:
            UserError: Something is not defined.
        """
        definition = self.definitions.get(name)
        if not definition or not self.is_of_its_cell(name):
            return
        for tool in definition.tools:
            self._reload_tool(tool)
        self.tools_named(definition.tools)
        if definition.members and self._members_of[name] != self._members(definition):
            if definition.kind == "llm":  # its instruction and tools stay as when its cell ran
                agent = self.made[name].clone({"sub_agents": team_cell.clone_members(definition, self)})
                self._members_of[name] = self._members(definition)
            else:
                agent = self._build(definition, None)
            self._put(name, agent)
        for member in definition.members:
            self._check_ready(member)
            if self.node_like(member) is None:
                in_a_graph = definition.kind == "workflow"
                raise missing_member(member, name, self.agent_names, in_a_graph=in_a_graph)

    def _rebuild_teams(self) -> None:
        """Rebuild teams and workflows with a changed member; those with a missing one stay as they are."""
        for name in self.definitions:
            with suppress(UserError):
                self._check_ready(name)

    def _reload_tool(self, name: str) -> None:
        """Define a tool anew if the module of its function was reloaded."""
        old = self.tools.get(name)
        if old is None or not isinstance(old.tool, FunctionTool):
            return
        tool = old.tool.read_again()
        if tool is not old.tool:
            variables = [variable for variable, value in self.variables.items() if value is old.tool]
            self.variables.update(dict.fromkeys(variables, tool))
            first, *rest = self.define_tools({name: with_(old, tool=tool, digest=fingerprint(tool))})
            sys.stdout.write("\n".join([f"{first}; its module was reloaded", *rest]) + "\n")

    def _report(self, new: AgentDefinition, old: AgentDefinition | None, *, unchanged: bool) -> list[str]:
        if old is None:
            return [introduced(new)]
        if unchanged:
            model = new.model_change(old)
            line = f"{new.name} v{new.version}{f' · {model}' if model else ', unchanged'}"
            return [line, *(unfit_history(new, old, self.sessions.events()) if model else ())]
        changes = new.changes_from(old) or "the variable was something else"
        line = f"{new.name} v{old.version} → v{new.version} ({changes})"
        before = self.sessions.events()
        kept = f"; session kept, {counted(before)}" if self.sessions.mark("definition_changed", line) else ""
        return [line + kept, *unfit_history(new, old, before)]

    # ---- chats

    def agent_for_text(self) -> str:
        """The agent for a message that names none: the root agent, the only one, or the one asked last.

        Raises:
            InputError: There are several, or none.
        """
        names = self.agent_names or self.addressees
        if not names:
            raise InputError("no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
        if self.root is None and self.last_asked in set(self.addressees) - set(self.agent_names):
            return self.last_asked
        chosen = self.root or (names[0] if len(names) == 1 else self.last_asked)
        if chosen is None and (last := last_addressed(self.sessions.history())) in self.addressees:
            chosen = last  # by an earlier kernel
        if chosen is None:
            raise InputError(f"which agent? begin the line with its name: {', '.join(names)}; or make one --root")
        return chosen

    def keep_sessions_in(self, address: str, folder: Path) -> list[str]:
        """As `SessionStore.keep_in`."""
        report = self.sessions.keep_in(address, folder)
        self._chats = {key: entry for key, entry in self._chats.items() if isinstance(entry[0], Runner)}
        return report

    def chat(self, name: str, session: str | None = None, *, show: Mode = "auto") -> Chat:
        """The chat with an agent, an app or a runner in a session; one object for each pair.

        A runner's chat is in the runner's sessions: by default the one of `runner.run_debug`.

        Raises:
            AgentNotFoundError, ToolNotFoundError: The agent or a tool of it is not defined.
        """
        self._check_ready(name)
        value = self.variables.get(name)
        source = value if isinstance(value, App | Runner) else None
        agent = self.agent(name)
        key = name, session or (DEBUG_SESSION if isinstance(source, Runner) else self.sessions.current)
        old_source, chat = self._chats.get(key, (None, None))
        if chat is None or old_source is not source:
            chat = self._new_chat(name, key[1], source)
            self._chats[key] = source, chat
        elif chat.agent is not agent:
            chat.agent = agent
        chat.show = show
        return chat

    def _new_chat(self, name: str, session: str, source: App | Runner | None) -> Chat:
        if isinstance(source, Runner):
            chat = Chat(source, session=session, user_id=DEBUG_USER)
        else:
            chat = Chat(
                source or self.agent(name),
                session=session,
                user_id=USER,
                app_name=APP,
                session_service=self.sessions.service,
                artifact_service=self.sessions.artifacts,
                memory_service=self.sessions.memory,
                credential_service=self.sessions.credentials,
            )
            chat.magic = lambda: self.confirm_magic(session)
            chat.versions = self.earlier
            chat.about = lambda: run_metadata(name, self.digest_of(name), self.versions_of(name))
        chat.on_reply, chat.traces = self._note_reply, self.traces
        return chat

    def chats_in(self, session: str) -> list[Chat]:
        """The chats in one of the notebook's sessions."""
        return [
            chat for (_, id), (source, chat) in self._chats.items() if id == session and not isinstance(source, Runner)
        ]

    def is_edited(self, id: str, history: History) -> str | None:
        """The agent that was addressed when the call `id` was made, if its cell is different now.

        None: it is the same, resumes in its earlier version, or is unknown.
        """
        then = of_call(id, history)
        if not then.digest or then.name in self._chats_waiting_for(id):
            return None
        now = self.digest_of(then.name)
        return then.name if now and now != then.digest else None

    def who_hears(self, id: str, agent: str, history: History) -> str | None:
        """Name of the addressee that receives the answer to interrupt `id`, which `agent` raised.

        It is the agent that was addressed then, as a team resumes only as a whole; else `agent` itself; None: both are
        gone. `history`: of the session.
        """
        for name in self._chats_waiting_for(id):
            if name in self.addressees:
                return name
        team = of_call(id, history).name
        if team in self.addressees and self.agent(team).find_agent(agent):
            return team
        return self.name_of(agent)

    def _chats_waiting_for(self, id: str) -> list[str]:
        return [name for (name, _), (_, chat) in self._chats.items() if chat.has_asked(id)]

    def _note_reply(self, reply: Reply) -> None:
        self.variables["_run"] = reply
        self.used |= dict.fromkeys([reply.agent, *(event.author for event in reply.events)], self.cell_number())

    def confirm_magic(self, session: str) -> str:
        """The `%confirm` that answers the interrupts of a session, as it has to be typed now."""
        return "%confirm" if session == self.sessions.current else f"%confirm -s {shlex.quote(session)}"
