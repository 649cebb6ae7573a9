"""Run one tool call: the gate, the journal entry, the call itself. The only place that calls tools."""

import asyncio
import copy
import logging
from collections.abc import Awaitable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from adk_nb import clock, parts, types
from adk_nb.concurrency.threads import running_loop
from adk_nb.errors import ConfigurationError, InputError, LlmCallsLimitExceededError, ToolNotFoundError, closest
from adk_nb.events.event_actions import no_actions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.flow import authentication, repetition
from adk_nb.flow.call_result import CallResult, result_from_record, result_part, result_text_part, save_result
from adk_nb.flow.spec import LlmSpec, hooks_of
from adk_nb.locations import cell_location
from adk_nb.models.llm_response import UNREADABLE
from adk_nb.redaction import hidden
from adk_nb.runtime import approvals, observer
from adk_nb.runtime.cancellation import foreign_cancellation
from adk_nb.runtime.context import Context, call_state, settle_state
from adk_nb.runtime.credentials import placeholder as waiting_for_credential
from adk_nb.runtime.durable import DurableCall, durable_call, load_attempts
from adk_nb.runtime.hooks import first_result
from adk_nb.runtime.invocation_context import Decision, InvocationContext
from adk_nb.runtime.trace import TracedTool, current_trace
from adk_nb.sessions.state import storable_delta
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.wire import json_problem

logger = logging.getLogger(__name__)

Tools = Mapping[str, BaseTool]
_UNFINISHED = {"value": None, "asks": True}  # outcome of a node's call that runs again on resumption


async def call_through_gate(
    tool: BaseTool,
    args: dict[str, Any],
    approved: dict[str, Any],
    context: Context,
    decision: Decision | None,
    durable: DurableCall | None,
) -> tuple[Any, bool]:
    """Call a tool if it needs no approval or credential, or has them for exactly these arguments.

    Returns:
        The result, and True if it is only a placeholder for the time until the user answers.
    """
    ctx, state = context.get_invocation_context(), call_state(context)
    in_doubt = durable is not None and durable.in_doubt
    # A resumed call has been through this gate before its interrupt.
    if not state.is_resumed:
        if decision and (refusal := await _refusal(tool, args, approved, context, decision)):
            return in_doubt_error(refusal, decision.confirmation) if in_doubt else refusal, False
        if not decision and (repeated := repetition.find(ctx, tool, context.function_call_id, args)):
            state.same_call = repeated.record
            if repeated.refusal:
                return repeated.refusal, False
            confirmation = await _confirmation_needed(tool, args, context, durable)
            return _hold(context, repeated.confirmation(tool.name, confirmation), in_doubt=in_doubt)
    # Before the first wait: of two equal calls at once only one passes.
    state.ran_with = repetition.start(ctx, tool, context.function_call_id, args)
    if not state.is_resumed:
        if decision is None and (confirmation := await _confirmation_needed(tool, args, context, durable)):
            confirmation = repetition.beside_waiting(ctx, tool, context.function_call_id, confirmation)
            return _hold(context, confirmation, in_doubt=in_doubt)
        if decision and decision.earlier_call:
            state.same_call = {"call": decision.earlier_call}
    # After the approval: a rejected call needs no credential.
    if tool.auth_config is not None and not await authentication.authenticate(tool.auth_config, context):
        return tool.response_for_auth_required or waiting_for_credential(), True
    # Last: from here on the call counts as started, and its approval as used.
    if durable and not await durable.begin(decision, context):
        # Another run has started the call and ended without a result.
        if durable.in_doubt and (confirmation := await _confirmation_needed(tool, args, context, durable)):
            return _hold(context, confirmation, in_doubt=True)
        logger.warning("%s() was not called: another run has used its approval", tool.name)
        state.has_nested_interrupt = True  # the other run stores the result
        return None, False
    state.is_called = True
    return await run(tool, args, context), False


