"""An agent that runs its sub-agents in sequence, repeatedly."""

import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from pydantic import Field, PrivateAttr

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.child_run import ChildRun, asker_in, child_with, last_position
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.expression import Expression
from adk_nb.runtime.checkpoints import checkpoint
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.function_tool import FunctionTool

logger = logging.getLogger(__name__)

EXIT_CONDITION, MAX_ITERATIONS, ESCALATE = "exit_condition", "max_iterations", "escalate"
"""Reasons for the end of a loop."""
_PASSES = "adk_nb_passes"
"""Metadata key of an event with an interrupt: loop name -> the passes that the loop had finished."""


@dataclass
class _Progress:
    """Progress of a loop."""

    passes: int
    end_reason: str = ""
    """The reason of its end; empty while it runs."""
    pauses: bool = False
    """An interrupt is open, or the run ends."""
    last_text: str = ""


class LoopAgent(BaseAgent):
    """Runs its `sub_agents` in sequence, repeatedly; a later pass sees the messages of earlier ones.

    It ends when a sub-agent escalates, as the tool `exit_loop` does: the sub-agents after that do not run any more. If
    a sub-agent waits for an answer, the pass continues there.
    """

    team_kind: ClassVar[str] = "loop"
    runs_others: ClassVar[bool] = True
    repeats: ClassVar[bool] = True
    max_iterations: int | None = Field(default=None, ge=1)
    """Maximum number of passes. None: until an agent escalates, with a warning if none can."""
    propagate_escalate: bool = True
    """An escalation in this loop also ends the loop around it."""

    exit_condition: str | Callable[..., Any] | None = None
    """Evaluated after each whole pass; the loop ends if it is true. An expression over `session_state`, as in
    `adk_nb.expression`, such as `session_state.get('status') == 'approved'`; an error in it counts as false, with a
    warning. Or a function, sync or async, `(context) -> bool`."""
    output_key: str | None = None
    """State key for the last answer of its agents, set at the end."""

    _condition: Expression | None = PrivateAttr(default=None)
    _warned: bool = False

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        condition = self.exit_condition
        self._condition = Expression(condition, ("session_state",)) if isinstance(condition, str) else None

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        if not (self.max_iterations or self.exit_condition or self._warned):
            self._warned = True
            if self.sub_agents and not any(map(_could_escalate, self.sub_agents)):
                logger.warning(
                    "loop %r never ends: none of its agents can escalate; write LoopAgent(max_iterations=...) or an "
                    "exit_condition, or give an agent the tool exit_loop",
                    self.name,
                )
        asker, (resumed, state) = asker_in(self, ctx), last_position(self, ctx)
        resumed = child_with(self, asker) if asker else resumed
        # From the checkpoint of a resumable app, else from the event that asked.
        passes = state.get("times_looped") or (_passes_before(ctx, self.name) if asker else 0)
        progress = _Progress(passes if isinstance(passes, int) else 0)
        while self.sub_agents and not progress.end_reason:
            if progress.passes == self.max_iterations:
                progress.end_reason = MAX_ITERATIONS
                break
            # A resumed pass has begun already.
            for event in () if resumed else self._start_events(ctx, progress.passes):
                yield event
            async with aclosing(self._pass(ctx, progress, asker, resumed)) as events:
                async for event in events:
                    if event.long_running_tool_ids:
                        metadata = dict(event.custom_metadata or {})
                        metadata[_PASSES] = {**metadata.get(_PASSES, {}), self.name: progress.passes}
                        event.custom_metadata = metadata
                    yield event
            if progress.pauses:
                return
            if not progress.end_reason and await self._is_met(ctx):
                progress.end_reason = EXIT_CONDITION
            progress.passes, asker, resumed = progress.passes + 1, None, None
        for event in self._end_events(ctx, progress.end_reason, progress.last_text):
            yield event

    async def _pass(
        self, ctx: InvocationContext, progress: _Progress, asker: BaseAgent | None, resumed: BaseAgent | None
    ) -> AsyncGenerator[Event, None]:
        start = self.sub_agents.index(resumed) if resumed else 0
        for agent in self.sub_agents[start:]:
            if ctx.is_resumable and not resumed:
                yield checkpoint(ctx, self.name, current_sub_agent=agent.name, times_looped=progress.passes)
            # Only the first agent of a resumed pass: those after it start afresh.
            run = ChildRun(ctx, agent, asker, is_resumed=resumed is not None)
            events = run.events()
            try:  # as `aclosing`, at a quarter of its cost: every agent passes here
                async for event in events:
                    run.record(event)
                    yield event
            finally:
                await events.aclose()
            progress.last_text, asker, resumed = run.last_text or progress.last_text, None, None
            progress.pauses = run.waits() or ctx.end_invocation
            progress.end_reason = self._end_reason_after(run)
            if progress.pauses or progress.end_reason:
                return

    def _end_reason_after(self, run: ChildRun) -> str:
        """The reason to end after the run of an agent; empty: continue."""
        return ESCALATE if run.escalates else ""

    def _start_events(self, ctx: InvocationContext, passes: int) -> Iterable[Event]:
        """The event before a pass. `passes`: number of earlier passes."""
        return ()

    def _end_events(self, ctx: InvocationContext, reason: str, last_text: str) -> Iterable[Event]:
        """The event at the end. `last_text`: the last answer of its agents."""
        if self.output_key and last_text:
            yield Event(
                author=self.name, branch=ctx.branch, actions=EventActions(state_delta={self.output_key: last_text})
            )

    async def _is_met(self, ctx: InvocationContext) -> bool:
        if self._condition:
            try:
                return self._condition.holds({"session_state": ctx.session.state})
            except InputError as error:
                logger.warning("loop %r continues: %s", self.name, error)
                return False
        if not callable(self.exit_condition):
            return False
        is_met = self.exit_condition(ReadonlyContext(ctx))
        return bool(await is_met if inspect.isawaitable(is_met) else is_met)


def _passes_before(ctx: InvocationContext, loop: str) -> Any:
    """Number of passes that the loop had made before the interrupt that the user's message answers, as stored."""
    calls = history_of(ctx.session).calls
    records = [record for key in ctx.calls_answered if (record := calls.newest(key))]
    if not records:
        return 0
    asking_event = max(records, key=lambda record: record.event_index).event
    passes: Any = (asking_event.custom_metadata or {}).get(_PASSES)
    return cast(dict[str, Any], passes).get(loop) if isinstance(passes, dict) else 0


def _could_escalate(agent: BaseAgent) -> bool:
    """False: no tool, callback, custom model or custom agent in `agent` and those under it could escalate."""
    if any(map(_could_escalate, agent.sub_agents)):
        return True
    if any(getattr(agent, name) for name in type(agent).model_fields if name.endswith("_callback")):
        return True
    if not isinstance(agent, LlmAgent):
        # Container agents of this package escalate only for their agents; other classes may do anything.
        return not (agent.runs_others and type(agent).__module__.startswith("adk_nb.agents."))
    for tool in agent.tools_now():
        if not isinstance(tool, FunctionTool) or tool.signature.context_parameter is not None:
            return True
    # The model is its own or the nearest parent's: an object may escalate itself, one with a name does not.
    current: BaseAgent | None = agent
    while current and not getattr(current, "model", None):
        current = current.parent_agent
    has_name = current is None or isinstance(getattr(current, "model", ""), str)
    return bool(agent.toolsets) or not has_name
