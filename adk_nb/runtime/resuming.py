"""An invocation that is gone on with: by what answers something it asked, or by its id."""

import logging
from collections.abc import Sequence
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError, InvocationNotFoundError
from adk_nb.events.event import Event
from adk_nb.runtime import approvals
from adk_nb.runtime.called import outermost, pauses, waiting
from adk_nb.runtime.invocation_context import InvocationContext, Runs
from adk_nb.runtime.message import answering
from adk_nb.runtime.rewind import surviving
from adk_nb.runtime.standing import Standing
from adk_nb.runtime.tasks import asked_by

logger = logging.getLogger(__name__)

RUN_KEY = "adk_nb_run"
"""In `RunConfig.custom_metadata`: a run whose key its session has seen is that run, and goes on where it was left. Its
message is not said again."""


def begun_as(key: str, events: Sequence[Event]) -> str | None:
    """The invocation whose events have that RUN_KEY."""
    for event in reversed(events):
        if event.custom_metadata and event.custom_metadata.get(RUN_KEY) == key:
            return event.invocation_id
    return None


def go_on(ctx: InvocationContext, root: Runs, invocation_id: str | None, *, sticky: bool) -> None:
    """Let `ctx`, which knows the user's message, be of the invocation that goes on, if one does.

    In one that is done no agent runs: its `end_invocation` is set.

    Args:
        ctx: Of the run that begins; the agent in it is the one that the message alone would go to.
        root: Of the tree.
        invocation_id: What goes on. None: what the message answers, if anything.
        sticky: As the runner has it.

    Raises:
        ConfigurationError: An invocation is named, the app is not resumable, and the session service has no journal; or
            it has, and an agent is at work that decides when others work.
        InvocationNotFoundError: The session has no such invocation.
    """
    if not ctx.is_resumable and not invocation_id:
        return
    events = surviving(ctx.session.events)
    if ctx.is_resumable and (asked_in := _answered(ctx, events)):
        if invocation_id not in (None, asked_in):
            logger.warning("the message answers invocation %r, which goes on; not %r", asked_in, invocation_id)
        standing = Standing(root, events, asked_in)
        ctx.invocation_id, ctx.standing = asked_in, standing
        ctx.end_invocation = standing.is_ended(ctx.agent, None)
    elif invocation_id:
        if not ctx.is_resumable and ctx.session.lease is None:
            raise _keeps_no_marks(invocation_id)
        _by_id(ctx, root, invocation_id, events, sticky)
        if not ctx.is_resumable and not ctx.end_invocation and getattr(ctx.agent, "runs_others", False):
            raise _keeps_no_marks(invocation_id)


def _keeps_no_marks(invocation_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"invocation {invocation_id!r} cannot be gone on with: this app keeps no marks of where its agents "
        "stand; write App(resumability_config=ResumabilityConfig(is_resumable=True), ...)"
    )


def idle(ctx: InvocationContext) -> str:
    """Why an invocation that was to go on had nothing to do."""
    events = surviving(ctx.session.events)
    mine = [event for event in events if event.invocation_id == ctx.invocation_id]
    still = waiting(ctx.agent, events)  # the answer may have come under an invocation of its own
    asked = ", ".join(repr(key) for key in waiting(ctx.agent, mine) if key in still)
    return f"it waits for an answer to {asked}" if asked else "it is finished"


def _waits(agent: Any, events: Sequence[Event]) -> bool:
    return not getattr(agent, "runs_others", False) and pauses(agent, events, None, asked=True)


def _answered(ctx: InvocationContext, events: Sequence[Event]) -> str | None:
    keys = set(ctx.calls_answered)
    for event in reversed(events) if keys else ():
        if keys.intersection(asked_by(event)) or any(call.id in keys for call in event.get_function_calls()):
            return event.invocation_id
    return None


def _by_id(ctx: InvocationContext, root: Runs, invocation_id: str, events: Sequence[Event], sticky: bool) -> None:
    at = next((at for at, event in enumerate(events) if event.invocation_id == invocation_id), None)
    if at is None:
        known = list(dict.fromkeys(event.invocation_id for event in events))
        raise InvocationNotFoundError("invocation", invocation_id, known)
    standing = Standing(root, events, invocation_id)
    before = ctx.session.model_copy(update={"events": list(events[:at])})
    began = answering(root, events[at].content if events[at].author == "user" else None, before, sticky=sticky)
    left = standing.left_of(began, None)
    ctx.invocation_id, ctx.standing = invocation_id, standing
    said = ctx.user_content or _said_last(events, invocation_id)
    answers = any(part.function_response for part in (said and said.parts) or ())
    is_done = left is None or _went_on_elsewhere(events[at:], invocation_id)
    ctx.end_invocation = is_done or (not ctx.user_content and not answers and _waits(left, events))
    ctx.agent = outermost(left or began)
    ctx.user_content = said


def _went_on_elsewhere(events: Sequence[Event], invocation_id: str) -> bool:
    """True if what it asked was answered under another id, which has taken it over: so it is without marks."""
    asked: set[str | None] = set()
    for event in events:
        if event.invocation_id == invocation_id:
            asked.update(call.id for call in event.get_function_calls())
        elif event.author == "user" and any(one.id in asked for one in event.get_function_responses()):
            return True
    return False


def _said_last(events: Sequence[Event], invocation_id: str) -> types.Content | None:
    """What the user said last in that invocation: answers, if they are not carried out yet, or words."""
    waiting = {one.id: set(one.answer_ids) for one in approvals.pending(events)}
    left = set[str | None]().union(*waiting.values())
    for event in reversed(events):
        if event.invocation_id != invocation_id:
            continue
        if event.author == "user" and event.text:
            return event.content
        given = {one.id for one in event.get_function_responses() if one.name == approvals.REQUEST}
        if event.author == "user" and given & left:
            return event.content
        # What was asked after an answer is not what that answered.
        for call in event.get_function_calls():
            left -= waiting.get(call.id or "", set())
    return None
