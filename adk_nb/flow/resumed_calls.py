"""Run the calls that a message resumes before the model is asked; of a run resumed by its id, its open calls."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.flow.progress import Progress
from adk_nb.flow.resumption import take
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.tool_calls import Tools, answer_calls
from adk_nb.runtime.approvals import PLACEHOLDERS, ConfirmationNeeded, request_event
from adk_nb.runtime.concurrent_runs import catch_up, is_first
from adk_nb.runtime.durable import load_attempts
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import is_toolset
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import (
    calls_with_answers,
    calls_with_interrupts,
    has_results,
    queued_calls,
    unanswered_calls,
)
from adk_nb.runtime.open_calls import close_lost_call
from adk_nb.tools.fingerprint import fingerprint


class ResumedCalls:
    """The calls of one agent that the user's message resumes: approved, authenticated, or with an answer inside."""

    ends_the_turn = True
    """The model is not to be asked for this message; said once all events are out."""

    def __init__(
        self, ctx: InvocationContext, spec: LlmSpec, tools: Tools, taken: Sequence[types.FunctionCall]
    ) -> None:
        """`taken`: the calls whose credentials the message has answered with already."""
        self._ctx = ctx
        self._spec = spec
        self._tools = tools
        self._taken = taken
        self._later = {name for name, tool in tools.items() if tool.runs_task or tool.runs_last}

    async def events(self) -> AsyncGenerator[Event, None]:
        """Carry it out.

        Yields:
            What agents do that go on inside the calls, then the results.

        Raises:
            BaseException: What a tool raised, where that ends the run.
        """
        if self._ctx.checkpoints and (asks := self._unasked()):
            yield asks
            return
        async with aclosing(self._carried_out()) as events:
            async for event in events:
                yield event

    async def _carried_out(self) -> AsyncGenerator[Event, None]:
        ctx, led = self._ctx, calls_with_answers(self._ctx)
        gone = [call for call in led if not self._takes_up(call.name or "")]
        for call in gone:
            for event in close_lost_call(ctx, call):
                yield event
        answered = [*self._taken, *await take(ctx)]
        runs = [call for call in answered if not is_toolset(call)]
        calls = [*runs, *(call for call in led if call not in gone)]
        if not ctx.calls_answered:
            calls += unanswered_calls(ctx)
        if not (calls or gone or answered or has_results(ctx)):
            self.ends_the_turn = bool(ctx.calls_answered)
            return  # someone else answered a moment ago: nothing is left to do for this message
        await load_attempts(ctx, calls)
        ends = False
        while calls:
            answering = Progress(ctx, answer_calls(ctx, self._spec, calls, self._tools))
            async with aclosing(answering.events()) as events:
                async for event in events:
                    yield event
            for event in answering.outcome.events:
                yield event
            ends = answering.outcome.end_the_turn()
            calls = [] if ends else queued_calls(ctx, self._later)
        self.ends_the_turn = ends or not await self._goes_on(bool(led))

    def _unasked(self) -> Event | None:
        """What the agent was about to ask, its results being out, when its run was cut."""
        ctx, history = self._ctx, history_of(self._ctx.session)
        mine = (event for event in history.newest() if event.author == ctx.agent.name and event.branch == ctx.branch)
        last = next(mine, None)
        wanted = last.actions.requested_tool_confirmations if last else {}
        left = (
            wanted.keys() - {asked.call.id for asked in history.interrupts(kinds=("approval",))}
            if wanted
            else set[str]()
        )
        if last is None or not left or last.invocation_id != ctx.invocation_id:
            return None
        calls = [record.call for key in left for record in history.calls.all(key)[-1:]]
        ran = {one.id: one.response not in PLACEHOLDERS for one in last.get_function_responses()}
        names = {call.id: self._tools[call.name or ""] for call in calls if call.name in self._tools}
        asked = {
            key: ConfirmationNeeded(confirmation=wanted[key], ran=ran.get(key, True), tool=tool and fingerprint(tool))
            for key in left
            for tool in [names.get(key)]
        }
        return request_event(self._spec.name, ctx.branch, calls, asked)

    async def _goes_on(self, led: bool) -> bool:
        """True if the model is to be asked: all of its calls have results, and no run beside this one asks it."""
        ctx = self._ctx
        left = calls_with_interrupts(ctx)
        if left and (not await catch_up(ctx) or history_of(ctx.session).calls.without_result(left)):
            return False
        return not led or await is_first(ctx)

    def _takes_up(self, name: str) -> bool:
        tool = self._tools.get(name)
        return tool is not None and tool.resumable