async def run(tool: BaseTool, args: dict[str, Any], context: Context) -> Any:
    """Call the tool, observed, and traced if a trace is active.

    Raises:
        Exception: Raised by the tool. SystemExit, GeneratorExit, a group of exceptions without Ctrl-C, and the
            cancellation of a task that it awaited, become errors.
    """
    task = asyncio.current_task()
    earlier_cancels = task.cancelling() if task else 0
    running = context.get_invocation_context().shared.running_functions
    running[context] = f"{tool.name}()"
    try:
        return await _call_traced(tool, args, context)
    # SystemExit would end the kernel or the server, not only the tool.
    except SystemExit as raised:
        raise RuntimeError(f"{tool.name}() called sys.exit({raised.code!r}); return a result instead") from raised
    except asyncio.CancelledError as raised:
        if error := foreign_cancellation(raised, f"{tool.name}()"):
            raise error from raised
        raise
    except GeneratorExit as raised:
        if running_loop() is None or asyncio.current_task() is not task:
            raise  # this coroutine itself is being closed
        raise RuntimeError(f"{tool.name}() raised GeneratorExit; return a result instead") from raised
    except BaseExceptionGroup as raised:
        # On Python 3.11 and 3.12 an asyncio.TaskGroup that fails leaves its task cancelled, here that of the run.
        while task and task.cancelling() > earlier_cancels and not context.is_aborted:
            task.uncancel()
        if isinstance(raised, Exception) or raised.subgroup((KeyboardInterrupt, asyncio.CancelledError)):
            raise
        reasons = "; ".join(f"{type(error).__name__}: {error}" for error in raised.exceptions)
        raise RuntimeError(f"{tool.name}() raised a group of exceptions: {reasons}") from raised
    finally:
        running.pop(context, None)


def _call_traced(tool: BaseTool, args: dict[str, Any], context: Context) -> Awaitable[Any]:
    result: Awaitable[Any] = tool.run_async(args=args, tool_context=context)
    if observer.registered:
        result = observer.registered.tool_call(tool, args, context, result)
    if (trace := current_trace.get()) is None:
        return result
    ctx = context.get_invocation_context()
    traced_call = TracedTool(
        call_id=context.function_call_id or "",
        tool=tool.name,
        invocation_id=ctx.invocation_id,
        agent=ctx.agent.name,
        branch=ctx.branch,
        path=ctx.node.path if ctx.node else "",
        began=clock.now(),
    )
    return trace.trace_tool(traced_call, result)


async def durable_node_call(tool: BaseTool, context: Context, call_id: str) -> DurableCall | None:
    """The journal entry for the call of a graph's tool node. None: the session has no journal."""
    ctx = context.get_invocation_context()
    if ctx.session.lease is None:
        return None
    call = types.FunctionCall(id=call_id, name=tool.name)
    if ctx.checkpoints or ctx.calls_answered:
        await load_attempts(ctx, [call])
    return durable_call(ctx, call, tool.name, tool.effect)


async def call_node_tool(tool: BaseTool, args: dict[str, Any], context: Context, decision: Decision | None) -> Any:
    """Call the tool of a graph's tool node. A call in doubt needs a `decision`, which the node has requested.

    `decision`: the approver's decision in this message.

    Raises:
        InputError: Another run has used the decision.
    """
    durable = await durable_node_call(tool, context, context.function_call_id or "")
    if durable is None:
        return await run(tool, args, context)
    if record := durable.recorded_outcome(has_answers=True):
        return record["value"]
    if not await durable.begin(decision, context):
        raise InputError(f"{tool.name}() was not called: another run has used its approval; wait until that run ends")
    try:
        result = await run(tool, args, context)
    except Exception:
        await durable.finish(_UNFINISHED)
        raise
    actions = context.actions
    if actions.requested_tool_confirmations or actions.requested_auth_configs:
        await durable.finish(_UNFINISHED)
    elif not (actions.model_dump(exclude_defaults=True) or json_problem(result)):  # else it could not be restored
        await durable.finish({"value": result, "asks": False})
    return result


async def _confirmation_needed(
    tool: BaseTool, args: dict[str, Any], context: Context, durable: DurableCall | None
) -> Any:
    confirmation = await tool.confirmation(args, context)
    return durable.confirmation_needed(confirmation) if durable else confirmation


