"""The agents of a workflow: adk_nb's own, with the state keys, signals and histories of Graph Compose."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import PrivateAttr

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.child_run import ChildRun
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.loop_agent import EXIT_CONDITION, LoopAgent
from adk_nb.agents.loop_agent import MAX_ITERATIONS as MAX_PASSES
from adk_nb.agents.parallel_agent import ParallelAgent
from adk_nb.agents.sequential_agent import SequentialAgent
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.models.http_messages import ASK_A_PERSON, CHAT
from adk_nb.models.llm_response import ESCALATE, EXIT_FLOW, WAIT_FOR_USER_INPUT, ends_turn
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import TRANSFER, new_call_id
from adk_nb.sessions.session import Session
from adk_nb.tools.transfer_to_agent_tool import TransferToAgentTool

EXIT_REASON = "loop_exit_reason"
"""State key of the reason for which the last loop ended."""
ITERATION = "current_agent_loop_iteration"
"""State key of a loop's current pass, from 0."""
_REASONS = {MAX_PASSES: "max_agent_loop_iterations", EXIT_CONDITION: "exit_condition"}


def workflow_id(agent: BaseAgent) -> str:
    """The agent's id in the workflow."""
    return getattr(agent, "id", "") or agent.name


@dataclass(frozen=True)
class _Target:
    name: str
    description: str


class TransferByIdTool(TransferToAgentTool):
    """`transfer_to_agent` by id: services know agents by their ids, which need not be names."""

    def __init__(self, targets: Mapping[str, BaseAgent], parent: BaseAgent | None) -> None:
        """`targets`: id -> agent. `parent`: the target for requests that fit no other agent."""
        targets_by_id = {key: _Target(key, agent.description) for key, agent in targets.items()}
        parent_target = next((targets_by_id[key] for key, agent in targets.items() if agent is parent), None)
        super().__init__(list(targets_by_id.values()), parent_target)
        self._names = {key: agent.name for key, agent in targets.items()}

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        result = await super().run_async(args=args, tool_context=tool_context)
        # The runtime knows agents by name.
        if target_id := tool_context.actions.transfer_to_agent:
            tool_context.actions.transfer_to_agent = self._names.get(target_id, target_id)
        return result


class ServiceAgent(LlmAgent):
    """An agent with a history of its own; other agents see only what it writes to the state."""

    id: str = ""
    """Id in the workflow; `name` is made from it, as an identifier."""
    _transfer_tool: TransferByIdTool | None = PrivateAttr(default=None)

    def _make_transfer_tool(self) -> TransferToAgentTool | None:
        targets = {workflow_id(agent): agent for agent in self.transfer_targets}
        if all(key == agent.name for key, agent in targets.items()):
            return super()._make_transfer_tool()
        self._transfer_tool = self._transfer_tool or TransferByIdTool(targets, self.parent_agent)
        return self._transfer_tool

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        own_ctx = replace(ctx, session=session_for(ctx.session, self))
        # The service ended its task with the question: it is not called again for the answer.
        if last_event := self._final_event_before_answer(own_ctx.session):
            metadata = {
                name: True for name in (EXIT_FLOW, ESCALATE) if (last_event.custom_metadata or {}).get(name) is True
            }
            final: dict[str, Any] = {self.output_key: last_event.text} if self.output_key and last_event.text else {}
            actions = EventActions(state_delta=final, escalate=metadata.get(ESCALATE))
            yield Event(author=self.name, branch=ctx.branch, custom_metadata=metadata, actions=actions)
            return
        # Where a parent chooses when this agent runs, the user's next message would not reach it.
        chooser = self.parent_agent
        while chooser is not None and not chooser.runs_others:
            chooser = chooser.parent_agent
        unsaved = ""
        async with aclosing(super()._run_async_impl(own_ctx)) as events:
            async for event in events:
                if chooser is not None and (event.custom_metadata or {}).get(WAIT_FOR_USER_INPUT) is True:
                    # A request, so that the message answers it, wherever the agent is in the tree.
                    call_id = new_call_id()
                    call = types.FunctionCall(id=call_id, name=ASK_A_PERSON, args={"message": event.text, CHAT: True})
                    event.content = types.Content(role="model", parts=[*event.parts, types.Part(function_call=call)])
                    event.long_running_tool_ids = {*(event.long_running_tool_ids or ()), call_id}
                yield event
                if not event.partial:
                    # No service appends to the copy, and the next request needs the event.
                    own_ctx.session.events.append(event)
                    calls = event.get_function_calls() and ends_turn(event.custom_metadata or {})
                    unsaved = event.text if calls and not event.long_running_tool_ids else unsaved
        if self.output_key and unsaved:  # text beside calls is no final answer, and none follows
            yield _state_event(self, ctx, {self.output_key: unsaved})

    def _final_event_before_answer(self, session: Session) -> Event | None:
        """The event that asked the user and ended the agent's task, if the user has answered now."""
        answered_ids = {response.id for event in session.events[-1:] for response in event.get_function_responses()}
        for event in reversed(session.events) if answered_ids else ():
            if event.author == self.name and any(call.id in answered_ids for call in event.get_function_calls()):
                metadata = event.custom_metadata or {}
                return event if metadata.get(EXIT_FLOW) is True or metadata.get(ESCALATE) is True else None
        return None


