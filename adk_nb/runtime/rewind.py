"""Rewind a session with an event that undoes an invocation, or fork it: copy it up to an event."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.content import tombstone
from adk_nb.errors import InputError, InvocationNotFoundError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.runtime.invocation_context import new_invocation_id
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.session import Session
from adk_nb.sessions.session_file import Loaded
from adk_nb.sessions.state import State

_SHARED = (State.APP_PREFIX, State.USER_PREFIX, State.TEMP_PREFIX)


def surviving(events: Iterable[Event]) -> list[Event]:
    """`events` without undone events and without rewind events.

    A rewind event undoes everything from the first event of its invocation on, including an older rewind event, whose
    undone events count again. An invocation without an event before the rewind event began before the list. If nothing
    was undone, the list itself is returned: copy it before changing it.
    """
    all_events = events if isinstance(events, list) else list(events)
    # Most sessions have no rewind: find that out without copying.
    for event in all_events:
        if event.actions.rewind_before_invocation_id:
            break
    else:
        return all_events
    # Reversed, so that the first event of each invocation wins.
    first_indexes = {all_events[index].invocation_id: index for index in reversed(range(len(all_events)))}
    remaining_reversed: list[Event] = []
    index = len(all_events) - 1
    # From the end: a rewind event may itself be undone by a later one.
    while index >= 0:
        undone = all_events[index].actions.rewind_before_invocation_id
        if undone:
            first = first_indexes.get(undone, index)
            index = first if first < index else 0
        else:
            remaining_reversed.append(all_events[index])
        index -= 1
    return remaining_reversed[::-1]


def newest_first(events: Sequence[Event], end: int) -> Iterator[Event]:
    """The surviving events among the first `end`, newest first; lazy."""
    for index in range(end - 1, -1, -1):
        if events[index].actions.rewind_before_invocation_id:
            yield from reversed(surviving(events[: index + 1]))
            return
        yield events[index]


async def rewind_event(session: Session, invocation_id: str, artifacts: BaseArtifactService | None) -> Event:
    """The event that undoes an invocation and everything after it, to be appended to `session`.

    Its state delta restores the session's own keys to their values before the invocation, which may be those that the
    session was created with; a key without such a value is deleted. The session's files get a new version with their
    earlier content, or are marked as removed, at once. State and files of the user or the app do not change.

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
        state_delta=_state_as_before(session.initial_state or {}, remaining, undone),
        artifact_delta=await _files_as_before(session, artifacts, remaining, undone) if artifacts else {},
    )
    return Event(author="user", invocation_id=new_invocation_id(), actions=actions)


def _state_as_before(initial: Mapping[str, Any], remaining: Sequence[Event], undone: Sequence[Event]) -> dict[str, Any]:
    values = {**initial, **{key: value for event in remaining for key, value in event.actions.state_delta.items()}}
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


async def fork(
    session: Session,
    service: BaseSessionService,
    artifacts: BaseArtifactService | None,
    *,
    session_id: str,
    up_to_event_id: str | None = None,
) -> int:
    """Create a session with the state and the files that `session` had at an event.

    State and files shared by the user's or the app's sessions are not copied.

    Args:
        session: Read, never changed.
        service: Stores both sessions.
        artifacts: Stores the files.
        session_id: Id of the copy; must be new for the user.
        up_to_event_id: Id of the last event to copy. None: copy all.

    Returns:
        Number of copied events.

    Raises:
        AlreadyExistsError: The user has a session with this id.
        InputError: The session has no event with the id `up_to_event_id`.
        StorageError: The copy could not be stored; nothing of it is left.
    """
    events = _events_up_to(session, up_to_event_id)
    changed = {key for event in session.events for key in event.actions.state_delta}
    state = {key: value for key, value in session.state.items() if key not in changed}
    owner: dict[str, Any] = {"app_name": session.app_name, "user_id": session.user_id}
    loaded = Loaded(session.id, state, events, initial_state=session.initial_state)
    await loaded.put(service, **owner, session_id=session_id)
    if artifacts:
        try:
            await _copy_files(events, artifacts, session.id, session_id, owner)
        except BaseException:  # also a cancellation: no half copy stays
            await service.delete_session(**owner, session_id=session_id)
            raise
    return len(events)


def _events_up_to(session: Session, event_id: str | None) -> list[Event]:
    if event_id is None:
        return list(session.events)
    for number, event in enumerate(session.events, 1):
        if event.id == event_id:
            return session.events[:number]
    raise InputError(f"session {session.id!r} has no event {event_id!r}; the ids are in its events")


async def _copy_files(
    events: Sequence[Event], artifacts: BaseArtifactService, source_id: str, target_id: str, owner: dict[str, Any]
) -> None:
    """Copy each version up to the newest in the events, so that version numbers stay the same."""
    newest: dict[str, int] = {}
    for event in events:
        for name, version in event.actions.artifact_delta.items():
            if not name.startswith("user:"):
                newest[name] = max(version, newest.get(name, 0))
    for name, version in newest.items():
        # A version that cannot be loaded still takes its number.
        for number in range(version + 1):
            artifact = await artifacts.load_artifact(**owner, session_id=source_id, filename=name, version=number)
            await artifacts.save_artifact(
                **owner, session_id=target_id, filename=name, artifact=artifact or tombstone()
            )
