"""Run the calls of one event side by side and answer them in one event."""

import asyncio
import copy
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adk_nb import parts, types
from adk_nb.cells import cell_location
from adk_nb.errors import ConfigurationError, LlmCallsLimitExceededError, ToolNotFoundError, closest
from adk_nb.events.event import Event, new_event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.events.usage import NESTED_USAGE
from adk_nb.flow import authentication
from adk_nb.flow.answer import Answer, noted, told_again
from adk_nb.flow.result_part import as_part, in_words
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.storable import UNREADABLE
from adk_nb.flow.tool_call import gated
from adk_nb.redaction import hidden
from adk_nb.runtime import approvals
from adk_nb.runtime.context import Context
from adk_nb.runtime.durable import DurableCall, durable_call
from adk_nb.runtime.hooks import Hook, first_result
from adk_nb.runtime.invocation_context import Decision, InvocationContext
from adk_nb.sessions.state import storable_delta
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint

logger = logging.getLogger(__name__)

Tools = Mapping[str, BaseTool]


@dataclass
class Answers:
    """What follows one answer of a model: what its calls came to."""

    events: list[Event]
    """The results, and beside them a request for approval if a call needs it: before the results if all of them wait,
    after them otherwise. Empty if every result comes later, from outside, or if there were no calls."""
    error: BaseException | None = None
    """What a tool raised, while others were done: it ends the run once their results are out."""
    nothing_to_tell: bool = False
    """Every result comes later, from outside; or one does that the model is not to be asked without."""
    goes_on: bool = False
    """Nothing follows, and the model is asked all the same: its service ran code, and it has yet to say what for."""

    def end_the_turn(self) -> bool:
        """True if the model is not to be asked again; to be asked when the events are out.

        Raises:
            BaseException: What a tool raised, where that ends the run.
        """
        if self.error:
            raise self.error
        if self.goes_on:
            return False
        return self.nothing_to_tell or not self.events or any(_is_last(event) for event in self.events)


class _Missing(BaseTool):
    """Stands, before callbacks, for a tool that the agent does not have."""

    async def run_async(self, *, args: dict[str, Any], tool_context: Context) -> Any:
        raise ToolNotFoundError("tool", self.name)


async def answer_calls(
    ctx: InvocationContext, spec: LlmSpec, calls: Sequence[types.FunctionCall], tools: Tools
) -> Answers:
    """Run the calls of one step, those that a person has just decided or a model's; answer in their order.

    Raises:
        Exception: What a tool raised, where tool errors end the run and no other call was done.
    """
    answers, error = await (_alone if len(calls) == 1 else _side_by_side)(ctx, spec, calls, tools)
    results = _together(ctx, spec, answers)
    if results is None or not results.content:
        return Answers([results] if results else [], error, nothing_to_tell=True)
    first: list[Event] = []
    if results.actions.requested_auth_configs:
        decided = {
            one.part.function_response.id: one.decided for one in answers if one.part and one.part.function_response
        }
        first = await authentication.ask(ctx, spec.name, calls, decided, results)
    inside = any(answer.waits_inside or answer.finished for answer in answers)
    if not results.actions.requested_tool_confirmations:
        return Answers([*first, results], error, inside)
    asks = approvals.request_event(spec.name, ctx.branch, calls, _wanted(results.actions, calls, answers, tools))
    if all(answer.waits for answer in answers):
        results.actions.skip_summarization = True
        return Answers([*first, asks, results], error)
    return Answers([*first, results, asks], error, inside)


def _wanted(
    actions: EventActions, calls: Sequence[types.FunctionCall], answers: list[Answer], tools: Tools
) -> dict[str, approvals.ConfirmationNeeded]:
    """What a person is asked, by the id of the call."""
    names = {call.id or "": call.name or "" for call in calls}
    held = {key for answer in answers if answer.waits for key in answer.actions.requested_tool_confirmations}
    return {
        key: approvals.ConfirmationNeeded(
            confirmation=asked, ran=key not in held, tool=_fingerprint(tools, names.get(key, ""))
        )
        for key, asked in actions.requested_tool_confirmations.items()
    }


def _fingerprint(tools: Tools, name: str) -> str | None:
    tool = tools.get(name)
    return fingerprint(tool) if tool else None


