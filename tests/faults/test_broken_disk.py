"""A disk on which the first, second, third ... operation fails, and all after it, until it is mended."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adk_nb.errors import StorageError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.sessions.session import Session
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from tests.faults import disk as codes
from tests.faults.disk import Broken, Disk

S: dict[str, Any] = {"app_name": "app", "user_id": "u", "session_id": "s"}
BREAKS = {
    "no room": {"write": codes.FULL},
    "writing fails": {"write": codes.WRITE, "truncate": codes.TRUNCATE, "delete": codes.DELETE},
    "reading fails": {"read": codes.READ},
    "syncing fails": {"sync": codes.SYNC},
    "it is read-only": {"write": codes.READONLY, "truncate": codes.READONLY},
    "no file can be opened": {"open": codes.CANTOPEN},
}


async def use(path: Path, disk: Disk, number: int, what: dict[str, int]) -> tuple[int, Broken]:
    """A conversation on a disk that breaks, and is mended after each error; how many there were."""
    broken, index = disk.breaks_at(number, what), 0
    service, session = SqliteSessionService(path, "full"), None
    events = [Event(author="user", message=str(n), actions=EventActions(state_delta={"n": n})) for n in range(3)]
    while session is None or len(session.events) < len(events):
        try:
            if session is None:
                session = await service.get_session(**S) or await service.create_session(**S)
            await service.append_event(session, events[len(session.events)])
        except StorageError as error:
            index += 1
            assert str(path) in str(error)
            disk.well()
            await same(path, session)
    await service.close()
    disk.well()
    await same(path, session)
    return index, broken


async def same(path: Path, session: Session | None) -> None:
    """What is in memory is what is on the disk."""
    other_service = SqliteSessionService(path)
    stored = await other_service.get_session(**S)
    await other_service.close()
    assert session is None or (stored and (stored.events, stored.state) == (session.events, session.state))


@pytest.mark.parametrize("step", [pytest.param(9, id="some"), pytest.param(1, id="all", marks=pytest.mark.faults)])
@pytest.mark.parametrize("kind", BREAKS)
def test_whatever_operation_fails_is_one_error_and_it_goes_on_once_the_disk_is_mended(
    tmp_path: Path, kind: str, step: int, record: Callable[[str], None]
):
    number, tried, index = 1 - step, 0, 0
    with Disk().inserted() as disk:
        while True:
            number += step
            folder = tmp_path / str(number)
            folder.mkdir()
            errors, broken = asyncio.run(use(folder / "nb.db", disk, number, BREAKS[kind]))
            assert errors <= 1
            index += errors
            if broken.seen < number:
                break
            tried += 1
    assert index > 0
    record(f"{kind}, from each of {tried} operations on: {index} errors, one each at most; nothing half written")