def _hold(context: Context, confirmation: Any, *, in_doubt: bool) -> tuple[Any, bool]:
    context.actions.requested_tool_confirmations[context.function_call_id or ""] = confirmation
    return approvals.placeholder(in_doubt=in_doubt), True


def in_doubt_error(refusal: dict[str, Any], confirmation: ToolConfirmation) -> dict[str, Any]:
    """The result of a call in doubt that is not repeated, instead of a `refusal`, which says that it never ran."""
    if confirmation.confirmed:
        reason = "it was not repeated: its arguments or its tool changed after the approval request"
        return {"error": f"{approvals.IN_DOUBT}; {reason}"}
    reason = str(refusal.get("error", "")).removeprefix(approvals.REJECTED)
    return {"error": f"{approvals.IN_DOUBT}, {approvals.NOT_AGAIN}{reason}"}


async def _refusal(
    tool: BaseTool, args: dict[str, Any], approved: dict[str, Any], context: Context, decision: Decision
) -> dict[str, Any] | None:
    """The result of a call that may not run after its decision. None: it runs; a tool may handle its own rejection."""
    is_redefined = decision.tool_fingerprint is not None and decision.tool_fingerprint != fingerprint(tool, args)
    confirmation = decision.confirmation
    if not confirmation.confirmed:
        # Only a tool that requested its confirmation while it ran handles a rejection itself.
        tool_decides = decision.ran and not is_redefined and not await tool.confirmation(args, context)
        return None if tool_decides else approvals.rejection(confirmation)
    if is_redefined:
        return {"error": approvals.REDEFINED}
    return None if approvals.is_same_json(args, approved) else {"error": approvals.CHANGED}


class _MissingTool(BaseTool):
    """Passed to callbacks in place of a tool that the agent does not have."""

    async def run_async(self, *, args: dict[str, Any], tool_context: Context) -> Any:
        raise ToolNotFoundError("tool", self.name)


async def run_call(ctx: InvocationContext, spec: LlmSpec, call: types.FunctionCall, tools: Tools) -> CallResult:
    """Run one call with its callbacks, or restore its stored result. Unknown tools and wrong arguments become errors.

    Raises:
        Exception: Raised by the tool, with `tool_errors='raise'`, or by a callback.
    """
    name, call_args = call.name or "", call.args or {}
    # Popped: a decision is for one call, even if the model reuses the id.
    decision = ctx.decisions.pop(call.id or "", None)
    confirmation = decision.confirmation if decision else None
    # By identity, see `InvocationContext.resumed_calls`.
    is_resumed = bool(ctx.resumed_calls) and any(call is resumed_call for resumed_call in ctx.resumed_calls)
    context = Context(ctx, function_call_id=call.id, tool_confirmation=confirmation)
    state = call_state(context)
    state.is_resumed = is_resumed
    tool, is_placeholder = tools.get(name), False
    durable = durable_call(ctx, call, name, tool.effect) if tool and ctx.session.lease and not tool.resumable else None
    if stored := _stored_result(ctx, call, decision, durable):
        return _note_for_closing(ctx, stored)
    if UNREADABLE in call_args:
        result = {"error": f"{name}() was not called: {call_args[UNREADABLE]}"}
    else:
        # Copies: callbacks and tools may edit their arguments, and the history must not change.
        args: dict[str, Any] = {
            key: value if type(value) is str else copy.deepcopy(value) for key, value in call_args.items()
        }
        if tool:
            result, is_placeholder = await _call_with_hooks(ctx, spec, tool, args, context, decision, durable)
        else:
            result = await _handle_missing_tool(ctx, spec, name, args, tools, context)
        confirmation_request = context.actions.requested_tool_confirmations.get(call.id or "")
        # A callback changed the arguments: the approver is asked about those that will run.
        if confirmation_request and not approvals.is_same_json(args, call_args):
            confirmation_request.args = args
    if problem := _drop_impossible_actions(spec, context):
        result = {"error": f"{name}() ran, but {problem}"}
    is_async = tool is not None and (tool.is_long_running or state.is_long_running)
    # Interim results were events while the tool ran: this result is the final one.
    is_done = tool is not None and tool.reports_progress and not state.is_long_running
    # No response now: it follows with the answer, or with the result from outside.
    if state.has_nested_interrupt or (is_async and (result is None if is_done else _is_empty(result))):
        call_result = CallResult(None, context.actions, has_nested_interrupt=state.has_nested_interrupt)
        return await save_result(durable, call_result)
    part = await result_part(call, result, context, confirmation)
    response = part.function_response
    is_async = (
        is_async
        and not (is_placeholder or is_done)
        and response is not None
        and "error" not in (response.response or {})
    )
    if tool and response and state.is_called and not is_async:
        state.same_call = repetition.note_same_result(ctx, tool, call.id, response) or state.same_call
    if response:
        # A call that waits for an approval or a credential has its result later, as long-running ones have.
        will_continue = is_async or is_placeholder or None
        scheduling = tool.response_scheduling if tool else None
        if response.will_continue != will_continue:
            response.will_continue = will_continue
        if response.scheduling != scheduling:
            response.scheduling = scheduling
    # A callback answered before the tool was called.
    is_not_run = not (state.is_called or state.same_call or decision or is_placeholder)
    call_result = CallResult.of(
        context,
        part,
        is_placeholder=is_placeholder,
        decision=decision,
        is_interim=is_async and state.is_long_running,
        text_part=result_text_part(response) if state.is_spoken and context.actions.skip_summarization else None,
        is_not_run=is_not_run and tool is not None and tool.asks_to_repeat,
        is_task_result=tool is not None and tool.runs_task,
    )
    return await save_result(durable, _note_for_closing(ctx, call_result))


