"""An agent that lets others work one after the other, again and again."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from itertools import count
from typing import Any

from pydantic import Field

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import Course
from adk_nb.events.event import Event
from adk_nb.runtime.invocation_context import InvocationContext


class LoopAgent(BaseAgent):
    """Runs its `sub_agents` in their order, and begins again. A later pass reads what earlier ones said.

    A pass is the last one when one of them escalates, as the tool `exit_loop` does: those after it do not run any more.
    """

    max_iterations: int | None = Field(default=None, ge=1)
    """The most passes. None: until one of the agents escalates."""
    propagate_escalate: bool = True
    """An escalation out of this loop also ends the loop around it."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        passes = count() if self.max_iterations is None else range(self.max_iterations)
        for _ in passes if self.sub_agents else ():
            for agent in self.sub_agents:
                course = Course(ctx)
                async with aclosing(course.of(agent)) as events:
                    async for event in events:
                        yield event
                if course.waits or ctx.end_invocation or course.escalates:
                    return
