"""Before the first model call of a turn: take the user's answers, run the calls they resume, authenticate toolsets."""

import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from typing import Any

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import CredentialError, UserError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.flow import authentication
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.tool_call import Tools
from adk_nb.flow.tool_calls import Progress, run_calls
from adk_nb.runtime.approvals import PLACEHOLDERS, ConfirmationNeeded, fate_of, read_answer, request_event
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.context import Context
from adk_nb.runtime.durable import load_attempts
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, INPUTS, TOOLSET, Interrupt, Kind, is_first_use, is_toolset
from adk_nb.runtime.invocation_context import Decision, InvocationContext
from adk_nb.runtime.open_calls import (
    close_lost_call,
    has_results,
    interrupted_call_ids,
    mark_resumed_calls,
    queued_calls,
    unanswered_calls,
)
from adk_nb.runtime.open_sessions import catch_up, is_first_to_continue
from adk_nb.tools import auth
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.fingerprint import fingerprint

logger = logging.getLogger(__name__)


async def take_answers(
    ctx: InvocationContext, kinds: Collection[Kind] = (*APPROVALS, *CREDENTIALS)
) -> list[types.FunctionCall]:
    """Take the answers of these kinds in the user's message, each once, for the agent that asked.

    Decisions go into `ctx.decisions`, credentials into `ctx.credential_by_key`. An answer to an interrupt that is not
    open, or was answered before, is ignored with a warning.

    Returns:
        The calls that run now, or are refused; among them calls that stand for toolsets.
    """
    answers: list[tuple[Kind, str, dict[str, Any]]] = []
    if "approval" in kinds:
        requests = [response for response in ctx.responses if response.name == APPROVAL_REQUEST]
        answers.extend(("approval", request.id or "", request.response or {}) for request in requests)
    if "credential" in kinds:
        # Only in the context: messages hold no secrets.
        answers.extend(("credential", key, answer) for key, answer in ctx.credential_answers.items())
    open_interrupts = history_of(ctx.session).interrupts(kinds=kinds) if answers else ()
    by_id = {(interrupt.kind, key): interrupt for interrupt in open_interrupts for key in interrupt.answer_ids}
    calls: dict[str | None, types.FunctionCall] = {}
    for kind, key, response in answers:
        interrupt = by_id.get((kind, key))
        if interrupt and not is_within(interrupt.branch, ctx.branch):
            continue  # an interrupt inside one of the agent's own calls
        if interrupt is None or interrupt.call.id in calls or not await _is_valid(ctx, interrupt, response):
            logger.warning("the answer to %s %r was ignored: agent %r has none open", kind, key, ctx.agent.name)
            continue
        if kind == "approval":
            call = _approved_call(ctx, interrupt, response)
            calls[call.id] = call
            continue
        # Removed, so that the secret does not stay in the context.
        del ctx.credential_answers[interrupt.id]
        refusal = await authentication.use_answer(ctx, interrupt, response)
        for waiting_call in interrupt.calls:
            if decision := refusal or waiting_call.decided:
                ctx.decisions[waiting_call.call.id or ""] = decision
        calls |= {call.id: call for call in interrupt.waiting_calls}
    return list(calls.values())


async def _is_valid(ctx: InvocationContext, interrupt: Interrupt, response: dict[str, Any]) -> bool:
    if interrupt.agent != ctx.agent.name or (interrupt.is_expired and read_answer(response).confirmed):
        return False
    if await is_first_use(ctx, interrupt.id, interrupt.kind):
        return True
    if interrupt.kind != "approval":
        return False
    # Its first answer was undone: each result that a rewind hides lets one more answer count.
    undone = history_of(ctx.session).undone_result(interrupt.call.id or "")
    return undone is not None and await is_first_use(ctx, f"{interrupt.id}@{undone.id}", interrupt.kind)


