"""An agent that lets others work one after the other."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import ClassVar

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import Course, asker_in, child_with, stood
from adk_nb.events.event import Event
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.standing import stands


class SequentialAgent(BaseAgent):
    """Runs its `sub_agents` in their order, each once. A later one reads what earlier ones said, and their state.

    It ends early when one of them stops to wait for a person; once that is answered it goes on from there.
    """

    runs_others: ClassVar[bool] = True
    stop_on_escalate: bool = False
    """End after an agent whose events say `escalate`. False: that concerns loops only."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        asker = asker_in(self, ctx)
        goes_on = child_with(self, asker) if asker else stood(self, ctx)[0]
        start, said = self.sub_agents.index(goes_on) if goes_on else 0, ""
        for agent in self.sub_agents[start:]:
            if ctx.resumable and not goes_on:
                yield stands(ctx, self.name, current_sub_agent=agent.name)
            course = Course(ctx, agent, asker, goes_on=goes_on is not None)
            async with aclosing(course.events()) as events:
                async for event in events:
                    yield event
            if course.waits or ctx.end_invocation:
                return
            said, asker, goes_on = course.said or said, None, None
            if self._ends_after(course):
                break
        for event in self._ending(ctx, said):
            yield event

    def _ends_after(self, course: Course) -> bool:
        return self.stop_on_escalate and course.escalates

    def _ending(self, ctx: InvocationContext, said: str) -> Iterable[Event]:
        """What it says itself when all is done. `said`: the last words of its agents."""
        return ()
