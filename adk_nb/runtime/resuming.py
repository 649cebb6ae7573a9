"""An invocation that is gone on with: by what answers something it asked, or by its id."""

import logging

from adk_nb import types
from adk_nb.errors import ConfigurationError, InvocationNotFoundError
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.runtime.checkpoints import Checkpoints
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.runtime.invocation_context import InvocationContext, Runs
from adk_nb.runtime.message import answering
from adk_nb.runtime.nested_calls import outermost, pauses, waiting

logger = logging.getLogger(__name__)


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
    history = history_of(ctx.session)
    if ctx.is_resumable and (asked_in := _answered(ctx, history)):
        if invocation_id not in (None, asked_in):
            logger.warning("the message answers invocation %r, which goes on; not %r", asked_in, invocation_id)
        checkpoints = Checkpoints(root, history.run(asked_in))
        ctx.invocation_id, ctx.checkpoints = asked_in, checkpoints
        still_open = {key for interrupt in history.interrupts(run=asked_in) for key in interrupt.answer_ids}
        ctx.end_invocation = checkpoints.is_ended(ctx.agent, None) and still_open.isdisjoint(ctx.calls_answered)
    elif invocation_id:
        if not ctx.is_resumable and ctx.session.lease is None:
            raise _keeps_no_marks(invocation_id)
        _by_id(ctx, root, invocation_id, history, sticky)
        if not ctx.is_resumable and not ctx.end_invocation and ctx.agent.runs_others:
            raise _keeps_no_marks(invocation_id)


def _keeps_no_marks(invocation_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"invocation {invocation_id!r} cannot be gone on with: this app keeps no marks of where its agents "
        "stand; write App(resumability_config=ResumabilityConfig(is_resumable=True), ...)"
    )


def idle(ctx: InvocationContext) -> str:
    """Why an invocation that was to go on had nothing to do."""
    asked = ", ".join(map(repr, waiting(ctx.agent, history_of(ctx.session), run=ctx.invocation_id)))
    return f"it waits for an answer to {asked}" if asked else "it is finished"


def _waits(agent: Runs, history: History) -> bool:
    return not agent.runs_others and pauses(agent, history, None, asked=True)


def _answered(ctx: InvocationContext, history: History) -> str | None:
    """The newest invocation that asked what the message answers."""
    found: list[tuple[int, str]] = []
    for key in ctx.calls_answered:
        if record := history.calls.newest(key):
            found.append((record.at, record.event.invocation_id))
        if checkpoint := history.checkpoint_waiting_for(key):
            found.append(checkpoint)
    return max(found)[1] if found else None


def _by_id(ctx: InvocationContext, root: Runs, invocation_id: str, history: History, sticky: bool) -> None:
    at = history.began(invocation_id)
    if at is None:
        raise InvocationNotFoundError("invocation", invocation_id, history.run_ids())
    run = history.run(invocation_id)
    checkpoints = Checkpoints(root, run)
    message = run[0].content if run[0].author == "user" else None
    began = answering(root, message, History(history.events[:at]), sticky=sticky)
    left = checkpoints.unfinished_agent(began, None)
    ctx.invocation_id, ctx.checkpoints = invocation_id, checkpoints
    message = ctx.user_content or _last_message(history, invocation_id)
    answers = any(part.function_response for part in (message and message.parts) or ())
    is_done = left is None or _continued_elsewhere(history, invocation_id)
    is_silent = not (ctx.user_content or answers)
    ctx.end_invocation = is_done or (is_silent and left is not None and _waits(left, history))
    ctx.agent = outermost(left or began)
    ctx.user_content = message


def _continued_elsewhere(history: History, invocation_id: str) -> bool:
    """True if what it asked was answered under another id, which has taken it over: so it is without checkpoints."""
    calls = {call.id for event in history.run(invocation_id) for call in event.get_function_calls()}
    return any(answered_in != invocation_id for key in calls for answered_in in history.calls.answered_in(key))


def _last_message(history: History, invocation_id: str) -> types.Content | None:
    """The user's last message of that invocation: answers, if they are not carried out yet, or words."""
    waiting = {asked.id: set(asked.answer_ids) for asked in history.interrupts(kinds=APPROVALS)}
    left = set[str | None]().union(*waiting.values())
    for event in reversed(history.run(invocation_id)):
        if event.author == "user" and event.text:
            return event.content
        answered = {response.id for response in event.get_function_responses() if response.name == APPROVAL_REQUEST}
        if event.author == "user" and answered & left:
            return event.content
        # What was asked after an answer is not what that answered.
        for call in event.get_function_calls():
            left -= waiting.get(call.id or "", set())
    return None
