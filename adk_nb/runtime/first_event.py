"""Start or resume a run: check the user's message, call plugins, select the agent, and create the first event."""

import logging
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError, InvocationNotFoundError
from adk_nb.events.event import Event, as_content, new_event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.parts import copied_content
from adk_nb.runtime.checkpoints import Checkpoints
from adk_nb.runtime.credentials import take_secrets
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.hooks import first_result
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.message import answering_agent, check_input_schema, check_message, save_files, task_call_id
from adk_nb.runtime.nested_calls import awaited_branches, is_paused, outermost
from adk_nb.sessions.state import storable_delta

logger = logging.getLogger(__name__)


async def first_event(
    ctx: InvocationContext,
    new_message: Any,
    state_delta: dict[str, Any],
    *,
    message_is_optional: bool,
    sticky: bool = True,
    invocation_id: str | None = None,
) -> Event | None:
    """The user's event, not stored yet; sets the message and the answering agent in `ctx`.

    Args:
        ctx: Of the run that begins, with the root agent.
        new_message: Text, parts or a content; None for no message.
        state_delta: State to write with the message.
        message_is_optional: The root agent can run without a message.
        sticky: The agent that took over the conversation gets the message.
        invocation_id: Invocation to resume. None: the one that the message answers, if any.

    Returns:
        None in a live conversation, whose messages come later, and where there is nothing to store.

    Raises:
        InvocationNotFoundError: The session has no such invocation.
        InputError: The message cannot be answered.
        ConfigurationError: Files cannot be saved without an artifact service; or `state_delta` cannot be stored.
    """
    root = ctx.agent
    if ctx.live_request_queue:
        ctx.agent = answering_agent(root, None, history_of(ctx.session), sticky=sticky)
        return None
    if state_delta:
        # Before any effect: a value that cannot be stored refuses the whole message.
        storable_delta(state_delta, only_json=ctx.keeps_only_json)
    message = copied_content(as_content(new_message)) if new_message is not None else None
    if not (message_is_optional or invocation_id or (message and message.parts)):
        raise InputError(f"agent {root.name!r} needs a message; only an agent with a model runs without one")
    files: dict[str, int] = {}
    if message:
        # In this order, so that no plugin sees a secret or an invalid message.
        check_message(message, ctx.session)
        message = take_secrets(ctx, message)
        ctx.user_content = message
        message = await _after_plugins(ctx, message)
    history = history_of(ctx.session)
    ctx.task_call_id = task_call_id(root, message, history)
    ctx.agent = answering_agent(root, message, history, ctx.task_call_id, sticky=sticky)
    # After the agent that would answer is known: resuming puts the interrupted agent in its place.
    resume(ctx, root, invocation_id, sticky=sticky)
    # The schema is the root's; messages to a task, or to an agent that took over, are free text.
    if message and ctx.agent is root and not ctx.task_call_id:
        check_input_schema(root, message)
    # After `resume`: the names of the files contain the invocation id.
    if message and ctx.run_config.save_input_blobs_as_artifacts:
        message, files = await save_files(ctx, message)
    ctx.user_content = message or ctx.user_content
    if invocation_id is not None and (ctx.end_invocation or not (message or state_delta)):
        return None
    actions = EventActions(state_delta=state_delta, artifact_delta=files) if state_delta or files else no_actions()
    optional: dict[str, Any] = {"content": message, "isolation_scope": ctx.task_call_id}
    fields = {name: value for name, value in optional.items() if value is not None}
    return new_event(author="user", invocation_id=ctx.invocation_id, actions=actions, **fields)


async def _after_plugins(ctx: InvocationContext, message: types.Content) -> types.Content:
    """The message, or the replacement of a plugin."""
    if hooks := ctx.plugin_manager.hooks("on_user_message"):
        replacement = await first_result(hooks, invocation_context=ctx, user_message=message)
        if replacement is not None:
            message = as_content(replacement)
            check_message(message, ctx.session)
            message = take_secrets(ctx, message)
    return message


