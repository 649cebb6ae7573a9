"""The updates of a remote task as events of our agent."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from adk_nb import types
from adk_nb.a2a.message_parts import from_a2a_parts, text_of
from adk_nb.a2a.protocol import TYPE as DATA_TYPE
from adk_nb.a2a.protocol import WAITING, WORKING, metadata_of, state_name
from adk_nb.a2a.remote_questions import (
    ARTIFACTS,
    CALLS,
    CONTEXT_ID,
    TASK_ID,
    EarlierQuestion,
    question_event,
    question_of,
)
from adk_nb.a2a.task_updates import error_line
from adk_nb.errors import A2AClientError
from adk_nb.events.event import Event
from adk_nb.runtime.interrupts import unreadable_requests

NewEvent = Callable[..., Event]
"""Makes an event of our agent from its fields."""


@dataclass(kw_only=True)
class _Artifact:
    parts: list[Any] = field(default_factory=list[Any])
    event_id: str = field(default_factory=Event.new_id)
    """Id of its partial events and of its whole one."""
    has_whole_event: bool = False
    """True: its whole event has been made."""
    has_ended: bool = False
    """True: its last chunk has come."""


class RemoteAnswer:
    """Reads the updates of a remote task, and makes events of them.

    Text streams as partial events; each artifact ends with a whole one. Status messages of a working task become
    thoughts, since they are not a part of the answer.
    """

    def __init__(self, agent: str, new_event: NewEvent, earlier: EarlierQuestion) -> None:
        """`earlier`: the question that the message answers; empty for a new task."""
        self._agent = agent
        self._new_event = new_event
        self._known_calls = [remote_id for remote_id, _ in earlier.calls.values()]
        self._known_artifacts = earlier.artifacts
        self._artifacts: dict[str, _Artifact] = {}
        self._status: Any = None
        self._texts: set[str] = set()
        """Texts of the whole events."""
        self.context_id = self.task_id = ""
        self._has_events = False

    @property
    def is_working(self) -> bool:
        """True while the remote task works."""
        return bool(self.task_id) and (self._status is None or state_name(self._status) in WORKING)

    def read(self, update: Any) -> Iterator[Event]:
        """The events of an update."""
        kind = update.WhichOneof("payload")
        content = getattr(update, kind)
        self.context_id = content.context_id or self.context_id
        if kind == "message":
            yield from self._whole(content.parts, Event.new_id())
            return
        self.task_id = (content.id if kind == "task" else content.task_id) or self.task_id
        if kind == "artifact_update":
            yield from self._read_artifact(content)
            return
        self._status = content.status
        if kind == "task":
            # Its artifacts as they are now; the text that is new is streamed.
            for stored in content.artifacts:
                parts = list(stored.parts)
                artifact = self._artifacts.get(stored.artifact_id)
                is_same = artifact is not None and text_of(artifact.parts) == text_of(parts) != ""
                if stored.artifact_id in self._known_artifacts or is_same:
                    continue
                artifact = self._artifacts.setdefault(stored.artifact_id, _Artifact())
                fresh = self._replace(artifact, parts)
                artifact.has_whole_event = False
                if fresh and state_name(content.status) in WORKING:
                    yield self._partial(artifact.event_id, types.Part(text=fresh))
        elif state_name(content.status) in (*WORKING, *WAITING) and (text := text_of(content.status.message.parts)):
            yield self._partial(Event.new_id(), types.Part(text=text, thought=True))

    def finish(self) -> Iterator[Event]:
        """The last events: the task has ended, or waits for the user.

        Raises:
            A2AClientError: The task failed.
        """
        yield from self.remainder()
        state = state_name(self._status) if self._status is not None else ""
        message_parts = list(self._status.message.parts) if self._status is not None else []
        if state in WAITING:
            yield from self._question(message_parts)
        elif state in ("TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED"):
            yield from self._arrival()
            outcomes = {"TASK_STATE_REJECTED": "refused the message", "TASK_STATE_CANCELED": "was stopped"}
            text, outcome = error_line(text_of(message_parts)), outcomes.get(state, "failed")
            error = A2AClientError(f"remote agent {self._agent!r} {outcome}" + (f": {text}" if text else ""))
            error.task_id = self.task_id
            raise error
        else:
            if message_parts and text_of(message_parts) not in self._texts:
                yield from self._whole(message_parts, Event.new_id())
            else:
                yield from self._arrival()

    def remainder(self) -> Iterator[Event]:
        """Whole events of the artifacts without one, so that a broken answer is not lost."""
        for artifact in self._artifacts.values():
            if not artifact.has_whole_event:
                yield from self._whole_event(artifact)

    def _read_artifact(self, update: Any) -> Iterator[Event]:
        artifact = self._artifacts.setdefault(update.artifact.artifact_id, _Artifact())
        parts = list(update.artifact.parts)
        is_first = not artifact.parts
        # What is added after the end comes once more at the end of the task: each whole event has all parts.
        is_whole = update.last_chunk and not (update.append and artifact.has_ended)
        if update.append:
            fresh = text_of(parts)
            artifact.parts += parts
        else:
            fresh = self._replace(artifact, parts)
        artifact.has_whole_event = False
        # An artifact that comes in one update needs no partial event.
        if fresh and not (update.last_chunk and is_first):
            yield self._partial(artifact.event_id, types.Part(text=fresh))
        if is_whole:
            artifact.has_ended = True
            yield from self._whole_event(artifact)

    def _replace(self, artifact: _Artifact, parts: list[Any]) -> str:
        """Give an artifact other parts. Returns the text that they add; empty if they do not continue the old text."""
        earlier, text = text_of(artifact.parts), text_of(parts)
        artifact.parts = parts
        return text.removeprefix(earlier) if text.startswith(earlier) else ""

    def _partial(self, event_id: str, part: types.Part) -> Event:
        return self._new_event(id=event_id, content=types.Content(role="model", parts=[part]), partial=True)

    def _whole_event(self, artifact: _Artifact) -> Iterator[Event]:
        artifact.has_whole_event = True
        yield from self._whole(artifact.parts, artifact.event_id)

    def _whole(self, parts: Iterable[Any], event_id: str) -> Iterator[Event]:
        # ADK's servers mark calls and results with this key; they are the agent's inner work.
        visible = [part for part in parts if DATA_TYPE not in metadata_of(part)]
        if ours := from_a2a_parts(visible):
            self._texts.add(text_of(visible))
            self._has_events = True
            content = types.Content(role="model", parts=ours)
            yield self._new_event(id=event_id, content=content, custom_metadata=self._metadata())

    def _arrival(self) -> Iterator[Event]:
        """An event without content, if there is no other: it marks the messages so far as sent."""
        if not self._has_events and (metadata := self._metadata()):
            yield self._new_event(custom_metadata=metadata)

    def _question(self, parts: Sequence[Any]) -> Iterator[Event]:
        needs_credential = state_name(self._status) == "TASK_STATE_AUTH_REQUIRED"
        question = question_of(self._agent, parts, self._known_calls, needs_credential=needs_credential)
        artifacts = [*self._known_artifacts, *self._artifacts]
        metadata = {**self._metadata(), CALLS: dict(question.remote_calls), ARTIFACTS: artifacts}
        event = self._new_event(custom_metadata=metadata, **question_event(question))
        for request, reason in unreadable_requests(event):
            raise A2AClientError(
                f"remote agent {self._agent!r} asks for something that cannot be read: {request.name}: {reason}"
            )
        if question.calls:
            yield event

    def _metadata(self) -> dict[str, Any]:
        ids = {CONTEXT_ID: self.context_id, TASK_ID: self.task_id}
        return {key: value for key, value in ids.items() if value}
