"""Runs that wait for a session which another run has: in line, for as long as they like, and until they are stopped."""

import asyncio
import itertools
import selectors
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adk_nb import RunConfig
from adk_nb.errors import SessionBusyError
from adk_nb.events import Event
from adk_nb.models import call
from adk_nb.runners import Runner
from adk_nb.runtime.cancellation import INVOCATION_ABORTED
from adk_nb.sessions import InMemorySessionService, Session, SqliteSessionService
from adk_nb.sessions.journal import Lease
from adk_nb.tools import ToolContext
from tests.runtime.ledger import SESSION_KEY, clerk, events_of, runner_of, stored, talk, texts
from tests.support.polling import SECONDS
from tests.support.talk import look

ROUNDS = 50
"""Of the event loop, in which a run comes to where it waits: it reads nothing before."""

Use = Callable[[Runner, Runner, AsyncGenerator[Event, None]], Any]


@pytest.fixture(params=["same runner", "other runner", "memory"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Use], None]:
    """Runs what it is given with a runner that has the session, one that does not, and what is under way."""

    async def run(use: Use) -> None:
        services = [SqliteSessionService(tmp_path / "nb.db") for _ in range(2)] if request.param != "memory" else []
        first = services[0] if services else InMemorySessionService()
        runner = runner_of(clerk("one", "two", "three", "four"), first, serialize_sessions=True)
        other_runner = runner
        if request.param == "other runner":
            other_runner = runner_of(clerk("two", "three", "four"), services[1], serialize_sessions=True)
        under_way = talk(runner)
        await anext(under_way)
        async with asyncio.timeout(SECONDS):
            await use(runner, other_runner, under_way)
        for service in services:
            await service.close()

    return lambda use: asyncio.run(run(use))


async def waits(*tasks: asyncio.Task[Any]) -> None:
    """Let them come as far as they can."""
    assert await asyncio.wait(tasks, timeout=0.08) == (set(), set(tasks))


def test_waiting_runs_start_in_order(held: Callable[[Use], None]):
    async def use(runner: Runner, other_runner: Runner, under_way: AsyncGenerator[Event, None]) -> None:
        pending_tasks = [
            asyncio.create_task(events_of(talk(other_runner, text))) for text in ("a", "b", "c")
        ]  # each finds it held
        await events_of(under_way)
        late = asyncio.create_task(events_of(talk(other_runner, "late", abort_signal=asyncio.Event())))
        assert [texts(result) for result in await asyncio.gather(*pending_tasks)] == [["two"], ["three"], ["four"]]
        with pytest.raises(Exception, match="script"):  # of the late one, who came last
            await late
        messages = [event.text for event in (await stored(runner.session_service)).events if event.author == "user"]
        assert messages == ["go", "a", "b", "c", "late"]

    held(use)


