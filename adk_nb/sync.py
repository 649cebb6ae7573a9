"""Async work from sync code: run it, iterate over it, start it, and choose the thread of its blocking calls.

All async work runs on one background loop. A thread that waits for it meanwhile runs its blocking calls, so that
a sync tool runs in the thread of its cell: sqlite connections, figures, `input()` and Ctrl-C work.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import aclosing, contextmanager
from contextvars import copy_context
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from adk_nb.concurrency.threads import MAX_WORKERS, Call, loop_thread, on_a_loop_thread, workers
from adk_nb.concurrency.work import (
    GRACE_SECONDS,
    Work,
    ctrl_c_cancels_this_task,
    current_call_queue,
    current_work,
    home_here,
    interrupt_call,
    new_work,
)

P = ParamSpec("P")
T = TypeVar("T")
UNLESS_DONE = "unless it is done"
"""Message of a cancellation that drops no finished work: `task.cancel(UNLESS_DONE)`. See `blocking`."""


def loop() -> asyncio.AbstractEventLoop:
    """The package's background loop, on the daemon thread `adk-nb-loop`. One per process, started when first needed."""
    return loop_thread().loop


def run(coro: Coroutine[Any, Any, T]) -> T:
    """Run `coro` to its end and return its result, whether or not this thread has a running loop.

    It sees the caller's context variables; its blocking calls run in this thread.

    Raises:
        KeyboardInterrupt: Ctrl-C. The work was cancelled and has ended.
        asyncio.CancelledError: The work was cancelled from elsewhere.
    """
    work = new_work(coro)
    try:
        work.begin()
        work.call_queue.serve(work.ended)
        return work.outcome.result(0)
    except KeyboardInterrupt:
        work.wait_for_farewell()
        work.stop(GRACE_SECONDS)
        raise
    finally:
        work.close()


def twin(function: Callable[P, Coroutine[Any, Any, T]], name: str) -> Callable[P, T]:
    """The sync form of an async function: the same arguments, documentation and errors; works in a notebook cell."""

    @wraps(function)
    def wait_for(*args: P.args, **options: P.kwargs) -> T:
        return run(function(*args, **options))

    wait_for.__name__ = wait_for.__qualname__ = name
    return wait_for


