"""Start or resume a run: its arguments and their checks, the message, the agent that answers, and the first event."""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError, InvocationNotFoundError
from adk_nb.events.event import Event, as_content, new_event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST, NODE_APPROVAL
from adk_nb.parts import copied_content
from adk_nb.runtime import credentials
from adk_nb.runtime.approvals import expired_message, read_answer
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.checkpoints import Checkpoints
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.hooks import first_result
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.runtime.invocation_context import InvocationContext, InvocationShared, RunnableAgent, new_invocation_id
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.open_calls import awaited_branches, is_paused, open_tasks, outermost, recipient
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.base_session_service import refuse_control, strip_id
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import storable_delta
from adk_nb.wire import json_problem

Message = str | types.Content | list[types.Part]


@dataclass(kw_only=True, slots=True)
class RunRequest:
    """The arguments of one run; fields without a docstring are those of `Runner.run_async` and `Runner.run_live`."""

    user_id: str
    session_id: str
    message: Message | None = None
    state_delta: dict[str, Any] = field(default_factory=dict[str, Any])
    run_config: RunConfig
    invocation_id: str = field(default_factory=new_invocation_id)
    """Id of the new run; unused if the run resumes another."""
    resumed_id: str | None = None
    """Id of the run to resume. None: a new run."""
    yield_user_message: bool = False
    abort_signal: asyncio.Event | None = None
    live_request_queue: LiveRequestQueue | None = None
    shared: InvocationShared = field(default_factory=InvocationShared)

    def check(self) -> None:
        """Check the settings, and the ids before a service stores them.

        Raises:
            ConfigurationError: As `check_run_config`.
            InputError: An id is not text, has a control character, or `resumed_id` is empty.
        """
        check_run_config(self.run_config, self.abort_signal)
        ids: dict[str, Any] = {"user_id": self.user_id, "session_id": self.session_id}
        for name, value in (ids | {"invocation_id": self.resumed_id or ""}).items():
            if not isinstance(value, str):
                raise InputError(f"{name} must be text, got {value!r:.80}")
        refuse_control(user_id=self.user_id, session_id=strip_id(self.session_id))
        if self.resumed_id is not None and not self.resumed_id.strip():
            raise InputError(f"invocation_id={self.resumed_id!r} is empty; leave it out to start a new run")


def check_runner_arguments(agent: Any, *services: Any) -> None:
    """Check the arguments of `Runner`.

    Raises:
        ConfigurationError: `agent` is not an agent, or a class or a name is passed instead of an instance.
    """
    for argument in (agent, *services):
        if isinstance(argument, type):
            raise ConfigurationError(
                f"a runner takes instances, not the class {argument.__name__}; write {argument.__name__}(...)"
            )
    if name := next((argument for argument in services if isinstance(argument, str | Path)), None):
        raise ConfigurationError(
            f"a runner takes service objects, not the path {name!r:.80}; for sessions in a file write "
            "session_service=SqliteSessionService('nb.db')"
        )
    if not hasattr(agent, "run_async"):
        raise ConfigurationError(f"{agent!r:.80} is not an agent; write Runner(agent=LlmAgent(...))")
    if getattr(agent, "mode", None) == "single_turn":
        raise ConfigurationError(
            f"agent {agent.name!r} has mode='single_turn', which works only as a sub-agent; "
            f"write Runner(agent=LlmAgent(..., sub_agents=[{agent.name}])), or leave out the mode"
        )


def check_run_config(run_config: Any, abort_signal: Any) -> None:
    """Check the settings of a run.

    Raises:
        ConfigurationError: `run_config` is not a RunConfig, or contradicts itself; `abort_signal` is not an Event.
    """
    if not isinstance(run_config, RunConfig):
        raise ConfigurationError(f"run_config must be a RunConfig, got {run_config!r:.80}; write RunConfig(...)")
    if run_config.support_cfc and not run_config.streams:
        raise ConfigurationError("support_cfc=True requires streaming; write streaming_mode=StreamingMode.SSE")
    if abort_signal is not None and not isinstance(abort_signal, asyncio.Event):
        raise ConfigurationError(
            f"abort_signal must be an asyncio.Event, got {abort_signal!r:.80}; "
            "from another thread, stop a run with runner.cancel(invocation_id)"
        )