def resume(ctx: InvocationContext, root: RunnableAgent, invocation_id: str | None, *, sticky: bool) -> None:
    """Set the invocation id, agent and checkpoints of `ctx` to those of the invocation to resume, if there is one.

    If that invocation is finished, `ctx.end_invocation` is set and no agent runs.

    Args:
        ctx: Of the run that begins, with the message and the agent that would answer it.
        root: Root of the agent tree.
        invocation_id: The invocation to resume. None: the one that the message answers, if any.
        sticky: `Runner.sticky_agents`.

    Raises:
        ConfigurationError: `invocation_id` is given, but the app is not resumable, and the session service has no
            journal or the agent to resume runs others.
        InvocationNotFoundError: The session has no such invocation.
    """
    if not ctx.is_resumable and not invocation_id:
        return
    history = history_of(ctx.session)
    if ctx.is_resumable and (answered_id := _answered_invocation(ctx, history)):
        if invocation_id not in (None, answered_id):
            logger.warning(
                "the message answers invocation %r, which is resumed instead of %r", answered_id, invocation_id
            )
        checkpoints = Checkpoints(root, history.run(answered_id))
        ctx.invocation_id, ctx.checkpoints = answered_id, checkpoints
        still_open = {key for interrupt in history.interrupts(run=answered_id) for key in interrupt.answer_ids}
        # An agent that has ended runs again only for an answer that is still awaited.
        ctx.end_invocation = checkpoints.is_ended(ctx.agent, None) and still_open.isdisjoint(ctx.calls_answered)
    elif invocation_id:
        if not ctx.is_resumable and ctx.session.lease is None:
            raise _not_resumable(invocation_id)
        _resume_by_id(ctx, root, invocation_id, history, sticky)
        # Without checkpoints it is unknown which sub-agent was running: the journal has only calls.
        if not ctx.is_resumable and not ctx.end_invocation and ctx.agent.runs_others:
            raise _not_resumable(invocation_id)


def _not_resumable(invocation_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"invocation {invocation_id!r} cannot be resumed: this app stores no checkpoints; "
        "write App(resumability_config=ResumabilityConfig(is_resumable=True), ...)"
    )


def idle_reason(ctx: InvocationContext) -> str:
    """The reason why resuming an invocation did nothing, for a log message."""
    call_ids = ", ".join(map(repr, awaited_branches(ctx.agent, history_of(ctx.session), run=ctx.invocation_id)))
    return f"it is waiting for an answer to {call_ids}" if call_ids else "it is finished"


def _answered_invocation(ctx: InvocationContext, history: History) -> str | None:
    """The newest invocation with an interrupt that the message answers."""
    candidates: list[tuple[int, str]] = []
    for key in ctx.calls_answered:
        if record := history.calls.newest(key):
            candidates.append((record.event_index, record.event.invocation_id))
        if checkpoint := history.checkpoint_waiting_for(key):
            candidates.append(checkpoint)
    return max(candidates)[1] if candidates else None


def _resume_by_id(
    ctx: InvocationContext, root: RunnableAgent, invocation_id: str, history: History, sticky: bool
) -> None:
    first_index = history.first_index(invocation_id)
    if first_index is None:
        raise InvocationNotFoundError("invocation", invocation_id, history.run_ids())
    run = history.run(invocation_id)
    checkpoints = Checkpoints(root, run)
    message = run[0].content if run[0].author == "user" else None
    # The agent that got that message, as the events before it decide.
    first_agent = answering_agent(root, message, History(history.events[:first_index]), sticky=sticky)
    unfinished = checkpoints.unfinished_agent(first_agent, None)
    ctx.invocation_id, ctx.checkpoints = invocation_id, checkpoints
    message = ctx.user_content or _last_message(history, invocation_id)
    answers = any(part.function_response for part in (message and message.parts) or ())
    ctx.end_invocation = (
        unfinished is None
        or _continued_elsewhere(history, invocation_id)
        # Without an answer, a paused agent would only ask again.
        or (
            not (ctx.user_content or answers or unfinished.runs_others)
            and is_paused(unfinished, history, None, may_interrupt=True)
        )
    )
    ctx.agent = outermost(unfinished or first_agent)
    ctx.user_content = message


def _continued_elsewhere(history: History, invocation_id: str) -> bool:
    """True if another invocation had the answer to one of its calls, as happens without checkpoints."""
    calls = {call.id for event in history.run(invocation_id) for call in event.get_function_calls()}
    return any(answered_in != invocation_id for key in calls for answered_in in history.calls.answered_in(key))


def _last_message(history: History, invocation_id: str) -> types.Content | None:
    """The user's last message of an invocation: text, or answers whose interrupts are still open."""
    ids_by_request = {interrupt.id: set(interrupt.answer_ids) for interrupt in history.interrupts(kinds=APPROVALS)}
    open_ids = set[str | None]().union(*ids_by_request.values())
    for event in reversed(history.run(invocation_id)):
        if event.author == "user" and event.text:
            return event.content
        answered = {response.id for response in event.get_function_responses() if response.name == APPROVAL_REQUEST}
        if event.author == "user" and answered & open_ids:
            return event.content
        # An approval requested after this message cannot be answered by it.
        for call in event.get_function_calls():
            open_ids -= ids_by_request.get(call.id or "", set())
    return None