def iterate(items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield each item as it comes; the next is computed only on request. Nothing starts before the first request.

    The generator runs in one task from start to end: what it opens (an MCP session, a span) it can also close.
    Blocking calls run in the thread that waits for an item. Stopping early (`break`, `close()`, Ctrl-C, or letting go
    of the iterator) cancels the work and waits until the generator is closed.
    """
    ready: deque[T] = deque()
    requested_items = asyncio.Semaphore(0)

    async def hand_over() -> None:
        async with aclosing(items):
            async for item in items:
                ready.append(item)
                work.call_queue.wake()
                await requested_items.acquire()

    work = new_work(hand_over())
    grace = None
    try:
        work.begin()
        while True:
            work.call_queue.serve(lambda: bool(ready) or work.ended())
            if not ready:
                return work.outcome.result(0)
            yield ready.popleft()
            work.loop.call_soon_threadsafe(requested_items.release)
    except KeyboardInterrupt:
        work.wait_for_farewell()
        grace = GRACE_SECONDS
        raise
    finally:
        work.stop(grace)
        work.close()


async def arun(coro: Coroutine[Any, Any, T]) -> T:
    """Run `coro` on the background loop while the caller's own loop stays free, and return its result.

    Blocking calls run on the caller's loop thread, between its other callbacks, where Ctrl-C stops them.
    Cancelling the caller cancels the work and waits until it has ended.
    """
    if on_a_loop_thread():
        return await coro
    home = asyncio.get_running_loop()
    work = Work(coro, loop_thread(), outer=current_work.get(), home=home)
    try:
        work.begin()
        with ctrl_c_cancels_this_task():
            await work.wait_on(home)
        return work.outcome.result(0)
    except asyncio.CancelledError:
        work.cancel()
        await work.wait_on(home)
        raise
    finally:
        work.cancel()
        work.close()


def start(coro: Coroutine[Any, Any, T], *, home: asyncio.AbstractEventLoop | None = None) -> "Started[T]":
    """Run `coro` in the background and return at once.

    Args:
        coro: It sees the caller's context variables.
        home: The loop whose thread runs the blocking calls when it is idle; by default the loop that runs in this
            thread (in a kernel, the main one). Without one, worker threads run them.
    """
    work = Work(coro, loop_thread(), home=home or home_here())
    work.begin()
    return Started(work)


async def blocking(
    fn: Callable[[], T],
    *,
    thread: bool = False,
    threads: int | None = None,
    on_abandon: Callable[[Future[T]], object] | None = None,
    keeps_result: bool = False,
) -> T:
    """Run `fn` in the thread of the current run's blocking calls, never in this loop's, and return its result.

    Args:
        fn: It sees this task's context variables, and changes its own copy.
        thread: Run it in a worker thread, beside others and out of Ctrl-C's reach.
        threads: Size of the pool, which all callers with the same number share. None: 128.
        on_abandon: Called with the future outcome if this is cancelled while `fn` runs.
        keeps_result: If this is cancelled with UNLESS_DONE and `fn` has ended, return its result or raise its error.

    Cancelling this before `fn` has started drops it; in a worker, a started `fn` is left to end by itself, and its
    thread is replaced.

    Raises:
        ThreadsExhaustedError: Functions left to themselves occupy all threads.
    """
    call_queue = None if thread else current_call_queue.get()
    context = copy_context()
    # The queue's thread is busy with `fn`: work that `fn` starts must not wait for that thread.
    context.run(current_call_queue.set, None)
    call = Call(fn, context)
    (call_queue or workers(threads or MAX_WORKERS)).put(call)
    try:
        return await asyncio.wrap_future(call.outcome)
    except asyncio.CancelledError as cancellation:
        # The thread may have ended `fn` before its result has reached this loop.
        if (
            keeps_result
            and cancellation.args == (UNLESS_DONE,)
            and call.outcome.done()
            and not call.outcome.cancelled()
        ):
            return call.outcome.result()
        if not call.outcome.done():
            call.abandon()
            if on_abandon:
                on_abandon(call.outcome)
            interrupt_call(call, call_queue)
        raise


async def service_call(fn: Callable[[], T]) -> T:
    """Run `fn`, which uses a file or a database, in a worker thread of the services' own pool."""
    context = copy_context()
    context.run(current_call_queue.set, None)
    call = Call(fn, context)
    workers(purpose="services").put(call)
    return await asyncio.wrap_future(call.outcome)


async def callback_call(fn: Callable[[], T], on_abandon: Callable[[Future[T]], object]) -> T:
    """Run `fn`, a callback, in a worker thread of the callbacks' own pool, and return its result.

    Args:
        fn: It sees this task's context variables, and what it sets in them stays.
        on_abandon: As for `blocking`.
    """
    call_queue = current_call_queue.get()
    context = copy_context()
    context.run(current_call_queue.set, None)
    call = Call(fn, context)
    # A worker that waits for a run calls its callbacks: else all workers could wait for one that is free.
    (call_queue if call_queue and call_queue.is_of_worker else workers(purpose="callbacks")).put(call)
    try:
        return await asyncio.wrap_future(call.outcome)
    except asyncio.CancelledError:
        if not call.outcome.done():
            call.abandon()
            on_abandon(call.outcome)
        raise
    finally:
        # The context variables that it set in its copy are set in this task too.
        for variable, value in context.items() if call.outcome.done() else ():
            if variable is not current_call_queue and variable.get(None) is not value:
                variable.set(value)


@contextmanager
def in_workers() -> Generator[None, None, None]:
    """Run blocking calls in this context on worker threads, as with `thread=True`. Leave it before a `yield`."""
    token = current_call_queue.set(None)
    try:
        yield
    finally:
        current_call_queue.reset(token)


class Started(Generic[T]):
    """A run in the background."""

    def __init__(self, work: "Work[T]") -> None:
        self._work = work

    def __repr__(self) -> str:
        return f"Started({'done' if self.done() else 'running'})"

    def done(self) -> bool:
        """True once it has ended: with a result, with an error, or cancelled."""
        return self._work.ended()

    def result(self, timeout: float | None = None) -> T:
        """Wait up to `timeout` seconds for the result.

        Ctrl-C ends the wait only; if it stopped a blocking call of the run, the run is cancelled with it.

        Raises:
            TimeoutError: It still runs.
            RuntimeError: Called in the background loop's own thread, where the wait would block the run.
            asyncio.CancelledError: It was cancelled.
        """
        if on_a_loop_thread() and not self.done():
            raise RuntimeError("result() would hold up the background loop; await arun(...) instead of start(...)")
        if not self._work.wait(timeout):
            raise TimeoutError(f"the run has not ended within {timeout} seconds; ask again, or cancel() it")
        return self._work.outcome.result(0)

    def cancel(self) -> bool:
        """Cancel it and wait up to five seconds, on a loop thread not at all. False: it has not ended yet."""
        self._work.cancel()
        return self._work.wait(0 if on_a_loop_thread() else GRACE_SECONDS)

    def add_done_callback(self, fn: Callable[["Started[T]"], object]) -> None:
        """Call `fn(self)` on the background loop's thread when it has ended; at once if it has."""
        self._work.outcome.add_done_callback(lambda _: fn(self))
