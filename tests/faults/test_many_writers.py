"""Eight processes write to one store at once, each to a session of its own and all to one."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adk_nb.sessions.database_session_service import DatabaseSessionService
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from tests.faults.workers import append_many, forkserver
from tests.sessions.postgres import Postgres

NAMES = "abcdefgh"
COUNTS = [
    pytest.param(12, 2, id="some"),
    pytest.param(1000, 50, id="all", marks=[pytest.mark.faults]),
]


def write(store: Path | str, count: int, shared: int) -> str:
    """Let all write; what came of it."""
    since, processes = time.monotonic(), forkserver()
    writers = [processes.Process(target=append_many, args=(store, name, count, shared)) for name in NAMES]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(800)
    assert [writer.exitcode for writer in writers] == [0] * len(NAMES)
    seconds = time.monotonic() - since
    stored = asyncio.run(read(store))
    for name in NAMES:
        assert stored[name] == [str(number) for number in range(count - shared)]
    assert Counter(stored["shared"]) == dict.fromkeys(NAMES, shared)
    total = sum(map(len, stored.values()))
    assert total == len(NAMES) * count
    return f"{len(NAMES)} processes x {count} appends: 0 errors, 0 lost of {total}, in {seconds:.0f} s"


async def read(store: Path | str) -> dict[str, Any]:
    service = DatabaseSessionService(store) if isinstance(store, str) else SqliteSessionService(store)
    matches: dict[str, Any] = {}
    for name in [*NAMES, "shared"]:
        session = await service.get_session(app_name="app", user_id="u", session_id=name)
        matches[name] = [event.text for event in session.events] if session else []
    await service.close()
    return matches


@pytest.mark.slow
@pytest.mark.parametrize(("count", "shared"), COUNTS)
def test_eight_processes_at_one_file_lose_nothing(
    tmp_path: Path, count: int, shared: int, record: Callable[[str], None]
):
    record(f"SQLite: {write(tmp_path / 'nb.db', count, shared)}")


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize(("count", "shared"), COUNTS)
def test_eight_processes_at_one_database_server_lose_nothing(
    postgres: Postgres, count: int, shared: int, record: Callable[[str], None]
):
    record(f"PostgreSQL: {write(postgres.url(), count, shared)}")
