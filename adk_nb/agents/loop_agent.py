"""An agent that lets others work one after the other, again and again."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count
from typing import ClassVar

from pydantic import Field

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import Course, asker_in, child_with
from adk_nb.events.event import Event
from adk_nb.runtime.invocation_context import InvocationContext

_PASSES = "adk_nb_passes"
"""Under this, an event that asks someone tells in its metadata how many passes each loop around it had made."""


class LoopAgent(BaseAgent):
    """Runs its `sub_agents` in their order, and begins again. A later pass reads what earlier ones said.

    A pass is the last one when one of them escalates, as the tool `exit_loop` does: those after it do not run any more.
    When one stops to wait for a person, the pass goes on from there once that is answered.
    """

    runs_others: ClassVar[bool] = True
    max_iterations: int | None = Field(default=None, ge=1)
    """The most passes. None: until one of the agents escalates."""
    propagate_escalate: bool = True
    """An escalation out of this loop also ends the loop around it."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        asker = asker_in(self, ctx)
        done = _passes_before(ctx, self.name) if asker else 0
        start = self.sub_agents.index(child_with(self, asker)) if asker else 0
        for number in count(done) if self.sub_agents else ():
            if number == self.max_iterations:
                return
            for agent in self.sub_agents[start:]:
                course = Course(ctx, agent, asker)
                async with aclosing(course.events()) as events:
                    async for event in events:
                        yield self._noted(event, number)
                if course.waits or ctx.end_invocation or course.escalates:
                    return
                asker = None
            start = 0

    def _noted(self, event: Event, done: int) -> Event:
        if event.long_running_tool_ids:
            metadata = dict(event.custom_metadata or {})
            metadata[_PASSES] = {**metadata.get(_PASSES, {}), self.name: done}
            event.custom_metadata = metadata
        return event


def _passes_before(ctx: InvocationContext, loop: str) -> int:
    """How many passes the loop had made when it was asked what the user's message answers."""
    answered = set(ctx.calls_answered)
    for event in reversed(ctx.session.events):
        if any(call.id in answered for call in event.get_function_calls()):
            return (event.custom_metadata or {}).get(_PASSES, {}).get(loop, 0)
    return 0
