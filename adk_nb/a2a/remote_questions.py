"""A remote agent's question as an interrupt of this session, and the user's answer as parts for that agent."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from pydantic import ConfigDict, Field, ValidationError

from adk_nb import parts, types
from adk_nb.a2a.message_parts import data_part, from_a2a_parts, response_part, text_of
from adk_nb.a2a.protocol import a2a_types
from adk_nb.errors import A2AClientError, InputError
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CHOICE, CREDENTIAL_REQUEST, INPUT_REQUEST
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import REMOTE_CALLS, Interrupt, answered_value
from adk_nb.runtime.open_calls import new_call_id
from adk_nb.wire import WireModel

logger = logging.getLogger(__name__)

CONTEXT_ID, TASK_ID = "a2a:context_id", "a2a:task_id"
"""Keys in the custom metadata of a remote agent's events. Source: google-adk 2.13."""
CALLS = REMOTE_CALLS
"""Key beside them: our call id -> id and name of the remote call; both empty if the remote agent asked by text."""
ARTIFACTS = "a2a:artifacts"
"""Key beside them: ids of the artifacts that the user has seen before the question."""
_APPROVED = "answered; what the other agent did is in its next message"


class EarlierQuestion(WireModel):
    """What the custom metadata of a remote agent's question says about it; empty if the agent asked nothing."""

    model_config = ConfigDict(frozen=True)

    calls: Mapping[str, tuple[str, str]] = Field(default_factory=dict[str, tuple[str, str]], alias=CALLS)
    artifacts: Sequence[str] = Field(default=(), alias=ARTIFACTS)
    task_id: str = Field(default="", alias=TASK_ID)

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> Self:
        """The question that an event's metadata describes; empty if it cannot be read."""
        try:
            return cls.model_validate(metadata) if CALLS in metadata else cls()
        except ValidationError as error:
            logger.warning("the stored question of a remote agent cannot be read, so a new task begins: %s", error)
            return cls()


@dataclass(frozen=True, kw_only=True)
class Question:
    """The calls that put a remote agent's question to the user."""

    calls: Sequence[types.FunctionCall]
    remote_calls: Mapping[str, Sequence[str]]
    """The value of `CALLS`."""


def question_of(
    agent: str, status_parts: Sequence[Any], known: Sequence[str], *, needs_credential: bool = False
) -> Question:
    """The question in the status of a task.

    Args:
        agent: Name of our agent, for errors.
        status_parts: A2A parts of the status' message.
        known: Ids of the remote calls that the user was asked about already.
        needs_credential: The task's state says that it waits for a credential.

    Raises:
        A2AClientError: It asks for a credential, which is not sent on; or what it asks cannot be read.
    """
    prompt = text_of(status_parts).strip()
    try:
        remote = [part.function_call for part in from_a2a_parts(status_parts) if part.function_call]
    except InputError as error:
        raise A2AClientError(f"remote agent {agent!r} asks for something that cannot be read: {error}") from error
    # An answer that is typed here would go to the other agent as text.
    if needs_credential or any(call.name == CREDENTIAL_REQUEST for call in remote):
        raise A2AClientError(f"{_wants_credential(agent)}: {prompt}" if prompt else _wants_credential(agent))
    if not remote:
        local = _text_question(prompt or "it is waiting for your answer")
        return Question(calls=[local], remote_calls={local.id or "": ["", ""]})
    pairs = [(_local_call(call, prompt), call) for call in remote if call.id not in known]
    return Question(
        calls=[local for local, _ in pairs],
        remote_calls={local.id or "": [call.id or "", call.name or ""] for local, call in pairs},
    )


def _wants_credential(agent: str) -> str:
    return (
        f"remote agent {agent!r} needs a credential, which is never sent on to another agent; "
        "enter it where that agent runs, and send the message again"
    )


def _text_question(prompt: str) -> types.FunctionCall:
    return types.FunctionCall(id=new_call_id(), name=INPUT_REQUEST, args={"message": prompt})


def _local_call(remote: types.FunctionCall, prompt: str) -> types.FunctionCall:
    """The call that puts the remote call's question to the user of this process."""
    args = remote.args or {}
    if remote.name == APPROVAL_REQUEST:
        request = {key: args[key] for key in ("originalFunctionCall", "toolConfirmation") if args.get(key) is not None}
        if isinstance(original := request.get("originalFunctionCall"), dict):
            # An id of ours: one of theirs may be that of another call here.
            request["originalFunctionCall"] = {**cast(dict[str, Any], original), "id": new_call_id()}
        return types.FunctionCall(id=new_call_id(), name=APPROVAL_REQUEST, args=request)
    if remote.name == CHOICE:
        return types.FunctionCall(id=new_call_id(), name=CHOICE, args=args)
    if remote.name == INPUT_REQUEST:
        fields = {key: args[key] for key in ("message", "payload", "response_schema") if key in args}
        return types.FunctionCall(id=new_call_id(), name=INPUT_REQUEST, args={"message": prompt, **fields})
    call = _text_question(prompt or f"{remote.name} waits for its result")
    return call.model_copy(update={"args": {**(call.args or {}), "payload": {remote.name or "call": args}}})


def question_event(question: Question) -> dict[str, Any]:
    """The fields of the event that interrupts the run."""
    return {
        "content": parts.content("model", [types.Part(function_call=call) for call in question.calls]),
        "long_running_tool_ids": {call.id or "" for call in question.calls},
    }


# ---- the answer


def answer_parts(responses: Sequence[types.FunctionResponse], remote_calls: Mapping[str, Sequence[str]]) -> list[Any]:
    """The user's answers as parts for the remote agent.

    Args:
        responses: The answers.
        remote_calls: The value of `CALLS`.
    """
    answers: list[Any] = []
    for response in responses:
        remote_id, remote_name = remote_calls[response.id or ""]
        if remote_id:
            own = types.FunctionResponse(id=remote_id, name=remote_name, response=response.response or {})
            answers.append(response_part(own))
        else:  # asked by text
            value = answered_value(response)
            answers.append(a2a_types().Part(text=value) if isinstance(value, str) else data_part(value))
    return answers


def answered_calls(interrupts: Sequence[Interrupt], answered: Sequence[str]) -> Iterator[types.Part]:
    """Results that close answered approvals, since the result of a remote call never comes into this session."""
    for interrupt in interrupts:
        if interrupt.kind == "approval" and interrupt.id in answered:
            yield parts.result(interrupt.call.id, interrupt.call.name or "", {"result": _APPROVED})


def closing_parts(interrupts: Sequence[Interrupt], text: str) -> list[types.Part]:
    """Responses that close questions which a plain message has answered."""
    return [
        parts.result(interrupt.id, interrupt.call.name or "", {"result": text})
        for interrupt in interrupts
        if interrupt.kind == "input"
    ]


def last_event(agent: str, history: History, branch: str | None) -> Event | None:
    """The newest event of `agent` on `branch` that names its context."""
    return next(
        (
            event
            for event in history.newest()
            if event.author == agent and event.branch == branch and CONTEXT_ID in (event.custom_metadata or {})
        ),
        None,
    )