class GraphSequence(SequentialAgent):
    """A sequence that ends after an agent that completes its task or escalates."""

    id: str = ""
    stop_on_escalate: bool = True
    output_key: str | None = None
    """State key that gets the last text of its agents."""

    def _ends_after(self, run: ChildRun) -> bool:
        return run.exits or super()._ends_after(run)

    def _end_events(self, ctx: InvocationContext, last_text: str) -> Iterable[Event]:
        if self.output_key and last_text:
            yield _state_event(self, ctx, {self.output_key: last_text})


class GraphParallel(ParallelAgent):
    """Parallel agents that start from the same state. An escalation ends them all; a completed task does not."""

    id: str = ""
    isolate_state: bool = True

    def _ends_after(self, run: ChildRun) -> bool:
        return run.escalates


class GraphLoop(LoopAgent):
    """A loop that writes its pass and the reason of its end to the state."""

    id: str = ""
    propagate_escalate: bool = True
    runs_others: ClassVar[bool] = True

    def _end_reason_after(self, run: ChildRun) -> str:
        return EXIT_CONDITION if run.exits else super()._end_reason_after(run)

    def _start_events(self, ctx: InvocationContext, passes: int) -> Iterable[Event]:
        delta: dict[str, Any] = {ITERATION: passes}
        if EXIT_REASON in ctx.session.state:
            delta[EXIT_REASON] = DELETED
        yield _state_event(self, ctx, delta)

    def _end_events(self, ctx: InvocationContext, reason: str, last_text: str) -> Iterable[Event]:
        delta: dict[str, Any] = {EXIT_REASON: _REASONS.get(reason, reason), ITERATION: DELETED}
        # An inner loop has overwritten the pass of the outer one.
        if outer_loop := enclosing_loop(self):
            deltas = (
                event.actions.state_delta for event in reversed(ctx.session.events) if event.author == outer_loop.name
            )
            delta[ITERATION] = next((earlier[ITERATION] for earlier in deltas if ITERATION in earlier), DELETED)
        if self.output_key and last_text:
            delta[self.output_key] = last_text
        yield _state_event(self, ctx, delta)


def _state_event(agent: BaseAgent, ctx: InvocationContext, delta: dict[str, Any]) -> Event:
    return Event(author=agent.name, branch=ctx.branch, actions=EventActions(state_delta=delta))


def session_for(session: Session, agent: BaseAgent) -> Session:
    """A copy of the session with the events that `agent` sees, and the same state. The caller appends new events.

    These are the user's messages and its own events; in a loop, its own of this pass. Source: Graph Compose's
    documentation, in which the third agent of a sequence, and an agent in a loop's third pass, get only the user's
    message; results of other agents reach it through the state.
    """
    events, own_calls, start_index = history_of(session).events, set[str | None](), 0
    if loop := enclosing_loop(agent):
        indexes = range(len(events) - 1, -1, -1)
        starts = (
            index
            for index in indexes
            if events[index].author == loop.name and isinstance(events[index].actions.state_delta.get(ITERATION), int)
        )
        start_index = next(starts, 0)
    visible: list[Event] = []
    for index, event in enumerate(events):
        if event.author == agent.name:
            is_visible = index >= start_index
            own_calls.update(call.id for call in event.get_function_calls() if is_visible)
        elif event.author == "user":
            # Messages, and responses to the agent's own calls.
            responses = event.get_function_responses()
            is_visible = not responses or any(response.id in own_calls for response in responses)
        else:
            is_visible = _transfers_to(event, agent)
        if is_visible:
            visible.append(event)
    return session.model_copy(update={"events": visible, "views": {}})


def enclosing_loop(agent: BaseAgent) -> LoopAgent | None:
    """The innermost loop around `agent`."""
    parent = agent.parent_agent
    while parent is not None and not isinstance(parent, LoopAgent):
        parent = parent.parent_agent
    return parent


def _transfers_to(event: Event, agent: BaseAgent) -> bool:
    # The transfer itself, and below the call that led to it: the agent sees why it was chosen.
    if event.actions.transfer_to_agent == agent.name:
        return True
    names = (agent.name, getattr(agent, "id", agent.name))
    return any(
        call.name == TRANSFER and (call.args or {}).get("agent_name") in names for call in event.get_function_calls()
    )
