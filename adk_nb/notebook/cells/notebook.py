"""The definitions of a notebook, agents and tools by name, and the chats with them."""

import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import replace as updated
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import InputError, UserError
from adk_nb.models.default_model import default_model
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.cells import team_cell
from adk_nb.notebook.cells.agent_cell import CellAgent, lost_parameters, notes_on, unfit_history
from adk_nb.notebook.cells.definitions import (
    AgentDefinition,
    EarlierTools,
    ToolDefinition,
    agent_of_call,
    approval_note,
    last_addressed,
    run_metadata,
)
from adk_nb.notebook.cells.names import Names
from adk_nb.notebook.cells.session_store import events_label, label, owner
from adk_nb.notebook.cells.templates import Location, Template, parse
from adk_nb.notebook.chat.chat import Chat, turn_runner
from adk_nb.notebook.chat.conversation import InNotebook
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.chat.turn import TurnRunner
from adk_nb.notebook.registry import resolve
from adk_nb.notebook.view.display import Mode
from adk_nb.notebook.view.plain_text import quoted
from adk_nb.notebook.view.run_view import RunView
from adk_nb.runners import DEBUG_SESSION, DEBUG_USER, Runner
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.trace import Traces
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.function_tool import FunctionTool

P = ParamSpec("P")
T = TypeVar("T")


def _locked(method: "Callable[Concatenate[Notebook, P], T]") -> "Callable[Concatenate[Notebook, P], T]":
    """Let one thread at a time into a method, since a server looks up agents while cells define them."""

    @wraps(method)
    def locked(self: "Notebook", /, *args: P.args, **options: P.kwargs) -> T:
        with self.lock:
            return method(self, *args, **options)

    return locked


