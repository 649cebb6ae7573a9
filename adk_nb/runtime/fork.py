"""Fork a session: copy its history up to an event under another id. The source session does not change."""

from collections.abc import Sequence
from typing import Any

from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.content import tombstone
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.session import Session
from adk_nb.sessions.session_file import Loaded


async def fork(
    session: Session,
    service: BaseSessionService,
    artifacts: BaseArtifactService | None,
    *,
    session_id: str,
    up_to_event_id: str | None = None,
) -> int:
    """Create a session with the state and the files that `session` had at an event.

    State and files shared by the user's or the app's sessions are not copied. A key of the initial state that an event
    after the fork point overwrote is missing: no event has its initial value.

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
    await Loaded(session.id, state, events).put(service, **owner, session_id=session_id)
    if artifacts:
        try:
            await _copy_files(events, artifacts, session.id, session_id, owner)
        except BaseException:
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
        for number in range(version + 1):
            artifact = await artifacts.load_artifact(**owner, session_id=source_id, filename=name, version=number)
            await artifacts.save_artifact(
                **owner, session_id=target_id, filename=name, artifact=artifact or tombstone()
            )
