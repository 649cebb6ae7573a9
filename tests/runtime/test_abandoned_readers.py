"""A task that ended while it read a run holds the session no longer than somebody holds that task."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from adk_nb.events import Event
from adk_nb.models import call
from adk_nb.runners import Runner
from adk_nb.sessions import BaseSessionService, InMemorySessionService, SqliteSessionService
from tests.runtime.ledger import clerk, events_of, runner_of, talk, texts
from tests.support.polling import SECONDS


async def fails_while_it_reads(events: AsyncGenerator[Event, None]) -> None:
    async for _ in events:
        raise ValueError("the page is gone")


async def close_the_unreachable() -> None:
    gc.collect()
    for _ in range(20):  # the loop closes what was collected
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_session_is_free_after_its_reader_failed(tmp_path: Path, kind: str):
    def look() -> str:
        """Looks."""
        return "seen"

    async def use(service: BaseSessionService) -> None:
        runner = runner_of(clerk(call("look"), "two", "three", tools=[look]), service, serialize_sessions=True)
        reader = asyncio.create_task(fails_while_it_reads(talk(runner)))
        await asyncio.wait({reader})
        assert isinstance(reader.exception(), ValueError)
        del reader
        await close_the_unreachable()
        async with asyncio.timeout(SECONDS):
            assert texts(await events_of(talk(runner, "next"))) == ["two"]
            other: Runner = runner_of(clerk("from elsewhere"), service)
            assert texts(await events_of(talk(other, "next"))) == ["from elsewhere"]

    async def run() -> None:
        service = SqliteSessionService(tmp_path / "nb.db") if kind == "file" else InMemorySessionService()
        await use(service)
        if isinstance(service, SqliteSessionService):
            await service.close()

    asyncio.run(run())
