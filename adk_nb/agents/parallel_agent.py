"""An agent that runs its sub-agents in parallel."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from copy import deepcopy
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


class ParallelAgent(BaseAgent):
    """Runs its `sub_agents` in parallel, each on a branch of its own, `parallel.agent` (`parallel.agent#2` for the
    second of a name): they see the earlier conversation, but not each other. Agents after them see everything. Events
    are merged in order of arrival, and an agent continues only after its event was stored.

    If one escalates, the others are stopped. If one waits for an answer, the others end first.
    """

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
        lanes = self._lanes()
        contexts: dict[str, InvocationContext] = {}
        for lane, agent in lanes.items():
            step, schema = f"{self.name}.{lane}", agent.state_schema or ctx.state_schema
            branch = f"{ctx.branch}.{step}" if ctx.branch else step
            contexts[lane] = lane_ctx = replace_fields(ctx, branch=branch, agent=agent, state_schema=schema)
            if self.isolate_state:
                # The events stay shared; only the state is a copy.
                lane_ctx.session = ctx.session.model_copy(update={"state": _copy_of(ctx.session.state)})
        writes: dict[str, dict[str, Any]] = {lane: {} for lane in lanes}
        askers = {lane: asker_in(agent, contexts[lane]) for lane, agent in lanes.items()}
        is_resumed = ctx.checkpoints is not None and ctx.checkpoints.state_of(self, ctx.branch) is not None
        if is_resumed or any(askers.values()):
            self._restore(ctx, contexts, writes)
        elif ctx.is_resumable:
            yield checkpoint(ctx, self.name)
        # All start; after an answer only the agent that asked, and the unfinished ones.
        started = [lane for lane in lanes if is_resumed or askers[lane]] or list(lanes)
        runs = {lane: ChildRun(contexts[lane], lanes[lane], askers[lane], is_resumed=is_resumed) for lane in started}
        if is_resumed and any(run.escalates_itself or self._ends_after(run) for run in runs.values()):
            # One of them had stopped the others before the interruption.
            runs = {lane: run for lane, run in runs.items() if askers[lane]}
        async with aclosing(self._merged_events(contexts, runs, writes)) as events:
            async for event in events:
                yield event
        if self.isolate_state and (winners := self._settled_state(ctx, writes)):
            yield Event(author=self.name, branch=ctx.branch, actions=EventActions(state_delta=winners))

    def _lanes(self) -> dict[str, BaseAgent]:
        """The agents by the last step of their branch: the name, or `name#2` for the second of that name."""
        lanes: dict[str, BaseAgent] = {}
        count = Counter[str]()
        for agent in self.sub_agents:
            count[agent.name] += 1
            number = count[agent.name]
            lanes[agent.name if number == 1 else f"{agent.name}#{number}"] = agent
        return lanes

    async def _merged_events(
        self, contexts: dict[str, InvocationContext], runs: dict[str, ChildRun], writes: dict[str, dict[str, Any]]
    ) -> AsyncGenerator[Event, None]:
        running: ParallelStreams[str] = ParallelStreams(self.max_concurrency)
        for lane, run in runs.items():
            running.start(lane, run.events())
        async with aclosing(running.merged()) as merged:
            async for lane, item in merged:
                if isinstance(item, Event):
                    runs[lane].record(item)
                    yield item
                    # After the yield: now the event is stored.
                    if self.isolate_state and (delta := item.actions.state_delta) and not item.partial:
                        state = contexts[lane].session.state
                        # An equal value is the agent's own object, which it may still change: do not replace it.
                        changed = {key: deepcopy(value) for key, value in delta.items() if state.get(key) != value}
                        apply_delta(state, changed)
                        writes[lane] |= delta
                    # At once. An escalation of an agent below first ends the agent that contains it.
                    if runs[lane].escalates_itself:
                        break
                elif item.error:
                    for event in self._failed(contexts[lane], item.error):
                        yield event
                elif self._ends_after(runs[lane]):
                    break

    def _ends_after(self, run: ChildRun) -> bool:
        """True if the end of one agent stops the others."""
        return False

    def _restore(
        self, ctx: InvocationContext, contexts: dict[str, InvocationContext], writes: dict[str, dict[str, Any]]
    ) -> None:
        """Restore the state that each agent had, without the writes of the others since the start."""
        if not self.isolate_state:
            return
        # The events before the current run of these agents, and those since.
        events, block = history_of(ctx.session).events, f"{ctx.branch}.{self.name}" if ctx.branch else self.name
        index = len(events)
        while index and (
            _answers(last := events[index - 1]) or last.author == self.name or is_under(last.branch, block)
        ):
            index -= 1
        earlier, since = events[:index], events[index:]
        for lane, lane_ctx in contexts.items():
            for event in since:
                if is_under(event.branch, lane_ctx.branch):
                    writes[lane] |= event.actions.state_delta
        written_keys = {key for event in since for key in event.actions.state_delta}
        earlier_values = {
            key: delta[key]
            for event in earlier
            if (delta := event.actions.state_delta)
            for key in written_keys & {*delta}
        }
        for lane, lane_ctx in contexts.items():
            apply_delta(lane_ctx.session.state, deepcopy(earlier_values | writes[lane]))

    def _failed(self, lane_ctx: InvocationContext, error: BaseException) -> Iterator[Event]:
        """The events of a failed agent, if the others continue."""
        if self.on_error == "cancel" or not isinstance(error, Exception):
            raise error
        yield from failure_events(lane_ctx, error)
        if lane_ctx.is_resumable:
            yield ended(lane_ctx, lane_ctx.agent.name)

    def _settled_state(self, ctx: InvocationContext, writes: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Values to set where several agents wrote a key: those of the last agent in the list."""
        lanes_by_key: dict[str, list[str]] = {}
        for lane, delta in writes.items():
            for key in delta:
                lanes_by_key.setdefault(key, []).append(lane)
        winners: dict[str, Any] = {}
        for key, lanes in lanes_by_key.items():
            if len(lanes) > 1:
                logger.warning("agents %s all wrote %r; the value of %s counts", ", ".join(lanes), key, lanes[-1])
                winners[key] = writes[lanes[-1]][key]
        return {key: value for key, value in winners.items() if ctx.session.state.get(key) != value}


def _copy_of(state: dict[str, Any]) -> dict[str, Any]:
    """A deep copy, except of `temp:` values, which may be impossible to copy, such as a lock."""
    return {key: value if key.startswith(State.TEMP_PREFIX) else deepcopy(value) for key, value in dict(state).items()}


def _answers(event: Event) -> bool:
    return event.author == "user" and (event.isolation_scope is not None or bool(event.get_function_responses()))
