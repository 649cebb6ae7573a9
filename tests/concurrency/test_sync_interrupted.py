"""Async work from sync code that Ctrl-C stops, at any moment."""

import asyncio
import linecache
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from adk_nb import sync
from tests.concurrency.conftest import LeftOver
from tests.support.own_process import pause_before_signal, script


async def blocked_in(fn: Callable[[], Any], log: list[object]) -> Any:
    """Wait for `fn`; note whether clean-up that awaits was allowed to finish."""
    try:
        return await sync.blocking(fn)
    finally:
        await asyncio.sleep(0.01)
        log.append("cleaned up")


def sleep_after(started: threading.Event) -> Callable[[], None]:
    """A function that sets `begun` and then sleeps, until a Ctrl-C."""

    def sleep() -> None:
        started.set()
        time.sleep(30)  # the call that Ctrl-C has to stop

    return sleep


@contextmanager
def ctrl_c(*moments: threading.Event) -> Generator[None, None, None]:
    """A real SIGINT at each moment; KeyboardInterrupt must end the block before its work would end by itself."""
    starts: list[float] = []

    def send() -> None:
        for moment in moments:
            assert moment.wait(30)
            pause_before_signal()
            starts.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - starts[-1] < 15
    sender.join(30)


def test_ctrl_c_cancels_awaiting_work_and_waits_for_its_clean_up(left_over: LeftOver):
    texts: list[object] = []
    started = threading.Event()

    async def work() -> None:
        try:
            started.set()
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            texts.append("cleaned up")

    with ctrl_c(started):
        sync.run(work())
    assert texts == ["cleaned up"]
    assert left_over() == set()


@pytest.mark.parametrize("kind", ["sleeps", "is busy"])
@pytest.mark.parametrize("door", ["run", "iterate"])
def test_ctrl_c_stops_a_blocking_tool_and_cancels_its_run_once(kind: str, door: str, left_over: LeftOver):
    log: list[object] = []
    started = threading.Event()

    def tool() -> None:
        if kind == "sleeps":
            sleep_after(started)()
        started.set()
        while True:
            pass

    async def items() -> AsyncGenerator[None, None]:
        yield await blocked_in(tool, log)

    with ctrl_c(started):
        if door == "run":
            sync.run(blocked_in(tool, log))
        else:
            list(sync.iterate(items()))
    assert log == ["cleaned up"]
    assert left_over() == set()
    assert sync.run(sync.blocking(threading.get_ident)) == threading.get_ident()


def test_a_second_ctrl_c_breaks_the_wait_for_work_that_does_not_let_go():
    started, cleaning, release = threading.Event(), threading.Event(), threading.Event()

    async def stubborn() -> None:
        try:
            started.set()
            await asyncio.sleep(30)
        finally:
            cleaning.set()
            await asyncio.to_thread(release.wait, 30)

    with ctrl_c(started, cleaning):
        sync.run(stubborn())
    release.set()


def test_ctrl_c_before_the_task_could_start_does_not_wait_for_a_second_one(left_over: LeftOver):
    start_event, release = threading.Event(), threading.Event()
    started: list[str] = []

    async def work() -> None:
        started.append("never")

    def hold_the_loop() -> None:
        start_event.set()
        release.wait(0.4)

    sync.loop().call_soon_threadsafe(hold_the_loop)
    with ctrl_c(start_event):
        sync.run(work())
    assert started == []
    assert left_over() == set()


def test_ctrl_c_in_a_nested_run_ends_both(left_over: LeftOver):
    log: list[object] = []
    started = threading.Event()

    def tool() -> None:
        sync.run(blocked_in(sleep_after(started), log))

    with ctrl_c(started):
        sync.run(blocked_in(tool, log))
    assert log == ["cleaned up", "cleaned up"]
    assert left_over() == set()


@pytest.mark.parametrize("leaf", ["awaits", "blocks"])
def test_ctrl_c_reaches_work_that_an_async_tool_waits_for_on_the_background_loop(leaf: str, left_over: LeftOver):
    texts: list[object] = []
    started = threading.Event()

    async def awaits() -> None:
        try:
            started.set()
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            texts.append("cleaned up")

    async def tool() -> None:
        try:
            sync.run(awaits() if leaf == "awaits" else blocked_in(sleep_after(started), texts))
        finally:
            await asyncio.sleep(0.01)
            texts.append("tool cleaned up")

    with ctrl_c(started):
        sync.run(tool())
    assert texts == ["cleaned up", "tool cleaned up"]
    assert left_over() == set()


def test_ctrl_c_is_not_lost_on_work_that_begins_while_the_background_loop_is_held(left_over: LeftOver):
    started = threading.Event()

    async def tool() -> None:
        started.set()
        threading.Event().wait(0.3)
        sync.run(asyncio.sleep(30))

    with ctrl_c(started):
        sync.run(tool())
    assert left_over() == set()


def test_clean_up_after_ctrl_c_may_run_work_of_its_own():
    started = threading.Event()
    sleeps: list[object] = []

    async def work() -> None:
        try:
            started.set()
            await asyncio.sleep(30)
        finally:
            sleeps.append(await sync.blocking(lambda: sync.run(asyncio.sleep(0, result="in a tool"))))
            sleeps.append(sync.run(asyncio.sleep(0, result="on the loop")))

    with ctrl_c(started):
        sync.run(work())
    assert sleeps == ["in a tool", "on the loop"]


