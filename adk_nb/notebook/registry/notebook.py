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
from adk_nb.notebook.registry.versions import EarlierTools, last_spoken_to, spoken_to, told_of
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.display import Mode
from adk_nb.runners import DEBUG_SESSION, DEBUG_USER, Runner
from adk_nb.runtime.history import History
from adk_nb.runtime.trace import Traces
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.function_tool import FunctionTool


class Notebook(Names):
    """One per shell. Names, not objects: an agent keeps the names of its tools and looks them up at each turn.

    Args:
        variables: The user's namespace; agents are bound in it, and Python's own agents and tools are found in it.
    """

    def __init__(self, variables: MutableMapping[str, Any]) -> None:
        super().__init__(variables)
        self.sessions = SessionStore()
        self.traces = Traces()
        """What models and tools were asked in the newest turns of all its chats."""
        self.root: str | None = None
        """Who gets a line that names no agent."""
        self.last_asked: str | None = None
        self.strict = False
        """What a cell names has to be there already."""
        self.cell_number: Callable[[], int] = lambda: 0
        """Returns n of the `In[n]` that runs."""
        self.used: dict[str, int] = {}
        """Agent -> n of the `In[n]` after which it was at work last."""
        self.removed: set[str] = set()
        """Agents that were taken out and are not defined again."""
        self.earlier = EarlierTools()
        self._made_of: dict[str, list[Any]] = {}
        """Team or workflow -> what it was made of, by the order of its members."""
        self._chats: dict[tuple[str, str], Chat] = {}
        """Name and session -> the chat in the notebook's own sessions."""
        self._apps: dict[tuple[str, str], App] = {}
        """Of the chats that were made of an app."""
        self._runner_chats: dict[tuple[str, str], tuple[Runner, Chat]] = {}
        """Name and session -> the chat in the sessions of a runner."""

    def define_agent(self, wanted: AgentDefinition, *, root: bool = False, replace: bool = False) -> list[str]:
        """Define an agent, or a new version of it. Sessions are kept.

        Args:
            wanted: As the cell says; its version does not matter.
            root: It gets the lines that name no agent.
            replace: It takes the name from what else has it.

        Returns:
            What there is to say of it, a line each.

        Raises:
            UserError: The definition cannot be; all is as it was.
        """
        name = wanted.name
        self.check_agent_name(name, replace=replace)
        is_llm = wanted.kind == "llm"
        place = Place.found(wanted.cell, wanted.source, wanted.instruction)
        template = None if wanted.raw or not is_llm else read(wanted.instruction, self.variables, place=place)
        wanted = with_(wanted, variables=template.variables if template else {})
        wanted = with_(wanted, members=team_cell.member_names(wanted, self), default_model=default_model())
        self._refuse_circle(wanted)
        if wanted.model and wanted.model_object is None:
            LLMRegistry.resolve(wanted.model)
        notes = notes_of(self, wanted, template)
        old = self.definitions.get(name)
        unchanged = old is not None and old.digest == wanted.digest and self.variables.get(name) is self.made[name]
        if old and unchanged:
            wanted, agent = with_(wanted, version=old.version), self.made[name]
        else:
            wanted = with_(wanted, version=old.version + 1 if old else 1)
            agent = self._built(wanted, template)
        self.tools.pop(name, None)
        self.definitions[name] = wanted
        self.made[name] = agent
        self.variables[name] = agent
        self.removed.discard(name)
        self._reload(name, agent)
        self._renew_teams()
        self.root = name if root else self.root
        return [*self._told(wanted, old, unchanged=unchanged), *notes]

    def define_tools(self, made: Mapping[str, ToolDefinition], *, replace: bool = False) -> list[str]:
        """Define tools and toolsets, or new versions of them: all, or none if one cannot be.

        Args:
            made: Name -> as its cell says; its version does not matter.
            replace: They take their names from agents that have them.

        Returns:
            What there is to say of it, a line each.

        Raises:
            UserError: A name is taken.
        """
        for name in made:
            self.check_function_name(name, replace=replace)
        told = [line for name, wanted in made.items() for line in self._define_tool(name, wanted)]
        self._renew_teams()
        for chat in self._chats.values():
            chat.tools_changed()
        return told

    def forget_agent(self, name: str) -> str:
        """Take an agent out of the notebook; its sessions stay.

        Raises:
            AgentNotFoundError: There is none of that name.
        """
        agent = self.agent(name)
        if name not in self.agent_names:
            raise InputError(
                f"{name!r} is no agent but of type {type(self.variables[name]).__name__}; type: del {name}"
            )
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
        names = self.agent_names or self.addressees
        if not names:
            raise InputError("no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
        if self.root is None and self.last_asked in set(self.addressees) - set(self.agent_names):
            return self.last_asked
        chosen = self.root or (names[0] if len(names) == 1 else self.last_asked or self._asked_last())
        if chosen is None:
            raise InputError(f"which agent? begin the line with its name: {', '.join(names)}; or make one --root")
        return chosen

    def _asked_last(self) -> str | None:
        """Whom the current session was with, before this kernel."""
        name = last_spoken_to(self.sessions.history())
        return name if name in self.addressees else None

    def keep_sessions_in(self, address: str, folder: Path) -> list[str]:
        """As `SessionStore.keep_in`."""
        told = self.sessions.keep_in(address, folder)
        self._chats.clear()
        self._apps.clear()
        return told

    def chat(self, name: str, session: str | None = None, *, show: Mode = "auto") -> Chat:
        """The conversation with an agent, an app or a runner in a session; one object for each pair.

        Raises:
            AgentNotFoundError, ToolNotFoundError: The agent or a tool of it is not defined.
        """
        self._check_ready(name)
        held = self.variables.get(name)
        if isinstance(held, Runner):
            return self._chat_of_runner(name, held, session, show)
        agent = self.agent(name)
        key = name, session or self.sessions.current
        app = held if isinstance(held, App) else None
        if key not in self._chats or self._apps.get(key) is not app:
            self._apps |= {key: app} if app else {}
            self._chats[key] = Chat(
                app or agent,
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
            self._chats[key].versions = self.earlier
            self._chats[key].traces = self.traces
            self._chats[key].about = lambda: told_of(name, self.digest_of(name), self.versions_of(name))
        chat = self._chats[key]
        if chat.agent is not agent:
            chat.agent = agent
        chat.show = show
        return chat

    def _chat_of_runner(self, name: str, runner: Runner, session: str | None, show: Mode) -> Chat:
        """The conversation that `runner.run_debug` goes on with, or another of the same user."""
        key = name, session or DEBUG_SESSION
        known, chat = self._runner_chats.get(key, (None, None))
        if chat is None or known is not runner:
            chat = Chat(runner, session=key[1], user_id=DEBUG_USER)
            chat.on_reply, chat.traces = self._noted, self.traces
            self._runner_chats[key] = runner, chat
        chat.show = show
        return chat

    def chats_in(self, session: str) -> list[Chat]:
        """The conversations that were held in a session."""
        return [chat for (_, held_in), chat in self._chats.items() if held_in == session]

    def is_edited(self, id: str, history: History) -> str | None:
        """The agent that was spoken to when `id` was asked, if its cell says something else now.

        None: it is as it was, or waits as it was then, or nobody knows.
        """
        then = spoken_to(id, history)
        if not then.digest or any(name == then.name and chat.has_asked(id) for (name, _), chat in self._chats.items()):
            return None
        now = self.digest_of(then.name)
        return then.name if now and now != then.digest else None

    def who_hears(self, id: str, agent: str, history: History) -> str | None:
        """By what name one is asked who hears of the answer to what waits under `id`, and which `agent` asked for.

        Who was spoken to then, as a team goes on only as a whole; else the agent itself; None: both are gone.
        `history`: of the session.
        """
        for (name, _), chat in self._chats.items():
            if chat.has_asked(id) and name in self.addressees:
                return name
        team = spoken_to(id, history).name
        if team in self.addressees and self.agent(team).find_agent(agent):
            return team
        return self.name_of(agent)

    def _noted(self, reply: Reply) -> None:
        self.variables["_run"] = reply
        self.used |= dict.fromkeys([reply.agent, *(event.author for event in reply.events)], self.cell_number())

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
        for one in definition.tools:
            self._read_again(one)
        self.tools_named(definition.tools)
        if definition.members and self._made_of[name] != self._members(definition):
            self._renew(definition)
        for member in definition.members:
            self._check_ready(member)
            if self.node_like(member) is None:
                raise missing_member(member, name, self.agent_names, in_a_graph=definition.kind == "workflow")

    def _renew_teams(self) -> None:
        """Make teams and workflows anew that have a new member; those that cannot be stay as they are."""
        for name in self.definitions:
            with suppress(UserError):
                self._check_ready(name)

    def _renew(self, definition: AgentDefinition) -> None:
        name = definition.name
        if definition.kind == "llm":  # all else is as when its cell ran
            agent = self.made[name].clone({"sub_agents": team_cell.clone_members(definition, self)})
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
            made = team_cell.build(wanted, self)
            self._made_of[wanted.name] = self._members(wanted)
            return made
        given: dict[str, Any] = {"max_iterations": wanted.max_iterations} if wanted.max_iterations else {}
        given |= {"mode": wanted.mode} if wanted.mode else {}
        given |= {name: one.value for name, one in wanted.fields.items()}
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
            sub_agents=team_cell.clone_members(wanted, self),
            **given,
        ).bind(self, wanted.tools, template)

    def _reload(self, name: str, agent: BaseAgent) -> None:
        for (asked, _), chat in self._chats.items():
            if asked == name and chat.agent is not agent:
                chat.agent = agent

    def _told(self, wanted: AgentDefinition, old: AgentDefinition | None, *, unchanged: bool) -> list[str]:
        if old is None:
            return [introduced(wanted)]
        if unchanged:
            model = wanted.model_change(old)
            said = f"{wanted.name} v{wanted.version}{f' · {model}' if model else ', unchanged'}"
            return [said, *(unfit_history(wanted, old, self.sessions.events()) if model else ())]
        changes = wanted.changes_from(old) or "the variable was something else"
        said = f"{wanted.name} v{old.version} -> v{wanted.version} ({changes})"
        before = self.sessions.events()
        events = self.sessions.mark("definition_changed", said)
        kept = f"; session kept, {counted(before)}" if events else ""
        return [said + kept, *unfit_history(wanted, old, before)]

    def _read_again(self, name: str) -> None:
        """Take a tool as its function is now, if its module was loaded again."""
        known = self.tools.get(name)
        if known is None or not isinstance(known.tool, FunctionTool):
            return
        now = known.tool.read_again()
        if now is not known.tool:
            held = [one for one, value in self.variables.items() if value is known.tool]
            self.variables.update(dict.fromkeys(held, now))
            told = self.define_tools({name: with_(known, tool=now, digest=fingerprint(now))})
            sys.stdout.write("\n".join([f"{told[0]}; its module was loaded again", *told[1:]]) + "\n")

    def _define_tool(self, name: str, wanted: ToolDefinition) -> list[str]:
        if name in self.agent_names:
            self.forget_agent(name)
        old = self.tools.get(name)
        if old and old.digest == wanted.digest:
            self.tools[name] = with_(wanted, version=old.version)
            return [f"{name} v{old.version}, unchanged"]
        self.tools[name] = wanted = with_(wanted, version=old.version + 1 if old else 1)
        users = self.users_of(name)
        used = f"; used by {', '.join(users)}" if users else ""
        if old is None:
            return [f"{name} v1{used}"]
        said = f"{name} v{old.version} -> v{wanted.version}"
        before = self.sessions.events()
        self.sessions.mark("definition_changed", f"tool {said}")
        self.earlier.keep(old)
        return [said + used, *lost_parameters(name, wanted.tool, old.tool, before)]
