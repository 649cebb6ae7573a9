"""The agents of a workflow: adk_nb's own, with the state keys, signals and histories that Graph Compose gives them."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import PrivateAttr

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import Course
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.loop_agent import EXIT_CONDITION, LoopAgent
from adk_nb.agents.loop_agent import MAX_ITERATIONS as MAX_PASSES
from adk_nb.agents.parallel_agent import ParallelAgent
from adk_nb.agents.sequential_agent import SequentialAgent
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.graph_compose.handing_over import HandOver
from adk_nb.graph_compose.own_history import ITERATION, loop_around, own_session
from adk_nb.models.http_messages import ASK_A_PERSON, CHAT
from adk_nb.models.signals import ESCALATE, EXIT_FLOW, WAIT_FOR_USER_INPUT, ends_turn
from adk_nb.runtime.call_ids import new_call_id
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.session import Session
from adk_nb.tools.transfer_to_agent_tool import TransferToAgentTool

EXIT_REASON = "loop_exit_reason"
"""State key of why the last loop ended."""
_REASONS = {MAX_PASSES: "max_agent_loop_iterations", EXIT_CONDITION: "exit_condition"}


def id_of(agent: BaseAgent) -> str:
    """As the workflow calls it."""
    return getattr(agent, "id", "") or agent.name


class ServiceAgent(LlmAgent):
    """An agent with a conversation of its own, of which others see what it leaves in the state."""

    id: str = ""
    """As the workflow calls it; `name` is the same as an identifier."""
    _by_id: HandOver | None = PrivateAttr(default=None)

    def _handing_over(self) -> TransferToAgentTool | None:
        targets = {id_of(one): one for one in self.transfer_targets}
        if all(key == one.name for key, one in targets.items()):
            return super()._handing_over()
        self._by_id = self._by_id or HandOver(targets, self.parent_agent)
        return self._by_id

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        own = replace(ctx, session=own_session(ctx.session, self))
        if last := self._had_done_enough(own.session):
            yield self._ended(ctx, last)
            return
        unsaved = ""
        async with aclosing(super()._run_async_impl(own)) as events:
            async for event in events:
                if (event.custom_metadata or {}).get(WAIT_FOR_USER_INPUT) is True and self._is_decided_of():
                    _wait(event)
                yield event
                if not event.partial:
                    own.session.events.append(event)
                    calls = event.get_function_calls() and ends_turn(event.custom_metadata or {})
                    unsaved = event.text if calls and not event.long_running_tool_ids else unsaved
        if self.output_key and unsaved:  # what is said beside calls is no final answer, and no other follows
            delta: dict[str, Any] = {self.output_key: unsaved}
            yield Event(author=self.name, branch=ctx.branch, actions=EventActions(state_delta=delta))

    def _had_done_enough(self, session: Session) -> Event | None:
        """What it said last, if that was all that it had to do but for a person's answer, which is there now."""
        answered = {one.id for event in session.events[-1:] for one in event.get_function_responses()}
        for event in reversed(session.events) if answered else ():
            if event.author == self.name and any(call.id in answered for call in event.get_function_calls()):
                about = event.custom_metadata or {}
                return event if about.get(EXIT_FLOW) is True or about.get(ESCALATE) is True else None
        return None

    def _ended(self, ctx: InvocationContext, last: Event) -> Event:
        about = {name: True for name in (EXIT_FLOW, ESCALATE) if (last.custom_metadata or {}).get(name) is True}
        delta: dict[str, Any] = {self.output_key: last.text} if self.output_key and last.text else {}
        actions = EventActions(state_delta=delta, escalate=about.get(ESCALATE))
        return Event(author=self.name, branch=ctx.branch, custom_metadata=about, actions=actions)

    def _is_decided_of(self) -> bool:
        """True if another agent decides when this one works, so that the user's next words do not find it."""
        above = self.parent_agent
        while above is not None and not above.runs_others:
            above = above.parent_agent
        return above is not None


class GraphSequence(SequentialAgent):
    """Ends after an agent that says that its task is complete, or that escalates."""

    id: str = ""
    stop_on_escalate: bool = True
    output_key: str | None = None
    """Where in the state the last words of its agents are kept."""

    def _ends_after(self, course: Course) -> bool:
        return course.exits or super()._ends_after(course)

    def _ending(self, ctx: InvocationContext, said: str) -> Iterable[Event]:
        if self.output_key and said:
            yield _written(self, ctx, {self.output_key: said})


class GraphParallel(ParallelAgent):
    """Its agents start from the same state. It ends when one escalates; one whose task is complete stops no other."""

    id: str = ""
    isolate_state: bool = True

    def _ends_after(self, course: Course) -> bool:
        return course.escalates


class GraphLoop(LoopAgent):
    """Tells in the state which pass it makes, and why it ended."""

    id: str = ""
    propagate_escalate: bool = True
    runs_others: ClassVar[bool] = True

    def _left_after(self, course: Course) -> str:
        return EXIT_CONDITION if course.exits else super()._left_after(course)

    def _beginning(self, ctx: InvocationContext, passes: int) -> Iterable[Event]:
        delta: dict[str, Any] = {ITERATION: passes}
        if EXIT_REASON in ctx.session.state:
            delta[EXIT_REASON] = DELETED
        yield _written(self, ctx, delta)

    def _ending(self, ctx: InvocationContext, why: str, said: str) -> Iterable[Event]:
        delta: dict[str, Any] = {EXIT_REASON: _REASONS.get(why, why), ITERATION: self._pass_around(ctx)}
        if self.output_key and said:
            delta[self.output_key] = said
        yield _written(self, ctx, delta)

    def _pass_around(self, ctx: InvocationContext) -> Any:
        """The pass of the loop around this one; the key goes where there is none."""
        outer = loop_around(self)
        for event in reversed(ctx.session.events) if outer else ():
            if outer and event.author == outer.name and ITERATION in event.actions.state_delta:
                return event.actions.state_delta[ITERATION]
        return DELETED


def _written(agent: BaseAgent, ctx: InvocationContext, delta: dict[str, Any]) -> Event:
    return Event(author=agent.name, branch=ctx.branch, actions=EventActions(state_delta=delta))


def _wait(event: Event) -> None:
    """Let the user's next words be the answer to this, wherever the agent stands."""
    key = new_call_id()
    call = types.FunctionCall(id=key, name=ASK_A_PERSON, args={"message": event.text, CHAT: True})
    event.content = types.Content(role="model", parts=[*event.parts, types.Part(function_call=call)])
    event.long_running_tool_ids = {*(event.long_running_tool_ids or ()), key}