class Notebook(Names):
    """Definitions and chats of a shell. Agents keep the names of their tools and look them up at each turn.

    Args:
        variables: The user's namespace; agents are bound in it, and Python's own agents and tools are found in it.
    """

    def __init__(self, variables: MutableMapping[str, Any]) -> None:
        super().__init__(variables)
        self.lock = threading.RLock()
        self.traces = Traces()
        """Requests and responses of the newest turns of all chats."""
        self.root: str | None = None
        """The agent that answers messages without an addressee."""
        self.last_asked: str | None = None
        """The agent that the last message was for."""
        self.cell_number: Callable[[], int] = lambda: 0
        """Returns n of the `In[n]` that runs."""
        self.used: dict[str, int] = {}
        """Agent -> n of the `In[n]` in which it ran last."""
        self.earlier = EarlierTools()
        self._members: dict[str, list[Any]] = {}
        """Agent -> its members as they were when it was built."""
        self._card_views: dict[str, dict[str, tuple[RunView, ...]]] = {}
        """Session -> id of an interrupt -> the views that have its card."""
        self._chats: dict[tuple[str, str], tuple[App | Runner | None, Chat]] = {}
        """Name and session -> the chat, and the app or runner of the variable it was built for."""

    # ---- definitions

    @_locked
    def define_agent(self, definition: AgentDefinition, *, root: bool = False, replace: bool = False) -> list[str]:
        """Define an agent, or a new version of it; returns a report, a line each. Sessions are kept.

        Args:
            definition: As the cell says; its version does not matter.
            root: It gets the messages that name no agent.
            replace: It may take the name of a tool.

        Raises:
            UserError: The definition cannot be used; nothing is changed.
        """
        name = definition.name
        self.check_agent_name(name, replace=replace)
        template = None
        if definition.kind == "llm" and not definition.raw:
            start = max(definition.source.find(definition.instruction), 0)
            location = Location(definition.cell, 1 + definition.source.count("\n", 0, start))
            template = parse(definition.instruction, self.variables, location=location)
        definition = updated(
            definition,
            variables=template.variables if template else {},
            members=team_cell.member_names(definition, self),
            default_model=default_model(),
        )
        if definition.model and definition.model_object is None:
            LLMRegistry.resolve(definition.model)
        notes = notes_on(definition, template, self)
        for added in definition.options.values():
            notes += resolve(added.option.notes)(added.value) if added.option.notes else ()
        old = self.definitions.get(name)
        is_unchanged = old is not None and old.digest == definition.digest
        if old and is_unchanged and self.variables.get(name) is self.cell_agents[name]:
            definition, agent = updated(definition, version=old.version), self.cell_agents[name]
            report = [f"{name} v{old.version}, unchanged"]
            if model := definition.model_change(old):
                report = [f"{name} v{old.version} · {model}", *unfit_history(definition, old, self.events_of(name))]
        else:
            definition = updated(definition, version=old.version + 1 if old else 1)
            agent = self._build(definition, template)
            report = self._report_change(definition, old) if old else [definition.summary]
        # Nothing may fail below: a refused cell leaves all as it was.
        self.tools.pop(name, None)
        self.definitions[name] = definition
        self.removed.discard(name)
        self.failed.pop(name, None)
        self._bind(name, agent)
        self._rebuild_teams()
        self.root = name if root else self.root
        self._mark_cards()
        return [*report, *notes]

    def _mark_cards(self) -> None:
        """Let open cards say that a tool was redefined, or that its agent no longer has it."""
        for _, chat in self._chats.values():
            turn_runner(chat).desk.tools_changed()

    @_locked
    def define_tools(self, definitions: Mapping[str, ToolDefinition], *, replace: bool = False) -> list[str]:
        """Define tools and toolsets, or new versions of them, all or none; returns a report, a line each.

        Args:
            definitions: Name -> as its cell says; its version does not matter.
            replace: They may take the names of agents.

        Raises:
            UserError: A name belongs to something else.
        """
        for name in definitions:
            self.check_function_name(name, replace=replace)
        report: list[str] = []
        for name, definition in definitions.items():
            if name in self.agent_names:
                self.forget_agent(name)
            old, approval = self.tools.get(name), approval_note(definition.tool)
            is_unchanged = old is not None and old.digest == definition.digest
            version = 1 if old is None else old.version if is_unchanged else old.version + 1
            self.tools[name] = updated(definition, version=version)
            users = self.users_of(name)
            usage = f"; used by {', '.join(users)}" if users else ""
            if old is None:
                report.append(f"{name} v1{approval}{usage}")
            elif is_unchanged:
                report.append(f"{name} v{version}, unchanged{approval}")
            else:
                change = f"{name} v{old.version} → v{version}"
                sessions = dict.fromkeys(map(self.session_of, users)) or (self.sessions.current,)
                for session in sessions:
                    self.sessions.note_change("definition_changed", f"tool {change}", session)
                self.earlier.keep(old)  # for calls of it that are pending
                events = [event for session in sessions for event in self.sessions.events_if_any(session)]
                report += [change + approval + usage, *lost_parameters(name, definition.tool, old.tool, events)]
        self._rebuild_teams()
        self._mark_cards()
        return report

    @_locked
    def forget_agent(self, name: str) -> str:
        """Remove an agent; its sessions stay.

        Raises:
            AgentNotFoundError: There is none of that name.
        """
        agent = self.agent(name)
        if name not in self.agent_names:
            kind = type(self.variables[name]).__name__
            raise InputError(f"{name!r} is not an agent, but of type {kind}; type: del {name}")
        for mapping in (self.definitions, self.cell_agents, self._members):
            mapping.pop(name, None)
        self._chats = {key: entry for key, entry in self._chats.items() if key[0] != name}
        if self.variables.get(name) is agent:
            del self.variables[name]
        self.removed.add(name)
        self.root = None if self.root == name else self.root
        self.last_asked = None if self.last_asked == name else self.last_asked
        return f"{name} was removed; its sessions stay"

    def _build(self, definition: AgentDefinition, template: Template | None) -> BaseAgent:
        members = self._current_members(definition)
        if definition.kind != "llm":
            agent = (definition.build or team_cell.build)(definition, self)
            self._members[definition.name] = members
            return agent
        fields: dict[str, Any] = {name: field.value for name, field in definition.fields.items()}
        for option in ("max_iterations", "mode"):
            if value := getattr(definition, option):
                fields[option] = value
        tools = self.tools_named([tool for tool in definition.tools if self.has_tool(tool)])
        agent = CellAgent(
            name=definition.name,
            model=definition.model_object or definition.model,
            instruction=definition.instruction,
            template=not definition.raw,
            description=definition.description,
            output_key=definition.output_key,
            tools=tools,
            sub_agents=team_cell.clone_members(definition, self),
            **fields,
        )
        for option, added in definition.options.items():
            try:
                resolve(added.option.apply)(agent, added.value)
            except Exception as error:
                error.add_note(f"in %%agent --{option} of {definition.name}")
                raise
        added_tools = [tool for tool in agent.tools if not any(tool is own for own in tools)]
        own_template = template if agent.instruction == definition.instruction else None
        agent.bind(self, definition.tools, own_template, added_tools)
        self._members[definition.name] = members
        return agent

    def _bind(self, name: str, agent: BaseAgent) -> None:
        """Bind an agent to its name, also in its chats, whose open interrupts resume in the old agent."""
        self.variables[name] = self.cell_agents[name] = agent
        for (addressee, _), (_, chat) in self._chats.items():
            if addressee == name and chat.agent is not agent:
                chat.agent = agent

    def _current_members(self, definition: AgentDefinition) -> list[Any]:
        return [self.node_like(name) for name in definition.members]

    def _prepare(self, name: str) -> None:
        """Check that an agent's tools and members are defined, and rebuild it and the teams under it that have changed.

        Tools whose functions' modules were reloaded are defined anew.

        Raises:
            UserError: Something is not defined.
        """
        definition = self.definitions.get(name)
        if not definition or not self.is_of_its_cell(name):
            return
        for tool_name in definition.tools:
            old = self.tools.get(tool_name)
            if old is None or not isinstance(old.tool, FunctionTool) or (tool := old.tool.refreshed()) is old.tool:
                continue
            # The module of its function was reloaded.
            variables = [variable for variable, value in self.variables.items() if value is old.tool]
            self.variables.update(dict.fromkeys(variables, tool))
            first, *rest = self.define_tools({tool_name: updated(old, tool=tool, digest=fingerprint(tool))})
            sys.stdout.write("\n".join([f"{first}; its module was reloaded", *rest]) + "\n")
        self.tools_named(definition.tools)
        members = self._current_members(definition)
        if members and self._members[name] != members:
            if definition.kind == "llm":  # its instruction and tools stay as when its cell ran
                agent = self.cell_agents[name].clone({"sub_agents": team_cell.clone_members(definition, self)})
                self._members[name] = members
            else:
                agent = self._build(definition, None)
            self._bind(name, agent)
        for member in definition.members:
            self._prepare(member)
            if self.node_like(member) is None:
                is_graph = definition.kind == "workflow"
                raise team_cell.missing_member(member, name, self.agent_names, is_graph=is_graph)

    def _rebuild_teams(self) -> None:
        """Rebuild teams and workflows with a changed member; those with a missing one stay as they are."""
        for name in self.definitions:
            with suppress(UserError):
                self._prepare(name)

    def _report_change(self, new: AgentDefinition, old: AgentDefinition) -> list[str]:
        changes = new.changes_from(old) or "the variable had another value"
        line = f"{new.name} v{old.version} → v{new.version} ({changes})"
        is_noted = self.sessions.note_change("definition_changed", line, self.session_of(new.name))
        events = self.events_of(new.name)
        session = f"; session kept, {events_label(events)}" if is_noted else ""
        return [line + session, *unfit_history(new, old, events)]

    # ---- chats

    def agent_for_text(self, supposed: str = "") -> tuple[str, str]:
        """The agent for a message that names none, and why it is that one: the root agent, or the only one.

        Args:
            supposed: The first word of the message, if it looks like the name of an agent.

        Raises:
            InputError: There are several, or none.
        """
        names, roots = self.addressees, self.root_names
        if not names:
            raise InputError("no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
        if self.root is not None:
            return self.root, "the root agent"
        if len(roots) == 1:
            return roots[0], "the only agent" if len(names) == 1 else "which has the others under it"
        unknown = f"no agent is named {supposed!r}" if supposed else "which agent?"
        raise InputError(
            f"{unknown}{';' if supposed else ''} begin the line with one of {', '.join(names)}; or make one --root"
        )

    def agent_in_question(self) -> str:
        """The agent that was asked last, here or by an earlier kernel; else as `agent_for_text`."""
        last = self.last_asked or last_addressed(self.sessions.history())
        return last if last in self.addressees else self.agent_for_text()[0]

    def keep_sessions_in(self, address: str, folder: Path) -> list[str]:
        """As `SessionStore.move_to`; chats of the sessions begin anew."""
        report = self.sessions.move_to(address, folder)
        self._card_views = {}
        self._chats = {key: entry for key, entry in self._chats.items() if isinstance(entry[0], Runner)}
        return report

    @_locked
    def chat(self, name: str, session: str | None = None, *, show: Mode = "auto", fresh: bool = False) -> Chat:
        """The chat with an agent, an app or a runner in a session; one object for each pair.

        A runner's chat is in the runner's sessions: by default the one of `runner.run_debug`.

        Args:
            name: Of the agent, the app or the runner.
            session: None: the one in which the agent speaks.
            show: The display mode of its turns.
            fresh: The session is a new one, and becomes the current one.

        Raises:
            AgentNotFoundError, ToolNotFoundError: The agent or a tool of it is not defined.
        """
        agent, value = self.agent_now(name), self.variables.get(name)
        source = value if isinstance(value, App | Runner) else None
        if fresh:
            session = self.sessions.start_fresh(session, self.speaker_of(name))
        if isinstance(source, Runner):
            key = name, label(*owner(session or DEBUG_SESSION, DEBUG_USER), DEBUG_USER)
        else:
            key = name, self.sessions.in_full(session or self.session_of(name))
        old_source, chat = self._chats.get(key, (None, None))
        if chat is None or old_source is not source:
            chat = self._new_chat(name, key[1], source)
            self._chats[key] = source, chat
        elif chat.agent is not agent:
            chat.agent = agent
        turn_runner(chat).show = show
        return chat

    def agent_now(self, name: str) -> BaseAgent:
        """As `agent`, built anew if a tool or a member of it has changed. Reads no session."""
        self._prepare(name)
        return self.agent(name)

    def _new_chat(self, name: str, session: str, source: App | Runner | None) -> Chat:
        def on_reply(reply: Reply) -> None:
            self.variables["_run"] = reply
            self.used |= dict.fromkeys([reply.agent, *(event.author for event in reply.events)], self.cell_number())

        if isinstance(source, Runner):
            user, session_id = owner(session, DEBUG_USER)
            chat = Chat(source, session=session_id, user_id=user)
            in_notebook = InNotebook(on_reply=on_reply)
        else:
            session_key = self.sessions.key(session)
            chat = Chat(
                source or self.agent(name),
                session=session_key["session_id"],
                user_id=session_key["user_id"],
                app_name=session_key["app_name"],
                session_service=self.sessions.service,
                artifact_service=self.sessions.artifacts,
                memory_service=self.sessions.memory,
                credential_service=self.sessions.credentials,
            )
            in_notebook = InNotebook(
                magic=lambda: self.confirm_magic(session),
                versions=self.earlier,
                newest=lambda: self.variables.get(name),
                metadata=lambda: run_metadata(name, self.digest_of(name), self.versions_of(name)),
                views=self._card_views.setdefault(session, {}),
                runner_of=lambda interrupt: self._runner_of(interrupt, session),
                on_reply=on_reply,
            )
        runner = turn_runner(chat)
        runner.conversation.notebook, runner.traces = in_notebook, self.traces
        return chat

    def _runner_of(self, interrupt: Interrupt, session: str) -> TurnRunner | None:
        """The runner of the chat in a session that takes the answer to an interrupt; without a lock, on any thread."""
        entries = tuple(self._chats.items())
        chats = [chat for (_, id), (source, chat) in entries if id == session and not isinstance(source, Runner)]
        runners = [turn_runner(chat) for chat in chats]
        paused = [runner for runner in runners if runner.desk.is_paused_at(interrupt.id)]
        return next(iter([*paused, *(runner for runner in runners if runner.desk.can_answer(interrupt))]), None)

    def chats_in(self, session: str) -> list[Chat]:
        """The chats in one of the notebook's sessions."""
        entries, session = self._chats.items(), self.sessions.in_full(session)
        return [chat for (_, id), (source, chat) in entries if id == session and not isinstance(source, Runner)]

    @property
    def waiting_sessions(self) -> list[str]:
        """The sessions of this kernel's agents and chats in which something waits for an answer."""
        ids = [id for (_, id), (source, _) in self._chats.items() if not isinstance(source, Runner)]
        stored = set(self.sessions.names)
        ids += [id for id in map(self.session_of, self.root_names) if id in stored]
        return [id for id in dict.fromkeys(ids) if self.sessions.history(id).interrupts()]

    def confirm_magic(self, session: str) -> str:
        """The `%confirm` that answers the interrupts of a session, as it has to be typed now."""
        return "%confirm" if session == self.sessions.current else f"%confirm -s {quoted(session)}"

    def is_edited(self, id: str, history: History) -> str | None:
        """The agent that was addressed when the call `id` was made, if its cell is different now.

        None: it is the same, resumes in its earlier version, or is unknown.
        """
        addressed = agent_of_call(id, history)
        if not addressed.digest or addressed.name in self._paused_chats(id):
            return None
        digest = self.digest_of(addressed.name)
        return addressed.name if digest and digest != addressed.digest else None

    def recipient_of(self, id: str, agent: str, history: History) -> str | None:
        """Name of the addressee that receives the answer to interrupt `id`, which `agent` raised.

        It is the agent that was addressed then, as a team resumes only as a whole; else `agent` itself; None: both are
        gone. `history`: of the session.
        """
        for name in self._paused_chats(id):
            if name in self.addressees:
                return name
        team = agent_of_call(id, history).name
        if team in self.addressees and self.agent(team).find_agent(agent):
            return team
        return self.name_of(agent)

    def _paused_chats(self, id: str) -> list[str]:
        return [name for (name, _), (_, chat) in self._chats.items() if turn_runner(chat).desk.is_paused_at(id)]
