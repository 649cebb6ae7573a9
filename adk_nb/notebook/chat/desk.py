"""The open interrupts of a chat's session: who gets an answer, the tools as they were asked for, and the open cards."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.json_schemas import flat_schema
from adk_nb.notebook.chat.conversation import Conversation
from adk_nb.notebook.chat.interrupts import Answers, check_edits, in_doubt_message, read_answer
from adk_nb.notebook.view.document import Text, document
from adk_nb.notebook.view.interrupt_text import Verdict, commands, list_blocks
from adk_nb.notebook.view.run_view import Clicks, OpenCards, Refused, RunView, TurnInfo
from adk_nb.notebook.view.writers import bundle
from adk_nb.runtime import interrupts
from adk_nb.runtime.approvals import expired_message
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import ALL, APPROVALS, Interrupt
from adk_nb.runtime.open_calls import awaited_branches, open_tasks
from adk_nb.tools import input_answer
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.function_tool import FunctionTool


@dataclass(frozen=True, kw_only=True)
class _Paused:
    """An agent or a team in the version that was paused: a new definition is for new messages."""

    agent: BaseAgent
    metadata: dict[str, Any]
    """Of the events of its run."""
    lent: frozenset[str]
    """Names of the tools that it has for its turn alone."""


class Desk:
    """Takes answers to the open interrupts of a conversation, and keeps the views that have cards of them.

    One answer counts for all views. An interrupt is answered by the agent that is paused at it, in the version that
    asked; the tools are those of today, unless the answer wants them as they were asked for.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._paused: dict[str, _Paused] = {}
        """By the id of an interrupt, of a call, or of a graph's node."""

    @property
    def _views(self) -> dict[str, tuple[RunView, ...]]:
        return self.conversation.notebook.views

    async def interrupts(self) -> list[Interrupt]:
        """The open interrupts of the session, of every kind, by number."""
        async with self.conversation.newest_history() as history:
            return history.interrupts(kinds=ALL)

    # ---- who gets the answer

    def agent_of(self, key: str) -> BaseAgent:
        """The agent that gets the answer to the interrupt `key`."""
        return self._paused[key].agent if key in self._paused else self.conversation.agent

    def is_paused_at(self, key: str) -> bool:
        """True if an agent of this chat is paused at the interrupt, and resumes here in the version that raised it."""
        return key in self._paused

    def agent_for_text(self, history: History) -> BaseAgent:
        """The agent that gets the user's next text: the one that is paused until then, else the conversation's."""
        questions = (interrupt.id for interrupt in history.interrupts() if interrupt.is_question)
        tasks = (key for key, paused in self._paused.items() if key in open_tasks(paused.agent, history))
        return self._first_paused([history.listening_node() or "", *questions, *tasks]) or self.conversation.agent

    def agent_for(self, message: types.Content | None, history: History) -> BaseAgent:
        """The agent that gets a message, or resumes without one: a paused one, else the conversation's."""
        if message is None:
            return self.conversation.agent
        responses = [part.function_response for part in message.parts or () if part.function_response]
        if not responses:
            return self.agent_for_text(history)
        return self._first_paused(response.id or "" for response in responses) or self.conversation.agent

    def _first_paused(self, keys: Iterable[str]) -> BaseAgent | None:
        return next((self._paused[key].agent for key in keys if key in self._paused), None)

    def metadata_of(self, agent: BaseAgent) -> dict[str, Any]:
        """Metadata for the events of a run of an agent, which may be paused in an earlier version."""
        metadata = next((paused.metadata for paused in self._paused.values() if paused.agent is agent), None)
        return metadata or self.conversation.notebook.metadata()

    def turn_ended(self, agent: BaseAgent, base: BaseAgent, events: Sequence[Event]) -> None:
        """Remember which agents are paused after a turn of `agent`.

        Args:
            agent: The agent of the turn.
            base: The same without the tools lent for the turn.
            events: All events of the session.
        """
        with self.conversation.history(events) as history:
            keys = [*awaited_branches(agent, history), *(interrupt.id for interrupt in history.interrupts())]
            keys += [node] if (node := history.listening_node()) else []
        if not keys:
            self._paused = {}
            return
        lent = next((paused.lent for paused in self._paused.values() if paused.agent is base), frozenset[str]())
        if agent is not base:
            lent |= tools_of(agent).keys() - tools_of(base).keys()
        now = _Paused(agent=agent, metadata=self.metadata_of(agent), lent=lent)
        self._paused = {key: self._paused.get(key, now) for key in keys}

    # ---- answers, and the tools that they let run

    def read(self, values: Mapping[str, Any], history: History, by: str, *, as_asked: bool) -> Answers:
        """The answers in `values`, by id, as the runtime takes them, if the agents can carry them out together.

        Args:
            values: Id -> answer, as `Chat.answer` takes it.
            history: Of the session.
            by: How they were given, for the log.
            as_asked: The tools are to run as they were when they were asked for.

        Raises:
            InputError: An interrupt is not open, is another agent's or expired; its tool was redefined; changed
                arguments do not fit; a value does not fit its question.
        """
        by_id = {interrupt.id: interrupt for interrupt in history.interrupts(kinds=ALL)}
        answers = {key: read_answer(by_id[key], value, by) for key, value in values.items() if key in by_id}
        for key in values:
            interrupt = by_id.get(key)
            if interrupt is None:
                raise InputError(f"no interrupt {key!r} is open; it was answered already, or never existed")
            if interrupt.in_doubt and len(values) > 1:
                yes, no = self._ways(interrupt, history)
                raise InputError(f"{in_doubt_message(interrupt)}; {yes} makes it again, {no} does not")
            if interrupt.kind == "approval":
                self._check_decision(interrupt, answers[key], history, as_asked=as_asked)
            elif interrupt.kind == "task" and len(values) > 1:
                raise InputError("a message to a task is sent alone; answer the others first")
            elif interrupt.kind not in ("credential", "task"):
                message = types.Content(role="user", parts=[interrupts.answer(interrupt, answers[key])])
                input_answer.check(message, history)
        return answers

    def _check_decision(
        self, interrupt: Interrupt, decided: ToolConfirmation, history: History, *, as_asked: bool
    ) -> None:
        agent, (yes, no) = self.agent_of(interrupt.id), self._ways(interrupt, history)
        if not agent.find_agent(interrupt.recipient):
            raise InputError(
                f"this approval was requested by agent {interrupt.recipient!r}; answer it in a chat with that agent"
            )
        if not decided.confirmed:
            return
        caller = asking_agent(agent, interrupt, history)
        if caller is None:
            raise InputError(
                f"agent {interrupt.agent!r}, which requested this, was changed or removed; refuse it with {no}, and "
                "ask again"
            )
        if interrupt.is_expired:
            raise InputError(f"{expired_message(interrupt.call.name)}; refuse the call with {no}, and ask again")
        runs_as_asked = as_asked and self._runs_without_its_tool(interrupt, history)
        if not runs_as_asked and (note := self.note_on_tool(interrupt, history)):
            raise InputError(note)
        if decided.args is not None:
            check_edits(interrupt, decided.args, tools_of(caller).get(interrupt.call.name or ""), yes)

    def tools_as_asked(self, values: Mapping[str, Any], history: History) -> AbstractContextManager[None]:
        """Within this, the tools of approvals are the versions that the approvals were requested for.

        Raises:
            InputError: An earlier version is not known.
        """
        approvals = [approval for approval in history.interrupts(kinds=APPROVALS) if approval.id in values]
        if not approvals:
            return nullcontext()
        versions = self.conversation.notebook.versions
        if versions is None:
            raise InputError(
                "earlier definitions of tools are kept only in cells; reject the call with chat.reject(), and ask again"
            )
        redefined = [approval for approval in approvals if not self._runs_without_its_tool(approval, history)]
        for approval in redefined:
            if versions.label(approval):
                continue
            if self._lacks_tool(approval, history):
                raise InputError(self._gone_message(approval, history))
            name, is_changed = approval.call.name, bool(self.redefined([approval], history))
            again, no = self._ways(approval, history, redefined=is_changed)
            if not is_changed:
                raise InputError(f"{name} is the same as when this was requested; approve it with {again}")
            gone = f"the earlier {name} is no longer in this kernel"
            raise InputError(f"{gone}; ask again with {again}, or refuse it with {no}")
        return versions.as_asked(redefined)

    def redefined(self, open_: Iterable[Interrupt], history: History | None = None) -> set[str]:
        """Ids of the approvals whose tools were redefined since. `history`: of the session; None: as loaded last."""
        with nullcontext(history) if history else self.conversation.history() as history:
            return {
                interrupt.id
                for interrupt in open_
                if interrupt.kind == "approval"
                and interrupt.tool_fingerprint is not None
                and (tool := asking_tool(self.agent_of(interrupt.id), interrupt, history))
                and fingerprint(tool, interrupt.call.args or {}) != interrupt.tool_fingerprint
            }

    def note_on_tool(self, interrupt: Interrupt, history: History) -> str:
        """The note that the tool of an approval is gone or was redefined, and what to type; empty if it was not."""
        if self._lacks_tool(interrupt, history):
            return self._gone_message(interrupt, history)
        if not self.redefined([interrupt], history):
            return ""
        subject = "a file of the skill was changed" if interrupt.documents else f"{interrupt.call.name} was redefined"
        message = f"{subject} since this was requested"
        again, no = self._ways(interrupt, history, redefined=True)
        if not again.endswith("reask"):
            return f"{message}; refuse the call with {no}, and ask again"
        versions = self.conversation.notebook.versions
        is_kept = versions is not None and versions.label(interrupt)
        old = f"run it as it was with {again.removesuffix('reask')}old"
        return f"{message}; ask again with {again}, or {old if is_kept else f'refuse it with {no}'}"

    def _gone_message(self, interrupt: Interrupt, history: History) -> str:
        yes, no = self._ways(interrupt, history)
        can_run = self.conversation.notebook.magic() and self._runs_without_its_tool(interrupt, history)
        run = f", or run it as it was asked with {yes.removesuffix('yes')}old" if can_run else ""
        gone = f"{interrupt.agent} has no tool {interrupt.call.name} any more"
        return f"{gone}; give it back, or refuse the call with {no}{run}"

    def _ways(self, interrupt: Interrupt, history: History, *, redefined: bool = False) -> tuple[str, ...]:
        """The lines that answer an interrupt."""
        return commands(interrupt, self.conversation.notebook.magic(), history.interrupts(), redefined=redefined)

    def _lacks_tool(self, interrupt: Interrupt, history: History) -> bool:
        """True: the agent as it is defined now has no such tool any more; a tool lent for the turn it never had."""
        paused = self._paused.get(interrupt.id)
        if paused and interrupt.call.name in paused.lent:
            return False
        newest = self.conversation.notebook.newest()
        return lacks_tool(interrupt, newest if isinstance(newest, BaseAgent) else self.conversation.agent, history)

    def _runs_without_its_tool(self, interrupt: Interrupt, history: History) -> bool:
        """True: the agent as it is defined now has no such tool, and the version that asked still has it unchanged."""
        had_it = not lacks_tool(interrupt, self.agent_of(interrupt.id), history)
        return self._lacks_tool(interrupt, history) and had_it and not self.redefined([interrupt], history)

    # ---- cards

    def asks_in(self, view: RunView) -> bool:
        """True if that view has an open card."""
        return any(view in views for views in self._views.values())

    def elsewhere(self, view: RunView) -> set[str]:
        """Ids of the interrupts that have cards in other views, and not in `view`."""
        return {key for key, views in self._views.items() if view not in views}

    def wait_in(self, view: RunView, open_: Sequence[Interrupt]) -> None:
        """Note all interrupts that are open after a turn in `view`, and the cards of them that it shows."""
        with_cards = {interrupt.id for interrupt in open_ if interrupt.has_card}
        for key in self._views.keys() - with_cards:
            del self._views[key]
        for key in with_cards:
            views = self._views.get(key, ())
            if not views or view.shows_card(key):
                self._views[key] = tuple(dict.fromkeys((*views, view)))
        self.mark_changed([interrupt for interrupt in open_ if view.shows_card(interrupt.id)])

    def answered(self, verdicts: Mapping[str, Verdict], view: RunView) -> list[RunView]:
        """Note that interrupts were answered in `view`, and mark their cards in other views; returns these."""
        others = dict.fromkeys(other for key in verdicts for other in self._views.pop(key, ()) if other is not view)
        for other in others:
            other.answered_elsewhere(verdicts, last=not self.asks_in(other))
        return list(others)

    def undone(self, keys: Collection[str]) -> None:
        """Mark the cards of interrupts whose turn was undone."""
        views = dict.fromkeys(view for key in keys for view in self._views.pop(key, ()))
        for view in views:
            view.interrupts_undone(keys)
        self.close_answered(views)

    def close_answered(self, views: Iterable[RunView]) -> None:
        """Close those of the views that have no open card."""
        for view in views:
            if not self.asks_in(view):
                view.close()

    def close(self) -> None:
        """Close all views, and forget what is paused."""
        views = dict.fromkeys(view for views in self._views.values() for view in views)
        self._views.clear()
        self._paused = {}
        self.close_answered(views)

    def can_answer(self, interrupt: Interrupt) -> bool:
        """True: the answer to it reaches an agent of this chat."""
        return self.agent_of(interrupt.id).find_agent(interrupt.recipient) is not None

    def is_own(self, interrupt: Interrupt) -> bool:
        """True: of all chats of the session, the agents of this one get the answer."""
        runner = self.conversation.notebook.runner_of(interrupt)
        return runner is None or runner.desk is self

    def is_on_card(self, interrupt: Interrupt) -> bool:
        """True: it is answered on a card in this chat; of approvals, those of the agents of the session's chats."""
        if interrupt.kind != "approval":
            return interrupt.has_card
        return self.can_answer(interrupt) or self.conversation.notebook.runner_of(interrupt) is not None

    def schemas(self, open_: Iterable[Interrupt]) -> dict[str, dict[str, Any] | None]:
        """Id of an approval -> the JSON schema of the arguments of its call."""
        approvals = [interrupt for interrupt in open_ if interrupt.kind == "approval"]
        return {interrupt.id: self.schema_of_card(interrupt) for interrupt in approvals}

    def schema_of_card(self, interrupt: Interrupt) -> dict[str, Any] | None:
        """As `schema_of`, of the agent that gets the answer, in whichever chat of the session it is."""
        runner = self.conversation.notebook.runner_of(interrupt)
        desk: Desk = runner.desk if runner else self
        return schema_of(desk.agent_of(interrupt.id), interrupt)

    async def draw(self, keys: Collection[str], view: RunView, clicks: Clicks, refused: Refused | None = None) -> bool:
        """Draw in `view`, too, the cards of open interrupts; returns False if it cannot show cards.

        `refused`: the cell of the view, if its message was not sent because of them.
        """
        session = await self.conversation.loaded()
        if not session or not view.shows_cards:
            return False
        magic = self.conversation.notebook.magic()
        with self.conversation.history(session.events) as history:
            open_ = history.interrupts()
            listed = [interrupt for interrupt in open_ if interrupt.id in keys]
            redefined = self.redefined(listed, history)
        told = [Text(refused.error)] if refused else []
        blocks = [*told, *list_blocks(listed, magic, self.schemas(listed), open_, redefined)]
        cards = OpenCards(
            keys=keys,
            session=session,
            clicks=clicks,
            turn=TurnInfo(magic=magic, open_interrupts=lambda: open_),
            requests=bundle(document(*blocks)),
            refused=refused,
        )
        view.show_open_cards(cards)
        for key in keys:
            self._views[key] = tuple(dict.fromkeys((*self._views.get(key, ()), view)))
        self.mark_changed(listed)
        return True

    def tools_changed(self) -> None:
        """Mark the cards of open approvals whose tools changed since they were requested, and unmark the others."""
        if self._views:
            self.mark_changed(sync.run(self.interrupts()))

    def mark_changed(self, interrupts: Sequence[Interrupt]) -> None:
        """As `tools_changed`, for these interrupts; their session is loaded."""
        versions = self.conversation.notebook.versions
        with self.conversation.history() as history:
            for interrupt in interrupts:
                if interrupt.kind != "approval" or not self.is_own(interrupt):
                    continue
                is_changed = bool(self.redefined([interrupt], history))
                fields: dict[str, Any]
                if self._lacks_tool(interrupt, history):
                    gone = f"{interrupt.agent} has no tool {interrupt.call.name} any more"
                    can_run = self._runs_without_its_tool(interrupt, history)
                    version, typed = "as it was asked" if can_run else "", self._ways(interrupt, history)[1]
                    fields = {"changed": f"{gone}; give it back, or reject the call", "gone": True, "note": ""}
                else:
                    subject = "a file of the skill was" if interrupt.documents else "the tool"
                    changed = f"{subject} changed since this was requested" if is_changed else ""
                    typed = self._ways(interrupt, history, redefined=is_changed)[0]
                    version = versions.label(interrupt) if versions and is_changed else ""
                    fields = {"changed": changed, "gone": False}
                    fields |= {"note": ""} if is_changed else {}  # the note of a card drawn later says "changed", too
                fields |= {"version": version, "how": typed}
                for view in self._views.get(interrupt.id, ()):
                    view.patch_card(interrupt.id, fields)


