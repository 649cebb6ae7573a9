"""A file that another process keeps locked for seconds: it is waited for, at most 30 s, and the event loop goes on."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adk_nb.errors import StorageError
from adk_nb.events.event import Event
from adk_nb.sessions.sqlite_session_service import SqliteSessionService

S: dict[str, Any] = {"app_name": "app", "user_id": "u", "session_id": "s"}
TICK = 0.01


HOLD = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(float(sys.argv[2]))  # how long the file is locked is what is tested
db.execute("ROLLBACK")
db.close()
"""


async def append_while_locked(path: Path, seconds: float) -> tuple[str, float, float]:
    """What came of an append: `stored`, or the error; after how long; and how long the loop stood still at most."""
    service = SqliteSessionService(path)
    session = await service.create_session(**S)
    other_process = subprocess.Popen([sys.executable, "-c", HOLD, path, str(seconds)], stdout=subprocess.PIPE)  # noqa: ASYNC220
    assert other_process.stdout and await asyncio.to_thread(other_process.stdout.readline) == b"locked\n"
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            earlier_start = time.monotonic()
            await asyncio.sleep(TICK)
            longest = max(longest, time.monotonic() - earlier_start - TICK)

    ticking, since = asyncio.ensure_future(tick()), time.monotonic()
    try:
        await service.append_event(session, Event(author="user", message="a"))
        text = "stored"
    except StorageError as error:
        text = str(error)
    took = time.monotonic() - since
    ticking.cancel()
    await asyncio.to_thread(other_process.communicate)
    await service.append_event(session, Event(author="user", message="after"))
    stored = await service.get_session(**S)
    await service.close()
    assert stored and [event.text for event in stored.events] == ["a", "after"][text != "stored" :]
    return text, took, longest


@pytest.mark.faults
def test_a_file_that_is_locked_for_one_ten_and_forty_seconds(tmp_path: Path, record: Callable[[str], None]):
    async def all_at_once() -> list[tuple[str, float, float]]:
        times = (1, 10, 40)
        return await asyncio.gather(*(append_while_locked(tmp_path / f"{n}.db", n) for n in times))

    item, ten, forty = asyncio.run(all_at_once())
    assert item[0] == ten[0] == "stored"
    assert "program for 30 s" in forty[0]
    assert 29 < forty[1] < 39
    still = max(item[2], ten[2], forty[2])
    assert still < 1, "the event loop was blocked"
    record(
        f"locked for 1 s: stored after {item[1]:.1f} s; for 10 s: after {ten[1]:.1f} s; for 40 s: one error after "
        f"{forty[1]:.1f} s; the event loop stood still for {1000 * still:.0f} ms at most"
    )
