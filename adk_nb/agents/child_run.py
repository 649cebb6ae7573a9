"""One run of a sub-agent by an agent that runs others: its events, its interrupts, and resuming after an answer."""

import logging
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.events.event_actions import ESCALATED
from adk_nb.models.llm_response import EXIT_FLOW
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.open_calls import is_paused, outermost, recipient, without_answers

logger = logging.getLogger(__name__)


class ChildRun:
    """One activation of an agent under another, and the signals in its events: interrupts, escalation, exit."""

    def __init__(
        self, ctx: InvocationContext, agent: BaseAgent, asker: BaseAgent | None = None, *, is_resumed: bool = False
    ) -> None:
        """Start, or resume, the work of a sub-agent.

        Args:
            ctx: Of the parent.
            agent: The agent that runs.
            asker: The agent in `agent` whose call the user's message answers.
            is_resumed: `agent` had started before the pause; an `asker` implies it.
        """
        self._agent = agent
        self._asker = asker
        self._is_resumed = is_resumed or asker is not None
        self._ctx = ctx if asker else without_answers(ctx, is_resumed=is_resumed)
        self.escalates = False
        """An event escalated."""
        self.escalates_itself = False
        """An event of the agent itself escalated, not only one of an agent under it."""
        self.is_stopped = False
        """A tool of an agent in it escalated, which ends the sequences around that agent."""
        self.exits = False
        """An event has `exit_flow`: the task of the agent is complete."""
        self._messages: list[Event] = []
        """Complete events with content."""
        self._may_wait = self._is_resumed
        # The signals of the part before the pause count, too.
        for event in self._earlier_events() if self._is_resumed else ():
            self.record(event)

    def events(self) -> AsyncGenerator[Event, None]:
        """The events of the agent; pass each to `record` before yielding it.

        None if it has finished, or waits for an answer that the user's message does not have.
        """
        ctx, agent = self._ctx, self._agent
        running: RunnableAgent | None = agent
        if self._asker:
            # The answer goes to the agent that asked, whatever the checkpoint says.
            running = outermost(self._asker, agent.parent_agent)
        elif ctx.checkpoints:
            running = unfinished = ctx.checkpoints.unfinished_agent(agent, ctx.branch)
            if (
                unfinished
                and not unfinished.runs_others
                and is_paused(unfinished, history_of(ctx.session), ctx.branch, may_interrupt=True)
            ):
                running = None
        return running.run_async(ctx) if running else _nothing()

    def waits(self) -> bool:
        """True, after its events, if it waits for an answer from outside the run."""
        return is_paused(self._agent, history_of(self._ctx.session), self._ctx.branch, may_interrupt=self._may_wait)

    def record(self, event: Event) -> None:
        """Record the signals of an event."""
        self._may_wait = self._may_wait or bool(event.long_running_tool_ids or event.actions.agent_state)
        self.escalates = self.escalates or _escalates(event, self._agent)
        self.escalates_itself = self.escalates_itself or bool(
            event.actions.escalate and event.author == self._agent.name
        )
        self.is_stopped = self.is_stopped or bool(event.custom_metadata and event.custom_metadata.get(ESCALATED))
        self.exits = self.exits or exits(event, self._agent)
        if event.content is not None and not event.partial:
            self._messages.append(event)

    @property
    def last_text(self) -> str:
        """Text of its last answer."""
        return next((event.text for event in reversed(self._messages) if event.is_answer()), "")

    def _earlier_events(self) -> Iterator[Event]:
        """Its events before this run."""
        ctx, earlier = self._ctx, list[Event]()
        if ctx.checkpoints:
            return ctx.checkpoints.events_of(self._agent, ctx.branch)
        for event in history_of(ctx.session).newest():
            if not is_within(event.branch, ctx.branch) or (event.author == "user" and event.get_function_responses()):
                continue
            # The newest events up to another agent's: the run before the pause.
            if not self._agent.find_agent(event.author):
                break
            earlier.append(event)
        return reversed(earlier)


async def _nothing() -> AsyncGenerator[Event, None]:
    return
    yield


def asker_in(agent: BaseAgent, ctx: InvocationContext) -> BaseAgent | None:
    """`agent` or the agent under it whose call or request, on the branch of `ctx`, the user's message answers."""
    answered = ctx.calls_answered
    return agent.find_agent(recipient(history_of(ctx.session), answered, ctx.branch)) if answered else None


def child_with(agent: BaseAgent, descendant: BaseAgent) -> BaseAgent:
    """The direct sub-agent of `agent` that is `descendant`, or has it under it."""
    return next(
        child
        for child in agent.sub_agents
        if child is descendant or child.find_sub_agent(descendant.name) is descendant
    )


def last_position(agent: BaseAgent, ctx: InvocationContext) -> tuple[BaseAgent | None, dict[str, Any]]:
    """The sub-agent that `agent` had reached in its checkpoint, and the checkpoint's state.

    None: it had not started, or the sub-agent was removed.
    """
    checkpoint_state = (ctx.checkpoints.state_of(agent, ctx.branch) if ctx.checkpoints else None) or {}
    name = checkpoint_state.get("current_sub_agent")
    current = next((child for child in agent.sub_agents if child.name == name), None)
    if name and not current:
        logger.warning("agent %r no longer has the sub-agent %r, which was running; it starts again", agent.name, name)
    return (current, checkpoint_state) if current else (None, {})


def exits(event: Event, agent: BaseAgent) -> bool:
    """True if `agent`, or an agent that it transferred to, ends its task; not an agent that it runs."""
    if not event.custom_metadata or event.custom_metadata.get(EXIT_FLOW) is not True:
        return False
    current = agent.find_agent(event.author)
    while current is not None and not current.runs_others:
        if current is agent:
            return True
        current = current.parent_agent
    return False


def _escalates(event: Event, agent: BaseAgent) -> bool:
    """True if an event in `agent` escalates, and no loop in between stops the escalation."""
    if not event.actions.escalate:
        return False
    parent = agent.find_agent(event.author)
    while parent is not None:
        if not getattr(parent, "propagate_escalate", True):
            return False
        if parent is agent:
            return True
        parent = parent.parent_agent
    return True
