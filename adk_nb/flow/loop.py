"""The loop of every LLM agent: ask the model, run the tools it calls, ask again, until nothing is left to run."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.flow import output
from adk_nb.flow.answering import Answering
from adk_nb.flow.code_execution import result_of
from adk_nb.flow.letting_in import let_toolsets_in
from adk_nb.flow.model_call import call_model, mark_long_running
from adk_nb.flow.progress import Progress
from adk_nb.flow.request import build_request
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.tool_calls import Answers, answer_calls
from adk_nb.models.signals import says_enough
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.set_model_response_tool import SetModelResponseTool

MAX_ITERATIONS = "MAX_ITERATIONS"
"""Error code of the event that ends an agent which asked its model too often."""


async def run_llm(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """One activation of an agent, as many model calls as it takes.

    Yields:
        Each model event, and after one with calls the event with their results; the last one is final.
    """
    asks, taken = await let_toolsets_in(ctx, spec)
    for event in asks:
        yield event
    if asks:
        return
    offered = _with_a_way_to_answer(spec, await spec.canonical_tools(ReadonlyContext(ctx)))
    tools = {tool.name: tool for tool in offered}
    if ctx.calls_answered or ctx.standing:
        answering = Answering(ctx, spec, tools, taken)
        async with aclosing(answering.events()) as events:
            async for event in events:
                yield event
        if answering.ends_the_turn:
            return
    async with aclosing(_ask_and_run(ctx, spec, offered, tools)) as events:
        async for event in events:
            yield event


async def _ask_and_run(
    ctx: InvocationContext, spec: LlmSpec, offered: Sequence[BaseTool], tools: dict[str, BaseTool]
) -> AsyncGenerator[Event, None]:
    asked, long_running = 0, {tool.name for tool in offered if tool.is_long_running}
    telling = {tool.name for tool in offered if tool.tells}
    watched = bool(long_running or spec.output_shape or spec.output_key)
    wrong: Exception | None = None
    correction: list[types.Content] = []
    retries = int(spec.on_output_error == "retry")
    goes_on = True
    while goes_on and not ctx.end_invocation:
        if asked == spec.max_iterations:
            yield _too_many(ctx, spec)
            return
        asked += 1
        context = Context(ctx)
        request = await build_request(ctx, spec, offered, context)
        request.contents += correction
        correction = []
        answer: Event | None = None
        async with aclosing(call_model(ctx, spec, request, context)) as events:
            async for event in events:
                wrong = _settled(spec, event, long_running) if watched and not event.partial else wrong
                yield event
                answer = event
        if wrong and retries and not ctx.end_invocation:
            retries, correction = 0, [output.asked_again(wrong)]
            continue
        work = _after(ctx, spec, answer, tools, wrong)
        running = Progress(ctx, work) if telling and answer and _calls_any(answer, telling) else None
        if running:
            async with aclosing(running.events()) as events:
                async for event in events:
                    yield event
        follows = running.outcome if running else await work
        for event in follows.events:
            yield event
        enough = answer and answer.custom_metadata and says_enough(answer.custom_metadata)
        goes_on = not (follows.end_the_turn() or enough)


def _settled(spec: LlmSpec, event: Event, long_running: set[str]) -> Exception | None:
    """Mark calls whose results come later, and note the output. What is wrong with that, if anything."""
    mark_long_running(event, long_running)
    return output.settle(spec, event)


def _calls_any(answer: Event, names: set[str]) -> bool:
    return any(call.name in names for call in answer.get_function_calls())


async def _after(
    ctx: InvocationContext, spec: LlmSpec, answer: Event | None, tools: dict[str, BaseTool], wrong: Exception | None
) -> Answers:
    """What follows an answer of the model: the results of its calls, and the final answer if it gave that by a call."""
    if wrong:
        return output.after(ctx, spec, wrong)
    calls = answer.get_function_calls() if answer else []
    if not calls:
        return await _after_code(ctx, spec, answer)
    answers = await answer_calls(ctx, spec, calls, tools)
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
