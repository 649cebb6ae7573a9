"""Async work from sync code: what a notebook cell, a script and a tool rely on."""

import asyncio
import contextvars
import gc
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncGenerator
from itertools import count

import pytest

from adk_nb import sync
from tests.concurrency.conftest import LeftOver
from tests.support.each import each
from tests.support.own_process import script

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


async def numbers(to: int, log: list[object]) -> AsyncGenerator[int, None]:
    try:
        for number in range(to):
            log.append(asyncio.current_task())
            yield number
    finally:
        await asyncio.sleep(0.01)
        log.append("closed")


# run


def test_run_works_in_a_script_and_inside_a_running_loop():
    async def cell() -> int:
        return sync.run(asyncio.sleep(0, result=7))

    assert sync.run(asyncio.sleep(0, result=6)) == 6
    assert asyncio.run(cell()) == 7
    assert [thread.name for thread in threading.enumerate()].count("adk-nb-loop") == 1


def test_an_error_comes_out_of_run_and_the_next_run_works():
    async def broken() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        sync.run(broken())
    assert sync.run(asyncio.sleep(0, result=1)) == 1


def test_what_is_not_a_coroutine_is_refused_with_a_hint():
    with pytest.raises(TypeError, match=r"got 'function'; write `f\(\)`"):
        sync.run(asyncio.sleep)  # pyright: ignore[reportArgumentType]


def test_a_tool_that_exits_ends_its_run_and_not_the_loop():
    thread = sync.run(asyncio.sleep(0, result=threading.get_ident))()

    async def leave() -> None:
        sys.exit("enough")

    with pytest.raises(SystemExit, match="enough"):
        sync.run(leave())
    with pytest.raises(SystemExit, match="enough"):
        sync.run(sync.blocking(lambda: sys.exit("enough")))
    assert sync.run(asyncio.sleep(0, result=thread)) == threading.get_ident()


def test_the_callers_context_variables_are_seen_in_async_and_in_blocking_work():
    async def work() -> tuple[str, str, str]:
        local = who.get()
        who.set("the task")
        return local, await sync.blocking(who.get), await sync.blocking(who.get, thread=True)

    who.set("the cell")
    assert sync.run(work()) == ("the cell", "the task", "the task")
    assert who.get() == "the cell"


def test_what_blocking_work_sets_does_not_reach_its_task():
    async def work() -> str:
        await sync.blocking(lambda: who.set("the tool"))
        return who.get()

    who.set("the cell")
    assert sync.run(work()) == "the cell"


# where blocking work runs


def test_blocking_work_runs_in_the_waiting_thread_so_that_sqlite_and_signals_work():
    database = sqlite3.connect(":memory:")

    def tool() -> int:
        signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))
        return database.execute("select 42").fetchone()[0]

    assert sync.run(sync.blocking(tool)) == 42
    database.close()


def test_a_user_thread_that_waits_runs_its_own_blocking_work():
    thread_ids: list[tuple[int, int]] = []
    thread = threading.Thread(
        target=lambda: thread_ids.append((sync.run(sync.blocking(threading.get_ident)), threading.get_ident()))
    )
    thread.start()
    thread.join(30)
    assert thread_ids[0][0] == thread_ids[0][1]


def test_thread_true_and_a_loop_of_the_users_own_mean_worker_threads():
    async def work() -> str:
        return await sync.blocking(lambda: threading.current_thread().name)

    assert sync.run(sync.blocking(lambda: threading.current_thread().name, thread=True)).startswith("adk-nb-worker")
    assert asyncio.run(work()).startswith("adk-nb-worker")


def test_blocking_work_in_the_pool_overlaps():
    inside, most, lock, nine = 0, 0, threading.Lock(), threading.Event()

    def block() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        if inside > 8:
            nine.set()
        assert nine.wait(30)
        with lock:
            inside -= 1

    async def work() -> None:
        await asyncio.gather(*(sync.blocking(block, thread=True) for _ in range(100)))

    sync.run(work())
    assert 8 < most <= 32


def test_a_call_that_has_not_started_is_dropped_when_its_task_is_cancelled():
    ran: list[str] = []
    started, go_on = threading.Event(), threading.Event()

    def first() -> None:
        started.set()
        assert go_on.wait(30)

    async def work() -> None:
        task = asyncio.create_task(sync.blocking(first))
        second_task = asyncio.create_task(sync.blocking(lambda: ran.append("second")))
        await asyncio.to_thread(started.wait, 5)
        second_task.cancel()
        await asyncio.wait([second_task])
        go_on.set()
        await task
        await sync.blocking(lambda: ran.append("third"))

    sync.run(work())
    assert ran == ["third"]


