"""A user's message becomes the first event of its run: checked, as the plugins want it, and at the agent it is for."""

from typing import Any

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events.event import Event, as_content, made
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.parts import copied_content
from adk_nb.runtime.credentials import take_secrets
from adk_nb.runtime.history import history_of
from adk_nb.runtime.hooks import first_answer
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.message import answering, check, check_fits, task_for, with_files_kept
from adk_nb.runtime.resuming import go_on
from adk_nb.sessions.state import committed


async def first_event(
    ctx: InvocationContext,
    said: Any,
    state_delta: dict[str, Any],
    *,
    may_be_silent: bool,
    sticky: bool = True,
    invocation_id: str | None = None,
) -> Event | None:
    """The user's event, not stored yet. `ctx`, which comes with the root agent, knows then what was said, and to whom.

    Args:
        ctx: Of the run that begins.
        said: Words, parts, a content; None for nothing.
        state_delta: Goes with it.
        may_be_silent: The root agent goes on without a message.
        sticky: Who has taken the conversation over keeps it.
        invocation_id: Of an invocation that is gone on with. None: of one that the message answers, if of any.

    Returns:
        None for a live conversation: what its user says comes later. And where nothing is said that is to be kept.

    Raises:
        InvocationNotFoundError: There is no such invocation.
        InputError: The message cannot be answered.
        ConfigurationError: It has files that are to be kept, and nothing keeps them; or `state_delta` cannot be kept.
    """
    root = ctx.agent
    if ctx.live_request_queue:
        ctx.agent = answering(root, None, history_of(ctx.session), sticky=sticky)
        return None
    if state_delta:
        committed(state_delta, only_json=ctx.keeps_only_json)  # what cannot be kept is refused before anything is done
    message = copied_content(as_content(said)) if said is not None else None
    if not (may_be_silent or invocation_id or (message and message.parts)):
        raise InputError(f"agent {root.name!r} needs a message; only an agent with a model goes on without")
    files: dict[str, int] = {}
    if message:
        check(message, ctx.session)
        message = take_secrets(ctx, message)
        ctx.user_content = message
        message = await _as_plugins_say(ctx, message)
    history = history_of(ctx.session)
    ctx.task = task_for(root, message, history)
    ctx.agent = answering(root, message, history, ctx.task, sticky=sticky)
    go_on(ctx, root, invocation_id, sticky=sticky)
    if message and ctx.agent is root and not ctx.task:
        check_fits(root, message)
    if message and ctx.run_config.save_input_blobs_as_artifacts:
        message, files = await with_files_kept(ctx, message)
    ctx.user_content = message or ctx.user_content
    if invocation_id is not None and (ctx.end_invocation or not (message or state_delta)):
        return None
    actions = EventActions(state_delta=state_delta, artifact_delta=files) if state_delta or files else no_actions()
    told: dict[str, Any] = {"content": message, "isolation_scope": ctx.task}
    fields = {name: one for name, one in told.items() if one is not None}
    return made(author="user", invocation_id=ctx.invocation_id, actions=actions, **fields)


async def _as_plugins_say(ctx: InvocationContext, message: types.Content) -> types.Content:
    """The message, or what a plugin puts in its place."""
    if hooks := ctx.plugin_manager.hooks("on_user_message"):
        other = await first_answer(hooks, invocation_context=ctx, user_message=message)
        if other is not None:
            message = as_content(other)
            check(message, ctx.session)
            message = take_secrets(ctx, message)
    return message