class SlowAtFirst(SqliteSessionService):
    """The first look at a session takes until `goes_on` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.looks, self.goes_on, self.is_refused = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def get_session(self, **kwargs: Any) -> Session | None:
        if not self.looks.is_set():
            self.looks.set()
            await self.goes_on.wait()
        return await super().get_session(**kwargs)

    async def claim(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().claim(*args, **options)
        except SessionBusyError:
            self.is_refused.set()
            raise


def test_one_whose_first_look_takes_long_keeps_its_place(tmp_path: Path):
    async def run() -> None:
        quick, slow = SqliteSessionService(tmp_path / "nb.db"), SlowAtFirst(tmp_path / "nb.db")
        under_way = talk(runner_of(clerk("one"), quick, serialize_sessions=True))
        await anext(under_way)
        other_runner = runner_of(clerk("two", "three"), slow, serialize_sessions=True)
        first = asyncio.create_task(events_of(talk(other_runner, "a")))
        await slow.looks.wait()
        second = asyncio.create_task(events_of(talk(other_runner, "b")))
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        slow.goes_on.set()
        await slow.is_refused.wait()
        await events_of(under_way)
        async with asyncio.timeout(SECONDS):
            assert [texts(result) for result in await asyncio.gather(first, second)] == [["two"], ["three"]]
        for service in (quick, slow):
            await service.close()

    asyncio.run(run())


def test_one_that_is_stopped_while_it_waits_ends_without_a_trace(held: Callable[[Use], None]):
    async def use(runner: Runner, other_runner: Runner, under_way: AsyncGenerator[Event, None]) -> None:
        signal = asyncio.Event()
        task = asyncio.create_task(events_of(talk(other_runner, "told to stop", abort_signal=signal)))
        handle = other_runner.start(**SESSION_KEY, new_message="cancelled")
        cut = asyncio.create_task(events_of(talk(other_runner, "cut")))
        stopped_before = asyncio.Event()
        stopped_before.set()
        assert await asyncio.create_task(events_of(talk(other_runner, "before", abort_signal=stopped_before))) == []
        await waits(task, cut)

        signal.set()
        assert await task == []
        assert other_runner.cancel(handle.invocation_id)
        assert [event async for event in handle.events()] == []
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
        assert await events_of(under_way) == []
        assert texts(await events_of(talk(other_runner, "now"))) == ["two"]
        assert texts((await stored(runner.session_service)).events) == ["go", "one", "now", "two"]

    held(use)


def test_one_waits_no_longer_than_its_timeout_says(held: Callable[[Use], None]):
    async def use(runner: Runner, other_runner: Runner, under_way: AsyncGenerator[Event, None]) -> None:
        with pytest.raises(SessionBusyError, match="session 's'"):
            await asyncio.create_task(events_of(talk(other_runner, "me too", run_config=RunConfig(timeout=0.05))))
        await events_of(under_way)
        assert texts(await events_of(talk(other_runner, "now", run_config=RunConfig(timeout=60.0)))) == ["two"]
        assert texts((await stored(runner.session_service)).events) == ["go", "one", "now", "two"]

    held(use)


async def wrapped(runner: Runner) -> AsyncGenerator[Event, None]:
    async for event in talk(runner):
        yield event


@pytest.mark.parametrize("wrap", [talk, wrapped], ids=["direct", "wrapped"])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("own_task", [False, True])
def test_the_next_message_waits_until_a_dropped_run_is_closed(tmp_path: Path, wrap: Any, waits: bool, own_task: bool):
    async def run() -> None:
        service = SqliteSessionService(tmp_path / "nb.db")
        agent = clerk(call("look"), "two", tools=[look])
        runner = runner_of(agent, service, serialize_sessions=waits)
        async for event in wrap(runner):
            assert event.get_function_calls()
            break
        later = events_of(talk(runner, "next"))
        async with asyncio.timeout(SECONDS):
            assert texts(await (asyncio.create_task(later) if own_task else later)) == ["two"]
        events = (await stored(service)).events
        assert [event.error_code or event.text for event in events] == ["go", "", INVOCATION_ABORTED, "next", "two"]
        await service.close()

    for _ in range(5):
        asyncio.run(run())
        (tmp_path / "nb.db").unlink()


class _CountedSelector(selectors.DefaultSelector):
    """Counts how often its event loop looks for work."""

    selects = 0

    def select(self, timeout: float | None = None) -> Any:
        self.selects += 1
        return super().select(timeout)


def test_runs_in_line_are_woken_and_do_not_poll(tmp_path: Path):
    selector = _CountedSelector()

    async def run() -> None:
        service = SqliteSessionService(tmp_path / "nb.db")
        runner = runner_of(clerk(*"abcdef"), service, serialize_sessions=True)
        under_way = talk(runner)
        await anext(under_way)
        pending_tasks = [asyncio.create_task(events_of(talk(runner))) for _ in range(5)]
        await waits(*pending_tasks)
        earlier_selects = selector.selects
        await waits(*pending_tasks)
        assert selector.selects - earlier_selects <= 3
        await events_of(under_way)
        async with asyncio.timeout(SECONDS):
            assert [texts(events) for events in await asyncio.gather(*pending_tasks)] == [[text] for text in "bcdef"]
        await service.close()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as loop_runner:
        loop_runner.run(run())


class _CutAtTheClaim(SqliteSessionService):
    """Whoever claims a session is cancelled when that is done, and before it knows."""

    is_on = True

    async def claim(self, *args: Any, **kwargs: Any) -> Lease:  # type: ignore[override]
        lease = await super().claim(*args, **kwargs)
        task = asyncio.current_task()
        if self.is_on and task:
            task.cancel()
            await asyncio.sleep(0)
        return lease


def test_a_run_that_is_cancelled_while_it_takes_its_session_does_not_keep_it(tmp_path: Path):
    async def run() -> None:
        service = _CutAtTheClaim(tmp_path / "nb.db")
        runner = runner_of(clerk("one"), service)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(events_of(talk(runner)))
        service.is_on = False
        assert texts(await events_of(talk(runner))) == ["one"]
        await service.close()

    asyncio.run(run())


def test_runs_of_several_threads_and_runners_take_turns():
    service = InMemorySessionService()
    threads, runs = 4, 10
    answers = ["ok"] * threads * runs
    runners = [runner_of(clerk(*answers), service, serialize_sessions=True) for _ in range(2)]

    async def many() -> None:
        async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
            for number in range(runs):
                tasks.create_task(events_of(talk(runners[number % 2])))

    with ThreadPoolExecutor(threads) as pool:
        for ended in [pool.submit(asyncio.run, many()) for _ in range(threads)]:
            ended.result()
    ids = [event.invocation_id for event in asyncio.run(stored(service)).events]
    assert len(ids) == 2 * threads * runs and len(list(itertools.groupby(ids))) == threads * runs


async def increment(tool_context: ToolContext) -> int:
    """Read the count, let others work, and write it."""
    count = tool_context.state.get("n", 0)
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
    tool_context.state["n"] = count + 1
    return count + 1


@pytest.mark.parametrize("kind", ["memory", "file"])
@pytest.mark.parametrize("runners", [1, 5])
def test_messages_sent_at_once_are_whole_turns_one_after_the_other(tmp_path: Path, kind: str, runners: int):
    async def run() -> None:
        service = InMemorySessionService() if kind == "memory" else SqliteSessionService(tmp_path / "nb.db")
        answers = [item for _ in range(5) for item in (call("increment"), "done")]
        those = [runner_of(clerk(*answers, tools=[increment]), service) for _ in range(runners)]
        async with asyncio.timeout(SECONDS):
            turns = await asyncio.gather(
                *(events_of(talk(those[number % runners], f"m{number}")) for number in range(5))
            )
        session = await stored(service)
        assert session.state["n"] == 5
        assert [texts(events) for events in turns] == [["done"]] * 5
        ids = [event.invocation_id for event in session.events]
        assert [len(list(events)) for _, events in itertools.groupby(ids)] == [4] * 5
        messages = [event.text for event in session.events if event.author == "user" and event.text]
        assert sorted(messages) == [f"m{number}" for number in range(5)]
        if isinstance(service, SqliteSessionService):
            await service.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_one_that_does_not_wait_is_refused_and_stores_nothing(tmp_path: Path, kind: str):
    async def run() -> None:
        service = InMemorySessionService() if kind == "memory" else SqliteSessionService(tmp_path / "nb.db")
        runner = runner_of(clerk("one", "two"), service, serialize_sessions=False)
        async with asyncio.timeout(SECONDS):
            under_way = talk(runner)
            await anext(under_way)
            with pytest.raises(SessionBusyError):
                await asyncio.create_task(events_of(talk(runner, "me too", state_delta={"seen": True})))
            await events_of(under_way)
            assert texts((await stored(service)).events) == ["go", "one"]
            assert "seen" not in (await stored(service)).state
            assert texts(await events_of(talk(runner, "later"))) == ["two"]
        if isinstance(service, SqliteSessionService):
            await service.close()

    asyncio.run(run())