def _approved_call(ctx: InvocationContext, interrupt: Interrupt, response: dict[str, Any]) -> types.FunctionCall:
    """Note the decision; returns its call, with the arguments as the approver left them."""
    confirmation, call = read_answer(response), interrupt.call
    # The call may have run before a rewind. Where the session has a journal, that stores the result.
    undone = history_of(ctx.session).undone_result(call.id or "") if ctx.session.lease is None else None
    result: tuple[types.Part, EventActions] | None = None
    if undone:
        responses = undone.get_function_responses()
        undone_response = next((response for response in responses if response.id == call.id), None)
        if undone_response and fate_of(undone_response) != "rejected":
            # The event merged the actions of several calls, which can no longer be told apart.
            actions = undone.actions if len(responses) == 1 else EventActions()
            actions = EventActions(state_delta=actions.state_delta, artifact_delta=actions.artifact_delta)
            result = types.Part(function_response=undone_response), actions
    ctx.decisions[call.id or ""] = Decision(
        confirmation=confirmation,
        ran=interrupt.ran,
        tool_fingerprint=interrupt.tool_fingerprint,
        request_id=interrupt.id,
        earlier_call=str(interrupt.earlier.get("call", "")),
        result=result,
    )
    return call if confirmation.args is None else call.model_copy(update={"args": confirmation.args})


class ResumedCalls:
    """The calls of one agent that the user's message resumes: approved, authenticated, or with an answer inside."""

    ends_turn = True
    """The model is not asked for this message. Set once `events` is exhausted."""

    def __init__(
        self, ctx: InvocationContext, spec: LlmSpec, tools: Tools, authenticated_calls: Sequence[types.FunctionCall]
    ) -> None:
        """`authenticated_calls`: those that `authenticate_toolsets` returned."""
        self._ctx = ctx
        self._spec = spec
        self._tools = tools
        self._authenticated_calls = authenticated_calls

    async def events(self) -> AsyncGenerator[Event, None]:
        """Run the calls.

        Yields:
            The events of agents inside the calls, then the results.

        Raises:
            BaseException: Raised by a tool, with `tool_errors='raise'`.
        """
        ctx, tools = self._ctx, self._tools
        if ctx.checkpoints and (request := self._missing_request()):
            yield request
            return
        nested_calls = mark_resumed_calls(ctx)
        # Their tool was removed or replaced: give them a result, as models need a result for each call.
        lost_calls = [call for call in nested_calls if not ((tool := tools.get(call.name or "")) and tool.resumable)]
        for call in lost_calls:
            for event in close_lost_call(ctx, call):
                yield event
        answered_calls = [*self._authenticated_calls, *await take_answers(ctx)]
        answered_tool_calls = [call for call in answered_calls if not is_toolset(call)]
        calls = [*answered_tool_calls, *(call for call in nested_calls if call not in lost_calls)]
        if not ctx.calls_answered:
            calls += unanswered_calls(ctx)
        if not (calls or lost_calls or answered_calls or has_results(ctx)):
            self.ends_turn = bool(ctx.calls_answered)
            return  # another run has handled the same answer
        # The journal knows which calls ran before the interruption.
        await load_attempts(ctx, calls)
        deferred_tools = {name for name, tool in tools.items() if tool.runs_task or tool.runs_last}
        while calls:
            progress = Progress(ctx, run_calls(ctx, self._spec, calls, tools))
            async with aclosing(progress.events()) as events:
                async for event in events:
                    yield event
            for event in progress.outcome.events:
                yield event
            if progress.outcome.ends_turn():
                return
            # Calls that waited behind a task or a transfer run once that has ended.
            calls = queued_calls(ctx, deferred_tools)
        # The model is asked if all calls have results, and no concurrent run asks it.
        open_ids = interrupted_call_ids(ctx)
        if open_ids and (not await catch_up(ctx) or history_of(ctx.session).calls.without_result(open_ids)):
            return
        # google-adk 2.13: in a resumable app the model is asked once all long-running calls have a result.
        if ctx.is_resumable and self._awaits_results() and (not await catch_up(ctx) or self._awaits_results()):
            return
        # Several runs may answer interrupts of the same step: only the first asks the model.
        self.ends_turn = bool(nested_calls) and not await is_first_to_continue(ctx)

    def _missing_request(self) -> Event | None:
        """The approval request that was still to be sent when the run was interrupted after its results."""
        ctx, history = self._ctx, history_of(self._ctx.session)
        own_events = (
            event for event in history.newest() if event.author == ctx.agent.name and event.branch == ctx.branch
        )
        last_event = next(own_events, None)
        confirmations = last_event.actions.requested_tool_confirmations if last_event else {}
        missing_ids = (
            confirmations.keys() - {interrupt.call.id for interrupt in history.interrupts(kinds=("approval",))}
            if confirmations
            else set[str]()
        )
        if last_event is None or not missing_ids or last_event.invocation_id != ctx.invocation_id:
            return None
        calls = [record.call for key in missing_ids for record in history.calls.all(key)[-1:]]
        executed = {
            response.id: response.response not in PLACEHOLDERS for response in last_event.get_function_responses()
        }
        fingerprints = {
            call.id: fingerprint(self._tools[call.name or ""], confirmations[call.id or ""].args or call.args or {})
            for call in calls
            if call.name in self._tools
        }
        needed = {
            key: ConfirmationNeeded(
                confirmation=confirmations[key], ran=executed.get(key, True), tool_fingerprint=fingerprints.get(key)
            )
            for key in missing_ids
        }
        return request_event(self._spec.name, ctx.branch, calls, needed)

    def _awaits_results(self) -> bool:
        """True if a long-running call of the agent in this run has no result at all, not even a first one."""
        ctx = self._ctx
        open_inputs = history_of(ctx.session).interrupts(kinds=INPUTS, under=ctx.branch, run=ctx.invocation_id)
        return any(
            interrupt.agent == ctx.agent.name and interrupt.branch == ctx.branch and not interrupt.has_progress
            for interrupt in open_inputs
        )


