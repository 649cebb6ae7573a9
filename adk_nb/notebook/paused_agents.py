"""Interrupts resume in the agent version that raised them: a new definition is for new messages."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.nested_calls import awaited_branches, open_tasks
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.function_tool import FunctionTool


class Versions(Protocol):
    """Keeps tools as they were before they were redefined."""

    def label(self, interrupt: Interrupt, /) -> str:
        """The version that a call was asked of, as `v2`; empty if it is not known any more."""
        ...

    def as_asked(self, waiting: Sequence[Interrupt], /) -> AbstractContextManager[None]:
        """Within this, the tools of these calls, each of which has a label, are as they were, until the calls have
        their results.
        """
        ...

    def answered(self, call_id: str, /) -> None:
        """Forget the call, which has its result."""
        ...


class PausedAgents:
    """The agents and teams of one conversation that wait for something."""

    def __init__(self) -> None:
        self._by_id: dict[str, BaseAgent] = {}
        self._about: dict[int, dict[str, Any]] = {}
        """Of those agents, by their `id`."""

    def note(self, agent: BaseAgent, history: History, about: dict[str, Any]) -> None:
        """Remember who waits after a turn of `agent`.

        Args:
            agent: The agent of the turn.
            history: Of the session.
            about: The notes on the events of the turn.
        """
        keys = [*awaited_branches(agent, history), *(interrupt.id for interrupt in history.interrupts())]
        keys += [node] if (node := history.listening_node()) else []
        self._by_id = {key: self._by_id.get(key, agent) for key in keys}
        notes = {**self._about, id(agent): about}
        self._about = {id(paused): notes[id(paused)] for paused in self._by_id.values()}

    def about(self, agent: BaseAgent) -> dict[str, Any] | None:
        """The notes on the events of a run of an agent that waits. None: it does not."""
        return self._about.get(id(agent))

    def of(self, ids: Any) -> BaseAgent | None:
        """The team that waits for one of these ids. None: none does."""
        keys = cast(Iterable[Any], ids) if isinstance(ids, Iterable) else ()
        return next((self._by_id[key] for key in keys if key in self._by_id), None)

    def of_text(self, history: History) -> BaseAgent | None:
        """The team that waits for the user's next words. None: none does."""
        questions = (interrupt.id for interrupt in history.interrupts() if interrupt.is_question)
        tasks = (key for key, team in self._by_id.items() if key in open_tasks(team, history))
        return self.of([history.listening_node() or "", *questions, *tasks])

    def of_message(self, message: types.Content, history: History) -> BaseAgent | None:
        """The team that a message is for. None: none of them."""
        responses = [part.function_response for part in message.parts or () if part.function_response]
        return self.of(response.id or "" for response in responses) if responses else self.of_text(history)


def tools_of(agent: BaseAgent) -> dict[str, BaseTool]:
    """The tools of an agent by name, as they are now; the agents under it that it calls are among them."""
    if not isinstance(agent, LlmAgent):
        return {}
    return {tool.name: tool for tool in [*agent.tools_now(), *agent.sub_agent_tools]}


def asking_agent(agent: BaseAgent, interrupt: Interrupt, history: History) -> BaseAgent | None:
    """The agent that opened an interrupt, in `agent`'s tree or called from there, as it is now. None: it is gone."""
    here: BaseAgent | None = agent
    for _, key in calls_to(interrupt.branch):
        record = history.calls.newest(key)
        here = _called_agent(here, record.event.author, record.call.name or "") if here and record else None
    return here and here.find_agent(interrupt.agent)


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
    asks = asking_agent(agent, interrupt, history)
    tool = tools_of(asks).get(interrupt.call.name or "") if asks else None
    return tool is not None and fingerprint(tool, interrupt.call.args or {}) != interrupt.tool_fingerprint


def schema_of(agent: BaseAgent, interrupt: Interrupt) -> dict[str, Any] | None:
    """JSON schema of the arguments of a call, of an agent under `agent` or called from there. None: there is none."""
    asks = agent.find_agent(interrupt.agent)
    if asks and (tool := tools_of(asks).get(interrupt.call.name or "")):
        return _form_schema(tool)
    first = agent.find_agent(interrupt.recipient) or agent
    called = [tool.agent for tool in tools_of(first).values() if isinstance(tool, AgentTool) and tool.resumable]
    schemas = (schema_of(callee, interrupt) for callee in called if isinstance(callee, BaseAgent))
    return next(filter(None, schemas), None)


def _form_schema(tool: BaseTool) -> dict[str, Any] | None:
    """The schema of a tool's parameters, with `x-destructive` where the tool says so of itself: there a no comes first.

    Source: the Model Context Protocol, `ToolAnnotations.destructiveHint`.
    """
    schema = cast(dict[str, Any] | None, tool.declaration and tool.declaration.parameters_json_schema)
    if isinstance(tool, FunctionTool):
        declared = schema or dict[str, Any](properties={})
        schema = {**declared, "additionalProperties": tool.signature.takes_any}
    destructive = (tool.custom_metadata or {}).get("destructiveHint")
    return {**schema, "x-destructive": True} if schema and destructive else schema
