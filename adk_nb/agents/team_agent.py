"""An agent in a team: its mode under a parent, the targets of its transfers, and the sub-agents that it calls."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import PrivateAttr

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.runtime.calls import is_message_to_user
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import awaited_branches
from adk_nb.tools.agent_tool import AgentTool, CallableAgent, failure_message
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.finish_task_tool import NAME as FINISH
from adk_nb.tools.transfer_to_agent_tool import TransferToAgentTool


class SingleTurnTool(AgentTool):
    """A sub-agent with `mode="single_turn"`: called for one answer, in its parent's session.

    With `include_contents="default"` it also sees the conversation that led to the call.
    """

    separator = ""

    def __init__(self, agent: CallableAgent) -> None:
        super().__init__(agent, stream_events=True)

    def _message(self, args: dict[str, Any]) -> str:
        message = super()._message(args)
        return message if self._takes_text else _as_json(message)

    def _nested_context(
        self, caller: InvocationContext, call_id: str, message: str, *, resumed: bool
    ) -> InvocationContext:
        ctx = super()._nested_context(caller, call_id, message, resumed=resumed)
        if getattr(self.agent, "include_contents", "none") == "default":
            # The caller's events up to the one that made the call.
            record, events = history_of(caller.session).calls.newest(call_id), caller.session.events
            index = record.event_index if record else len(events) - 1
            if record and events[index] is not record.event:
                index = events.index(record.event)
            ctx.caller, ctx.caller_event_count = caller, index + 1
        return ctx


class TaskTool(AgentTool):
    """A sub-agent with `mode="task"`: it talks with the user until it calls `finish_task`.

    Its output is the result, added in the user's name. Not possible in a live conversation.
    """

    runs_task = True

    def __init__(self, agent: CallableAgent) -> None:
        super().__init__(agent, stream_events=True)

    def _message(self, args: dict[str, Any]) -> str:
        message = super()._message(args)
        return json.dumps({"request": message}, ensure_ascii=False) if self._takes_text else _as_json(message)

    def _is_waiting(self, ctx: InvocationContext, events_since: Sequence[Event], since: int) -> bool:
        scope = ctx.isolation_scope
        if any(key != scope for key in awaited_branches(ctx.agent, history_of(ctx.session), ctx.branch, since=since)):
            return True
        agent_events = [event for event in events_since if event.isolation_scope == scope and event.author != "user"]
        return (
            bool(agent_events) and is_message_to_user(agent_events[-1]) and not any(map(_is_finish_event, agent_events))
        )

    def _result(self, events: Sequence[Event], tool_context: ToolContext) -> Any:
        for event in reversed(events):
            if _is_finish_event(event):
                return event.output
        live = tool_context.get_invocation_context().live_request_queue
        reason = "; in a live conversation it cannot talk with the user" if live else ""
        return {"error": failure_message(events) or f"agent {self.name!r} ended without calling {FINISH}(){reason}"}


def _is_finish_event(event: Event) -> bool:
    return any(
        response.name == FINISH and "error" not in (response.response or {})
        for response in event.get_function_responses()
    )


def _as_json(message: str) -> str:
    """Reformat JSON as google-adk 2.13 does for sub-agents: a blank after each comma and colon."""
    return json.dumps(json.loads(message), ensure_ascii=False)


class TeamAgent(BaseAgent):
    """An agent that can transfer to, or call, other agents of its tree."""

    mode: Literal["chat", "single_turn", "task"] | None = None
    """Its work under another agent. `chat`: it takes over the conversation. `single_turn`: it is called as a tool, and
    answers. `task`: it is called as a tool, talks with the user until its task is done, and returns the result. None:
    `chat`; in a graph, `single_turn`."""
    parallel_worker: bool | None = None
    """In a graph: it runs once for each item of its input, a list, in parallel."""
    disallow_transfer_to_parent: bool = False
    """It does not transfer to its parent; the user's next message starts at the root."""
    disallow_transfer_to_peers: bool = False
    """It does not transfer to the other agents of its parent."""
    disable_transfer: bool = False
    """It never transfers: its model gets no transfer tool, and transfers of other tools are ignored."""

    _transfer_cache: tuple[list[BaseAgent], TransferToAgentTool | None] = PrivateAttr(
        default_factory=lambda: ([], None)
    )
    """The transfer targets of the last step, and the tool for them."""
    _call_cache: tuple[Sequence[tuple[BaseAgent, str]], list[BaseTool]] = PrivateAttr(default_factory=lambda: ([], []))
    """The called sub-agents of the last step with their modes, and the tools for them."""

    @property
    def is_called(self) -> bool:
        """True: it is called as a tool; nobody transfers to it."""
        return self.mode in ("single_turn", "task")

    @property
    def transfer_targets(self) -> list[BaseAgent]:
        """The agents that it can transfer to: its sub-agents, its parent, its parent's other sub-agents."""
        if self.disable_transfer:
            return []
        parent = self.parent_agent
        targets = [agent for agent in self.sub_agents if not _is_called(agent)]
        if self.is_called or not isinstance(parent, TeamAgent):
            return targets
        if not self.disallow_transfer_to_parent:
            targets.append(parent)
        if not self.disallow_transfer_to_peers:
            targets += [agent for agent in parent.sub_agents if agent is not self and not _is_called(agent)]
        return targets

    def in_tree(self, name: str, /) -> BaseAgent | None:
        """The agent of that name in its tree, if it can take over.

        A transfer inside an agent that is called as a tool stays inside it; nobody else transfers to such an agent.
        """
        top: BaseAgent = self
        while not _is_called(top) and top.parent_agent:
            top = top.parent_agent
        agent = top.find_agent(name)
        return agent if agent and (agent is top or not _is_called(agent)) else None

    @property
    def sub_agent_tools(self) -> list[BaseTool]:
        """The tools that call sub-agents."""
        if not self.sub_agents:
            return []
        called = [
            (agent, agent.mode or "") for agent in self.sub_agents if isinstance(agent, TeamAgent) and agent.is_called
        ]
        if called != self._call_cache[0]:
            self._call_cache = (
                called,
                [(TaskTool if mode == "task" else SingleTurnTool)(agent) for agent, mode in called],
            )
        return self._call_cache[1]

    def _make_transfer_tool(self) -> TransferToAgentTool | None:
        targets = self.transfer_targets
        if not targets:
            return None
        # Compared at each step: agents may be added to a tree at any time.
        if targets != self._transfer_cache[0]:
            parent = self.parent_agent if self.parent_agent in targets else None
            self._transfer_cache = (targets, TransferToAgentTool(targets, parent))
        return self._transfer_cache[1]


def _is_called(agent: BaseAgent) -> bool:
    return isinstance(agent, TeamAgent) and agent.is_called
