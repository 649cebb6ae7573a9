"""How an agent that runs others goes about it: what it notices of each, and where it goes on after an answer."""

import logging
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.models.signals import EXIT_FLOW
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.nested_calls import is_paused, outermost, recipient, without_answers

logger = logging.getLogger(__name__)


class Course:
    """One activation of an agent under another: whether it waits for someone, and whether it wants to leave a loop."""

    def __init__(
        self, ctx: InvocationContext, agent: BaseAgent, asker: BaseAgent | None = None, *, goes_on: bool = False
    ) -> None:
        """`agent` works under another.

        Args:
            ctx: Of the agent above.
            agent: Who works.
            asker: The one in `agent` whose call the user's message answers.
            goes_on: `agent` had begun when the invocation was left. An answer to its `asker` says so, too.
        """
        self._agent = agent
        self._asker = asker
        self._goes_on = goes_on or asker is not None
        self._ctx = ctx if asker else without_answers(ctx, is_resumed=goes_on)
        self.escalates = False
        """An event said so."""
        self.leaves = False
        """An event of the agent itself said so, and not one of those under it."""
        self.exits = False
        """An event said that the task of the agent is complete (`exit_flow`)."""
        self._heard: list[Event] = []
        """What may be an answer."""
        self._asks = self._goes_on
        for event in self._before() if self._goes_on else ():
            self.hear(event)

    def events(self) -> AsyncGenerator[Event, None]:
        """What it says, as it comes. Each is to be handed to `hear` before it goes further."""
        agent = self._who()
        return agent.run_async(self._ctx) if agent else _nothing()

    def waits(self) -> bool:
        """True, once its events are out, if a call has yet to be answered from outside the run."""
        return is_paused(self._agent, history_of(self._ctx.session), self._ctx.branch, may_interrupt=self._asks)

    def hear(self, event: Event) -> None:
        """Take note of what it says."""
        self._asks = self._asks or bool(event.long_running_tool_ids or event.actions.agent_state)
        self.escalates = self.escalates or _escalates(event, self._agent)
        self.leaves = self.leaves or bool(event.actions.escalate and event.author == self._agent.name)
        self.exits = self.exits or exits(event, self._agent)
        if event.content is not None and not event.partial:
            self._heard.append(event)

    @property
    def said(self) -> str:
        """The words of its last answer."""
        return next((event.text for event in reversed(self._heard) if event.is_answer()), "")

    def _who(self) -> RunnableAgent | None:
        """The one to run. None: it is done, or waits for something that the user's message does not answer."""
        if self._asker:
            return outermost(self._asker, self._agent.parent_agent)
        ctx = self._ctx
        if not ctx.checkpoints:
            return self._agent
        left: BaseAgent | None = ctx.checkpoints.unfinished_agent(self._agent, ctx.branch)
        if left and not left.runs_others and is_paused(left, history_of(ctx.session), ctx.branch, may_interrupt=True):
            return None
        return left

    def _before(self) -> Iterator[Event]:
        """What it had said already."""
        ctx, said = self._ctx, list[Event]()
        if ctx.checkpoints:
            return ctx.checkpoints.events_of(self._agent, ctx.branch)
        for event in history_of(ctx.session).newest():
            if not is_within(event.branch, ctx.branch) or (event.author == "user" and event.get_function_responses()):
                continue
            if not self._agent.find_agent(event.author):
                break
            said.append(event)
        return reversed(said)


async def _nothing() -> AsyncGenerator[Event, None]:
    return
    yield


def asker_in(agent: BaseAgent, ctx: InvocationContext) -> BaseAgent | None:
    """`agent`, or the one under it, whose call or request the user's message answers; on the branch of `ctx`."""
    answered = ctx.calls_answered
    return agent.find_agent(recipient(history_of(ctx.session), answered, ctx.branch)) if answered else None


def child_with(agent: BaseAgent, one: BaseAgent) -> BaseAgent:
    """The agent directly under `agent` that is `one`, or has it under it."""
    return next(child for child in agent.sub_agents if child is one or child.find_sub_agent(one.name) is one)


def stood(agent: BaseAgent, ctx: InvocationContext) -> tuple[BaseAgent | None, dict[str, Any]]:
    """Which of its agents `agent` had come to when the invocation was left, and what else it noted then.

    None: it had not begun, or there is no such agent any more.
    """
    noted = (ctx.checkpoints.state_of(agent, ctx.branch) if ctx.checkpoints else None) or {}
    name = noted.get("current_sub_agent")
    at = next((one for one in agent.sub_agents if one.name == name), None)
    if name and not at:
        logger.warning("agent %r has no agent %r any more, where it stood; it begins anew", agent.name, name)
    return (at, noted) if at else (None, {})


def exits(event: Event, agent: BaseAgent) -> bool:
    """True if `agent`, or one that it handed over to, says that its task is complete; not one that it decides of."""
    if not event.custom_metadata or event.custom_metadata.get(EXIT_FLOW) is not True:
        return False
    one = agent.find_agent(event.author)
    while one is not None and not one.runs_others:
        if one is agent:
            return True
        one = one.parent_agent
    return False


def _escalates(event: Event, agent: BaseAgent) -> bool:
    """True if an event in `agent` asks to leave a loop, and no loop between keeps that to itself."""
    if not event.actions.escalate:
        return False
    above = agent.find_agent(event.author)
    while above is not None:
        if not getattr(above, "propagate_escalate", True):
            return False
        if above is agent:
            return True
        above = above.parent_agent
    return True