async def authenticate_toolsets(ctx: InvocationContext, spec: LlmSpec) -> tuple[list[Event], list[types.FunctionCall]]:
    """Find the credentials of an agent's toolsets; first uses the answers in the message.

    Returns:
        The credential request, if one is needed: then the agent waits; and the calls from `take_answers`.
    """
    toolsets = [(toolset, config) for toolset in spec.toolsets if (config := toolset.get_auth_config())]
    if not toolsets:
        return [], []
    answered_calls = await take_answers(ctx, CREDENTIALS)
    configs: dict[str, AuthConfig] = {}
    calls: list[types.FunctionCall] = []
    for toolset, config in toolsets:
        key, name = f"{TOOLSET}{config.credential_key}", type(toolset).__name__
        if rejection := ctx.decisions.pop(key, None):
            logger.warning(
                "agent %r continues without the tools of %s: %s", spec.name, name, rejection.confirmation.reason
            )
        elif key not in configs and not await _is_authenticated(toolset, config, Context(ctx)):
            configs[key] = config
            calls.append(types.FunctionCall(id=key, name=name, args={}))
    # Calls that are authenticated now run first; the toolsets ask at the next message.
    if not configs or not all(is_toolset(call) for call in answered_calls):
        return [], answered_calls
    request = Event(author=spec.name, actions=EventActions(requested_auth_configs=configs))
    return await authentication.request_credentials(ctx, spec.name, calls, {}, request), answered_calls


async def _is_authenticated(toolset: BaseToolset, config: AuthConfig, context: Context) -> bool:
    """False if the toolset lacks a credential that the user could supply."""
    credential = None
    try:
        credential = await auth.exchange.find_credential(config, context)
        if credential is None:
            return False
        context.get_invocation_context().credential_by_key[config.credential_key] = credential
        await toolset.get_tools_with_prefix(context)  # cached for this invocation
    except CredentialError as error:
        if not error.refused or credential is None or credential == config.raw_auth_credential:
            return True  # listing the tools later raises the reason
    except UserError:
        raise
    except Exception as error:  # as above
        logger.debug("%s cannot list its tools: %s", type(toolset).__name__, error)
        return True
    else:
        return True
    return await auth.exchange.renew_credential(config, credential, context) is not None