async def _alone(
    ctx: InvocationContext, spec: LlmSpec, calls: Sequence[types.FunctionCall], tools: Tools
) -> tuple[list[Answer], BaseException | None]:
    """The answer of the only call; and where its tool caught a cancellation of the run, that."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    answer = await _answer(ctx, spec, calls[0], tools)
    return [answer], asyncio.CancelledError() if task and task.cancelling() > before else None


async def _side_by_side(
    ctx: InvocationContext, spec: LlmSpec, calls: Sequence[types.FunctionCall], tools: Tools
) -> tuple[list[Answer], BaseException | None]:
    """The answers of all calls; or, when one ends the run, of those that were done by then, and its error."""
    tasks = _begun(ctx, spec, calls, tools)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION) if tasks else None
    finally:
        cut_off = [task for task in tasks if task.cancel()]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    failed = [
        one for one, task in zip(ended, tasks, strict=True) if isinstance(one, BaseException) and task not in cut_off
    ]
    return [one for one in ended if isinstance(one, Answer)], failed[0] if failed else None


def _begun(
    ctx: InvocationContext, spec: LlmSpec, calls: Sequence[types.FunctionCall], tools: Tools
) -> list[asyncio.Task[Answer]]:
    """One for each call, all at work at once; but a user talks over one task at a time, and a hand-over is the last."""
    begun: dict[int, asyncio.Task[Answer]] = {}
    given = set[asyncio.Task[Answer]]()
    for at, call in sorted(enumerate(calls), key=lambda one: _comes_last(one[1], tools)):
        tool = tools.get(call.name or "")
        gives = tool is not None and tool.runs_task
        before = set(begun.values()) if _comes_last(call, tools) else given if gives else None
        work = _in_turn(before, ctx, spec, call, tools) if before else _answer(ctx, spec, call, tools)
        begun[at] = asyncio.ensure_future(work)
        given = {begun[at]} if gives else given
    return [begun[at] for at in range(len(calls))]


def _comes_last(call: types.FunctionCall, tools: Tools) -> bool:
    tool = tools.get(call.name or "")
    return tool is not None and tool.runs_last


async def _in_turn(
    before: set[asyncio.Task[Answer]],
    ctx: InvocationContext,
    spec: LlmSpec,
    call: types.FunctionCall,
    tools: Tools,
) -> Answer:
    await asyncio.wait(before)
    if any(one.cancelled() or one.exception() or one.result().waits_inside for one in before):
        return Answer(None, no_actions(), waits_inside=True)
    return await _answer(ctx, spec, call, tools)


def _together(ctx: InvocationContext, spec: LlmSpec, answers: list[Answer]) -> Event | None:
    actions = no_actions()
    for answer in answers:
        actions.merge(answer.actions)
    results = [answer.part for answer in answers if answer.part]
    if not results and not (actions.state_delta or actions.artifact_delta):
        return None
    pausing = {response.id for one in answers if one.pauses and (response := _response_in(one.part)) and response.id}
    results += [answer.words for answer in answers if answer.words]
    about: dict[str, Any] = {}
    for one in answers:
        if one.failed_at:
            about.setdefault("failed_at", {})[one.id] = one.failed_at
        if one.repeated:
            about.setdefault("repeated", {})[one.id] = one.repeated
        if one.shown:
            about.setdefault("shown", {})[one.id] = one.shown
        if one.usage:
            about.setdefault(NESTED_USAGE, {})[one.id] = one.usage
    told: dict[str, Any] = {
        "branch": ctx.branch,
        "content": parts.content("user", results) if results else None,
        "long_running_tool_ids": pausing or None,
        "output": next((one.finished[0] for one in answers if one.finished), None),
        "custom_metadata": about or None,
    }
    return new_event(
        id=next((one.event_id for one in answers if one.event_id), ""),
        author="user" if results and all(one.hands_back for one in answers if one.part) else spec.name,
        invocation_id=ctx.invocation_id,
        actions=actions,
        **{name: value for name, value in told.items() if value is not None},
    )


def _response_in(part: types.Part | None) -> types.FunctionResponse | None:
    return part.function_response if part else None


async def _answer(ctx: InvocationContext, spec: LlmSpec, call: types.FunctionCall, tools: Tools) -> Answer:
    name, given = call.name or "", call.args or {}
    # Taken out: the answer is for this one call, even if a model uses its id again.
    decided = ctx.decisions.pop(call.id or "", None)
    confirmation = decided.confirmation if decided else None
    taken_up = bool(ctx.resumed_calls) and any(call is other for other in ctx.resumed_calls)
    context = Context(ctx, function_call_id=call.id, tool_confirmation=confirmation, is_resumed=taken_up)
    tool, waits = tools.get(name), False
    step = durable_call(ctx, call, name, tool.effect) if tool and ctx.session.lease and not tool.resumable else None
    if known := _known_answer(ctx, call, decided, step):
        return _remembered(ctx, known)
    if UNREADABLE in given:
        result = {"error": f"{name}() was not called: its arguments hold {given[UNREADABLE]}"}
    else:
        # Copies: history keeps what was said, whatever callbacks and tools do to their arguments.
        args: dict[str, Any] = {key: one if type(one) is str else copy.deepcopy(one) for key, one in given.items()}
        if tool:
            result, waits = await _outcome(ctx, spec, tool, args, context, decided, step)
        else:
            result = await _no_such(ctx, spec, name, args, tools, context)
        asked = context.actions.requested_tool_confirmations.get(call.id or "")
        if asked and not approvals.is_same_json(args, given):
            asked.args = args
    if lost := _lost(context) or _misdirected(spec, context):
        result = {"error": f"{name}() ran, but {lost}"}
    goes_on = tool is not None and (tool.is_long_running or context.long_running)
    is_done = (
        tool is not None and tool.reports_progress and not context.long_running
    )  # it has told its news while it ran
    if context.has_nested_interrupt or (goes_on and (result is None if is_done else _is_nothing(result))):
        answer = Answer(None, context.actions, waits_inside=context.has_nested_interrupt)
        return await noted(step, answer)
    part = await as_part(call, result, context, confirmation)
    response = _response_in(part)
    goes_on = goes_on and not (waits or is_done) and response is not None and "error" not in (response.response or {})
    if response:
        _note_timing(response, tool, goes_on=goes_on)
    words = in_words(response) if context.is_spoken and context.actions.skip_summarization else None
    pauses = goes_on and context.long_running
    answer = Answer(part, context.actions, waits, decided, pauses, words, call.id, context.failed_at)
    answer.repeated, answer.shown = context.repeated, context.display
    answer.usage = context.nested_usage
    answer.hands_back = tool is not None and tool.runs_task
    answer.finished = (context.output,) if context.finished else None
    return await noted(step, _remembered(ctx, answer))


def _known_answer(
    ctx: InvocationContext, call: types.FunctionCall, decided: Decision | None, step: DurableCall | None
) -> Answer | None:
    """The answer of a call that was made before, in a run that was cut or undone. None: it is to be made."""
    if decided and decided.result:
        return Answer(*decided.result, id=call.id)
    if step is None or not (said := step.recorded_outcome(has_answers=bool(ctx.calls_answered))):
        return None
    is_stored = any(event.id == step.event_id for event in ctx.session.events)  # and was undone since
    return told_again(said, None if is_stored else step.event_id)


def _remembered(ctx: InvocationContext, answer: Answer) -> Answer:
    """`answer`, known to what closes the run, should that end before an event tells it."""
    if answer.part and not answer.waits:
        ctx.shared.results[answer.id or ""] = (answer.part, answer.actions)
    return answer


def _note_timing(response: types.FunctionResponse, tool: BaseTool | None, *, goes_on: bool) -> None:
    scheduling = tool.response_scheduling if tool else None
    if response.will_continue != (goes_on or None):
        response.will_continue = goes_on or None
    if response.scheduling != scheduling:
        response.scheduling = scheduling


def _is_nothing(result: Any) -> bool:
    """True for what a tool whose outcome comes later returns when there is nothing to tell yet."""
    return result is None or (isinstance(result, str | int | float | dict | list | tuple) and not result)


def _is_last(event: Event) -> bool:
    """True if the agent has nothing to say after it: the turn is over, or another agent's."""
    failed = bool(event.error_code) and not event.parts and not event.partial
    return bool(event.actions.transfer_to_agent) or failed or event.is_final_response()


