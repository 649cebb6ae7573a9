"""An agent that lets others work at the same time."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from copy import deepcopy
from typing import Any, ClassVar, Literal

from pydantic import Field

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import Course, asker_in
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.runtime.branches import is_under
from adk_nb.runtime.checkpoints import checkpoint, ended
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import failure_events
from adk_nb.runtime.parallel_streams import ParallelStreams
from adk_nb.sessions.state import State, apply_delta
from adk_nb.wire import replace_fields

logger = logging.getLogger(__name__)


class ParallelAgent(BaseAgent):
    """Runs its `sub_agents` at once, each on a branch of its own, `parallel.agent` (`parallel.agent#2` for the second
    of a name): they see what was said before, and not each other. Who comes after them sees all. Their events come out
    as they happen, and each goes on only when its event is history.

    When one escalates, the others are stopped. When one waits for a person, the others come to their end first.
    """

    runs_others: ClassVar[bool] = True
    on_error: Literal["cancel", "continue"] = "cancel"
    """`cancel`: when one fails, the others are stopped, and the run ends with its error. `continue`: an event tells of
    its error, and the others go on."""
    max_concurrency: int | None = Field(default=None, ge=1)
    """The most that run at a time, in the order of the list. None: all."""
    isolate_state: bool = False
    """Each starts from the same state and sees only its own writes. What several wrote is what the last one of the list
    has written. False: they share the state, each write seen by all once it is history."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        lanes = self._lanes()
        contexts = {lane: self._context_of(agent, lane, ctx) for lane, agent in lanes.items()}
        wrote: dict[str, dict[str, Any]] = {lane: {} for lane in lanes}
        askers = {lane: asker_in(agent, contexts[lane]) for lane, agent in lanes.items()}
        goes_on = ctx.checkpoints is not None and ctx.checkpoints.state_of(self, ctx.branch) is not None
        if goes_on or any(askers.values()):
            self._restore(ctx, contexts, wrote)
        elif ctx.is_resumable:
            yield checkpoint(ctx, self.name)
        courses = self._courses(lanes, contexts, askers, goes_on=goes_on)
        async with aclosing(self._together(contexts, courses, wrote)) as events:
            async for event in events:
                yield event
        if self.isolate_state and (winners := self._settled_state(ctx, wrote)):
            yield Event(author=self.name, branch=ctx.branch, actions=EventActions(state_delta=winners))

    def _lanes(self) -> dict[str, BaseAgent]:
        """The agents by their step of the branch: their name, and `name#2` for the second of that name."""
        lanes: dict[str, BaseAgent] = {}
        count = Counter[str]()
        for agent in self.sub_agents:
            count[agent.name] += 1
            number = count[agent.name]
            lanes[agent.name if number == 1 else f"{agent.name}#{number}"] = agent
        return lanes

    async def _together(
        self, contexts: dict[str, InvocationContext], courses: dict[str, Course], wrote: dict[str, dict[str, Any]]
    ) -> AsyncGenerator[Event, None]:
        running: ParallelStreams[str] = ParallelStreams(self.max_concurrency)
        for lane, course in courses.items():
            running.start(lane, course.events())
        async with aclosing(running.merged()) as merged:
            async for lane, item in merged:
                if isinstance(item, Event):
                    courses[lane].hear(item)
                    yield item
                    self._note(contexts[lane], item, wrote[lane])
                    if courses[lane].leaves:
                        break
                elif item.error:
                    for event in self._failed(contexts[lane], item.error):
                        yield event
                elif self._ends_after(courses[lane]):
                    break

    def _courses(
        self,
        lanes: dict[str, BaseAgent],
        contexts: dict[str, InvocationContext],
        askers: dict[str, BaseAgent | None],
        *,
        goes_on: bool,
    ) -> dict[str, Course]:
        """Those to run, by lane: all; or after an answer whom it is for, and with them who had not come to the end."""
        run = [lane for lane in lanes if goes_on or askers[lane]] or list(lanes)
        courses = {lane: Course(contexts[lane], lanes[lane], askers[lane], goes_on=goes_on) for lane in run}
        is_over = goes_on and any(course.leaves or self._ends_after(course) for course in courses.values())
        return {lane: course for lane, course in courses.items() if askers[lane] or not is_over}

    def _ends_after(self, course: Course) -> bool:
        """True if the end of one agent stops the others."""
        return False

    def _context_of(self, agent: BaseAgent, lane: str, ctx: InvocationContext) -> InvocationContext:
        step = f"{self.name}.{lane}"
        schema = agent.state_schema or ctx.state_schema
        lane_ctx = replace_fields(
            ctx, branch=f"{ctx.branch}.{step}" if ctx.branch else step, agent=agent, state_schema=schema
        )
        if self.isolate_state:
            lane_ctx.session = ctx.session.model_copy(update={"state": _copy_of(ctx.session.state)})
        return lane_ctx

    def _restore(
        self, ctx: InvocationContext, contexts: dict[str, InvocationContext], wrote: dict[str, dict[str, Any]]
    ) -> None:
        """Let each see the state as it had left it, and not what the others have written since they began."""
        if not self.isolate_state:
            return
        earlier, since = _split_events(ctx, self.name)
        for lane, lane_ctx in contexts.items():
            for event in since:
                if is_under(event.branch, lane_ctx.branch):
                    wrote[lane] |= event.actions.state_delta
        written_keys = {key for event in since for key in event.actions.state_delta}
        then = {
            key: delta[key]
            for event in earlier
            if (delta := event.actions.state_delta)
            for key in written_keys & {*delta}
        }
        for lane, lane_ctx in contexts.items():
            apply_delta(lane_ctx.session.state, deepcopy(then | wrote[lane]))

    def _note(self, lane_ctx: InvocationContext, event: Event, wrote: dict[str, Any]) -> None:
        if self.isolate_state and (delta := event.actions.state_delta) and not event.partial:
            state = lane_ctx.session.state
            apply_delta(state, {key: deepcopy(value) for key, value in delta.items() if state.get(key) != value})
            wrote |= delta

    def _failed(self, lane_ctx: InvocationContext, error: BaseException) -> Iterator[Event]:
        """The events of a failed agent, if the others continue."""
        if self.on_error == "cancel" or not isinstance(error, Exception):
            raise error
        yield from failure_events(lane_ctx, error)
        if lane_ctx.is_resumable:
            yield ended(lane_ctx, lane_ctx.agent.name)

    def _settled_state(self, ctx: InvocationContext, wrote: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Values to set where several agents wrote a key: those of the last agent in the list."""
        by: dict[str, list[str]] = {}
        for lane, delta in wrote.items():
            for key in delta:
                by.setdefault(key, []).append(lane)
        winners: dict[str, Any] = {}
        for key, lanes in by.items():
            if len(lanes) > 1:
                logger.warning("agents %s all wrote %r; what %s wrote is kept", ", ".join(lanes), key, lanes[-1])
                winners[key] = wrote[lanes[-1]][key]
        return {key: value for key, value in winners.items() if ctx.session.state.get(key) != value}


def _copy_of(state: dict[str, Any]) -> dict[str, Any]:
    """A copy in depth, but for `temp:` keys: they may hold what nothing can copy, such as a lock."""
    return {key: value if key.startswith(State.TEMP_PREFIX) else deepcopy(value) for key, value in dict(state).items()}


def _split_events(ctx: InvocationContext, name: str) -> tuple[list[Event], list[Event]]:
    """The events before the current run of the agents of `name`, and the events since."""
    events, block = history_of(ctx.session).events, f"{ctx.branch}.{name}" if ctx.branch else name
    index = len(events)
    while index and (_answers(last := events[index - 1]) or last.author == name or is_under(last.branch, block)):
        index -= 1
    return events[:index], events[index:]


def _answers(event: Event) -> bool:
    return event.author == "user" and (event.isolation_scope is not None or bool(event.get_function_responses()))
