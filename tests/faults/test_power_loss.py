"""The machine loses power at any write: of what was not synced some is on the disk, some is not, and one is torn."""

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.sessions.session import Session
from adk_nb.sessions.sql import sqlite, sqlite_file
from adk_nb.sessions.sql.sqlite_file import Durability
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from tests.faults.disk import Disk, Operation

S: dict[str, Any] = {"app_name": "app", "user_id": "u", "session_id": "s"}
EVENTS, SECTOR = 24, 512


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the WAL goes into the file every few events, and not only after some hundred."""
    monkeypatch.setattr(sqlite_file, "CHECKPOINT_PAGES", 20)
    monkeypatch.setattr(sqlite, "THREAD_EVERY", 3)


async def written(folder: Path, durability: Durability) -> list[Operation]:
    """What a conversation does to the disk; and, among it, that the caller was told of an event."""
    with Disk().inserted() as disk:
        disk.log = log = []
        service = SqliteSessionService(folder / "nb.db", durability)
        session = await service.create_session(**S)
        for number in range(EVENTS):
            delta = EventActions(state_delta={"n": number, f"k{number % 3}": "x" * 3000})
            await service.append_event(session, Event(author="user", message=str(number), actions=delta))
            log.append(("told", "", number, b""))
        await service.close()
    return log


def left_of(log: Sequence[Operation], chance: random.Random) -> dict[str, bytes]:
    """The files after the power went: what was synced, and of the rest what happened to get there."""
    safe: dict[str, bytearray] = {}
    pending: dict[str, list[Operation]] = {}
    for operation in log:
        kind, name, *_ = operation
        if kind == "sync":
            for item in pending.pop(name, []):
                _do(safe, item)
        elif kind == "delete":
            pending.pop(name, None)
            safe.pop(name, None)
        elif kind != "told":
            pending.setdefault(name, []).append(operation)
    keeps = chance.choice([0.0, 0.5, 0.9, 1.0])
    for item in (item for group in pending.values() for item in group):
        if chance.random() < keeps:
            kind, name, position, data = item
            torn = len(data) > SECTOR and chance.random() < 0.1
            _do(safe, (kind, name, position, data[: SECTOR * chance.randrange(len(data) // SECTOR)] if torn else data))
    return {name: bytes(data) for name, data in safe.items()}


def _do(files: dict[str, bytearray], operation: Operation) -> None:
    kind, name, position, data = operation
    file = files.setdefault(name, bytearray())
    if kind == "truncate":
        del file[position:]
    elif data:
        file.extend(bytes(max(position - len(file), 0)))
        file[position : position + len(data)] = data


async def read(path: Path) -> Session | None:
    service = SqliteSessionService(path)
    session = await service.get_session(**S)
    await service.close()
    return session


@pytest.mark.usefixtures("checkpoints")
@pytest.mark.parametrize("cuts", [pytest.param(30, id="some"), pytest.param(1000, id="all", marks=pytest.mark.faults)])
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_what_was_told_to_be_stored_outlives_the_power_where_it_is_to_and_nothing_has_gaps(
    tmp_path: Path, durability: Durability, cuts: int, record: Callable[[str], None]
):
    log = asyncio.run(written(tmp_path, durability))
    assert [kind for kind, name, *_ in log if name == "nb.db"].count("sync") > 3, "there were no checkpoints"
    chance, lost = random.Random(f"{durability} {cuts}"), 0
    for number in range(cuts):
        index = chance.randrange(len(log) + 1)
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, data in left_of(log[:index], chance).items():
            (folder / name).write_bytes(data)
        total = sum(kind == "told" for kind, *_ in log[:index])
        text = asyncio.run(read(folder / "nb.db"))
        texts = [event.text for event in text.events] if text else []
        assert texts == [str(n) for n in range(len(texts))], (number, index)
        assert not texts or (text and text.state["n"] == len(texts) - 1), (number, index)
        assert durability == "normal" or len(texts) >= total, (number, index)
        lost += max(total - len(texts), 0)
    assert (lost > 0) == (durability == "normal")
    record(f"durability {durability}: power lost {cuts} times: {lost} events lost that were told to be stored, 0 gaps")
