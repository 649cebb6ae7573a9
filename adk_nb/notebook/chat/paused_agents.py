"""The agent versions in which open interrupts resume: a new definition is for new messages."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.models.json_schemas import flat_schema
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.runtime.nested_calls import awaited_branches, open_tasks
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.function_tool import FunctionTool


class Versions(Protocol):
    """Keeps tools as they were before they were redefined."""

    def label(self, interrupt: Interrupt, /) -> str:
        """The version that an approval was requested for, as `v2`; empty if it is not known any more."""
        ...

    def as_asked(self, approvals: Sequence[Interrupt], /) -> AbstractContextManager[None]:
        """Within this, the tools of the calls have their earlier version until each call has its result.

        Each approval must have a `label`.
        """
        ...

    def answered(self, call_id: str, /) -> None:
        """Note that a call has its result."""
        ...


class PausedAgents:
    """The agents and teams of one conversation that are paused at an interrupt, in the version that was paused."""

    def __init__(self) -> None:
        self._by_id: dict[str, BaseAgent] = {}
        """Id of an interrupt, of a call or of a graph's node -> the paused agent."""
        self._metadata: dict[int, dict[str, Any]] = {}
        """`id()` of a paused agent -> metadata of its events."""
        self._lent: dict[int, frozenset[str]] = {}
        """`id()` of a paused agent -> names of the tools that it has for its turn alone."""

    def note(self, agent: BaseAgent, history: History, metadata: dict[str, Any], *, base: BaseAgent) -> None:
        """Remember which agents are paused after a turn of `agent`.

        Args:
            agent: The agent of the turn.
            history: Of the session.
            metadata: The metadata of the turn's events.
            base: `agent` without the tools that were lent for the turn.
        """
        keys = [*awaited_branches(agent, history), *(interrupt.id for interrupt in history.interrupts())]
        keys += [node] if (node := history.listening_node()) else []
        self._by_id = {key: self._by_id.get(key, agent) for key in keys}
        known = {**self._metadata, id(agent): metadata}
        self._metadata = {id(paused): known[id(paused)] for paused in self._by_id.values()}
        lent = frozenset(tools_of(agent)) - frozenset(tools_of(base))
        lent_to = {**self._lent, id(agent): self.lent_to(base) | lent}
        self._lent = {id(paused): lent_to[id(paused)] for paused in self._by_id.values()}

    def metadata_of(self, agent: BaseAgent) -> dict[str, Any] | None:
        """The metadata of the events of a paused agent. None: it is not paused."""
        return self._metadata.get(id(agent))

    def lent_to(self, agent: BaseAgent) -> frozenset[str]:
        """The names of the tools that a paused agent has for its turn alone."""
        return self._lent.get(id(agent), frozenset())

    def of(self, ids: Iterable[str]) -> BaseAgent | None:
        """The agent that is paused at one of these ids. None: none is."""
        return next((self._by_id[key] for key in ids if key in self._by_id), None)

    def of_text(self, history: History) -> BaseAgent | None:
        """The agent that is paused until the user's next text. None: none is."""
        questions = (interrupt.id for interrupt in history.interrupts() if interrupt.is_question)
        tasks = (key for key, team in self._by_id.items() if key in open_tasks(team, history))
        return self.of([history.listening_node() or "", *questions, *tasks])

    def of_message(self, message: types.Content, history: History) -> BaseAgent | None:
        """The paused agent that a message resumes. None: it resumes none."""
        responses = [part.function_response for part in message.parts or () if part.function_response]
        return self.of(response.id or "" for response in responses) if responses else self.of_text(history)


def tools_of(agent: BaseAgent) -> dict[str, BaseTool]:
    """The tools of an agent by name, as they are now, with those that call its sub-agents."""
    if not isinstance(agent, LlmAgent):
        return {}
    return {tool.name: tool for tool in [*agent.tools_now(), *agent.sub_agent_tools]}


def asking_agent(agent: BaseAgent, interrupt: Interrupt, history: History) -> BaseAgent | None:
    """The agent that opened an interrupt, in `agent`'s tree or called from there, as it is now. None: it is gone."""
    tree: BaseAgent | None = agent
    for _, key in calls_to(interrupt.branch):  # each is a call of an agent as a tool, which has a tree of its own
        record = history.calls.newest(key)
        tree = _called_agent(tree, record.event.author, record.call.name or "") if tree and record else None
    return tree and tree.find_agent(interrupt.agent)


def _called_agent(tree: BaseAgent, author: str, name: str) -> BaseAgent | None:
    caller = tree.find_agent(author)
    tool = tools_of(caller).get(name) if caller else None
    if isinstance(tool, AgentTool) and tool.resumable and isinstance(tool.agent, BaseAgent):
        return tool.agent
    return None


def is_redefined(interrupt: Interrupt, agent: BaseAgent, history: History) -> bool:
    """True if the tool of an approval was redefined since; `agent` answers in the chat."""
    if interrupt.tool_fingerprint is None:
        return False
    caller = asking_agent(agent, interrupt, history)
    tool = tools_of(caller).get(interrupt.call.name or "") if caller else None
    return tool is not None and fingerprint(tool, interrupt.call.args or {}) != interrupt.tool_fingerprint


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
    """JSON schema of the arguments of a call, of an agent under `agent` or called from there. None: there is none."""
    caller = agent.find_agent(interrupt.agent)
    if caller and (tool := tools_of(caller).get(interrupt.call.name or "")):
        return _form_schema(tool)
    first = agent.find_agent(interrupt.recipient) or agent
    called = [tool.agent for tool in tools_of(first).values() if isinstance(tool, AgentTool) and tool.resumable]
    schemas = (schema_of(callee, interrupt) for callee in called if isinstance(callee, BaseAgent))
    return next(filter(None, schemas), None)


def _form_schema(tool: BaseTool) -> dict[str, Any] | None:
    """The schema of a tool's parameters, with `x-destructive` for a destructive tool: its card puts Reject first.

    Source of `destructiveHint`: the Model Context Protocol, `ToolAnnotations`.
    """
    schema = cast(dict[str, Any] | None, tool.function_declaration and tool.function_declaration.parameters_json_schema)
    schema = schema and flat_schema(schema)
    if isinstance(tool, FunctionTool):
        declared = schema or dict[str, Any](properties={})
        schema = {**declared, "additionalProperties": tool.signature.takes_any}
    destructive = (tool.custom_metadata or {}).get("destructiveHint")
    return {**schema, "x-destructive": True} if schema and destructive else schema
