"""Check a user's message, select the agent that answers it, and store its files."""

from collections.abc import Iterable
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST, NODE_APPROVAL
from adk_nb.runtime import credentials
from adk_nb.runtime.approvals import expired_message, read_answer
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.interrupts import Interrupt, Kind
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.nested_calls import open_tasks, outermost, recipient
from adk_nb.sessions.session import Session
from adk_nb.wire import json_problem


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
    _check_interrupts(answers, history)
    _check_calls(answers, history, session.id)


def _check_interrupts(answers: Iterable[types.FunctionResponse], history: History) -> None:
    """Refuse an answer to a request that is not open, or that does not fit it."""
    candidates = history.interrupts()
    by_answer_id = {(candidate.kind, key): candidate for candidate in candidates for key in candidate.answer_ids}
    for answer in answers:
        if (kind := _answered_kind(answer)) is None:
            continue
        interrupt = by_answer_id.get((kind, answer.id or ""))
        if interrupt is None:
            request = "credential request" if kind == "credential" else "approval"
            reason = "it was answered already, its workflow has restarted since, or it does not exist"
            raise InputError(f"{request} {answer.id!r} is not open; {reason}")
        _check_answer(interrupt, answer.response or {})


def _answered_kind(answer: types.FunctionResponse) -> Kind | None:
    """The kind of interrupt that a response answers. None: an ordinary response, which any call may have."""
    if answer.name == APPROVAL_REQUEST:
        return "approval"
    if answer.name == CREDENTIAL_REQUEST:
        return "credential"
    return "node_approval" if (answer.id or "").startswith(NODE_APPROVAL) else None


def _check_answer(interrupt: Interrupt, response: dict[str, Any]) -> None:
    if interrupt.kind == "credential":
        credentials.check_answer(interrupt, response)
        return
    # A node's answer has many shapes: past the expiry only an explicit no is accepted.
    is_yes = read_answer(response).confirmed if interrupt.kind == "approval" else response.get("confirmed") is not False
    if is_yes and interrupt.is_expired:
        name = interrupt.call.name if interrupt.kind == "approval" else interrupt.id
        raise InputError(f"{expired_message(name)}; answer it with {{'confirmed': false}}, and ask again")


def check_input_schema(agent: RunnableAgent, message: types.Content) -> None:
    """Check a message against the `input_schema` of `agent`.

    Raises:
        InputError: It does not match; the error names the fields.
    """
    if mismatch := agent.input_mismatch(message):
        raise InputError(
            f"the message does not fit the input_schema of agent {agent.name!r}: {mismatch}; send JSON that fits"
        )


def _check_calls(answers: Iterable[types.FunctionResponse], history: History, session_id: str) -> None:
    by_run: dict[str, str | None] = {}
    for answer in answers:
        run = history.calls.run_of(answer.id)
        if run is None:
            raise InputError(
                f"the function response {answer.id!r} answers no call of session {session_id!r}; "
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
