"""Take the user's answers to approvals and credential requests: each counts once, for the agent that asked."""

import logging
from collections.abc import Collection, Iterator
from typing import Any

from adk_nb import types
from adk_nb.events.event_actions import EventActions
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.flow import authentication
from adk_nb.runtime.approvals import is_rejection, read_answer
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, Interrupt, Kind, is_first_use
from adk_nb.runtime.invocation_context import Decision, InvocationContext

logger = logging.getLogger(__name__)


async def take(
    ctx: InvocationContext, kinds: Collection[Kind] = (*APPROVALS, *CREDENTIALS)
) -> list[types.FunctionCall]:
    """Take the answers of these kinds in the user's message; return the calls that run now, or are refused.

    Decisions go into `ctx.decisions`, credentials into `ctx.credential_by_key`. An answer to what is
    not open, or was answered before, is left out with a warning: nothing runs for it. Calls that stand for toolsets are
    among those that are returned.
    """
    answers = [answer for answer in _answers(ctx) if answer[0] in kinds]
    open_now = history_of(ctx.session).interrupts(kinds=kinds) if answers else ()
    by_id = {(interrupt.kind, key): interrupt for interrupt in open_now for key in interrupt.answer_ids}
    taken: dict[str | None, types.FunctionCall] = {}
    for kind, key, response in answers:
        interrupt = by_id.get((kind, key))
        if interrupt and not is_within(interrupt.branch, ctx.branch):
            continue  # it was asked inside one of the agent's own calls
        if interrupt is None or interrupt.call.id in taken or not await _counts(ctx, interrupt, response):
            logger.warning("the answer to %s %r was ignored: agent %r has none open", kind, key, ctx.agent.name)
            continue
        use = _use_approval if kind == "approval" else _use_credential
        taken |= {call.id: call for call in await use(ctx, interrupt, response)}
    return list(taken.values())


def _answers(ctx: InvocationContext) -> Iterator[tuple[Kind, str, dict[str, Any]]]:
    """Kind, id and response of each; a credential's are in the context alone, since the message has no secrets."""
    for response in ctx.responses:
        if response.name == APPROVAL_REQUEST:
            yield "approval", response.id or "", response.response or {}
    for key, response in ctx.credential_answers.items():
        yield "credential", key, response


async def _counts(ctx: InvocationContext, interrupt: Interrupt, response: dict[str, Any]) -> bool:
    if interrupt.agent != ctx.agent.name or (interrupt.is_expired and read_answer(response).confirmed):
        return False
    if await is_first_use(ctx, interrupt.id, interrupt.kind):
        return True
    if interrupt.kind != "approval":
        return False
    # Its first answer was undone: each result that a rewind hides lets one more answer count.
    undone = history_of(ctx.session).undone_result(interrupt.call.id or "")
    return undone is not None and await is_first_use(ctx, f"{interrupt.id}@{undone.id}", interrupt.kind)


async def _use_approval(
    ctx: InvocationContext, interrupt: Interrupt, response: dict[str, Any]
) -> list[types.FunctionCall]:
    confirmation, call = read_answer(response), interrupt.call
    ctx.decisions[call.id or ""] = Decision(
        confirmation=confirmation,
        ran=interrupt.ran,
        tool_fingerprint=interrupt.tool_fingerprint,
        request_id=interrupt.id,
        result=_undone_result(ctx, call.id or ""),
    )
    return [call if confirmation.args is None else call.model_copy(update={"args": confirmation.args})]


def _undone_result(ctx: InvocationContext, call_id: str) -> tuple[types.Part, EventActions] | None:
    """The result of a call that ran before a rewind, without a journal, which knows it itself."""
    undone = history_of(ctx.session).undone_result(call_id) if ctx.session.lease is None else None
    responses = undone.get_function_responses() if undone else []
    response = next((response for response in responses if response.id == call_id), None)
    if undone is None or response is None or is_rejection(response):
        return None
    wrote = undone.actions if len(responses) == 1 else EventActions()
    actions = EventActions(state_delta=wrote.state_delta, artifact_delta=wrote.artifact_delta)
    return types.Part(function_response=response), actions


async def _use_credential(
    ctx: InvocationContext, interrupt: Interrupt, response: dict[str, Any]
) -> list[types.FunctionCall]:
    del ctx.credential_answers[interrupt.id]
    refusal = await authentication.use_answer(ctx, interrupt, response)
    for waiting in interrupt.calls:
        if decided := refusal or waiting.decided:
            ctx.decisions[waiting.call.id or ""] = decided
    return interrupt.waiting_calls
