"""Clocks that jump, and differ: order is the order of appending, and a lease is as long as it is."""

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adk_nb import clock
from adk_nb.events.event import Event
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from tests.faults.clerk import Desk, Points
from tests.faults.outcome import check


def test_a_clock_that_jumps_at_every_look_changes_no_order_and_ends_no_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Callable[[str], None]
):
    chance = random.Random(20)

    async def run() -> None:
        desks = [Desk(tmp_path, Points()) for _ in range(2)]
        for number in range(6):
            await desks[number % 2].finish(str(number % 3))
        for desk in desks:
            await desk.service.close()

    looks = 0

    def now() -> float:
        nonlocal looks
        looks += 1
        return 1.8e9 + chance.choice([0, 3600, -3600, 86400, -172800]) + chance.random()  # an approval holds for days

    monkeypatch.setattr(clock, "time", type("Jumping", (), {"time": staticmethod(now), "monotonic": time.monotonic}))
    asyncio.run(run())
    result = check(tmp_path, "a clock that jumps")
    record(f"a clock that jumped {looks} times: {result}")


def test_two_machines_ten_minutes_apart_write_in_the_order_of_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def run() -> list[str]:
        own_service, other_service = (SqliteSessionService(tmp_path / "nb.db") for _ in range(2))
        session_key = {"app_name": "app", "user_id": "u", "session_id": "s"}
        await own_service.create_session(**session_key)
        for number in range(10):
            service = (own_service, other_service)[number % 2]
            session = await service.get_session(**session_key)
            assert session
            index = 1.8e9 + number - 600 * (number % 2)
            await service.append_event(session, Event(author="user", message=str(number), timestamp=index))
        stored = await own_service.get_session(**session_key)
        await own_service.close()
        await other_service.close()
        assert stored
        return [event.text for event in stored.events]

    assert asyncio.run(run()) == [str(number) for number in range(10)]
