"""The loop of every LLM agent: ask the model, run the tools it calls, ask again, until nothing is left to run."""

from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from contextlib import aclosing
from types import MappingProxyType

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.flow import output
from adk_nb.flow.budget import pay, used_up
from adk_nb.flow.code_execution import result_of
from adk_nb.flow.model_call import ModelCall, mark_long_running
from adk_nb.flow.progress import Progress
from adk_nb.flow.request import build_request
from adk_nb.flow.resumed_calls import ResumedCalls
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.tool_calls import Answers, answer_calls
from adk_nb.flow.toolset_authentication import authenticate_toolsets
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.signals import ends_turn
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.set_model_response_tool import SetModelResponseTool

_NO_TOOLS: Mapping[str, BaseTool] = MappingProxyType({})
_NO_NAMES: Set[str] = frozenset()
MAX_ITERATIONS = "MAX_ITERATIONS"
"""Error code of the event that ends an agent which asked its model too often."""


def run_llm(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """One activation of an agent, as many model calls as it takes.

    Yields:
        Each model event, and after one with calls the event with their results; the last one is final.
    """
    turn = _Turn(ctx, spec)
    return _opened(turn) if ctx.calls_answered or ctx.checkpoints or spec.toolsets else _rounds(turn)


async def _opened(turn: "_Turn") -> AsyncGenerator[Event, None]:
    async with aclosing(turn.opening()) as events:
        async for event in events:
            yield event
    async with aclosing(_rounds(turn)) as events:
        async for event in events:
            yield event


async def _rounds(turn: "_Turn") -> AsyncGenerator[Event, None]:
    ctx, spec = turn.ctx, turn.spec
    while turn.goes_on and not ctx.end_invocation:
        if (turn.pays or turn.asked == spec.max_iterations) and (ended := turn.cut_off()):
            yield ended
            return
        context = Context(ctx)
        asked = ModelCall(ctx, spec, await turn.request(context), context)
        responses = asked.responses()
        try:  # what `aclosing` does, at a quarter of its price: each model call comes by here
            async for response in responses:
                if event := asked.heard(response):
                    yield turn.hear(event)
        finally:
            await responses.aclose()
        if event := asked.unsaid():
            yield turn.hear(event)
        if turn.is_over():
            return
        async with aclosing(_following(turn)) as events:
            async for event in events:
                yield event


async def _following(turn: "_Turn") -> AsyncGenerator[Event, None]:
    """What comes after an answer that is not the last."""
    if turn.asks_once_more() and not turn.ctx.end_invocation:
        return
    work = turn.what_follows()
    running = Progress(turn.ctx, work) if turn.tells() else None
    if running:
        async with aclosing(running.events()) as events:
            async for event in events:
                yield event
    follows = running.outcome if running else await work
    for event in follows.events:
        yield event
    turn.goes_on = not (follows.end_the_turn() or turn.said_enough())


class _Turn:
    """How far one activation of an agent has come: what it offers its model, and what that said last."""

    def __init__(self, ctx: InvocationContext, spec: LlmSpec) -> None:
        self.goes_on = True
        """The model is to be asked, for the first time or again."""
        self.asked = 0
        self.pays = ctx.run_config.max_cost_usd is not None
        """What the answers cost is limited."""
        self.ctx = ctx
        self.spec = spec
        self._offered: Sequence[BaseTool] | None = None
        self._tools: Mapping[str, BaseTool] = _NO_TOOLS
        self._long_running: Set[str] = _NO_NAMES
        self._telling: Set[str] = _NO_NAMES
        self._answer: Event | None = None
        self._calls: list[types.FunctionCall] = []
        """Of all whole responses of one model call."""
        self._wrong: Exception | None = None
        """What is wrong with the answer."""
        self._corrections = int(spec.on_output_error == "retry")
        self._correction: list[types.Content] = []

    async def _offer(self) -> Sequence[BaseTool]:
        """Find out what the model may call."""
        offered = _with_a_way_to_answer(self.spec, await self.spec.canonical_tools(ReadonlyContext(self.ctx)))
        self._offered = offered
        if offered:
            self._tools = {tool.name: tool for tool in offered}
            self._long_running = {tool.name for tool in offered if tool.is_long_running}
            self._telling = {tool.name for tool in offered if tool.reports_progress}
        self._watched = bool(self.pays or self._long_running or self.spec.output_shape or self.spec.output_key)
        return offered

    async def opening(self) -> AsyncGenerator[Event, None]:
        """What is done before the model is asked: toolsets are let in, and what the message answers is carried out."""
        ctx, spec = self.ctx, self.spec
        asks, taken = await authenticate_toolsets(ctx, spec)
        for event in asks:
            yield event
        if asks:
            self.goes_on = False
            return
        await self._offer()
        if ctx.calls_answered or ctx.checkpoints:
            answering = ResumedCalls(ctx, spec, self._tools, taken)
            async with aclosing(answering.events()) as events:
                async for event in events:
                    yield event
            self.goes_on = not answering.ends_the_turn
            self._offered = None  # a call may have been made with its tool as it was when it was asked

    def cut_off(self) -> Event | None:
        """What ends the agent, or the whole run, before the model is asked again: it was asked, or has cost, enough."""
        if self.asked == self.spec.max_iterations:
            return _too_many(self.ctx, self.spec)
        return used_up(self.ctx, self.spec)

    async def request(self, context: Context) -> LlmRequest:
        """The next question to the model."""
        offered = await self._offer() if self._offered is None else self._offered
        self.asked += 1
        self._answer = None
        self._calls = []
        request = await build_request(self.ctx, self.spec, offered, context)
        if self._correction:
            request.contents += self._correction
            self._correction = []
        return request

    def hear(self, event: Event) -> Event:
        """Take note of what the model says; of the whole, which calls are answered later, and what it comes to."""
        if event.partial:
            return event
        if event.content or event.error_code or self._answer is None:
            self._answer = event
        self._calls += event.get_function_calls()
        if self._watched:
            if self.pays:
                pay(self.ctx, event)
            mark_long_running(event, self._long_running)
            self._wrong = None if self._calls else output.settle(self.spec, event)
        return event

    def asks_once_more(self) -> bool:
        """True if the answer did not fit, and the agent lets its model correct that."""
        if not (self._wrong and self._corrections):
            return False
        self._corrections, self._correction = 0, [output.asked_again(self._wrong)]
        return True

    def is_over(self) -> bool:
        """True if the answer calls nothing, and fits, and has no code to run or to go on from."""
        if self._wrong or self._calls:
            return False
        answer = self._answer
        if answer is None or answer.error_code:
            return True
        return not (self.spec.code_executor or answer.has_trailing_code_execution_result())

    def tells(self) -> bool:
        """True if a tool that was called has news while it runs."""
        return bool(self._telling) and any(call.name in self._telling for call in self._calls)

    def said_enough(self) -> bool:
        """True if the model says beside its answer that it is not to be asked again, or failed after its calls."""
        answer = self._answer
        if answer and answer.error_code and not answer.get_function_calls():
            return True
        metadata = answer and answer.custom_metadata
        return bool(metadata) and ends_turn(metadata)

    async def what_follows(self) -> Answers:
        """What comes after the answer: the results of its calls, and the final answer if it gave that by a call."""
        ctx, spec = self.ctx, self.spec
        if self._wrong:
            return output.after(ctx, spec, self._wrong, self._answer)
        calls = self._calls
        if not calls:
            return await _after_code(ctx, spec, self._answer)
        answers = await answer_calls(ctx, spec, calls, self._tools)
        if spec.output_shape and (given := output.given_by_tool(ctx, spec, answers.events)):
            answers.events.append(given)
        return answers


async def _after_code(ctx: InvocationContext, spec: LlmSpec, answer: Event | None) -> Answers:
    """What follows an answer without calls: what its code gave, if it ends in some."""
    if answer is None or answer.error_code:
        return Answers([])
    if answer.has_trailing_code_execution_result():
        return Answers([], goes_on=True)
    result = await result_of(ctx, spec, spec.code_executor, answer) if spec.code_executor else None
    return Answers([result] if result else [])


def _with_a_way_to_answer(spec: LlmSpec, tools: Sequence[BaseTool]) -> Sequence[BaseTool]:
    """`tools`, and one to answer with where the model takes no output schema beside them."""
    if not (spec.output_shape and tools) or spec.canonical_model.capabilities.output_schema_and_tools:
        return tools
    return [SetModelResponseTool(spec.output_shape), *tools]


def _too_many(ctx: InvocationContext, spec: LlmSpec) -> Event:
    return Event(
        author=spec.name,
        invocation_id=ctx.invocation_id,
        branch=ctx.branch,
        error_code=MAX_ITERATIONS,
        error_message=(
            f"agent {spec.name!r} asked its model {spec.max_iterations} times in one turn without coming to an end; "
            f"raise LlmAgent(max_iterations=...), or look for a tool that never satisfies it"
        ),
    )
