"""Runs that are started inside a run on the same session: part of it, whoever starts them, and never a deadlock."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.errors import SessionBusyError
from adk_nb.events import Event
from adk_nb.models import call
from adk_nb.runners import Runner
from adk_nb.runtime import session_queue
from adk_nb.sessions import BaseSessionService, InMemorySessionService, SqliteSessionService
from adk_nb.workflow import Workflow
from tests.runtime.ledger import SESSION_KEY, clerk, events_of, runner_of, stored, talk, texts
from tests.support.polling import SECONDS

Use = Callable[[BaseSessionService], Coroutine[Any, Any, None]]


@pytest.fixture(params=["memory", "file"])
def with_service(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Use], None]:
    async def run(use: Use) -> None:
        service = InMemorySessionService() if request.param == "memory" else SqliteSessionService(tmp_path / "nb.db")
        async with asyncio.timeout(SECONDS):
            await use(service)
        if isinstance(service, SqliteSessionService):
            await service.close()

    return lambda use: asyncio.run(run(use))


def serialized(agent: Any, service: BaseSessionService) -> Runner:
    return runner_of(agent, service, serialize_sessions=True)


async def answer(runner: Runner, **where: Any) -> str:
    return texts(await events_of(runner.run_async(**(SESSION_KEY | where), new_message="inner")))[-1]


def test_of_another_runner_that_a_tool_makes(with_service: Callable[[Use], None]):
    async def use(service: BaseSessionService) -> None:
        async def ask() -> str:
            """Asks."""
            return await answer(serialized(clerk("two"), service))

        outer = serialized(clerk(call("ask"), "three", tools=[ask], tool_errors="raise"), service)
        assert texts(await events_of(talk(outer, "go"))) == ["three"]
        assert texts((await stored(service)).events) == ["go", "inner", "two", "three"]

    with_service(use)


def test_over_a_run_on_another_session(with_service: Callable[[Use], None]):
    async def use(service: BaseSessionService) -> None:
        async def ask_here() -> str:
            """Asks."""
            return await answer(runner)

        async def ask_there() -> str:
            """Asks."""
            return await answer(runner, session_id="another")

        answers = [call("ask_there"), call("ask_here"), "one", "two", "three"]
        runner = serialized(clerk(*answers, tools=[ask_here, ask_there], tool_errors="raise"), service)
        assert texts(await events_of(talk(runner, "go"))) == ["three"]

    with_service(use)


def test_of_a_task_and_a_thread_that_a_node_starts(with_service: Callable[[Use], None]):
    async def use(service: BaseSessionService) -> None:
        inner = serialized(clerk("one", "two"), service)

        async def in_a_task(node_input: str) -> str:
            return await asyncio.create_task(answer(inner))

        async def in_a_thread(node_input: str) -> str:
            return texts(await asyncio.to_thread(lambda: list(inner.run(**SESSION_KEY, new_message="inner"))))[-1]

        outer = serialized(Workflow(name="graph", edges=[("START", in_a_task, in_a_thread)]), service)
        outputs = [event.output for event in await events_of(talk(outer, "go"))]
        assert outputs[-2:] == ["one", "two"]

    with_service(use)


def test_of_a_callback(with_service: Callable[[Use], None]):
    async def use(service: BaseSessionService) -> None:
        inner = serialized(clerk("one"), service)

        async def before(callback_context: Any) -> None:
            assert await answer(inner) == "one"

        outer = serialized(clerk("two", before_agent_callback=before), service)
        assert texts(await events_of(talk(outer, "go"))) == ["two"]

    with_service(use)


def test_of_async_code_in_a_loop_over_a_run_of_sync_code(with_service: Callable[[Use], None]):
    async def use(service: BaseSessionService) -> None:
        runner = serialized(clerk("outer", "inner"), service)

        def read() -> list[str]:
            found: list[str] = []
            for event in runner.run(**SESSION_KEY, new_message="go"):
                found += [event.text, sync.run(answer(runner))]
            return found

        with ThreadPoolExecutor(1) as own_thread:
            loop = asyncio.get_running_loop()
            assert await loop.run_in_executor(own_thread, read) == ["outer", "inner"]

    with_service(use)


def test_a_loop_that_awaits_a_run_in_another_task_is_told_instead_of_waiting_for_ever(
    with_service: Callable[[Use], None], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(session_queue, "_READER_SECONDS", 0.05)

    async def use(service: BaseSessionService) -> None:
        runner = serialized(clerk("one", "two"), service)
        async for event in talk(runner):
            assert event.text == "one"
            with pytest.raises(SessionBusyError, match="own task"):
                await asyncio.gather(answer(runner))
        assert await answer(runner) == "two"

    with_service(use)


def test_a_run_that_the_loop_starts_in_a_task_and_does_not_await_waits_its_turn(with_service: Callable[[Use], None]):
    async def use(service: BaseSessionService) -> None:
        runner = serialized(clerk("one", "two"), service)
        later = [asyncio.create_task(answer(runner)) async for _ in talk(runner)]
        assert await later[0] == "two"
        assert texts((await stored(service)).events) == ["go", "one", "inner", "two"]

    with_service(use)


def test_a_task_of_a_tool_that_outlives_the_run_takes_a_turn_of_its_own(with_service: Callable[[Use], None]):
    async def use(service: BaseSessionService) -> None:
        goes_on, later = asyncio.Event(), list[asyncio.Task[str]]()

        async def ask_later() -> str:
            await goes_on.wait()
            return await answer(runner)

        def begin() -> str:
            """Begins."""
            later.append(loop.create_task(ask_later()))
            return "begun"

        loop = asyncio.get_running_loop()
        runner = serialized(clerk(call("begin"), "one", "two", "three", tools=[begin]), service)
        assert texts(await events_of(talk(runner))) == ["one"]
        under_way: AsyncGenerator[Event, None] = talk(runner)
        assert (await anext(under_way)).text == "two"
        goes_on.set()
        await asyncio.sleep(0)
        assert await asyncio.wait(later, timeout=0.05) == (set(), set(later))
        await events_of(under_way)
        assert await later[0] == "three"

    with_service(use)


def test_runners_of_one_service_share_one_line():
    async def run() -> None:
        service = InMemorySessionService()
        first, second = serialized(clerk("one"), service), serialized(clerk("two"), service)
        under_way = talk(first)
        await anext(under_way)
        waiting = asyncio.create_task(answer(second))
        assert await asyncio.wait({waiting}, timeout=0.05) == (set(), {waiting})
        await events_of(under_way)
        async with asyncio.timeout(SECONDS):
            assert await waiting == "two"

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python's, of the run that is left
def test_a_run_whose_event_loop_was_closed_holds_no_session():
    service = InMemorySessionService()
    runner = serialized(clerk("one", "two"), service)
    loop = asyncio.new_event_loop()
    left = talk(runner)
    loop.run_until_complete(anext(left))
    loop.close()
    assert texts(list(runner.run(**SESSION_KEY, new_message="now"))) == ["two"]