# ---- the agent and the tool that ask


def tools_of(agent: BaseAgent) -> dict[str, BaseTool]:
    """The tools of an agent by name, as they are now, with those that call its sub-agents."""
    if not isinstance(agent, LlmAgent):
        return {}
    return {tool.name: tool for tool in [*agent.tools_now(), *agent.sub_agent_tools]}


def asking_agent(agent: BaseAgent, interrupt: Interrupt, history: History) -> BaseAgent | None:
    """The agent that opened an interrupt, in `agent`'s tree or called from there, as it is now. None: it is gone."""
    tree = agent
    for _, key in calls_to(interrupt.branch):  # each is a call of an agent as a tool, which has a tree of its own
        record = history.calls.newest(key)
        caller = record and tree.find_agent(record.event.author)
        tool = tools_of(caller).get(record.call.name or "") if record and caller else None
        if not (isinstance(tool, AgentTool) and tool.resumable and isinstance(tool.agent, BaseAgent)):
            return None
        tree = tool.agent
    return tree.find_agent(interrupt.agent)


def asking_tool(agent: BaseAgent, interrupt: Interrupt, history: History) -> BaseTool | None:
    """The tool of an open call, as it is now. None: it is gone. The arguments are those of `asking_agent`."""
    caller = asking_agent(agent, interrupt, history)
    return tools_of(caller).get(interrupt.call.name or "") if caller else None


