"""An agent that lets others work one after the other, again and again."""

import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import Course, asker_in, child_with, last_position
from adk_nb.agents.leaving import could_leave
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.expression import Expression
from adk_nb.runtime.checkpoints import checkpoint
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)

EXIT_CONDITION, MAX_ITERATIONS, ESCALATE = "exit_condition", "max_iterations", "escalate"
"""Why a loop ends."""
_PASSES = "adk_nb_passes"
"""Under this, an event that asks someone tells in its metadata how many passes each loop around it had made."""


@dataclass
class _Progress:
    """Progress of a loop."""

    passes: int
    left: str = ""
    """Why it has ended; empty while it goes on."""
    pauses: bool = False
    """It waits for someone, or the run is to end."""
    said: str = ""


class LoopAgent(BaseAgent):
    """Runs its `sub_agents` in their order, and begins again. A later pass reads what earlier ones said.

    A pass is the last one when one of them escalates, as the tool `exit_loop` does: those after it do not run any more.
    When one stops to wait for a person, the pass goes on from there once that is answered.
    """

    runs_others: ClassVar[bool] = True
    max_iterations: int | None = Field(default=None, ge=1)
    """The most passes. None: until one of the agents escalates; where none could, a warning says so."""
    propagate_escalate: bool = True
    """An escalation out of this loop also ends the loop around it."""

    exit_condition: str | Callable[..., Any] | None = None
    """Asked after each whole pass; what is true ends the loop. An expression over `session_state`, as in
    `adk_nb.expression`, such as `session_state.get('status') == 'approved'`: where it has no value it is not met, and a
    warning says why. Or a function, sync or async, `(context) -> bool`."""
    output_key: str | None = None
    """Where in the state the last answer of its agents is kept when it ends."""

    _condition: Expression | None = PrivateAttr(default=None)
    _warned: bool = False

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        condition = self.exit_condition
        self._condition = Expression(condition, ("session_state",)) if isinstance(condition, str) else None

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        self._warn_if_endless()
        asker, (goes_on, noted) = asker_in(self, ctx), last_position(self, ctx)
        goes_on = child_with(self, asker) if asker else goes_on
        progress = _Progress(noted.get("times_looped") or (_passes_before(ctx, self.name) if asker else 0))
        while self.sub_agents and not progress.left:
            if progress.passes == self.max_iterations:
                progress.left = MAX_ITERATIONS
                break
            for event in () if goes_on else self._beginning(ctx, progress.passes):
                yield event
            async with aclosing(self._pass(ctx, progress, asker, goes_on)) as events:
                async for event in events:
                    yield self._with_pass_count(event, progress.passes)
            if progress.pauses:
                return
            if not progress.left and await self._is_met(ctx):
                progress.left = EXIT_CONDITION
            progress.passes, asker, goes_on = progress.passes + 1, None, None
        for event in self._ending(ctx, progress.left, progress.said):
            yield event

    def _warn_if_endless(self) -> None:
        if self.max_iterations or self.exit_condition or self._warned:
            return
        self._warned = True
        if self.sub_agents and not any(could_leave(agent) for agent in self.sub_agents):
            logger.warning(
                "loop %r has no way to end: none of its agents could leave it; write LoopAgent(max_iterations=...), an "
                "exit_condition, or give one of them the tool exit_loop",
                self.name,
            )

    async def _pass(
        self, ctx: InvocationContext, progress: "_Progress", asker: BaseAgent | None, goes_on: BaseAgent | None
    ) -> AsyncGenerator[Event, None]:
        start = self.sub_agents.index(goes_on) if goes_on else 0
        for agent in self.sub_agents[start:]:
            if ctx.is_resumable and not goes_on:
                yield checkpoint(ctx, self.name, current_sub_agent=agent.name, times_looped=progress.passes)
            course = Course(ctx, agent, asker, goes_on=goes_on is not None)
            events = course.events()
            try:  # what `aclosing` does, at a quarter of its price: each agent comes by here
                async for event in events:
                    course.hear(event)
                    yield event
            finally:
                await events.aclose()
            progress.said, asker, goes_on = course.said or progress.said, None, None
            progress.pauses, progress.left = course.waits() or ctx.end_invocation, self._left_after(course)
            if progress.pauses or progress.left:
                return

    def _left_after(self, course: Course) -> str:
        """The reason to end after one of its agents; empty: go on."""
        return ESCALATE if course.escalates else ""

    def _beginning(self, ctx: InvocationContext, passes: int) -> Iterable[Event]:
        """What it says itself before a pass; `passes` were before it."""
        return ()

    def _ending(self, ctx: InvocationContext, why: str, said: str) -> Iterable[Event]:
        """What it says itself when it ends. `said`: the last words of its agents."""
        if self.output_key and said:
            yield Event(author=self.name, branch=ctx.branch, actions=EventActions(state_delta={self.output_key: said}))

    async def _is_met(self, ctx: InvocationContext) -> bool:
        if self._condition:
            try:
                return self._condition.holds({"session_state": ctx.session.state})
            except InputError as error:
                logger.warning("loop %r goes on: %s", self.name, error)
                return False
        if not callable(self.exit_condition):
            return False
        met = self.exit_condition(ReadonlyContext(ctx))
        return bool(await met if inspect.isawaitable(met) else met)

    def _with_pass_count(self, event: Event, done: int) -> Event:
        if event.long_running_tool_ids:
            metadata = dict(event.custom_metadata or {})
            metadata[_PASSES] = {**metadata.get(_PASSES, {}), self.name: done}
            event.custom_metadata = metadata
        return event


def _passes_before(ctx: InvocationContext, loop: str) -> int:
    """Number of passes that the loop had made before the interrupt that the user's message answers."""
    calls = history_of(ctx.session).calls
    records = [record for key in ctx.calls_answered if (record := calls.newest(key))]
    if not records:
        return 0
    asking_event = max(records, key=lambda record: record.event_index).event
    return (asking_event.custom_metadata or {}).get(_PASSES, {}).get(loop, 0)