def _stored_result(
    ctx: InvocationContext, call: types.FunctionCall, decision: Decision | None, durable: DurableCall | None
) -> CallResult | None:
    """The stored result of a call that ran in an interrupted or undone run. None: it has to run."""
    if decision and decision.result:
        return CallResult(*decision.result, call_id=call.id)
    if durable is None or not (record := durable.recorded_outcome(has_answers=bool(ctx.calls_answered))):
        return None
    is_stored = any(event.id == durable.event_id for event in ctx.session.events)  # and undone since
    return result_from_record(record, None if is_stored else durable.event_id)


def _note_for_closing(ctx: InvocationContext, result: CallResult) -> CallResult:
    """Return `result`, and note it for closing the run, which may end before the event of the result is stored."""
    if result.part and not result.is_placeholder:
        ctx.shared.results[result.call_id or ""] = (result.part, result.actions)
    return result


def _is_empty(result: Any) -> bool:
    """True if a long-running tool returned no interim result."""
    return result is None or (isinstance(result, str | int | float | dict | list | tuple) and not result)


def _drop_impossible_actions(spec: LlmSpec, context: Context) -> str | None:
    """Drop state changes that cannot be stored, and a transfer that cannot happen. Returns the reason.

    None for a transfer with `disable_transfer`, which only logs.
    """
    only_json = context.get_invocation_context().keeps_only_json
    try:
        settle_state(context)
        if delta := context.actions.state_delta:
            storable_delta(delta, only_json=only_json)
    except (ConfigurationError, RecursionError) as error:
        delta = context.actions.state_delta
        for key, value in list(delta.items()):
            try:
                storable_delta({key: value}, only_json=only_json)
            except (ConfigurationError, RecursionError):
                del delta[key]
        return str(error)
    name = context.actions.transfer_to_agent
    if not name or (name != spec.name and spec.in_tree(name) and not spec.disable_transfer):
        return None
    context.actions.transfer_to_agent = None
    if spec.disable_transfer:
        logger.info(
            "agent %r keeps control: a tool handed over to %r, and its disable_transfer is set", spec.name, name
        )
        return None
    return f"cannot transfer to {name!r}: no other agent of that name accepts transfers"