def _misdirected(spec: LlmSpec, context: Context) -> str | None:
    """Why nobody takes over that a tool handed over to, in words; it is taken back."""
    name = context.actions.transfer_to_agent
    if not name or (name != spec.name and spec.in_tree(name) and not spec.disable_transfer):
        return None
    context.actions.transfer_to_agent = None
    if spec.disable_transfer:
        logger.info(
            "agent %r keeps control: a tool handed over to %r, and its disable_transfer is set", spec.name, name
        )
        return None
    return f"handed over to {name!r}, and no other agent of that name can take over"


def _lost(context: Context) -> str | None:
    """What the tool wrote to the state that cannot be kept, in words; it is taken back."""
    only_json = context.get_invocation_context().keeps_only_json
    try:
        context.settle()
        if delta := context.actions.state_delta:
            storable_delta(delta, only_json=only_json)
        return None
    except (ConfigurationError, RecursionError) as error:
        delta = context.actions.state_delta
        for key, value in list(delta.items()):
            try:
                storable_delta({key: value}, only_json=only_json)
            except (ConfigurationError, RecursionError):
                del delta[key]
        return str(error)


async def _outcome(
    ctx: InvocationContext,
    spec: LlmSpec,
    tool: BaseTool,
    args: dict[str, Any],
    context: Context,
    decided: Decision | None,
    step: DurableCall | None,
) -> tuple[Any, bool]:
    """The result of a call, and whether it is only a placeholder while a person is asked."""
    approved = copy.deepcopy(args) if decided else args
    said: dict[str, Any] = {"tool": tool, "args": args, "tool_context": context}
    before = _hooks(ctx, spec, "before_tool")
    result = other = None
    if before:
        with _told_if_it_raises(ctx, tool, context, "was not called: a callback failed before it"):
            result = await first_result(before, **said)
    if result is None:
        try:
            result, waits = await gated(tool, args, approved, context, decided, step)
        except Exception as error:
            if step and step.error is error:
                raise
            result, waits = await _failed(ctx, spec, tool, args, context, error), False
        if waits or context.has_nested_interrupt:
            return result, waits
    after = _hooks(ctx, spec, "after_tool")
    if after:
        # Not the result itself: the callback may have been there to take something out.
        with _told_if_it_raises(ctx, tool, context, "ran, and a callback failed after it; its result is not known"):
            other = await first_result(after, **said, tool_response=result)
    return (result if other is None else other), False


