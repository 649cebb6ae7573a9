"""The loop of every LLM agent: ask the model, run its calls, ask again, until there are no calls.

The final answer is validated against `output_schema` and stored; after a mismatch the model is asked once more.
"""

import json
import logging
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence, Set
from contextlib import aclosing
from types import MappingProxyType

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
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
from adk_nb.tools.shape import error_text

_NO_TOOLS: Mapping[str, BaseTool] = MappingProxyType({})
_NO_NAMES: Set[str] = frozenset()
MAX_ITERATIONS = "MAX_ITERATIONS"
"""Error code of the event that ends an agent which asked its model too often."""


async def run_llm(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """Run one turn of an agent, with as many model calls as it takes.

    Yields:
        Each model event, and after one with calls the event with their results; the last one is final.
    """
    turn = _Turn(ctx, spec)
    # Only answers, checkpoints and toolsets need work before the first request.
    if ctx.calls_answered or ctx.checkpoints or spec.toolsets:
        async with aclosing(turn.open()) as events:
            async for event in events:
                yield event
    while turn.asks_model and not ctx.end_invocation:
        if end_event := turn.limit_event():
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
        async with aclosing(turn.act()) as events:
            async for event in events:
                yield event


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
        self._changing_names: Set[str] = _NO_NAMES
        self._answer: Event | None = None
        self._calls: list[types.FunctionCall] = []
        """The calls in all complete responses of one model call."""
        self._has_checks = False
        """`record` has to do more than collect calls."""
        self._output_error: Exception | None = None
        """The mismatch of the answer with `output_schema`."""
        self._corrections = int(spec.on_output_error == "retry")
        self._correction: list[types.Content] = []

    def limit_event(self) -> Event | None:
        """The event that ends the turn at `max_iterations` or the run at `max_cost_usd`; None below them."""
        ctx, spec = self.ctx, self.spec
        if self.model_calls != spec.max_iterations:
            return budget_event(ctx, spec) if self.counts_cost else None
        message = (
            f"agent {spec.name!r} called its model {spec.max_iterations} times in one turn without a final answer; "
            f"raise LlmAgent(max_iterations=...), or find the tool that it keeps calling"
        )
        return agent_event(ctx, spec, error_code=MAX_ITERATIONS, error_message=message)

    async def _load_tools(self) -> Sequence[BaseTool]:
        """List the agent's tools."""
        spec = self.spec
        offered = await spec.canonical_tools(ReadonlyContext(self.ctx))
        # A model that cannot combine tools and an output schema answers through a tool.
        if spec.output_shape and offered and not spec.canonical_model.capabilities.output_schema_and_tools:
            offered = [SetModelResponseTool(spec.output_shape), *offered]
        self._tools_offered = offered
        if offered:
            self._tools = {tool.name: tool for tool in offered}
            self._long_running_names = {tool.name for tool in offered if tool.is_long_running}
            self._progress_names = {tool.name for tool in offered if tool.reports_progress}
            self._changing_names = {tool.name for tool in offered if tool.changes_tools}
        self._has_checks = bool(self.counts_cost or self._long_running_names or spec.output_shape or spec.output_key)
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
            self._output_error = None if self._calls else apply_output(self.spec, event)
        return event

    def is_over(self) -> bool:
        """True if the answer is final: no calls, no mismatch, no code to run or to continue from."""
        if self._output_error or self._calls:
            return False
        answer = self._answer
        if answer is None or answer.error_code:
            return True
        return not (self.spec.code_executor or answer.has_trailing_code_execution_result())

    async def act(self) -> AsyncGenerator[Event, None]:
        """What follows an answer that is not final: its calls or its code run, or its mismatch is reported.

        Raises:
            BaseException: The error of a call that ends the run, after the results of the others.
        """
        ctx, spec, answer, calls = self.ctx, self.spec, self._answer, self._calls
        if self._output_error:
            if self._corrections and not ctx.end_invocation:
                # The model gets its one retry.
                self._corrections, self._correction = 0, [correction_request(self._output_error)]
                return
            step = mismatch_result(ctx, spec, self._output_error, answer)
        elif calls:
            tools, requested = self._tools, self._request.tools_dict if self._request else {}
            # Callbacks may have added some to the request.
            if requested.keys() - tools.keys():
                tools = {**requested, **tools}
            if self._progress_names and any(call.name in self._progress_names for call in calls):
                progress = Progress(ctx, run_calls(ctx, spec, calls, tools))
                async with aclosing(progress.events()) as events:
                    async for event in events:
                        yield event
                step = progress.outcome
            else:
                step = await run_calls(ctx, spec, calls, tools)
            if self._changing_names and any(call.name in self._changing_names for call in calls):
                self._tools_offered = None
            if spec.output_shape and (tool_output := output_from_tool(ctx, spec, step.events)):
                step.events.append(tool_output)
        elif answer and answer.has_trailing_code_execution_result():
            step = StepResult([], ask_again=True)  # the model's service ran its code
        else:
            executor = spec.code_executor
            result = await run_trailing_code(ctx, spec, executor, answer) if executor and answer else None
            step = StepResult([result] if result else [])
        for event in step.events:
            yield event
        # After the events are stored: `ends_turn` raises the error of a call, and the other results must not be lost.
        self.asks_model = not step.ends_turn()
        # The model itself ends the turn in its metadata, or by a failure after its calls.
        if answer and (
            (answer.error_code and not answer.get_function_calls())
            or (answer.custom_metadata and ends_turn(answer.custom_metadata))
        ):
            self.asks_model = False


logger = logging.getLogger(__name__)

OUTPUT_SCHEMA_MISMATCH = "OUTPUT_SCHEMA_MISMATCH"
"""Error code of the event after an answer that does not fit the agent's output schema."""


def apply_output(spec: LlmSpec, event: Event) -> Exception | None:
    """If `event` is a final answer, set its `output` and the state delta of `output_key`.

    Returns:
        The validation error; the event is unchanged then.
    """
    if spec.mode == "task":  # its output comes from the tool that completes it
        return None
    if event.error_code or not event.is_final_response() or event.get_function_calls():
        return None
    # After an answer that ends in code the result is still to come.
    if not event.parts or event.parts[-1].executable_code or not (text := event.text):
        return None
    value = text
    if spec.output_shape:
        try:
            value = event.output = spec.output_shape.read(text)
        except Exception as error:  # validators may raise anything
            if spec.on_output_error != "raw":
                return error
            logger.warning(
                "agent %r: the answer is stored as text, as it does not fit output_schema: %s",
                spec.name,
                error_text(error),
            )
    if spec.output_key:
        event.actions.state_delta[spec.output_key] = value
    return None


def apply_and_report(ctx: InvocationContext, spec: LlmSpec, event: Event) -> Generator[Event, None, None]:
    """Apply the output of an answer that a callback gave; yield it, and the mismatch event if it does not fit.

    Raises:
        Exception: The validation error, with `on_output_error='raise'`.
    """
    error = apply_output(spec, event)
    yield event
    if error:
        step = mismatch_result(ctx, spec, error, event)
        yield from step.events
        step.ends_turn()


def mismatch_result(ctx: InvocationContext, spec: LlmSpec, error: Exception, event: Event | None) -> StepResult:
    """The step after an answer that does not fit: a mismatch event, or with `on_output_error='raise'` the error."""
    if spec.on_output_error == "raise":
        return StepResult([], error)
    remedy = "describe the expected fields in the instruction"
    if event and event.model_version == "offline":
        remedy = "the built-in model 'offline' cannot fill a schema: name a model, or set a key"
    elif spec.on_output_error != "retry":
        remedy += ", or let the model retry: on_output_error='retry' (in a cell: --set on_output_error=retry)"
    message = f"the answer of agent {spec.name!r} does not fit its output_schema: {error_text(error)}; {remedy}"
    return StepResult([agent_event(ctx, spec, error_code=OUTPUT_SCHEMA_MISMATCH, error_message=message)])


def correction_request(error: Exception) -> types.Content:
    """The message that asks the model for a second answer; it is not stored in the session."""
    text = f"That answer does not fit the schema: {error_text(error)}. Answer again in the requested format."
    return types.Content(role="user", parts=[types.Part(text=text)])


def output_from_tool(ctx: InvocationContext, spec: LlmSpec, events: Sequence[Event]) -> Event | None:
    """The answer given through `set_model_response`, as an event of the model. None: the tool was not called."""
    actions = [event.actions for event in events if "set_model_response" in event.actions.model_fields_set]
    if not actions:
        return None
    value = actions[-1].set_model_response
    state_delta = {spec.output_key: value} if spec.output_key else {}
    return agent_event(
        ctx,
        spec,
        content=types.Content(role="model", parts=[types.Part(text=json.dumps(value, ensure_ascii=False))]),
        output=value,
        actions=EventActions(state_delta=state_delta),
    )
