"""Rewind a session with an event that undoes an invocation, or fork it: copy it up to an event."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from adk_nb.artifacts.base_artifact_service import BaseArtifactService, tombstone
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
    values = dict(session.initial_state or {})
    for event in remaining:
        values |= event.actions.state_delta
    keys = {key for event in undone for key in event.actions.state_delta if not key.startswith(_SHARED)}
    actions = EventActions(
        rewind_before_invocation_id=invocation_id,
        state_delta={key: values.get(key, dict(DELETED)) for key in sorted(keys)},
    )
    if artifacts:
        owner: dict[str, Any] = {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}
        versions = {name: version for event in remaining for name, version in event.actions.artifact_delta.items()}
        names = {name for event in undone for name in event.actions.artifact_delta if not name.startswith("user:")}
        for name in sorted(names):
            version = versions.get(name)
            part = None if version is None else await artifacts.load_artifact(**owner, filename=name, version=version)
            new_version = await artifacts.save_artifact(**owner, filename=name, artifact=part or tombstone())
            actions.artifact_delta[name] = new_version
    return Event(author="user", invocation_id=new_invocation_id(), actions=actions)


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
    ids = [event.id for event in session.events]
    if up_to_event_id is not None and up_to_event_id not in ids:
        raise InputError(f"session {session.id!r} has no event {up_to_event_id!r}; the ids are in its events")
    events = session.events[: len(ids) if up_to_event_id is None else ids.index(up_to_event_id) + 1]
    changed = {key for event in session.events for key in event.actions.state_delta}
    state = {key: value for key, value in session.state.items() if key not in changed}
    owner: dict[str, Any] = {"app_name": session.app_name, "user_id": session.user_id}
    loaded = Loaded(session.id, state, events, initial_state=session.initial_state)
    await loaded.put(service, **owner, session_id=session_id)
    if artifacts is None:
        return len(events)
    newest: dict[str, int] = {}
    for event in events:
        for name, version in event.actions.artifact_delta.items():
            if not name.startswith("user:"):
                newest[name] = max(version, newest.get(name, 0))
    try:
        # Each version up to the newest, so that version numbers stay the same; one that cannot be loaded takes its own.
        for name, number in [(name, number) for name, last in newest.items() for number in range(last + 1)]:
            part = await artifacts.load_artifact(**owner, session_id=session.id, filename=name, version=number)
            await artifacts.save_artifact(**owner, session_id=session_id, filename=name, artifact=part or tombstone())
    except BaseException:  # also a cancellation: no half copy stays
        await service.delete_session(**owner, session_id=session_id)
        raise
    return len(events)