def test_a_call_that_runs_in_a_worker_is_left_alone_when_its_task_is_cancelled():
    go_on, ended = threading.Event(), threading.Event()

    async def work() -> str:
        try:
            async with asyncio.timeout(0.05):
                await sync.blocking(lambda: go_on.wait(30) and ended.set(), thread=True)
        except TimeoutError:
            return "went on"
        return "waited"

    assert sync.run(work()) == "went on"
    go_on.set()
    assert ended.wait(30)


def test_a_task_left_over_by_a_tool_finds_a_worker_when_nobody_waits_any_more():
    names: list[str] = []
    steps = threading.Event()

    async def leftover(returned: asyncio.Event) -> None:
        await returned.wait()
        names.append(await sync.blocking(lambda: threading.current_thread().name))
        steps.set()

    async def work() -> tuple[asyncio.Event, asyncio.Task[None]]:
        returned = asyncio.Event()
        return returned, asyncio.create_task(leftover(returned))

    returned, _task = sync.run(work())
    sync.loop().call_soon_threadsafe(returned.set)
    assert steps.wait(30)
    assert names[0].startswith("adk-nb-worker")


def test_a_call_that_nobody_took_before_the_run_ended_goes_to_a_worker():
    steps = threading.Event()

    async def work() -> asyncio.Task[None]:
        task = asyncio.create_task(sync.blocking(steps.set))
        started, release = threading.Event(), threading.Event()
        busy = asyncio.create_task(sync.blocking(lambda: started.set() or release.wait(30)))
        await asyncio.sleep(0)
        release.set()
        await busy
        return task

    sync.run(work())
    assert steps.wait(30)