@contextmanager
def _told_if_it_raises(ctx: InvocationContext, tool: BaseTool, context: Context, what: str) -> Generator[None]:
    """Have what closes the run say so of the call, should anything be raised within."""
    try:
        yield
    except BaseException:
        _close_with(ctx, tool, context, f"{tool.name}() {what}")
        raise


def _close_with(ctx: InvocationContext, tool: BaseTool, context: Context, error: str) -> None:
    """Have what closes the run tell `error` of the call; what its tool has written is not kept."""
    key = context.function_call_id or ""
    ctx.shared.results[key] = (parts.result(key, tool.name, {"error": error}), no_actions())


async def _failed(
    ctx: InvocationContext, spec: LlmSpec, tool: BaseTool, args: dict[str, Any], context: Context, error: Exception
) -> Any:
    """What the model is told of a tool that raised; or the error itself, where it is to end the run."""
    hooks = _hooks(ctx, spec, "on_tool_error")
    _close_with(ctx, tool, context, f"{type(error).__name__}: {_words_of(error)}")
    answer = await first_result(hooks, tool=tool, args=args, tool_context=context, error=error)
    if answer is not None:
        return answer
    context.failed_at = cell_location(error)
    # Not its words: they may hold what no log should.
    logger.info("tool %r raised %s in %s", tool.name, type(error).__name__, context.failed_at or "no cell")
    if isinstance(error, LlmCallsLimitExceededError) or (ctx.run_config.tool_errors or spec.tool_errors) == "raise":
        raise error
    return {"error": f"{type(error).__name__}: {_words_of(error)}"}


def _words_of(error: Exception) -> str:
    try:
        return hidden(str(error)[:10_000])[:2_000]
    except Exception as worse:  # an exception's own __str__ may raise
        return f"its message cannot be read ({type(worse).__name__})"


async def _no_such(
    ctx: InvocationContext, spec: LlmSpec, name: str, args: dict[str, Any], tools: Tools, context: Context
) -> Any:
    if name.startswith(approvals.RESERVED):
        return {"error": f"{name:.100}() was not called: names that start with {approvals.RESERVED!r} are not yours"}
    said: dict[str, Any] = {
        "tool": _Missing(name=name, description="there is no such tool"),
        "args": args,
        "tool_context": context,
    }
    error = ToolNotFoundError("tool", name, tools)
    answer = await first_result(_hooks(ctx, spec, "on_tool_error"), **said, error=error)
    if answer is None:
        answer = await first_result(_hooks(ctx, spec, "before_tool"), **said)
    return {"error": _unknown(name, tools)} if answer is None else answer


def _unknown(name: str, tools: Tools) -> str:
    near = closest(name, tools)
    hint = f"; did you mean {near}()?" if near else "."
    known = ", ".join(tools) or "none"
    return f"{name:.100}() was not called: there is no such tool{hint} The tools you can call are: {known}."


def _hooks(ctx: InvocationContext, spec: LlmSpec, name: str) -> list[Hook]:
    return [*ctx.plugin_manager.hooks(name), *spec.hooks(name)]
