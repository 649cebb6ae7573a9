"""Fork: a session's history up to an event, under another id; the session that it was taken from stays as it is."""

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
    at: str | None = None,
) -> int:
    """Make a session of that id, with the state and the files that `session` had then.

    What the user's or the app's sessions share is not copied. A key that the session was created with, and that was
    first written after `at`, is not there: no event has its first value.

    Args:
        session: Read, never changed.
        service: Where the session is kept, and where the copy will be.
        artifacts: Where its files are.
        session_id: Of the copy; no session of the user has it.
        at: The id of the last event that is copied. None: all of them.

    Returns:
        How many events were copied.

    Raises:
        AlreadyExistsError: The user has a session with this id.
        InputError: The session has no event of the id `at`.
        StorageError: It cannot be kept; nothing of it is left.
    """
    events = _up_to(session, at)
    written = {key for event in session.events for key in event.actions.state_delta}
    state = {key: value for key, value in session.state.items() if key not in written}
    where: dict[str, Any] = {"app_name": session.app_name, "user_id": session.user_id}
    await Loaded(session.id, state, events).put(service, **where, session_id=session_id)
    if artifacts:
        try:
            await _copy_files(events, artifacts, session.id, session_id, where)
        except BaseException:
            await service.delete_session(**where, session_id=session_id)
            raise
    return len(events)


def _up_to(session: Session, at: str | None) -> list[Event]:
    if at is None:
        return list(session.events)
    for number, event in enumerate(session.events, 1):
        if event.id == at:
            return session.events[:number]
    raise InputError(f"session {session.id!r} has no event {at!r}; the ids are in its events")


async def _copy_files(
    events: Sequence[Event], artifacts: BaseArtifactService, old: str, new: str, where: dict[str, Any]
) -> None:
    """Each version up to the last that the events tell of, so that their numbers are the same."""
    last: dict[str, int] = {}
    for event in events:
        for name, version in event.actions.artifact_delta.items():
            if not name.startswith("user:"):
                last[name] = max(version, last.get(name, 0))
    for name, version in last.items():
        for number in range(version + 1):
            found = await artifacts.load_artifact(**where, session_id=old, filename=name, version=number)
            await artifacts.save_artifact(**where, session_id=new, filename=name, artifact=found or tombstone())
