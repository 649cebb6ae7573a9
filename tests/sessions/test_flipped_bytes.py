"""A disk that changes a byte of a file of sessions: it is refused by its name, or the byte says nothing."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adk_nb.errors import StorageError
from adk_nb.events import Event, EventActions
from adk_nb.sessions import Session, SqliteSessionService
from adk_nb.sessions.journal import Intent

FLIPS = 200
WHO: dict[str, Any] = {"app_name": "app", "user_id": "u"}


async def fill(path: Path) -> None:
    """Sessions with events, state of every reach, runs that ended and one that did not, and an approval used up."""
    service = SqliteSessionService(path)
    for name in "ab":
        session = await service.create_session(**WHO, session_id=name, state={"first": [name, 1.5]})
        lease = await service.claim(session, f"run {name}", owner="a test", version="v1")
        for number in range(6):
            delta = {f"k{number}": number, "user:n": number, "app:m": [name]}
            event = Event(author="user", message=f"hello {number}", actions=EventActions(state_delta=delta))
            event.timestamp = number + 0.25
            await service.append_event(session, event)
        attempt = await lease.begin(Intent(run_id=f"run {name}", call_id="c", name="pay"), consumes=["approval:1"])
        assert attempt
        if name == "a":
            await lease.finish(attempt, {"paid": [1]})
        await lease.release()
    await service.close()


async def look(path: Path) -> list[Any]:
    """All that a service tells of a file, and whether an approval can be used a second time."""
    service = SqliteSessionService(path)
    try:
        lines: list[Any] = []
        for name in "ab":
            session = await service.get_session(**WHO, session_id=name)
            lines += [session and session.model_dump(), await _journal(service, session)]
        listed = (await service.list_sessions(app_name="app")).sessions
        return [*lines, [item.model_dump() for item in listed], await service.get_user_state(**WHO)]
    finally:
        await service.close()


async def _journal(service: SqliteSessionService, session: Session | None) -> Any:
    return session and [await service.unfinished(session), await service.consume(session, "approval:1")]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "nb.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA page_size = 512")  # so that there is little in it that says nothing
        db.execute("PRAGMA journal_mode = WAL")
    asyncio.run(fill(path))
    return path.read_bytes()


def test_two_hundred_changed_bytes_are_noticed_or_do_not_matter(good: bytes, tmp_path: Path):
    path = tmp_path / "nb.db"
    chance, refused = random.Random(200), 0
    places = [*chance.sample(range(100), 20), *chance.sample(range(100, len(good)), FLIPS - 20)]  # 100: its header

    async def run() -> None:
        nonlocal refused
        path.write_bytes(good)
        want = await look(path)
        assert len(want[0]["events"]) == 6 and want[1][0][0].attempts and want[1][1] is False
        for place in places:
            bad = bytearray(good)
            bad[place] ^= 1 << chance.randrange(8)
            path.write_bytes(bad)
            try:
                assert await look(path) == want, f"byte {place} was {good[place]} and is {bad[place]}"
            except StorageError as error:
                refused += 1
                assert f"{path} (schema version " in str(error) or f"{path} has schema version" in str(error)
                assert path.read_bytes() == bad, f"byte {place}: the file was written to"

    asyncio.run(run())
    assert [file_path.name for file_path in tmp_path.iterdir()] == ["nb.db"]
    assert refused > FLIPS / 4, refused


def test_what_is_left_of_a_file_that_was_cut_is_refused(good: bytes, tmp_path: Path):
    path, refused = tmp_path / "nb.db", 0
    last = len(good.rstrip(b"\0")) - 1  # SQLite reads zeros where a page is cut: of those, nothing is lost
    for length in (1, 99, 100, 511, 512, 513, len(good) // 2, len(good) - 512, last):
        path.write_bytes(good[:length])
        with pytest.raises(StorageError, match="is damaged") as raised:
            asyncio.run(look(path))
        refused += str(path) in str(raised.value)
        assert path.read_bytes() == good[:length]
    assert refused == 9
