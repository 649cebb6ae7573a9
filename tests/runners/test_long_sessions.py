"""A long session is read in slices: the event loop goes on with other work between them."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Coroutine
from typing import Any

import pytest

from adk_nb import Chat, clock, sync
from adk_nb.events import Event
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService, Session
from tests.support.talk import SESSION_KEY, guide

EVENTS = 1_600
AT_ONCE = 100
"""The most events that are looked at in one round of the event loop."""

_round = 0
_looks: defaultdict[int, set[int]] = defaultdict(set)
"""Round of the event loop -> ids of the events that were looked at in it."""


class Watched(Event):
    """Notes when it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("author", "actions", "content"):
            _looks[_round].add(id(self))
        return super().__getattribute__(name)


class Long(InMemorySessionService):
    """Every session begins with many events."""

    def __init__(self) -> None:
        super().__init__()
        self.events = [Watched(author="user", message=str(number)) for number in range(EVENTS)]

    async def get_session(self, **where: Any) -> Session | None:  # type: ignore[override]
        session = await super().get_session(**where)
        if session:
            session.events = [*self.events, *session.events]
        return session


@pytest.fixture(autouse=True)
def slice_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "ticks", itertools.count().__next__)  # each look at the clock is a second later


async def watched(work: Coroutine[Any, Any, Any]) -> list[int]:
    """How many events were looked at in each round of the event loop while `work` was done."""
    global _round

    async def count_rounds() -> None:
        global _round
        while True:
            _round += 1
            await asyncio.sleep(0)

    _looks.clear()
    counting = asyncio.create_task(count_rounds())
    await work
    counting.cancel()
    return [len(events) for events in _looks.values()]


async def make_session(**where: str) -> Long:
    service = Long()
    await service.create_session(**where)
    return service


def test_by_a_run():
    async def run() -> list[int]:
        service = await make_session(app_name="app", **SESSION_KEY)
        runner = Runner(app_name="app", agent=guide("ok"), session_service=service)

        async def answer() -> None:
            assert [event.text async for event in runner.run_async(**SESSION_KEY, new_message="hi")] == ["ok"]

        return await watched(answer())

    looks = asyncio.run(run())
    assert sum(looks) >= EVENTS and max(looks) <= AT_ONCE


def test_by_a_chat():
    async def run() -> list[int]:
        service = await make_session(app_name="notebook", user_id="user", session_id="main")
        chat = Chat(guide("ok"), session_service=service)

        async def answer() -> None:
            assert (await chat.aask("hi")).text == "ok"

        return await watched(answer())

    looks = sync.run(run())
    assert sum(looks) >= EVENTS and max(looks) <= AT_ONCE
