"""A user's message before its run: what it may carry, which agent answers it, and where its files go."""

from collections.abc import Iterable
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST, NODE_APPROVAL
from adk_nb.runtime import credentials
from adk_nb.runtime.approvals import expired_words, read_answer
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.interrupts import Interrupt, Kind
from adk_nb.runtime.invocation_context import InvocationContext, Runs
from adk_nb.runtime.nested_calls import open_tasks, outermost, recipient
from adk_nb.sessions.session import Session
from adk_nb.wire import not_json


def check(message: types.Content, session: Session) -> None:
    """Refuse what no agent can answer.

    Raises:
        InputError: It calls functions, mixes words with function responses, or responds to what was never called, to
            calls of several runs at once, or to a request that is not open.
    """
    parts = message.parts or []
    if any(part.function_call for part in parts):
        raise InputError("a user's message cannot call functions; only a model's answer does")
    answers = [part.function_response for part in parts if part.function_response]
    for said in (*(part.text for part in parts), *(one.response for one in answers)):
        if said and (odd := not_json(said)):
            raise InputError(f"a message cannot hold {odd}: it is kept as JSON; leave that out, or send it as text")
    if not answers:
        return
    if len(answers) < len(parts):
        raise InputError("a message carries function responses or words, not both; send them one after the other")
    history = history_of(session)
    _check_interrupts(answers, history)
    _check_calls(answers, history, session.id)


def _check_interrupts(answers: Iterable[types.FunctionResponse], history: History) -> None:
    """Refuse an answer to a request that is not open, or that does not fit it."""
    open_now = {(asked.kind, key): asked for asked in history.interrupts() for key in asked.answer_ids}
    for answer in answers:
        if (kind := _requested(answer)) is None:
            continue
        interrupt = open_now.get((kind, answer.id or ""))
        if interrupt is None:
            what = "credential request" if kind == "credential" else "approval"
            why = "it was answered already, its workflow has begun anew since, or there never was one"
            raise InputError(f"{what} {answer.id!r} is not open; {why}")
        _check_answer(interrupt, answer.response or {})


def _requested(answer: types.FunctionResponse) -> Kind | None:
    """The kind of interrupt that only an open request makes answerable. None: any call may have such a response."""
    if answer.name == APPROVAL_REQUEST:
        return "approval"
    if answer.name == CREDENTIAL_REQUEST:
        return "credential"
    return "node_approval" if (answer.id or "").startswith(NODE_APPROVAL) else None


def _check_answer(interrupt: Interrupt, response: dict[str, Any]) -> None:
    if interrupt.kind == "credential":
        credentials.check_answer(interrupt, response)
        return
    is_yes = read_answer(response).confirmed if interrupt.kind == "approval" else response.get("confirmed") is not False
    if is_yes and interrupt.is_expired:
        name = interrupt.call.name if interrupt.kind == "approval" else interrupt.id
        raise InputError(f"{expired_words(name)}; answer it with {{'confirmed': false}}, and ask again")


def check_fits(agent: Runs, message: types.Content) -> None:
    """Refuse a message that is not what `agent` takes.

    Raises:
        InputError: It does not fit; the error names the fields.
    """
    if wrong := agent.unfit(message):
        raise InputError(
            f"the message does not fit the input_schema of agent {agent.name!r}: {wrong}; send JSON that fits"
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
    if len(by_run) > 1:
        first, second, *_ = by_run.values()
        raise InputError(
            f"the function responses {first!r} and {second!r} answer calls of different runs; "
            "send them one after the other"
        )


def task_for(root: Runs, message: types.Content | None, history: History) -> str | None:
    """The id of the call that gave a task, if words of the user are for the agent that works on it."""
    if message is None or any(part.function_response for part in message.parts or ()):
        return None
    if path := history.talking_node():
        return path
    return next(reversed(open_tasks(root, history)), None)


def answering(
    root: Runs, message: types.Content | None, history: History, task: str | None = None, *, sticky: bool = True
) -> Runs:
    """The agent of `root`'s tree that a message is for.

    The one that gave the task which the message goes on with, or whose call it answers; else, if `sticky`, the last
    that spoke, as long as it and all above it may hand the word back to their parents; else the root.
    """
    if not root.sub_agents:
        return root
    parts = (message and message.parts) or ()
    if answered := {task} if task else {one.function_response.id for one in parts if one.function_response}:
        return outermost(root.find_agent(recipient(history, answered)) or root)
    return last_speaker(root, history) if sticky and _hands_back(root) else root


def last_speaker(root: Runs, history: History, branch: str | None = None) -> Runs:
    """The last that spoke on `branch`, of `root` and those under it from whom the word can come back to it."""
    for event in history.newest():
        if (branch or event.branch) and not is_within(event.branch, branch):
            continue  # an agent that was called as a tool, or what a tool said
        if event.author == root.name:
            return root
        agent = root.find_agent(event.author) if event.author != "user" else None
        if agent and _hands_back(agent, root if branch else None):
            return agent
    return root


def _hands_back(agent: Runs | None, top: Runs | None = None) -> bool:
    """True if from `agent` the word can come back to `top`, or to the root; only agents with a model hand it on."""
    while agent is not top and agent is not None:
        if not agent.may_hand_back:
            return False
        agent = agent.parent_agent
    return True


async def with_files_kept(ctx: InvocationContext, message: types.Content) -> tuple[types.Content, dict[str, int]]:
    """The message with a note in the place of each file, and the version that each was kept as, by name.

    Raises:
        ConfigurationError: There are files, and the runner has no artifact service.
        StorageError: The artifact service failed.
    """
    parts = list(message.parts or ())
    kept: dict[str, int] = {}
    for place, part in enumerate(parts):
        if not part.inline_data:
            continue
        if not (service := ctx.artifact_service):
            raise ConfigurationError(
                "save_input_blobs_as_artifacts=True, but this runner keeps no artifacts; "
                "write Runner(artifact_service=InMemoryArtifactService(), ...)"
            )
        name, session = f"artifact_{ctx.invocation_id}_{place}", ctx.session
        kept[name] = await service.save_artifact(
            app_name=session.app_name, user_id=session.user_id, session_id=session.id, filename=name, artifact=part
        )
        parts[place] = types.Part(text=f"Uploaded file: {name}. It is kept as an artifact.")
    return message.model_copy(update={"parts": parts}), kept
