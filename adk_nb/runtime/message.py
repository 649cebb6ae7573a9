"""A user's message before its run: what it may carry, which agent answers it, and where its files go."""

from collections.abc import Iterable

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST
from adk_nb.runtime import credentials, inputs
from adk_nb.runtime.approvals import expired_words, pending, refuse_expired, too_old
from adk_nb.runtime.branches import is_within
from adk_nb.runtime.called import outermost, speaker
from adk_nb.runtime.invocation_context import InvocationContext, Runs
from adk_nb.runtime.rewind import surviving
from adk_nb.runtime.tasks import talking_node, unfinished
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
    events = surviving(session.events)
    _check_approvals(answers, events)
    _check_credentials(answers, events)
    _check_nodes(answers, events)
    _check_calls(answers, events, session.id)


def _check_approvals(answers: Iterable[types.FunctionResponse], events: list[Event]) -> None:
    given = [one for one in answers if one.name == APPROVAL_REQUEST]
    open_now = {key: one for one in pending(events) for key in one.answer_ids} if given else {}
    for one in given:
        if not (asked := open_now.get(one.id or "")):
            raise InputError(f"approval {one.id!r} is not open; it was answered already, or there never was one")
        refuse_expired(asked, one.response or {})


def _check_credentials(answers: Iterable[types.FunctionResponse], events: list[Event]) -> None:
    given = {one.id or "": one.response or {} for one in answers if one.name == CREDENTIAL_REQUEST}
    open_now = {one.id: one for one in credentials.pending(events)} if given else {}
    for key, said in given.items():
        if not (asked := open_now.get(key)):
            raise InputError(f"credential request {key!r} is not open; it was answered already, or there never was one")
        credentials.check_answer(asked, said)


def _check_nodes(answers: Iterable[types.FunctionResponse], events: list[Event]) -> None:
    given = {one.id: one for one in answers if one.id and one.id.startswith(inputs.NODE_APPROVAL)}
    open_now = {one.id: one for one in inputs.pending(events)} if given else {}
    for key, said in given.items():
        if not (asked := open_now.get(key)):
            raise InputError(f"approval {key!r} is not open; it was answered already, or there never was one")
        yes = (said.response or {}).get("confirmed") is not False
        if yes and asked.asked_in and too_old(asked.asked_in.timestamp):
            raise InputError(f"{expired_words(key)}; answer it with {{'confirmed': false}}, and run it again")


def check_fits(agent: Runs, message: types.Content) -> None:
    """Refuse a message that is not what `agent` takes.

    Raises:
        InputError: It does not fit; the error names the fields.
    """
    if wrong := agent.unfit(message):
        raise InputError(
            f"the message does not fit the input_schema of agent {agent.name!r}: {wrong}; send JSON that fits"
        )


def _check_calls(answers: Iterable[types.FunctionResponse], events: Iterable[Event], session_id: str) -> None:
    runs = _runs_of_calls(events)
    asked: dict[str, str | None] = {}
    for one in answers:
        if one.id not in runs:
            raise InputError(
                f"the function response {one.id!r} answers no call of session {session_id!r}; "
                "take the id from the event that made the call"
            )
        asked.setdefault(runs[one.id], one.id)
    if len(asked) > 1:
        first, second, *_ = asked.values()
        raise InputError(
            f"the function responses {first!r} and {second!r} answer calls of different runs; "
            "send them one after the other"
        )


def _runs_of_calls(events: Iterable[Event]) -> dict[str | None, str]:
    """Call id -> the run in which it was made: the first of those of which each goes on with the one before, after an
    answer.
    """
    first: dict[str, str] = {}
    runs: dict[str | None, str] = {}
    for event in events:
        for response in event.get_function_responses() if event.author == "user" else ():
            if response.id in runs:
                first.setdefault(event.invocation_id, runs[response.id])
        for call in event.get_function_calls():
            runs[call.id] = first.get(event.invocation_id, event.invocation_id)
    return runs


def task_for(root: Runs, message: types.Content | None, session: Session) -> str | None:
    """The id of the call that gave a task, if words of the user are for the agent that works on it."""
    if message is None or any(part.function_response for part in message.parts or ()):
        return None
    if path := talking_node(session.events):
        return path
    if not (getattr(root, "members", None) or getattr(root, "tools", None)):
        return None
    return next(reversed(unfinished(root, session.events)), None)


def answering(
    root: Runs, message: types.Content | None, session: Session, task: str | None = None, *, sticky: bool = True
) -> Runs:
    """The agent of `root`'s tree that a message is for.

    The one that gave the task which the message goes on with, or whose call it answers; else, if `sticky`, the last
    that spoke, as long as it and all above it may hand the word back to their parents; else the root.
    """
    if not getattr(root, "sub_agents", None):
        return root
    parts = (message and message.parts) or ()
    if answered := {task} if task else {one.function_response.id for one in parts if one.function_response}:
        return outermost(root.find_agent(speaker(session.events, answered)) or root)
    return last_speaker(root, session.events) if sticky and _hands_back(root) else root


def last_speaker(root: Runs, events: list[Event], branch: str | None = None) -> Runs:
    """The last that spoke on `branch`, of `root` and those under it from whom the word can come back to it."""
    for event in reversed(events):
        if event.actions.rewind_before_invocation_id:
            return last_speaker(root, surviving(events), branch)
        if (branch or event.branch) and not is_within(event.branch, branch):
            continue  # an agent that was called as a tool, or what a tool said
        if event.author == root.name:
            return root
        agent = root.find_agent(event.author) if event.author != "user" else None
        if agent and _hands_back(agent, root if branch else None):
            return agent
    return root


def _hands_back(agent: object, top: object = None) -> bool:
    """True if from `agent` the word can come back to `top`, or to the root; only agents with a model hand it on."""
    while agent is not top and agent is not None:
        if getattr(agent, "disallow_transfer_to_parent", True):
            return False
        agent = getattr(agent, "parent_agent", None)
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