def test_an_error_of_blocking_work_comes_out_where_it_is_awaited():
    async def work() -> str:
        try:
            await sync.blocking(lambda: 1 // 0)
        except ZeroDivisionError:
            return "told"
        return "silent"

    assert sync.run(work()) == "told"


@pytest.mark.parametrize("thread", [False, True])
def test_blocking_work_that_raises_stop_iteration_does_not_hang(thread: bool):
    with pytest.raises(RuntimeError, match="give next\\(\\) a default"):
        sync.run(sync.blocking(lambda: next(iter([])), thread=thread))


def test_the_way_through_the_waiting_thread_is_cheap():
    async def work(calls: int) -> float:
        began = time.perf_counter()
        for _ in range(calls):
            await sync.blocking(int)
        return (time.perf_counter() - began) / calls

    assert min(sync.run(work(200)) for _ in range(5)) < 500e-6


# nested


def test_a_blocking_tool_may_run_other_work_and_its_leaf_is_in_the_callers_thread():
    def tool() -> int:
        return sync.run(sync.blocking(threading.get_ident))

    assert sync.run(sync.blocking(tool)) == threading.get_ident()


def test_a_blocking_tool_may_drive_a_loop_of_its_own():
    async def inner() -> str:
        return await sync.blocking(lambda: threading.current_thread().name)

    assert sync.run(sync.blocking(lambda: asyncio.run(inner()))).startswith("adk-nb-worker")


def test_an_async_tool_may_call_the_blocking_door_with_its_leaf_in_the_callers_thread():
    async def tool() -> tuple[int, list[int]]:
        return sync.run(sync.blocking(threading.get_ident)), list(sync.iterate(numbers(2, [])))

    assert sync.run(tool()) == (threading.get_ident(), [0, 1])
    assert not [thread for thread in threading.enumerate() if thread.name == "adk-nb-helper"]


def test_the_blocking_door_in_an_async_tool_is_warned_of_once():
    code = (
        "import asyncio\n"
        "from adk_nb import sync\n"
        "async def tool(): return sync.run(asyncio.sleep(0, result=1)) + sync.run(asyncio.sleep(0, result=1))\n"
        "print(sync.run(tool()))\n"
    )
    out, err, _ = script(code)
    assert out == "2\n"
    assert err == "a blocking call inside an async tool holds up every other run; use await other.aask(...)\n"


def test_work_awaited_on_the_background_loop_stays_in_its_task():
    async def tool() -> bool:
        async def inner() -> object:
            return asyncio.current_task()

        return await sync.arun(inner()) is asyncio.current_task()

    assert sync.run(tool())


# iterate


def test_items_come_one_at_a_time_from_one_task():
    log: list[object] = []
    items = sync.iterate(numbers(3, log))
    assert next(items) == 0
    sync.run(asyncio.sleep(0.01))
    assert len(log) == 1, "the second item is not made before it is asked for"
    assert list(items) == [1, 2]
    assert len(set(log[:3])) == 1 and log[3:] == ["closed"]


def test_what_a_generator_opens_it_can_close_across_its_items():
    async def scoped() -> AsyncGenerator[int, None]:
        token = who.set("inside")
        async with asyncio.timeout(5):
            yield 1
            yield 2
        who.reset(token)

    assert list(sync.iterate(scoped())) == [1, 2]


@pytest.mark.parametrize("mode", ["close", "break", "garbage"])
def test_stopping_early_closes_the_generator_before_control_returns(mode: str, left_over: LeftOver):
    log: list[object] = []
    items = sync.iterate(numbers(3, log))
    if mode == "break":
        for _ in sync.iterate(numbers(3, log)):
            break
    elif mode == "close":
        next(items)
        items.close()
    else:
        next(items)
        del items
    assert log[-1] == "closed"
    assert left_over() == set()


def test_clean_up_that_blocks_runs_in_the_thread_that_closes():
    session_key: list[int] = []

    async def items() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            session_key.append(await sync.blocking(threading.get_ident))

    items_ = sync.iterate(items())
    next(items_)
    items_.close()
    assert session_key == [threading.get_ident()]


def test_an_iterator_that_nobody_asked_starts_nothing():
    log: list[object] = []
    items = sync.iterate(numbers(3, log))
    del items
    gc.collect()
    sync.iterate(numbers(3, log)).close()
    assert log == []


def test_an_error_comes_out_where_it_is_awaited():
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise KeyError("gone")

    items = sync.iterate(broken())
    assert next(items) == 1
    with pytest.raises(KeyError):
        next(items)


def test_blocking_work_between_items_runs_in_the_thread_that_waits_for_them():
    async def items() -> AsyncGenerator[int, None]:
        for _ in range(3):
            yield await sync.blocking(threading.get_ident)

    assert set(sync.iterate(items())) == {threading.get_ident()}


# start


def test_a_started_run_goes_on_in_the_background_and_tells_when_it_is_done():
    release = threading.Event()
    runs: list[object] = []
    rang = threading.Event()

    async def work() -> str:
        await sync.blocking(lambda: release.wait(30))
        return await sync.blocking(lambda: threading.current_thread().name)

    started = sync.start(work())
    started.add_done_callback(lambda run: (runs.append(run), rang.set()))
    with pytest.raises(TimeoutError, match=r"not ended within 0\.01 seconds"):
        started.result(timeout=0.01)
    assert not started.done()
    release.set()
    assert started.result(timeout=30).startswith("adk-nb-worker")
    assert rang.wait(30) and runs == [started]
    assert started.done()


def test_cancelling_a_started_run_waits_until_it_has_let_go():
    texts: list[object] = []
    start_event = threading.Event()

    async def work() -> None:
        try:
            start_event.set()
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            texts.append("cleaned up")

    started = sync.start(work())
    assert start_event.wait(30)
    assert started.cancel()
    assert texts == ["cleaned up"] and started.done()
    with pytest.raises(asyncio.CancelledError):
        started.result()


def test_blocking_work_of_a_started_run_runs_on_the_idle_loop_of_the_starter():
    async def cell() -> bool:
        started = sync.start(sync.blocking(threading.get_ident))
        ended = threading.Event()
        started.add_done_callback(lambda _: ended.set())
        assert await asyncio.to_thread(ended.wait, 5)
        return started.result() == threading.get_ident()

    assert asyncio.run(cell())


def test_waiting_for_a_started_run_in_its_home_thread_does_its_blocking_work():
    async def cell() -> bool:
        return sync.start(sync.blocking(threading.get_ident)).result(timeout=30) == threading.get_ident()

    assert asyncio.run(cell())


def test_blocking_work_of_a_started_run_outlives_its_home_loop():
    release = threading.Event()

    async def work() -> str:
        await sync.blocking(lambda: release.wait(30), thread=True)
        return await sync.blocking(lambda: "done")

    async def cell() -> sync.Started[str]:
        return sync.start(work())

    started = asyncio.run(cell())
    release.set()
    assert started.result(timeout=30) == "done"


def test_waiting_for_a_started_run_on_the_background_loop_is_refused():
    async def tool() -> None:
        started = sync.start(asyncio.sleep(0))
        started.result()

    with pytest.raises(RuntimeError, match="background loop"):
        sync.run(tool())


# arun


def test_awaited_work_leaves_the_callers_loop_free_and_blocks_in_its_thread():
    ticks: list[int] = []

    async def work() -> int:
        assert threading.current_thread().name == "adk-nb-loop"
        await asyncio.sleep(0.1)
        return await sync.blocking(threading.get_ident)

    async def tick() -> None:
        for number in count():
            ticks.append(number)
            await asyncio.sleep(0.01)

    async def cell() -> bool:
        ticker = asyncio.create_task(tick())
        session_key = await sync.arun(work())
        ticker.cancel()
        return session_key == threading.get_ident()

    assert asyncio.run(cell())
    assert len(ticks) > 3


def test_cancelling_the_caller_cancels_the_work_and_waits_for_it():
    texts: list[object] = []

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            await sync.blocking(lambda: texts.append(threading.get_ident()))
            await asyncio.sleep(0.01)
            texts.append("cleaned up")

    async def cell() -> None:
        async with asyncio.timeout(0.05):
            await sync.arun(work())

    with pytest.raises(TimeoutError):
        asyncio.run(cell())
    assert texts == [threading.get_ident(), "cleaned up"]


# the process


@pytest.mark.slow
@each(
    "code",
    [
        "print(sync.run(work()))",
        "async def main(): print(sync.run(work()), await sync.arun(work()))\nasyncio.run(main())",
        "print(list(sync.iterate(items())))",
        "kept = sync.iterate(items()); print(next(kept))",
        "sync.start(asyncio.sleep(30)); print('started')",
        "sync.run(leave_a_task()); print('left')",
        "sync.start(sync.blocking(lambda: begun.set() or time.sleep(30))); begun.wait(); print('a worker sleeps')",
        "never = sync.iterate(items()); print('nothing')",
        "kept = sync.start(stuck()); print('stuck'); begun.wait()",
    ],
)
def test_a_script_ends_promptly_and_quietly(code: str):
    out, err, seconds = script(
        "import asyncio, threading, time\n"
        "from adk_nb import sync\n"
        "begun = threading.Event()\n"
        "async def work(): return await sync.blocking(lambda: 7)\n"
        "async def items():\n    yield 1\n    yield 2\n"
        "async def leave_a_task(): asyncio.create_task(asyncio.sleep(30))\n"
        "async def stuck(): begun.set(); time.sleep(30)\n" + code
    )
    assert out and err == ""
    assert seconds < 20


@pytest.mark.parametrize("code", ["kept = sync.iterate(items()); next(kept)", "sync.start(work()); begun.wait()"])
def test_what_still_runs_at_the_end_of_a_script_cleans_up(code: str):
    out, err, seconds = script(
        "import asyncio, threading\n"
        "from adk_nb import sync\n"
        "begun = threading.Event()\n"
        "async def clean_up(): await asyncio.sleep(0.01); print('cleaned up')\n"
        "async def items():\n"
        "    try: print('in'); yield 1\n"
        "    finally: await clean_up()\n"
        "async def work():\n"
        "    try: print('in'); begun.set(); await asyncio.sleep(30)\n"
        "    finally: await clean_up()\n" + code
    )
    assert (out, err) == ("in\ncleaned up\n", "")
    assert seconds < 20


def test_an_interrupted_script_ends_with_its_keyboard_interrupt_and_nothing_else():
    code = (
        "import asyncio, time\n"
        "from adk_nb import sync\n"
        "async def work():\n"
        "    try:\n        await sync.blocking(lambda: print('in') or time.sleep(30))\n"
        "    finally:\n        await asyncio.sleep(0.01); print('cleaned up')\n"
        "try: sync.run(work())\n"
        "except KeyboardInterrupt: print('interrupted', sync.run(asyncio.sleep(0, result=1)))\n"
    )
    out, err, seconds = script(code, interrupt=True)
    assert out.split("\n") == ["in", "cleaned up", "interrupted 1", ""]
    assert err == ""
    assert seconds < 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_loop_and_workers_of_its_own():
    code = (
        "import asyncio, os, sys, warnings\n"
        "from adk_nb import sync\n"
        "warnings.simplefilter('ignore')\n"  # from Python 3.12 on, of a fork with threads
        "work = lambda: (sync.run(asyncio.sleep(0, result=1)), sync.run(sync.blocking(int, thread=True)))\n"
        "work(); parents = sync.loop()\n"
        "if (child := os.fork()) == 0:\n"
        "    assert work() == (1, 0) and sync.loop() is not parents; print('child', flush=True); sys.exit()\n"
        "print(os.waitpid(child, 0)[1], work(), sync.loop() is parents)\n"
    )
    out, err, seconds = script(code)
    assert out.split("\n") == ["child", "0 (1, 0) True", ""]
    assert err == ""
    assert seconds < 20
