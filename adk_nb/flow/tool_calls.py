"""Run the calls of one event side by side and answer them in one event. The only place that calls tools."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adk_nb import types
from adk_nb.errors import LlmCallsLimitExceededError, closest
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.flow.spec import LlmSpec
from adk_nb.runtime import approvals
from adk_nb.runtime.context import Context
from adk_nb.runtime.hooks import first_answer
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.tool_result import as_response

Tools = Mapping[str, BaseTool]


@dataclass
class _Answer:
    """One call's answer, and what its tool did besides."""

    part: types.Part | None
    """None: the result comes later, from outside."""
    actions: EventActions
    waits: bool = False
    """True: a person is asked first; the part is a placeholder."""


async def answer_calls(ctx: InvocationContext, spec: LlmSpec, asked: Event, tools: Tools) -> list[Event]:
    """Run `asked`'s calls; answer in the model's order, whatever finishes first.

    Returns:
        The event with the results, and beside it one that asks for approval if a call needs it: before the results
        if all of them wait, after them otherwise.
    """
    calls = asked.get_function_calls()
    if len(calls) == 1:
        answers = [await _answer(ctx, spec, calls[0], tools)]
    else:
        answers = await _side_by_side(ctx, spec, calls, tools)
    results = _together(ctx, spec, answers)
    if not results:
        return []
    wanted = results.actions.requested_tool_confirmations
    if not wanted:
        return [results]
    asks = approvals.ask(asked, wanted)
    if all(answer.waits for answer in answers):
        results.actions.skip_summarization = True
        return [asks, results]
    return [results, asks]


async def run_approved(
    ctx: InvocationContext, spec: LlmSpec, taken: Mapping[str, types.FunctionCall], tools: Tools
) -> Event | None:
    """Run, or refuse, the calls that a person has just decided; one event answers them."""
    return _together(ctx, spec, await _side_by_side(ctx, spec, list(taken.values()), tools))


async def _side_by_side(
    ctx: InvocationContext, spec: LlmSpec, calls: list[types.FunctionCall], tools: Tools
) -> list[_Answer]:
    tasks = [asyncio.ensure_future(_answer(ctx, spec, call, tools)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _together(ctx: InvocationContext, spec: LlmSpec, answers: list[_Answer]) -> Event | None:
    actions = EventActions()
    for answer in answers:
        actions.merge(answer.actions)
    parts = [answer.part for answer in answers if answer.part]
    if not parts:
        return None
    content = types.Content(role="user", parts=parts)
    return Event(author=spec.name, invocation_id=ctx.invocation_id, branch=ctx.branch, content=content, actions=actions)


async def _answer(ctx: InvocationContext, spec: LlmSpec, call: types.FunctionCall, tools: Tools) -> _Answer:
    name, args = call.name or "", dict(call.args or {})
    context = Context(ctx, function_call_id=call.id, tool_confirmation=ctx.answered.get(call.id or ""))
    if tool := tools.get(name):
        result, waits = await _gated(ctx, spec, tool, args, context)
    else:
        result, waits = {"error": _unknown(name, tools)}, False
    context.state.settle()
    if tool and tool.is_long_running and result is None:
        return _Answer(None, context.actions)
    response = as_response(result, name)
    if changed := context.tool_confirmation and context.tool_confirmation.args:
        response |= {"note": f"a person changed the arguments before approving; it ran with {changed}"}
    part = types.Part(function_response=types.FunctionResponse(id=call.id, name=name, response=response))
    return _Answer(part, context.actions, waits)


async def _gated(
    ctx: InvocationContext, spec: LlmSpec, tool: BaseTool, args: dict[str, Any], context: Context
) -> tuple[Any, bool]:
    """The result of a call that may need a person's word first, and whether it waits for it."""
    try:
        needed = await tool.confirmation(args, context)
    except Exception as error:
        return await _failed(ctx, spec, tool, args, context, error), False
    decided = context.tool_confirmation
    if needed and decided is None:
        context.actions.requested_tool_confirmations[context.function_call_id or ""] = needed
        return approvals.placeholder(), True
    if needed and decided and not decided.confirmed:
        return approvals.rejection(decided), False
    return await _run(ctx, spec, tool, args, context), False


async def _run(ctx: InvocationContext, spec: LlmSpec, tool: BaseTool, args: dict[str, Any], context: Context) -> Any:
    said: dict[str, Any] = {"tool": tool, "args": args, "tool_context": context}
    result = await first_answer(spec.hooks("before_tool"), **said)
    if result is None:
        try:
            result = await tool.run_async(args=args, tool_context=context)
        except Exception as error:
            result = await _failed(ctx, spec, tool, args, context, error)
    after = spec.hooks("after_tool")
    if after and (other := await first_answer(after, **said, tool_response=result)) is not None:
        return other
    return result


async def _failed(
    ctx: InvocationContext, spec: LlmSpec, tool: BaseTool, args: dict[str, Any], context: Context, error: Exception
) -> Any:
    """What the model is told of a tool that raised; or the error itself, where it is to end the run."""
    hooks = spec.hooks("on_tool_error")
    answer = await first_answer(hooks, tool=tool, args=args, tool_context=context, error=error)
    if answer is not None:
        return answer
    if isinstance(error, LlmCallsLimitExceededError) or (ctx.run_config.tool_errors or spec.tool_errors) == "raise":
        raise error
    return {"error": f"{type(error).__name__}: {_words_of(error)}"}


def _words_of(error: Exception) -> str:
    try:
        return str(error)[:2_000]
    except Exception as worse:  # an exception's own __str__ may raise
        return f"its message cannot be read ({type(worse).__name__})"


def _unknown(name: str, tools: Tools) -> str:
    if name.startswith(approvals.RESERVED):
        return f"{name}() was not called: names that start with {approvals.RESERVED!r} are not yours to call"
    near = closest(name, tools)
    hint = f"; did you mean {near}()?" if near else ""
    known = ", ".join(tools) or "none"
    return f"{name}() was not called: there is no such tool{hint}. The tools you can call are: {known}."
