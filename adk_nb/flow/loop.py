"""The loop of every LLM agent: ask the model, run the tools it calls, ask again, until nothing is left to run."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from adk_nb.events.event import Event
from adk_nb.flow.model_call import call_model, mark_long_running
from adk_nb.flow.request import build_request
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.tool_calls import answer_calls
from adk_nb.runtime.approvals import take_answers
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool

MAX_ITERATIONS = "MAX_ITERATIONS"
"""Error code of the event that ends an agent which asked its model too often."""


async def run_llm(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """One activation of an agent, as many model calls as it takes.

    Yields:
        Each model event, and after one with calls the event with their results; the last one is final.
    """
    offered = await spec.canonical_tools(ReadonlyContext(ctx))
    tools = {tool.name: tool for tool in offered}
    if ctx.answers_approvals:
        decided = await answer_calls(ctx, spec, take_answers(ctx), tools)
        for event in decided.events:
            yield event
        if decided.end_the_turn():
            return  # as when someone else answered a moment ago: nothing is left to do for this message
    async with aclosing(_ask_and_run(ctx, spec, offered, tools)) as events:
        async for event in events:
            yield event


async def _ask_and_run(
    ctx: InvocationContext, spec: LlmSpec, offered: Sequence[BaseTool], tools: dict[str, BaseTool]
) -> AsyncGenerator[Event, None]:
    asked, long_running = 0, {tool.name for tool in offered if tool.is_long_running}
    while not ctx.end_invocation:
        if asked == spec.max_iterations:
            yield _too_many(ctx, spec)
            return
        asked += 1
        context = Context(ctx)
        request = await build_request(ctx, spec, offered, context)
        answer: Event | None = None
        async with aclosing(call_model(ctx, spec, request, context)) as events:
            async for event in events:
                if long_running and not event.partial:
                    mark_long_running(event, long_running)
                yield event
                answer = event
        calls = answer.get_function_calls() if answer else []
        if not calls:
            return
        answers = await answer_calls(ctx, spec, calls, tools)
        for event in answers.events:
            yield event
        if answers.end_the_turn():
            return


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