def lacks_tool(interrupt: Interrupt, agent: BaseAgent, history: History) -> bool:
    """True if the agent that made a call, as it is now in the tree of `agent`, has no tool of that name any more.

    Tools of toolsets are listed when a turn begins, so an agent with a toolset may have any tool.
    """
    if interrupt.kind not in APPROVALS or interrupt.is_remote:
        return False
    caller = asking_agent(agent, interrupt, history)
    if not isinstance(caller, LlmAgent) or any(isinstance(tool, BaseToolset) for tool in caller.tools):
        return False
    return (interrupt.call.name or "") not in tools_of(caller)


def schema_of(agent: BaseAgent, interrupt: Interrupt) -> dict[str, Any] | None:
    """JSON schema of the arguments of a call, of an agent under `agent` or called from there. None: there is none.

    It has `x-destructive` for a destructive tool: its card puts Reject first. Source of `destructiveHint`: the Model
    Context Protocol, `ToolAnnotations`.
    """
    caller = agent.find_agent(interrupt.agent)
    tool = tools_of(caller).get(interrupt.call.name or "") if caller else None
    if tool is None:
        first = agent.find_agent(interrupt.recipient) or agent
        called = [tool.agent for tool in tools_of(first).values() if isinstance(tool, AgentTool) and tool.resumable]
        schemas = (schema_of(callee, interrupt) for callee in called if isinstance(callee, BaseAgent))
        return next(filter(None, schemas), None)
    schema = cast(dict[str, Any] | None, tool.function_declaration and tool.function_declaration.parameters_json_schema)
    schema = schema and flat_schema(schema)
    if isinstance(tool, FunctionTool):
        declared = schema or dict[str, Any](properties={})
        schema = {**declared, "additionalProperties": tool.signature.takes_any}
    destructive = (tool.custom_metadata or {}).get("destructiveHint")
    return {**schema, "x-destructive": True} if schema and destructive else schema
