"""An agent that lets others work one after the other."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import ClassVar

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import Course, asker_in, child_with, last_position
from adk_nb.events.event import Event
from adk_nb.runtime.checkpoints import checkpoint
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.run_config import RunConfig
from adk_nb.wire import replace_fields


class SequentialAgent(BaseAgent):
    """Runs its `sub_agents` in their order, each once. A later one reads what earlier ones said, and their state.

    It ends early when one of them stops to wait for a person; once that is answered it goes on from there. In a live
    conversation each with a model has its turn until it calls `task_completed`, which it is given for that.
    """

    runs_others: ClassVar[bool] = True
    stop_on_escalate: bool = False
    """End after an agent whose events say `escalate`. False: that concerns loops only."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        asker = asker_in(self, ctx)
        goes_on = child_with(self, asker) if asker else last_position(self, ctx)[0]
        start, last_text = self.sub_agents.index(goes_on) if goes_on else 0, ""
        for agent in self.sub_agents[start:]:
            if ctx.is_resumable and not goes_on:
                yield checkpoint(ctx, self.name, current_sub_agent=agent.name)
            course = Course(ctx, agent, asker, goes_on=goes_on is not None)
            events = course.events()
            try:  # what `aclosing` does, at a quarter of its price: each agent comes by here
                async for event in events:
                    course.hear(event)
                    yield event
            finally:
                await events.aclose()
            if course.waits() or ctx.end_invocation:
                return
            last_text, asker, goes_on = course.said or last_text, None, None
            if self._ends_after(course):
                break
        for event in self._ending(ctx, last_text):
            yield event

    async def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        queue = ctx.live_request_queue
        for agent in self.sub_agents:
            async with aclosing(agent.run_live(replace_fields(ctx, is_live_turn=True))) as events:
                async for event in events:
                    yield event
            if ctx.end_invocation or (queue and queue.closed):
                return
            ctx = replace_fields(ctx, run_config=_connecting_anew(ctx.run_config))

    def _ends_after(self, course: Course) -> bool:
        return self.stop_on_escalate and course.escalates

    def _ending(self, ctx: InvocationContext, said: str) -> Iterable[Event]:
        """What it says itself when all is done. `said`: the last words of its agents."""
        return ()


def _connecting_anew(run: RunConfig) -> RunConfig:
    """The handle of a connection is its first agent's; the next one reads what was said in the session."""
    delta = run.session_resumption
    if not (delta and delta.handle):
        return run
    return run.model_copy(update={"session_resumption": delta.model_copy(update={"handle": None})})
