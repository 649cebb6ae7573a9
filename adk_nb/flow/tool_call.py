"""One call of a tool: the gate before it, the note of it, the call itself. The only place that calls tools."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

from adk_nb import clock, types
from adk_nb.errors import InputError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.flow import authentication
from adk_nb.runtime import approvals
from adk_nb.runtime.cancellation import foreign_cancellation
from adk_nb.runtime.context import Context
from adk_nb.runtime.credentials import placeholder as waiting_for_credential
from adk_nb.runtime.durable import DurableCall, durable_call, load_attempts
from adk_nb.runtime.invocation_context import Decision
from adk_nb.runtime.trace import TracedTool, current_trace
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.wire import json_problem

logger = logging.getLogger(__name__)

_TO_BE_CALLED_AGAIN = {"value": None, "asks": True}


async def gated(
    tool: BaseTool,
    args: dict[str, Any],
    approved: dict[str, Any],
    context: Context,
    decided: Decision | None,
    step: DurableCall | None,
) -> tuple[Any, bool]:
    """The one gate before a tool: nothing that needs a person's word passes without it, or as something else.

    Returns:
        The result, and whether it is only a placeholder while a person is asked.
    """
    if decided is None and not context.is_resumed:
        if needed := await _needed(tool, args, context, step):
            return _held(context, needed, in_doubt=step is not None and step.in_doubt)
    elif decided and (refusal := await _refusal(tool, args, approved, context, decided)):
        return in_doubt(refusal, decided.confirmation) if step and step.in_doubt else refusal, False
    if tool.auth_config is not None and not await authentication.authenticate(tool.auth_config, context):
        return tool.response_for_auth_required or waiting_for_credential(), True
    if step and not await step.begin(decided, context):
        if step.in_doubt and (needed := await _needed(tool, args, context, step)):
            return _held(context, needed, in_doubt=True)
        logger.warning("%s() was not called: another run has used its approval", tool.name)
        context.has_nested_interrupt = True  # that one tells the result
        return None, False
    return await run(tool, args, context), False


async def run(tool: BaseTool, args: dict[str, Any], context: Context) -> Any:
    """Call the tool, noted where somebody listens.

    Raises:
        Exception: What the tool raised; its SystemExit, or the cancellation of a task that it awaited, as an error.
    """
    at_work = context.get_invocation_context().shared.running_functions
    at_work[context] = f"{tool.name}()"
    try:
        return await _traced(tool, args, context)
    except SystemExit as raised:
        raise RuntimeError(f"{tool.name}() called sys.exit({raised.code!r}); return a result instead") from raised
    except asyncio.CancelledError as raised:
        if error := foreign_cancellation(raised, f"{tool.name}()"):
            raise error from raised
        raise
    finally:
        at_work.pop(context, None)


def _traced(tool: BaseTool, args: dict[str, Any], context: Context) -> Awaitable[Any]:
    result = tool.run_async(args=args, tool_context=context)
    if (trace := current_trace.get()) is None:
        return result
    ctx = context.get_invocation_context()
    called = TracedTool(
        call_id=context.function_call_id or "",
        tool=tool.name,
        invocation_id=ctx.invocation_id,
        agent=ctx.agent.name,
        branch=ctx.branch,
        path=ctx.node.path if ctx.node else "",
        began=clock.now(),
    )
    return trace.trace_tool(called, result)


async def step_in_a_node(tool: BaseTool, context: Context, call_id: str) -> DurableCall | None:
    """The step that the call of a tool is which a graph has for a node. None: its session has no journal."""
    ctx = context.get_invocation_context()
    if ctx.session.lease is None:
        return None
    call = types.FunctionCall(id=call_id, name=tool.name)
    if ctx.checkpoints or ctx.calls_answered:
        await load_attempts(ctx, [call])
    return durable_call(ctx, call, tool.name, tool.effect)


async def call_in_a_node(tool: BaseTool, args: dict[str, Any], context: Context, decided: Decision | None) -> Any:
    """Call a tool that a graph has for a node, and no model called; where that is in doubt, a person was asked.

    `decided`: what a person has just decided of it.

    Raises:
        InputError: Another run has used what was decided.
    """
    step = await step_in_a_node(tool, context, context.function_call_id or "")
    if step is None:
        return await run(tool, args, context)
    if said := step.recorded_outcome(has_answers=True):
        return said["value"]
    if not await step.begin(decided, context):
        raise InputError(f"{tool.name}() was not called: another run has used its approval; wait for the end of that")
    try:
        result = await run(tool, args, context)
    except Exception:
        await step.finish(_TO_BE_CALLED_AGAIN)
        raise
    did = context.actions
    if did.requested_tool_confirmations or did.requested_auth_configs:
        await step.finish(_TO_BE_CALLED_AGAIN)
    elif not (did.model_dump(exclude_defaults=True) or json_problem(result)):  # else it could not be told again
        await step.finish({"value": result, "asks": False})
    return result


async def _needed(tool: BaseTool, args: dict[str, Any], context: Context, step: DurableCall | None) -> Any:
    own = await tool.confirmation(args, context)
    return step.confirmation_needed(own) if step else own


def _held(context: Context, needed: Any, *, in_doubt: bool) -> tuple[Any, bool]:
    context.actions.requested_tool_confirmations[context.function_call_id or ""] = needed
    return approvals.placeholder(in_doubt=in_doubt), True


def in_doubt(refusal: dict[str, Any], decided: ToolConfirmation) -> dict[str, Any]:
    """What is told of a call that was begun, and is not made again; in the place of a `refusal`, which says that it was
    not made.
    """
    if decided.confirmed:
        changed = "it was not made again, as it, or its tool, was changed after a person was asked"
        return {"error": f"{approvals.IN_DOUBT}; {changed}"}
    said = str(refusal.get("error", "")).removeprefix(approvals.REJECTED)
    return {"error": f"{approvals.IN_DOUBT}, and a person decided not to make it again{said}"}


async def _refusal(
    tool: BaseTool, args: dict[str, Any], approved: dict[str, Any], context: Context, decided: Decision
) -> dict[str, Any] | None:
    """Why a call does not run that a person has decided. None: it runs, and if it is a no, the tool itself obeys it."""
    redefined = decided.tool_fingerprint is not None and decided.tool_fingerprint != fingerprint(tool)
    said = decided.confirmation
    if not said.confirmed:
        # Only a tool that asked while it ran knows what a no means: for all others it means that they do not run.
        obeys = decided.ran and not redefined and not await tool.confirmation(args, context)
        return None if obeys else approvals.rejection(said)
    if redefined:
        return {"error": approvals.REDEFINED}
    return None if approvals.is_same_json(args, approved) else {"error": approvals.CHANGED}
