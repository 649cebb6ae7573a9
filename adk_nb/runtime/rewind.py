"""Rewind: which events of a session still count, and the event that undoes the newer ones."""

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
    """`events` without those that were undone, and without the marks that undid them.

    A mark undoes all from the first event of its invocation on; also an older mark, and what that undid counts again.
    An invocation that is not in `events` before the mark began before them. A list in which nothing was undone is given
    back as it is: copy it before changing it.
    """
    given = events if isinstance(events, list) else list(events)
    for event in given:
        if event.actions.rewind_before_invocation_id:
            break
    else:
        return given
    began = {given[at].invocation_id: at for at in reversed(range(len(given)))}
    kept: list[Event] = []
    at = len(given) - 1
    while at >= 0:
        undone = given[at].actions.rewind_before_invocation_id
        if undone:
            first = began.get(undone, at)
            at = first if first < at else 0
        else:
            kept.append(given[at])
        at -= 1
    return kept[::-1]


def newest_first(events: Sequence[Event], before: int) -> Iterator[Event]:
    """The surviving of the first `before` events, newest first; only those that are asked for are looked at."""
    for at in range(before - 1, -1, -1):
        if events[at].actions.rewind_before_invocation_id:
            yield from reversed(surviving(events[: at + 1]))
            return
        yield events[at]


async def undoing(session: Session, invocation_id: str, artifacts: BaseArtifactService | None) -> Event:
    """The event that undoes an invocation and all that came after it, to be appended to `session`.

    Its state delta restores the session's own keys as the events before left them; a key that none of them wrote is
    deleted. The session's files get a newest version as they were, or are marked as removed, now. What belongs to the
    user or the app stays.

    Raises:
        InvocationNotFoundError: The session has none of that id.
        StorageError: The artifact service failed.
    """
    ids = [event.invocation_id for event in session.events]
    if invocation_id not in ids:
        raise InvocationNotFoundError("invocation", invocation_id, set(ids))
    first = ids.index(invocation_id)
    before, after = session.events[:first], session.events[first:]
    actions = EventActions(
        rewind_before_invocation_id=invocation_id,
        state_delta=_state_as_before(before, after),
        artifact_delta=await _files_as_before(session, artifacts, before, after) if artifacts else {},
    )
    return Event(author="user", invocation_id=new_invocation_id(), actions=actions)


def _state_as_before(before: Sequence[Event], after: Sequence[Event]) -> dict[str, Any]:
    written = {key: value for event in before for key, value in event.actions.state_delta.items()}
    touched = {key for event in after for key in event.actions.state_delta if not key.startswith(_SHARED)}
    return {key: written.get(key, dict(DELETED)) for key in sorted(touched)}


async def _files_as_before(
    session: Session, artifacts: BaseArtifactService, before: Sequence[Event], after: Sequence[Event]
) -> dict[str, int]:
    where: dict[str, Any] = {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}
    written = {name: version for event in before for name, version in event.actions.artifact_delta.items()}
    touched = {name for event in after for name in event.actions.artifact_delta if not name.startswith("user:")}
    delta: dict[str, int] = {}
    for name in sorted(touched):
        version = written.get(name)
        found = None if version is None else await artifacts.load_artifact(**where, filename=name, version=version)
        delta[name] = await artifacts.save_artifact(**where, filename=name, artifact=found or tombstone())
    return delta
