"""Turn a user's message into the first event of its run: check it, call plugins, select the agent, resume."""

from typing import Any

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events.event import Event, as_content, new_event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.parts import copied_content
from adk_nb.runtime.credentials import take_secrets
from adk_nb.runtime.history import history_of
from adk_nb.runtime.hooks import first_result
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.message import answering_agent, check_input_schema, check_message, save_files, task_call_id
from adk_nb.runtime.resume import resume
from adk_nb.sessions.state import storable_delta


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
        sticky: The agent that took the conversation over keeps it.
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
        storable_delta(
            state_delta, only_json=ctx.keeps_only_json
        )  # refuse a value that cannot be stored before any effect
    message = copied_content(as_content(new_message)) if new_message is not None else None
    if not (message_is_optional or invocation_id or (message and message.parts)):
        raise InputError(f"agent {root.name!r} needs a message; only an agent with a model runs without one")
    files: dict[str, int] = {}
    if message:
        check_message(message, ctx.session)
        message = take_secrets(ctx, message)
        ctx.user_content = message
        message = await _after_plugins(ctx, message)
    history = history_of(ctx.session)
    ctx.task_call_id = task_call_id(root, message, history)
    ctx.agent = answering_agent(root, message, history, ctx.task_call_id, sticky=sticky)
    resume(ctx, root, invocation_id, sticky=sticky)
    if message and ctx.agent is root and not ctx.task_call_id:
        check_input_schema(root, message)
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