def test_ctrl_c_stops_the_run_of_a_tool_in_a_worker_thread():
    texts: list[object] = []
    started, ended = threading.Event(), threading.Event()

    async def inner() -> None:
        try:
            started.set()
            await asyncio.sleep(30)
        finally:
            texts.append("cleaned up")

    def tool() -> None:
        try:
            sync.run(inner())
        finally:
            ended.set()

    with ctrl_c(started):
        sync.run(sync.blocking(tool, thread=True))
    assert ended.wait(30)
    assert texts == ["cleaned up"]


def test_ctrl_c_gets_through_a_blocked_loop_that_handles_it_itself():
    started = threading.Event()

    async def cell() -> None:
        sync.run(blocked_in(sleep_after(started), []))

    with ctrl_c(started):
        asyncio.run(cell())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def at_every_line(door: Callable[[], object]) -> Iterator[float]:
    """Call `door` with a Ctrl-C at the first line it executes in our files, then at the second, and so on."""
    for target in count():
        lines = 0

        def trace(frame: Any, event: str, _arg: object, target: int = target) -> Any:
            nonlocal lines
            if os.path.basename(frame.f_code.co_filename) not in ("sync.py", "work.py", "threads.py"):
                return None
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            if event == "line" and not line.startswith("with "):  # where one ends, only a trace could come in between
                lines += 1
                if lines > target:
                    raise KeyboardInterrupt
            return trace

        began = time.monotonic()
        sys.settrace(trace)
        try:
            door()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        yield time.monotonic() - began
        if lines <= target:
            return


async def a_bit_of_everything() -> AsyncGenerator[int, None]:
    await asyncio.sleep(0.001)
    yield await sync.blocking(int)
    yield 2


async def last_of(items: AsyncGenerator[int, None]) -> int:
    return [item async for item in items][-1]


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # a Ctrl-C before the first line of ours
@pytest.mark.parametrize("door", ["run", "iterate"])
def test_ctrl_c_at_any_line_of_ours_leaves_nothing_running(door: str, left_over: LeftOver):
    doors: dict[str, Callable[[], object]] = {
        "run": lambda: sync.run(last_of(a_bit_of_everything())),
        "iterate": lambda: list(sync.iterate(a_bit_of_everything())),
    }
    tried = 0
    for seconds in at_every_line(doors[door]):
        tried += 1
        assert seconds < 15
        assert left_over() == set()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert tried > 40


def test_ctrl_c_while_waiting_for_a_started_run_ends_the_wait_only():
    start_event, release = threading.Event(), threading.Event()

    async def work() -> str:
        start_event.set()
        await sync.blocking(lambda: release.wait(30))
        return "done"

    started = sync.start(work())
    with ctrl_c(start_event):
        started.result()
    release.set()
    assert started.result(timeout=30) == "done"


def test_ctrl_c_that_stops_the_blocking_work_of_a_started_run_cancels_the_run():
    started = threading.Event()
    log: list[object] = []
    runs: list[sync.Started[None]] = []

    async def cell() -> None:
        runs.append(sync.start(blocked_in(sleep_after(started), log)))
        runs[0].result()

    with ctrl_c(started):
        asyncio.run(cell())
    with pytest.raises(asyncio.CancelledError):
        runs[0].result(timeout=30)
    assert log == ["cleaned up"]


@pytest.mark.parametrize("kind", ["awaits", "sleeps", "is busy"])
def test_ctrl_c_stops_awaited_work(kind: str, left_over: LeftOver):
    started = threading.Event()
    texts: list[object] = []

    def tool() -> None:
        if kind == "sleeps":
            sleep_after(started)()
        started.set()
        while True:
            pass

    async def awaits() -> None:
        try:
            started.set()
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            texts.append("cleaned up")

    async def cell() -> None:
        await sync.arun(awaits() if kind == "awaits" else blocked_in(tool, texts))

    with ctrl_c(started):
        asyncio.run(cell())
    assert texts == ["cleaned up"]
    assert left_over() == set()
    assert asyncio.run(sync.arun(asyncio.sleep(0, result=1))) == 1


@pytest.mark.parametrize("kind", ["awaits", "blocks"])
def test_ctrl_c_stops_awaited_work_where_the_loop_has_no_handler_of_its_own(kind: str):
    started = threading.Event()
    texts: list[object] = []
    loop = asyncio.new_event_loop()

    async def awaits() -> None:
        try:
            started.set()
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            texts.append("cleaned up")

    def cell() -> None:
        work = awaits() if kind == "awaits" else blocked_in(sleep_after(started), texts)
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(sync.arun(work))
        raise KeyboardInterrupt

    with ctrl_c(started):
        cell()
    assert texts == ["cleaned up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    loop.close()


def test_a_cancellation_that_does_not_wake_the_callers_loop_is_noticed_as_in_a_kernel():
    started = threading.Event()

    async def work() -> None:
        started.set()
        await asyncio.sleep(30)

    async def cell() -> None:
        task = asyncio.current_task()
        assert task is not None

        def cancel(_signal: int, _frame: object) -> None:
            asyncio.get_running_loop().call_soon(task.cancel)

        signal.signal(signal.SIGINT, cancel)
        try:
            await sync.arun(work())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    with ctrl_c(started):
        asyncio.run(cell())


def test_ctrl_c_that_does_not_wake_a_wait_is_still_noticed():
    code = (
        "import asyncio, threading, _thread\n"
        "from adk_nb import sync\n"
        "threading.Timer(0.1, _thread.interrupt_main).start()\n"
        "print('go')\n"
        "try: sync.run(asyncio.sleep(30))\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    out, err, seconds = script(code)
    assert (out, err) == ("go\ninterrupted\n", "")
    assert seconds < 15
