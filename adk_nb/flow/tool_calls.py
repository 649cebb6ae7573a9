"""Run the calls of one event concurrently, yield the events of their tools, merge their results into one event."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from adk_nb import parts, sync, types
from adk_nb.events.event import Event, new_event
from adk_nb.events.event_actions import ESCALATED, EventActions, no_actions
from adk_nb.events.usage import NESTED_USAGE
from adk_nb.flow import authentication, repetition
from adk_nb.flow.call_result import CallResult
from adk_nb.flow.spec import LlmSpec, agent_event
from adk_nb.flow.tool_call import Tools, run_call
from adk_nb.runtime import approvals
from adk_nb.runtime.calls import NOT_RUN, RAN_WITH, SAME_CALL
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.fingerprint import fingerprint

_Task = asyncio.Task[CallResult]


@dataclass
class StepResult:
    """The events that follow one model response: the results of its calls."""

    events: list[Event]
    """The results, and an approval request if a call needs one: before the results if all calls wait for approval,
    else after them. Empty if every result comes later, from outside, or if there were no calls."""
    error: BaseException | None = None
    """An error that ends the run after the events, which hold the results of the other calls."""
    is_pending: bool = False
    """The model waits for a result: all come later, from outside, or an interrupt is open inside a call."""
    is_stopped: bool = False
    """A tool has escalated: the agent ends here."""
    ask_again: bool = False
    """Ask the model again although there are no events: its service ran code, and the answer is still to come."""

    def ends_turn(self) -> bool:
        """True if the model is not asked again. To be called after the events were yielded.

        Raises:
            BaseException: `error`, if there is one.
        """
        if self.error:
            raise self.error
        if self.ask_again:
            return False
        if self.is_pending or self.is_stopped or not self.events:
            return True
        return any(
            event.actions.transfer_to_agent
            or (event.error_code and not event.parts and not event.partial)
            or event.is_final_response()
            for event in self.events
        )


async def run_calls(
    ctx: InvocationContext, spec: LlmSpec, calls: Sequence[types.FunctionCall], tools: Tools
) -> StepResult:
    """Run the calls of a model response, or approved ones; results are in the order of the calls.

    Raises:
        Exception: Raised by the only call, with `tool_errors='raise'`.
    """
    error: BaseException | None = None
    if len(calls) == 1:
        task = asyncio.current_task()
        # A tool may swallow the CancelledError of its run; the task still counts the request.
        earlier_cancels = task.cancelling() if task else 0
        results = [await run_call(ctx, spec, calls[0], tools)]
        if task and task.cancelling() > earlier_cancels:
            error = asyncio.CancelledError()
    else:
        results, error = await _run_concurrently(ctx, spec, calls, tools)
    event = _merge_results(ctx, spec, results)
    if event is None or not event.content:
        return StepResult([event] if event else [], error, is_pending=True)
    requests: list[Event] = []
    if event.actions.requested_auth_configs:
        decisions = {
            result.part.function_response.id: result.decision
            for result in results
            if result.part and result.part.function_response
        }
        requests = await authentication.request_credentials(ctx, spec.name, calls, decisions, event)
    is_pending = any(result.has_nested_interrupt or result.task_output for result in results)
    if not event.actions.requested_tool_confirmations:
        marker = [] if requests or is_pending or error else _escalation_marker(ctx, spec, event)
        return StepResult([*requests, event, *marker], error, is_pending, is_stopped=bool(marker))
    calls_by_id = {call.id or "": call for call in calls}
    held_ids = {
        key for result in results if result.is_placeholder for key in result.actions.requested_tool_confirmations
    }
    needed: dict[str, approvals.ConfirmationNeeded] = {}
    for key, confirmation in event.actions.requested_tool_confirmations.items():
        call = calls_by_id.get(key)
        tool = tools.get(call.name or "") if call else None
        # A callback may have changed the arguments.
        args = ((call and call.args) or {}) if confirmation.args is None else confirmation.args
        needed[key] = approvals.ConfirmationNeeded(
            confirmation=confirmation,
            ran=key not in held_ids,
            tool_fingerprint=fingerprint(tool, args) if tool else None,
        )
    approval = approvals.request_event(spec.name, ctx.branch, calls, needed)
    if all(result.is_placeholder for result in results):
        # There is no result for the model: the turn ends until the approval.
        event.actions.skip_summarization = True
        return StepResult([*requests, approval, event], error)
    return StepResult([*requests, event, approval], error, is_pending)


def _escalation_marker(ctx: InvocationContext, spec: LlmSpec, event: Event) -> list[Event]:
    """The event that ends an agent whose tool has escalated. None in a loop, where the agent comes to its own end.

    `event`: with the results of the step. google-adk 2.13 asks the model again.
    """
    actions, agent = event.actions, ctx.agent.parent_agent
    if not actions.escalate or actions.skip_summarization or actions.transfer_to_agent:
        return []
    while agent is not None:
        if agent.repeats:
            return []
        agent = agent.parent_agent
    return [agent_event(ctx, spec, actions=EventActions(escalate=True), custom_metadata={ESCALATED: True})]


async def _run_concurrently(
    ctx: InvocationContext, spec: LlmSpec, calls: Sequence[types.FunctionCall], tools: Tools
) -> tuple[list[CallResult], BaseException | None]:
    """Run all calls; but task tools run one at a time, and tools with `runs_last` last.

    If one raises, returns the results so far and its error.
    """

    async def run_after(call: types.FunctionCall, earlier: set[_Task], equal: set[_Task]) -> CallResult:
        """Run a call behind `earlier` ones, and behind `equal` ones, whose results decide whether it is made."""
        await asyncio.wait(earlier | equal)
        # An earlier call has not ended: this call stays open, and `queued_calls` runs it later.
        if any(task.cancelled() or task.exception() or task.result().has_nested_interrupt for task in earlier):
            return CallResult(None, no_actions(), has_nested_interrupt=True)
        return await run_call(ctx, spec, call, tools)

    # Stable: those that run last are behind the others.
    called = [(index, call, tools.get(call.name or "")) for index, call in enumerate(calls)]
    called.sort(key=lambda item: item[2] is not None and item[2].runs_last)
    tasks: dict[int, _Task] = {}
    task_in_progress = set[_Task]()
    for index, call, tool in called:
        # A task tool talks with the user, who can have only one such conversation at a time.
        is_task = tool is not None and tool.runs_task
        earlier = task_in_progress if is_task else set[_Task]()
        if tool is not None and tool.runs_last:
            earlier = set(tasks.values())
        equal = {tasks[number] for number in repetition.equal_siblings(calls, index, tool) if number in tasks}
        is_first = not (earlier or equal)
        work = run_call(ctx, spec, call, tools) if is_first else run_after(call, earlier, equal)
        tasks[index] = asyncio.ensure_future(work)
        task_in_progress = {tasks[index]} if is_task else task_in_progress
    ordered = [tasks[index] for index in range(len(calls))]
    try:
        await asyncio.wait(ordered, return_when=asyncio.FIRST_EXCEPTION) if ordered else None
    finally:
        # cancel() is False for a task that is done: its result counts.
        cancelled = [task for task in ordered if task.cancel(sync.UNLESS_DONE)]
        outcomes = await asyncio.gather(*ordered, return_exceptions=True)
    failed = [
        outcome
        for outcome, task in zip(outcomes, ordered, strict=True)
        if isinstance(outcome, BaseException) and task not in cancelled
    ]
    return [outcome for outcome in outcomes if isinstance(outcome, CallResult)], failed[0] if failed else None


def _merge_results(ctx: InvocationContext, spec: LlmSpec, results: list[CallResult]) -> Event | None:
    actions = no_actions()
    for result in results:
        actions.merge(result.actions)
    response_parts = [result.part for result in results if result.part]
    if not response_parts and not (actions.state_delta or actions.artifact_delta):
        return None
    interim_ids = {
        response.id
        for result in results
        if result.is_interim and result.part and (response := result.part.function_response) and response.id
    }
    response_parts += [result.text_part for result in results if result.text_part]
    metadata: dict[str, Any] = {}
    for result in results:
        if result.failed_at:
            metadata.setdefault("failed_at", {})[result.call_id] = result.failed_at
        if result.repeated:
            metadata.setdefault("repeated", {})[result.call_id] = result.repeated
        if result.same_call and not result.is_placeholder:
            metadata.setdefault(SAME_CALL, {})[result.call_id] = result.same_call
        if result.ran_with and not result.is_placeholder:
            metadata.setdefault(RAN_WITH, {})[result.call_id] = result.ran_with
        if result.is_not_run:
            metadata.setdefault(NOT_RUN, []).append(result.call_id)
        if result.display:
            metadata.setdefault("shown", {})[result.call_id] = result.display
        if result.nested_usage:
            metadata.setdefault(NESTED_USAGE, {})[result.call_id] = result.nested_usage
    fields: dict[str, Any] = {
        "branch": ctx.branch,
        "content": parts.content("user", response_parts) if response_parts else None,
        "long_running_tool_ids": interim_ids or None,
        "output": next((result.task_output[0] for result in results if result.task_output), None),
        "custom_metadata": metadata or None,
    }
    return new_event(
        # The id from the journal: a resumed run must not store the results twice.
        id=next((result.event_id for result in results if result.event_id), ""),
        author="user"
        if response_parts and all(result.is_task_result for result in results if result.part)
        else spec.name,
        invocation_id=ctx.invocation_id,
        actions=actions,
        **{name: value for name, value in fields.items() if value is not None},
    )


T = TypeVar("T")


class Progress(Generic[T]):
    """A coroutine and the events that its tools emit. Each tool waits until its event is consumed."""

    outcome: T
    """The coroutine's result; set once `events` is exhausted."""

    def __init__(self, ctx: InvocationContext, work: Coroutine[Any, Any, T]) -> None:
        """`work` starts with the first read of `events`; its tools emit with `ctx.emit`."""
        self._ctx = ctx
        self._work = work
        self._queue: asyncio.Queue[tuple[Event, asyncio.Future[None]] | None] = asyncio.Queue()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Run the coroutine, and yield the events emitted meanwhile. Closing cancels it and waits for its end.

        Raises:
            BaseException: Raised by the coroutine.
        """
        previous_emit, self._ctx.emit = self._ctx.emit, self._emit
        task = asyncio.create_task(self._work)
        # None: the end of the queue.
        task.add_done_callback(lambda _: self._queue.put_nowait(None))
        try:
            while item := await self._queue.get():
                event, consumed = item
                if consumed.done():
                    continue  # its tool was cancelled
                yield event
                if not consumed.done():
                    consumed.set_result(None)
            self.outcome = task.result()
        finally:
            self._ctx.emit = previous_emit
            # Wait for its end: a tool must not emit or write after its step.
            if task.cancel():
                await asyncio.wait({task})

    async def _emit(self, event: Event) -> None:
        consumed = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((event, consumed))
        await consumed