async def _call_with_hooks(
    ctx: InvocationContext,
    spec: LlmSpec,
    tool: BaseTool,
    args: dict[str, Any],
    context: Context,
    decision: Decision | None,
    durable: DurableCall | None,
) -> tuple[Any, bool]:
    """Call the tool between its callbacks. Returns as `call_through_gate`."""
    # Before the callbacks, which may change `args`: an approval is for these values only.
    approved_args = copy.deepcopy(args) if decision else args
    arguments: dict[str, Any] = {"tool": tool, "args": args, "tool_context": context}
    result = replacement = None
    if before_hooks := hooks_of(ctx, spec, "before_tool"):
        with _closing_on_error(ctx, tool, context, "was not called: a callback failed before it"):
            result = await first_result(before_hooks, **arguments)
    if result is None:
        try:
            result, is_placeholder = await call_through_gate(tool, args, approved_args, context, decision, durable)
        except Exception as error:
            # The journal failed, not the tool: the model must not take the error for a result.
            if durable and durable.error is error:
                raise
            problem = f"{type(error).__name__}: {_error_text(error)}"
            _set_closing_error(ctx, tool, context, problem)
            is_placeholder = False
            result = await first_result(hooks_of(ctx, spec, "on_tool_error"), **arguments, error=error)
            if result is None:
                call_state(context).failed_at = failed_at = cell_location(error)
                # Without the message: it may hold secrets.
                logger.info("tool %r raised %s in %s", tool.name, type(error).__name__, failed_at or "no cell")
                is_limit = isinstance(error, LlmCallsLimitExceededError)
                if is_limit or (ctx.run_config.tool_errors or spec.tool_errors) == "raise":
                    raise
                result = {"error": problem}
        finally:
            if not call_state(context).is_called:
                repetition.withdraw(ctx, context.function_call_id)
        if is_placeholder or call_state(context).has_nested_interrupt:
            return result, is_placeholder
    if after_hooks := hooks_of(ctx, spec, "after_tool"):
        # Without the result: the callback may exist to remove something from it.
        with _closing_on_error(ctx, tool, context, "ran, and a callback failed after it; its result is not known"):
            replacement = await first_result(after_hooks, **arguments, tool_response=result)
    return (result if replacement is None else replacement), False


@contextmanager
def _closing_on_error(ctx: InvocationContext, tool: BaseTool, context: Context, problem: str) -> Generator[None]:
    """If the body raises, close the call with this problem as its error."""
    try:
        yield
    except BaseException:  # also a cancellation between the call and its callbacks
        _set_closing_error(ctx, tool, context, f"{tool.name}() {problem}")
        raise


def _set_closing_error(ctx: InvocationContext, tool: BaseTool, context: Context, error: str) -> None:
    """Set the error that closes the call if the run ends now; its state changes are dropped."""
    key = context.function_call_id or ""
    ctx.shared.results[key] = (parts.result(key, tool.name, {"error": error}), no_actions())


def _error_text(error: Exception) -> str:
    try:
        # The first cut bounds the search. The second comes after it: a secret that is cut in two is not found.
        return hidden(str(error)[:10_000])[:2_000]
    except Exception as str_error:  # an exception's own __str__ may raise
        return f"its message cannot be read ({type(str_error).__name__})"


async def _handle_missing_tool(
    ctx: InvocationContext, spec: LlmSpec, name: str, args: dict[str, Any], tools: Tools, context: Context
) -> Any:
    if name.startswith(approvals.RESERVED):
        return {"error": f"{name:.100}() was not called: names that start with {approvals.RESERVED!r} are not yours"}
    arguments: dict[str, Any] = {
        "tool": _MissingTool(name=name, description="there is no such tool"),
        "args": args,
        "tool_context": context,
    }
    error = ToolNotFoundError("tool", name, tools)
    answer = await first_result(hooks_of(ctx, spec, "on_tool_error"), **arguments, error=error)
    if answer is None:
        answer = await first_result(hooks_of(ctx, spec, "before_tool"), **arguments)
    if answer is not None:
        return answer
    suggestion = closest(name, tools)
    hint = f"; did you mean {suggestion}()?" if suggestion else "."
    names = ", ".join(tools) or "none"
    return {"error": f"{name:.100}() was not called: there is no such tool{hint} The tools you can call are: {names}."}
