"""An agent that runs its sub-agents in sequence."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import ClassVar

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.child_run import ChildRun, asker_in, child_with, last_position
from adk_nb.events.event import Event
from adk_nb.flow.live.sending import without_handle
from adk_nb.runtime.checkpoints import checkpoint
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.wire import replace_fields


class SequentialAgent(BaseAgent):
    """Runs its `sub_agents` in sequence, each once; a later one sees the messages and the state of earlier ones.

    It pauses while one of them waits for an answer, and continues there. In a live conversation each agent with a model
    has its turn until it calls `task_completed`, a tool that it gets for this.
    """

    team_kind: ClassVar[str] = "sequential"
    runs_others: ClassVar[bool] = True
    stop_on_escalate: bool = False
    """End after an agent that escalates. False: only after one whose tool set `escalate` alone; the escalation of a
    tool that sets `skip_summarization` too, as `exit_loop` does, then ends only loops."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        asker = asker_in(self, ctx)
        resumed = child_with(self, asker) if asker else last_position(self, ctx)[0]
        start, last_text = self.sub_agents.index(resumed) if resumed else 0, ""
        for agent in self.sub_agents[start:]:
            if ctx.is_resumable and not resumed:
                yield checkpoint(ctx, self.name, current_sub_agent=agent.name)
            # Only the first agent of a resumed run: those after it start afresh.
            run = ChildRun(ctx, agent, asker, is_resumed=resumed is not None)
            events = run.events()
            try:  # as `aclosing`, at a quarter of its cost: every agent passes here
                async for event in events:
                    run.record(event)
                    yield event
            finally:
                await events.aclose()
            if run.waits() or ctx.end_invocation:
                return
            last_text, asker, resumed = run.last_text or last_text, None, None
            if self._ends_after(run):
                break
        for event in self._end_events(ctx, last_text):
            yield event

    async def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        queue = ctx.live_request_queue
        for agent in self.sub_agents:
            async with aclosing(agent.run_live(replace_fields(ctx, is_live_turn=True))) as events:
                async for event in events:
                    yield event
            if ctx.end_invocation or (queue and queue.closed):
                return
            ctx = replace_fields(ctx, run_config=without_handle(ctx.run_config))

    def _ends_after(self, run: ChildRun) -> bool:
        return run.is_stopped or (self.stop_on_escalate and run.escalates)

    def _end_events(self, ctx: InvocationContext, last_text: str) -> Iterable[Event]:
        """The event at the end. `last_text`: the last answer of its agents."""
        return ()