def check_queue(live_request_queue: Any) -> None:
    """Check the queue of a live conversation.

    Raises:
        ConfigurationError: It is not a `LiveRequestQueue`.
    """
    if not isinstance(live_request_queue, LiveRequestQueue):
        raise ConfigurationError(
            f"live_request_queue must be a LiveRequestQueue, got {live_request_queue!r:.80}; "
            "write live_request_queue=LiveRequestQueue()"
        )


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
        message = ctx.user_content = credentials.take_secrets(ctx, message)
        if hooks := ctx.plugin_manager.hooks("on_user_message"):
            replacement = await first_result(hooks, invocation_context=ctx, user_message=message)
            if replacement is not None:
                message = as_content(replacement)
                check_message(message, ctx.session)
                message = credentials.take_secrets(ctx, message)
    history = history_of(ctx.session)
    ctx.task_call_id = task_call_id(root, message, history)
    ctx.agent = answering_agent(root, message, history, ctx.task_call_id, sticky=sticky)
    # After the agent that would answer is known: resuming puts the interrupted agent in its place.
    resume(ctx, root, invocation_id, sticky=sticky)
    # The schema is the root's; messages to a task, or to an agent that took over, are free text.
    if message and ctx.agent is root and not ctx.task_call_id and (mismatch := root.input_mismatch(message)):
        raise InputError(
            f"the message does not fit the input_schema of agent {root.name!r}: {mismatch}; send JSON that fits"
        )
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


def check_message(message: types.Content, session: Session) -> None:
    """Refuse a message that no agent can answer.

    Raises:
        InputError: It calls functions, mixes text with function responses, or has a response to an unknown call, to
            calls of several runs, or to a request that is not open.
    """
    parts = message.parts or []
    if any(part.function_call for part in parts):
        raise InputError("a user's message cannot call functions; only a model's answer does")
    answers = [part.function_response for part in parts if part.function_response]
    for value in (*(part.text for part in parts), *(response.response for response in answers)):
        if value and (problem := json_problem(value)):
            raise InputError(
                f"a message cannot contain {problem}, as it is stored as JSON; leave that out, or send it as text"
            )
    if not answers:
        return
    if len(answers) < len(parts):
        raise InputError("a message has function responses or text, not both; send them one after the other")
    history = history_of(session)
    _check_decisions(answers, history)
    by_run: dict[str, str | None] = {}
    for answer in answers:
        run = history.calls.run_of(answer.id)
        if run is None:
            raise InputError(
                f"the function response {answer.id!r} answers no call of session {session.id!r}; "
                "take the id from the event that made the call"
            )
        by_run.setdefault(run, answer.id)
    # A message resumes one run: that of the calls which it answers.
    if len(by_run) > 1:
        first, second, *_ = by_run.values()
        raise InputError(
            f"the function responses {first!r} and {second!r} answer calls of different runs; "
            "send them one after the other"
        )


def _check_decisions(answers: list[types.FunctionResponse], history: History) -> None:
    """Refuse an approval or a credential whose request is not open, or that does not fit it."""
    requests = {(request.kind, key): request for request in history.interrupts() for key in request.answer_ids}
    for answer in answers:
        kind = {APPROVAL_REQUEST: "approval", CREDENTIAL_REQUEST: "credential"}.get(answer.name or "")
        if not kind and not (answer.id or "").startswith(NODE_APPROVAL):
            continue  # an ordinary response, which any call may have
        request, response = requests.get((kind or "node_approval", answer.id or "")), answer.response or {}
        if request is None:
            reason = "it was answered already, its workflow has restarted since, or it does not exist"
            raise InputError(
                f"{'credential request' if kind == 'credential' else 'approval'} {answer.id!r} is not open; {reason}"
            )
        if kind == "credential":
            credentials.check_answer(request, response)
            continue
        # A node's answer has many shapes: past the expiry only an explicit no is accepted.
        is_yes = read_answer(response).confirmed if kind else response.get("confirmed") is not False
        if is_yes and request.is_expired:
            name = request.call.name if kind else request.id
            raise InputError(f"{expired_message(name)}; answer it with {{'confirmed': false}}, and ask again")


def task_call_id(root: RunnableAgent, message: types.Content | None, history: History) -> str | None:
    """The call id of the open task that a user's text is for. None: the message is for no task."""
    if message is None or any(part.function_response for part in message.parts or ()):
        return None
    if path := history.listening_node():
        return path
    # The task that was active last: its question is the last that the user saw.
    return next(reversed(open_tasks(root, history)), None)


