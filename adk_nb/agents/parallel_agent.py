"""An agent that runs its sub-agents in parallel."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import Field

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.child_run import ChildRun, asker_in
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


@dataclass
class _Lane:
    """One of the agents, on its branch."""

    name: str
    """The last step of the branch: the agent's name, or `name#2` for the second of that name."""
    agent: BaseAgent
    ctx: InvocationContext
    asker: BaseAgent | None
    """The agent in it whose call the user's message answers."""
    writes: dict[str, Any] = field(default_factory=dict[str, Any])
    """What it wrote to the state, if that is isolated."""


class ParallelAgent(BaseAgent):
    """Runs its `sub_agents` in parallel, each on a branch of its own, `parallel.agent` (`parallel.agent#2` for the
    second of a name): they see the earlier conversation, but not each other. Agents after them see everything. Events
    are merged in order of arrival, and an agent continues only after its event was stored.

    If one escalates, the others are stopped. If one waits for an answer, the others end first.
    """

    team_kind: ClassVar[str] = "parallel"
    runs_others: ClassVar[bool] = True
    on_error: Literal["cancel", "continue"] = "cancel"
    """`cancel`: if one fails, the others are stopped, and the run ends with its error. `continue`: its error becomes an
    event, and the others continue."""
    max_concurrency: int | None = Field(default=None, ge=1)
    """Maximum number that run at a time, in the order of the list. None: all."""
    isolate_state: bool = False
    """Each starts from the same state and sees only its own writes; of several writes to a key, that of the last agent
    in the list counts. False: they share the state, and see each write once it is stored."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        lanes = self._lanes(ctx)
        is_resumed = ctx.checkpoints is not None and ctx.checkpoints.state_of(self, ctx.branch) is not None
        if is_resumed or any(lane.asker for lane in lanes):
            self._restore(ctx, lanes)
        elif ctx.is_resumable:
            yield checkpoint(ctx, self.name)
        # All start; after an answer only the agent that asked, and the unfinished ones.
        started = [lane for lane in lanes if is_resumed or lane.asker] or lanes
        runs = {
            lane.name: (lane, ChildRun(lane.ctx, lane.agent, lane.asker, is_resumed=is_resumed)) for lane in started
        }
        # One of them had stopped the others before the interruption.
        is_over = is_resumed and any(run.escalates_itself or self._ends_after(run) for _, run in runs.values())
        running: ParallelStreams[str] = ParallelStreams(self.max_concurrency)
        for name, (lane, run) in runs.items():
            if lane.asker or not is_over:
                running.start(name, run.events())
        async with aclosing(running.merged()) as merged:
            async for name, item in merged:
                lane, run = runs[name]
                if isinstance(item, Event):
                    run.record(item)
                    yield item
                    # After the yield: now the event is stored.
                    if self.isolate_state and (delta := item.actions.state_delta) and not item.partial:
                        state = lane.ctx.session.state
                        # An equal value is the agent's own object, which it may still change: do not replace it.
                        changed = {key: deepcopy(value) for key, value in delta.items() if state.get(key) != value}
                        apply_delta(state, changed)
                        lane.writes |= delta
                    # At once. An escalation of an agent below first ends the agent that contains it.
                    if run.escalates_itself:
                        break
                elif item.error:
                    for event in self._failed(lane, item.error):
                        yield event
                elif self._ends_after(run):
                    break
        if self.isolate_state and (winners := _winners(lanes, ctx.session.state)):
            yield Event(author=self.name, branch=ctx.branch, actions=EventActions(state_delta=winners))

    def _failed(self, lane: _Lane, error: BaseException) -> Iterator[Event]:
        """The events of a failed agent, if the others continue."""
        if self.on_error == "cancel" or not isinstance(error, Exception):
            raise error
        yield from failure_events(lane.ctx, error)
        if lane.ctx.is_resumable:
            yield ended(lane.ctx, lane.agent.name)

    def _lanes(self, ctx: InvocationContext) -> list[_Lane]:
        lanes: list[_Lane] = []
        count = Counter[str]()
        for agent in self.sub_agents:
            count[agent.name] += 1
            number = count[agent.name]
            name = agent.name if number == 1 else f"{agent.name}#{number}"
            step, schema = f"{self.name}.{name}", agent.state_schema or ctx.state_schema
            branch = f"{ctx.branch}.{step}" if ctx.branch else step
            own = replace_fields(ctx, branch=branch, agent=agent, state_schema=schema)
            if self.isolate_state:
                # The events stay shared; only the state is a copy, except of `temp:` values, which may be impossible
                # to copy, such as a lock.
                state = {
                    key: value if key.startswith(State.TEMP_PREFIX) else deepcopy(value)
                    for key, value in dict(ctx.session.state).items()
                }
                own.session = ctx.session.model_copy(update={"state": state})
            lanes.append(_Lane(name, agent, own, asker_in(agent, own)))
        return lanes

    def _ends_after(self, run: ChildRun) -> bool:
        """True if the end of one agent stops the others."""
        return False

    def _restore(self, ctx: InvocationContext, lanes: list[_Lane]) -> None:
        """Restore the state that each agent had, without the writes of the others since the start."""
        if not self.isolate_state:
            return
        events, block = history_of(ctx.session).events, f"{ctx.branch}.{self.name}" if ctx.branch else self.name
        # The first event of the current run of these agents; answers of the user may be among theirs.
        start = len(events)
        while start:
            event = events[start - 1]
            answers = event.author == "user" and (event.isolation_scope is not None or event.get_function_responses())
            if not (answers or event.author == self.name or is_under(event.branch, block)):
                break
            start -= 1
        for lane in lanes:
            for event in events[start:]:
                if is_under(event.branch, lane.ctx.branch):
                    lane.writes |= event.actions.state_delta
        written_keys = {key for event in events[start:] for key in event.actions.state_delta}
        earlier_values = {
            key: delta[key]
            for event in events[:start]
            if (delta := event.actions.state_delta)
            for key in written_keys & {*delta}
        }
        for lane in lanes:
            apply_delta(lane.ctx.session.state, deepcopy(earlier_values | lane.writes))


def _winners(lanes: list[_Lane], state: dict[str, Any]) -> dict[str, Any]:
    """Values to set where several agents wrote a key: those of the last agent in the list."""
    lanes_by_key: dict[str, list[_Lane]] = {}
    for lane in lanes:
        for key in lane.writes:
            lanes_by_key.setdefault(key, []).append(lane)
    winners: dict[str, Any] = {}
    for key, writers in lanes_by_key.items():
        if len(writers) > 1:
            last = writers[-1]
            names = ", ".join(lane.name for lane in writers)
            logger.warning("agents %s all wrote %r; the value of %s counts", names, key, last.name)
            winners[key] = last.writes[key]
    return {key: value for key, value in winners.items() if state.get(key) != value}
