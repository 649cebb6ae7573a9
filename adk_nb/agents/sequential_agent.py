"""An agent that lets others work one after the other."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import Course
from adk_nb.events.event import Event
from adk_nb.runtime.invocation_context import InvocationContext


class SequentialAgent(BaseAgent):
    """Runs its `sub_agents` in their order, each once. A later one reads what earlier ones said, and their state.

    It ends early when one of them stops to wait for a person; once that has been answered, it goes on from there.
    """

    stop_on_escalate: bool = False
    """End after an agent whose events say `escalate`. False: that concerns loops only."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            course = Course(ctx)
            async with aclosing(course.of(agent)) as events:
                async for event in events:
                    yield event
            if course.waits or ctx.end_invocation or (self.stop_on_escalate and course.escalates):
                return
