"""The loop of every LLM agent: ask the model, run its calls, ask again, until there are no calls."""

from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from contextlib import aclosing
from types import MappingProxyType

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.flow import output
from adk_nb.flow.budget import add_cost, budget_event, counts_cost
from adk_nb.flow.code_execution import run_trailing_code
from adk_nb.flow.model_call import ModelCall, mark_long_running
from adk_nb.flow.request import build_request
from adk_nb.flow.resumption import ResumedCalls, authenticate_toolsets
from adk_nb.flow.spec import LlmSpec, agent_event
from adk_nb.flow.tool_calls import Progress, StepResult, run_calls
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import ends_turn
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.set_model_response_tool import SetModelResponseTool

_NO_TOOLS: Mapping[str, BaseTool] = MappingProxyType({})
_NO_NAMES: Set[str] = frozenset()
MAX_ITERATIONS = "MAX_ITERATIONS"
"""Error code of the event that ends an agent which asked its model too often."""


def run_llm(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """Run one turn of an agent, with as many model calls as it takes.

    Yields:
        Each model event, and after one with calls the event with their results; the last one is final.
    """
    # Only answers, checkpoints and toolsets need work before the first request.
    turn = _Turn(ctx, spec)
    return _resumed_turn(turn) if ctx.calls_answered or ctx.checkpoints or spec.toolsets else _model_rounds(turn)


async def _resumed_turn(turn: "_Turn") -> AsyncGenerator[Event, None]:
    async with aclosing(turn.open()) as events:
        async for event in events:
            yield event
    async with aclosing(_model_rounds(turn)) as events:
        async for event in events:
            yield event


async def _model_rounds(turn: "_Turn") -> AsyncGenerator[Event, None]:
    ctx, spec = turn.ctx, turn.spec
    while turn.asks_model and not ctx.end_invocation:
        if (turn.counts_cost or turn.model_calls == spec.max_iterations) and (end_event := turn.limit_event()):
            yield end_event
            return
        context = Context(ctx)
        model_call = ModelCall(ctx, spec, await turn.request(context), context)
        responses = model_call.responses()
        try:  # `aclosing` written out: four times faster, on the path of every model call
            async for response in responses:
                if event := model_call.record(response):
                    yield turn.record(event)
            if event := model_call.final_event():
                yield turn.record(event)
        finally:
            await responses.aclose()
            if turn.counts_cost and (unanswered := model_call.unanswered_usage()):
                add_cost(ctx, unanswered)
        if turn.is_over():
            return
        async with aclosing(_after_answer(turn)) as events:
            async for event in events:
                yield event


async def _after_answer(turn: "_Turn") -> AsyncGenerator[Event, None]:
    """Run the step after a response that is not final."""
    if turn.retries_output() and not turn.ctx.end_invocation:
        return
    following = turn.following_step()
    progress = Progress(turn.ctx, following) if turn.reports_progress() else None
    if progress:
        async with aclosing(progress.events()) as events:
            async for event in events:
                yield event
    # `following` runs once: as work of `progress`, or here.
    step = progress.outcome if progress else await following
    for event in step.events:
        yield event
    # After the events are stored: `ends_turn` raises the error of a call, and the other results must not be lost.
    turn.asks_model = not (step.ends_turn() or turn.is_ended_by_model())


class _Turn:
    """The state of one agent turn: the tools, the last response and its calls."""

    def __init__(self, ctx: InvocationContext, spec: LlmSpec) -> None:
        self.asks_model = True
        """The model is asked next."""
        self.model_calls = 0
        self.counts_cost = counts_cost(ctx)
        """What the model calls cost is added up."""
        self.ctx = ctx
        self.spec = spec
        self._tools_offered: Sequence[BaseTool] | None = None
        self._tools: Mapping[str, BaseTool] = _NO_TOOLS
        self._request: LlmRequest | None = None
        """The latest one."""
        self._long_running_names: Set[str] = _NO_NAMES
        self._progress_names: Set[str] = _NO_NAMES
        self._answer: Event | None = None
        self._calls: list[types.FunctionCall] = []
        """The calls in all complete responses of one model call."""
        self._has_checks = False
        """`record` has to do more than collect calls."""
        self._output_error: Exception | None = None
        """The mismatch of the answer with `output_schema`."""
        self._corrections = int(spec.on_output_error == "retry")
        self._correction: list[types.Content] = []

    async def _load_tools(self) -> Sequence[BaseTool]:
        """List the agent's tools."""
        offered = _with_response_tool(self.spec, await self.spec.canonical_tools(ReadonlyContext(self.ctx)))
        self._tools_offered = offered
        if offered:
            self._tools = {tool.name: tool for tool in offered}
            self._long_running_names = {tool.name for tool in offered if tool.is_long_running}
            self._progress_names = {tool.name for tool in offered if tool.reports_progress}
        self._has_checks = bool(
            self.counts_cost or self._long_running_names or self.spec.output_shape or self.spec.output_key
        )
        return offered

    async def open(self) -> AsyncGenerator[Event, None]:
        """Before the first model call: authenticate toolsets, and run the calls that the message resumes."""
        ctx, spec = self.ctx, self.spec
        credential_requests, answered_calls = await authenticate_toolsets(ctx, spec)
        for event in credential_requests:
            yield event
        if credential_requests:
            self.asks_model = False
            return
        await self._load_tools()
        if ctx.calls_answered or ctx.checkpoints:
            resumed = ResumedCalls(ctx, spec, self._tools, answered_calls)
            async with aclosing(resumed.events()) as events:
                async for event in events:
                    yield event
            self.asks_model = not resumed.ends_turn
            self._tools_offered = None  # list the tools anew: a resumed call may have changed them

    def limit_event(self) -> Event | None:
        """The event that ends the turn at `max_iterations` or the run at `max_cost_usd`; None below them."""
        if self.model_calls == self.spec.max_iterations:
            return _too_many_iterations(self.ctx, self.spec)
        return budget_event(self.ctx, self.spec)

    async def request(self, context: Context) -> LlmRequest:
        """Build the next request to the model."""
        offered = await self._load_tools() if self._tools_offered is None else self._tools_offered
        self.model_calls += 1
        self._answer = None
        self._calls = []
        request = self._request = await build_request(self.ctx, self.spec, offered, context)
        # Sent once and stored nowhere: the session has only the answers.
        if self._correction:
            request.contents += self._correction
            self._correction = []
        return request

    def record(self, event: Event) -> Event:
        """Record a model event; on complete ones, mark long-running calls and apply the output."""
        if event.partial:
            return event
        # A trailing event with usage alone does not replace the answer.
        if event.content or event.error_code or self._answer is None:
            self._answer = event
        self._calls += event.get_function_calls()
        if self._has_checks:
            if self.counts_cost:
                add_cost(self.ctx, event)
            mark_long_running(event, self._long_running_names)
            # An answer with calls is not final, so it is not validated.
            self._output_error = None if self._calls else output.apply_output(self.spec, event)
        return event

    def retries_output(self) -> bool:
        """True if the answer did not fit `output_schema`, and the model gets its one retry."""
        if not (self._output_error and self._corrections):
            return False
        self._corrections, self._correction = 0, [output.correction_request(self._output_error)]
        return True

    def is_over(self) -> bool:
        """True if the answer is final: no calls, no mismatch, no code to run or to continue from."""
        if self._output_error or self._calls:
            return False
        answer = self._answer
        if answer is None or answer.error_code:
            return True
        return not (self.spec.code_executor or answer.has_trailing_code_execution_result())

    def reports_progress(self) -> bool:
        """True if a called tool emits events while it runs."""
        return bool(self._progress_names) and any(call.name in self._progress_names for call in self._calls)

    def is_ended_by_model(self) -> bool:
        """True if the model ended the turn in its metadata, or failed after its calls."""
        answer = self._answer
        if answer and answer.error_code and not answer.get_function_calls():
            return True
        metadata = answer and answer.custom_metadata
        return bool(metadata) and ends_turn(metadata)

    async def following_step(self) -> StepResult:
        """The results of the answer's calls or code, or the report of a mismatch."""
        ctx, spec = self.ctx, self.spec
        if self._output_error:
            return output.mismatch_result(ctx, spec, self._output_error, self._answer)
        calls = self._calls
        if not calls:
            return await _run_code(ctx, spec, self._answer)
        tools, requested = self._tools, self._request.tools_dict if self._request else {}
        # Callbacks may have added some to the request.
        if requested.keys() - tools.keys():
            tools = {**requested, **tools}
        step = await run_calls(ctx, spec, calls, tools)
        if spec.output_shape and (tool_output := output.output_from_tool(ctx, spec, step.events)):
            step.events.append(tool_output)
        return step


async def _run_code(ctx: InvocationContext, spec: LlmSpec, answer: Event | None) -> StepResult:
    """The step after an answer without calls: the result of the code that it ends in."""
    if answer is None or answer.error_code:
        return StepResult([])
    if answer.has_trailing_code_execution_result():
        return StepResult([], ask_again=True)
    result = await run_trailing_code(ctx, spec, spec.code_executor, answer) if spec.code_executor else None
    return StepResult([result] if result else [])


def _with_response_tool(spec: LlmSpec, tools: Sequence[BaseTool]) -> Sequence[BaseTool]:
    """`tools`, with `set_model_response` where the model cannot combine tools and an output schema."""
    if not (spec.output_shape and tools) or spec.canonical_model.capabilities.output_schema_and_tools:
        return tools
    return [SetModelResponseTool(spec.output_shape), *tools]


def _too_many_iterations(ctx: InvocationContext, spec: LlmSpec) -> Event:
    return agent_event(
        ctx,
        spec,
        error_code=MAX_ITERATIONS,
        error_message=(
            f"agent {spec.name!r} called its model {spec.max_iterations} times in one turn without a final answer; "
            f"raise LlmAgent(max_iterations=...), or find the tool that it keeps calling"
        ),
    )
