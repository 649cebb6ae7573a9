"""Rewind a session: the event that undoes an invocation, and the events that are still in effect."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.content import tombstone
from adk_nb.errors import InvocationNotFoundError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.runtime.invocation_context import new_invocation_id
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import State

_SHARED = (State.APP_PREFIX, State.USER_PREFIX, State.TEMP_PREFIX)


def surviving(events: Iterable[Event]) -> list[Event]:
    """`events` without undone events and without rewind events.

    A rewind event undoes everything from the first event of its invocation on, including an older rewind event, whose
    undone events count again. An invocation without an event before the rewind event began before the list. If nothing
    was undone, the list itself is returned: copy it before changing it.
    """
    all_events = events if isinstance(events, list) else list(events)
    for event in all_events:
        if event.actions.rewind_before_invocation_id:
            break
    else:
        return all_events
    began = {all_events[index].invocation_id: index for index in reversed(range(len(all_events)))}
    newest_first_kept: list[Event] = []
    index = len(all_events) - 1
    while index >= 0:
        undone = all_events[index].actions.rewind_before_invocation_id
        if undone:
            first = began.get(undone, index)
            index = first if first < index else 0
        else:
            newest_first_kept.append(all_events[index])
        index -= 1
    return newest_first_kept[::-1]


def newest_first(events: Sequence[Event], end: int) -> Iterator[Event]:
    """The surviving events among the first `end`, newest first; lazy."""
    for index in range(end - 1, -1, -1):
        if events[index].actions.rewind_before_invocation_id:
            yield from reversed(surviving(events[: index + 1]))
            return
        yield events[index]


async def rewind_event(session: Session, invocation_id: str, artifacts: BaseArtifactService | None) -> Event:
    """The event that undoes an invocation and everything after it, to be appended to `session`.

    Its state delta restores the session's own keys to their values before the invocation; a key without such a value is
    deleted. The session's files get a new version with their earlier content, or are marked as removed, at once. State
    and files of the user or the app do not change.

    Raises:
        InvocationNotFoundError: The session has no such invocation.
        StorageError: The artifact service failed.
    """
    ids = [event.invocation_id for event in session.events]
    if invocation_id not in ids:
        raise InvocationNotFoundError("invocation", invocation_id, set(ids))
    first = ids.index(invocation_id)
    remaining, undone = session.events[:first], session.events[first:]
    actions = EventActions(
        rewind_before_invocation_id=invocation_id,
        state_delta=_state_as_before(remaining, undone),
        artifact_delta=await _files_as_before(session, artifacts, remaining, undone) if artifacts else {},
    )
    return Event(author="user", invocation_id=new_invocation_id(), actions=actions)


def _state_as_before(remaining: Sequence[Event], undone: Sequence[Event]) -> dict[str, Any]:
    values = {key: value for event in remaining for key, value in event.actions.state_delta.items()}
    touched = {key for event in undone for key in event.actions.state_delta if not key.startswith(_SHARED)}
    return {key: values.get(key, dict(DELETED)) for key in sorted(touched)}


async def _files_as_before(
    session: Session, artifacts: BaseArtifactService, remaining: Sequence[Event], undone: Sequence[Event]
) -> dict[str, int]:
    owner: dict[str, Any] = {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}
    versions = {name: version for event in remaining for name, version in event.actions.artifact_delta.items()}
    touched = {name for event in undone for name in event.actions.artifact_delta if not name.startswith("user:")}
    delta: dict[str, int] = {}
    for name in sorted(touched):
        version = versions.get(name)
        artifact = None if version is None else await artifacts.load_artifact(**owner, filename=name, version=version)
        delta[name] = await artifacts.save_artifact(**owner, filename=name, artifact=artifact or tombstone())
    return delta
