"""The events of a run as updates of an A2A task."""

from collections.abc import Sequence
from typing import Any

from adk_nb import clock, types
from adk_nb.a2a.message_parts import call_part, output_part, to_a2a_part, visible_parts
from adk_nb.a2a.protocol import LONG_RUNNING, a2a_types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST
from adk_nb.redaction import hidden
from adk_nb.runners import Runner
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.sessions.session import Session

_ERROR = 500
"""Characters of an error."""


class TaskUpdates:
    """Publishes what happens to one task.

    The text of an answer is an artifact that grows while it streams, with the id of its event; a file that the agent
    saves is an artifact, too.
    """

    def __init__(self, queue: Any, task_id: str, context_id: str) -> None:
        """`queue`: of a2a-sdk."""
        self._queue = queue
        self._ids: dict[str, str] = {"task_id": task_id, "context_id": context_id}
        self._streamed: set[str] = set()
        """Ids of the artifacts that have begun."""

    async def submitted(self, message: Any) -> None:
        """Begin the task with the client's message."""
        a2a, ids = a2a_types(), self._ids
        status = self._status("SUBMITTED")
        # A2A: the task comes first; status and artifact updates refer to its id.
        task = a2a.Task(id=ids["task_id"], context_id=ids["context_id"], status=status, history=[message])
        await self._queue.enqueue_event(task)

    async def state(self, state: str, parts: Sequence[Any] = ()) -> None:
        """Publish a state, such as `WORKING`, with a message."""
        update = a2a_types().TaskStatusUpdateEvent(status=self._status(state, parts), **self._ids)
        await self._queue.enqueue_event(update)

    async def failed(self, text: str) -> None:
        """End the task with a line for the client."""
        await self.state("FAILED", [a2a_types().Part(text=error_line(text))])

    async def waiting(self, interrupts: Sequence[Interrupt], remark: str = "") -> None:
        """Publish what the task waits for: in words, and as the calls that a client of ADK answers.

        `remark`: why it still waits.
        """
        text = "\n".join(filter(None, [remark, *map(_request, interrupts)]))
        calls = [call_part(interrupt_call(interrupt), **{LONG_RUNNING: True}) for interrupt in _answerable(interrupts)]
        needs_credential = all(interrupt.kind == "credential" for interrupt in interrupts)
        # A2A: AUTH_REQUIRED means that the credential is given outside of the protocol.
        await self.state("AUTH_REQUIRED" if needs_credential else "INPUT_REQUIRED", [_text_part(text), *calls])

    async def event(self, event: Event) -> None:
        """Publish what a user sees of an event."""
        # What works in a scope of its own is the inner work of an agent that was called as a tool.
        if event.author == "user" or event.isolation_scope or event.error_code:
            return
        parts = visible_parts(event.parts)
        if not parts and event.output is not None and not event.node_info.message_as_output:
            parts = [output_part(event.output)]
        if parts:
            is_growing = event.partial is True
            await self._artifact(event.id, event.author, parts, append=is_growing, last=not is_growing)

    async def files(self, event: Event, runner: Runner, session: Session) -> None:
        """Publish the files that an event saved."""
        if event.author == "user" or event.partial or not (service := runner.artifact_service):
            return
        for name, version in event.actions.artifact_delta.items():
            place = {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}
            file = await service.load_artifact(**place, filename=name, version=version)
            if file and (part := to_a2a_part(file)) is not None:
                # Clients save a file by the name in its part, not by the artifact's.
                part.filename = part.filename or name
                await self._artifact(f"{name}.{version}", name, [part], append=False, last=True)

    async def _artifact(self, key: str, name: str, parts: Sequence[Any], *, append: bool, last: bool) -> None:
        a2a = a2a_types()
        update = a2a.TaskArtifactUpdateEvent(
            artifact=a2a.Artifact(artifact_id=key, name=name, parts=parts),
            # A2A: the first chunk makes the artifact, `append` adds to one that exists.
            append=append and key in self._streamed,
            last_chunk=last,
            **self._ids,
        )
        self._streamed.add(key)
        await self._queue.enqueue_event(update)

    def _status(self, state: str, parts: Sequence[Any] = ()) -> Any:
        a2a = a2a_types()
        status = a2a.TaskStatus(state=a2a.TaskState.Value(f"TASK_STATE_{state}"))
        status.timestamp.FromMicroseconds(int(clock.now() * 1_000_000))
        if parts:
            message = a2a.Message(message_id=clock.new_id(), role=a2a.Role.ROLE_AGENT, parts=parts, **self._ids)
            status.message.CopyFrom(message)
        return status


def error_line(text: str) -> str:
    """An error as one line without secrets."""
    return " ".join(hidden(text).split())[:_ERROR]


def interrupt_call(interrupt: Interrupt) -> types.FunctionCall:
    """The call by whose response an interrupt is answered, as google-adk 2.13 writes it."""
    if interrupt.kind != "approval":
        return interrupt.call
    args: dict[str, Any] = {
        "originalFunctionCall": interrupt.call.model_dump(mode="json", by_alias=True, exclude_none=True),
        "toolConfirmation": {"hint": interrupt.prompt, "confirmed": False},
    }
    if interrupt.payload is not None:
        args["toolConfirmation"]["payload"] = interrupt.payload
    return types.FunctionCall(id=interrupt.id, name=APPROVAL_REQUEST, args=args)


def _answerable(interrupts: Sequence[Interrupt]) -> list[Interrupt]:
    """Those that a client can answer by a function response: text goes to a task, and no secret leaves its owner."""
    return [
        interrupt
        for interrupt in interrupts
        if interrupt.kind not in ("task", "credential") and interrupt.call.name != CREDENTIAL_REQUEST
    ]


def _request(interrupt: Interrupt) -> str:
    """What an interrupt asks, for a person."""
    names = ", ".join(interrupt.names)
    if interrupt.kind == "credential":
        return f"{names} needs a credential; give it where the agent runs"
    if interrupt.is_text:
        options = f" ({', '.join(interrupt.options)})" if interrupt.options else ""
        return (interrupt.prompt or f"{interrupt.agent} has a question") + options
    arguments = ", ".join(f"{key}={value!r}" for key, value in (interrupt.call.args or {}).items())
    if interrupt.is_approval:
        return f"{interrupt.prompt or 'an approval is needed'}: {interrupt.call.name}({arguments})"
    return interrupt.prompt or f"{interrupt.call.name}({arguments}) waits for its result"


def _text_part(text: str) -> Any:
    return a2a_types().Part(text=text)