def answering_agent(
    root: RunnableAgent,
    message: types.Content | None,
    history: History,
    task: str | None = None,
    *,
    sticky: bool = True,
) -> RunnableAgent:
    """The agent of `root`'s tree that answers a message.

    In this order: the agent that gave the task, or made the call that the message answers; if `sticky`, the last
    speaker, provided it and all its parents may transfer back; the root.
    """
    if not root.sub_agents:
        return root
    parts = (message and message.parts) or ()
    if answered := {task} if task else {part.function_response.id for part in parts if part.function_response}:
        return outermost(root.find_agent(recipient(history, answered)) or root)
    return last_speaker(root, history) if sticky and _hands_back(root) else root


def last_speaker(root: RunnableAgent, history: History, branch: str | None = None) -> RunnableAgent:
    """The last agent under `root` that spoke on `branch` and may transfer back up to `root`; else `root`."""
    for event in history.newest():
        if (branch or event.branch) and not is_within(event.branch, branch):
            continue  # an agent called as a tool, or a tool's own events
        if event.author == root.name:
            return root
        agent = root.find_agent(event.author) if event.author != "user" else None
        if agent and _hands_back(agent, root if branch else None):
            return agent
    return root


def _hands_back(agent: RunnableAgent | None, until: RunnableAgent | None = None) -> bool:
    """True if the conversation can return from `agent` to `until`, or to the root, by transfers to parents."""
    while agent is not until and agent is not None:
        if not agent.may_hand_back:
            return False
        agent = agent.parent_agent
    return True


async def save_files(ctx: InvocationContext, message: types.Content) -> tuple[types.Content, dict[str, int]]:
    """Save the files of a message as artifacts: the message with a note instead of each file, and the versions by name.

    Raises:
        ConfigurationError: There are files, and the runner has no artifact service.
        StorageError: The artifact service failed.
    """
    parts = list(message.parts or ())
    versions: dict[str, int] = {}
    for index, part in enumerate(parts):
        if not part.inline_data:
            continue
        if not (service := ctx.artifact_service):
            raise ConfigurationError(
                "save_input_blobs_as_artifacts=True, but this runner has no artifact service; "
                "write Runner(artifact_service=InMemoryArtifactService(), ...)"
            )
        name, session = f"artifact_{ctx.invocation_id}_{index}", ctx.session
        versions[name] = await service.save_artifact(
            app_name=session.app_name, user_id=session.user_id, session_id=session.id, filename=name, artifact=part
        )
        parts[index] = types.Part(text=f"Uploaded file: {name}. It is kept as an artifact.")
    return message.model_copy(update={"parts": parts}), versions


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
    # The newest invocation with an interrupt that the message answers.
    candidates: list[tuple[int, str]] = []
    for key in ctx.calls_answered if ctx.is_resumable else ():
        if record := history.calls.newest(key):
            candidates.append((record.event_index, record.event.invocation_id))
        if checkpoint := history.checkpoint_waiting_for(key):
            candidates.append(checkpoint)
    if candidates:
        answered_id = max(candidates)[1]
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
    calls = {call.id for event in run for call in event.get_function_calls()}
    answered_in = {answered for key in calls for answered in history.calls.answered_in(key)}
    ctx.end_invocation = (
        unfinished is None
        # Another invocation had the answer to one of its calls, as happens without checkpoints.
        or bool(answered_in - {invocation_id})
        # Without an answer, a paused agent would only ask again.
        or (
            not (ctx.user_content or answers or unfinished.runs_others)
            and is_paused(unfinished, history, None, may_interrupt=True)
        )
    )
    ctx.agent = outermost(unfinished or first_agent)
    ctx.user_content = message


def _not_resumable(invocation_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"invocation {invocation_id!r} cannot be resumed: this app stores no checkpoints; "
        "write App(resumability_config=ResumabilityConfig(is_resumable=True), ...)"
    )


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


def idle_reason(ctx: InvocationContext) -> str:
    """The reason why resuming an invocation did nothing, for a log message."""
    call_ids = ", ".join(map(repr, awaited_branches(ctx.agent, history_of(ctx.session), run=ctx.invocation_id)))
    return f"it is waiting for an answer to {call_ids}" if call_ids else "it is finished"
