"""A run on a background loop, and the queue of its blocking calls for the thread that waits for the run."""

import _thread
import asyncio
import logging
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from functools import cache
from typing import Any, Generic, TypeVar

from adk_nb.concurrency.threads import (
    HEARTBEAT_SECONDS,
    Call,
    ForegroundLoop,
    LoopThread,
    WorkerThread,
    can_wait,
    cannot_wait,
    farewell,
    has_threads,
    loop_thread,
    on_a_loop_thread,
    running_loop,
    wait_for,
    workers,
)

T = TypeVar("T")

GRACE_SECONDS = 5.0
"""How long a Ctrl-C waits for the cancelled work to end. A second Ctrl-C ends the wait."""
_HELPER = "adk-nb-helper"
"""Name of a loop thread for one piece of work, on which another loop thread waits."""

_logger = logging.getLogger(__name__)


class CallQueue:
    """A queue of blocking calls for a thread inside `serve`, or for an idle `home` loop."""

    def __init__(self, on_interrupt: Callable[[], None], home: asyncio.AbstractEventLoop | None = None) -> None:
        self.home = home
        self.is_of_worker = isinstance(threading.current_thread(), WorkerThread)
        """True: a worker waits for the run, and serves this queue."""
        self._on_interrupt = on_interrupt
        """Called after a Ctrl-C has stopped a call."""
        self._calls: queue.SimpleQueue[Call[Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_open = True
        self._running: Call[Any] | None = None
        self._is_interrupted = False
        self._woken: asyncio.Event | None = None
        """Set by `wake`; None: no caller is suspended in the only thread."""

    def put(self, call: Call[Any]) -> None:
        """Queue `call`; if this queue is closed, a worker runs it."""
        with self._lock:
            if not self._is_open or not has_threads():
                workers().put(call)
                return
            self._calls.put(call)
        if self.home is not None:
            try:
                self.home.call_soon_threadsafe(self._serve_next)
            except RuntimeError:  # the home loop is closed
                self.close()

    def wake(self) -> None:
        """Let `serve` check its `until` again."""
        if self._woken:
            self._woken.set()
        else:
            self._calls.put(None)

    def serve(self, until: Callable[[], bool], seconds: float | None = None) -> None:
        """Run calls in this thread until `until()` holds or `seconds` are over. Ctrl-C raises KeyboardInterrupt."""
        deadline = None if seconds is None else time.monotonic() + seconds
        if not has_threads():
            wait_for(self._wait_suspended(until, deadline), loop_thread().loop)
            return
        with _interruptible():
            while not until():
                if (timeout := _wait_seconds(deadline)) <= 0:
                    return
                with suppress(queue.Empty):
                    self._run(self._calls.get(timeout=timeout))

    async def _wait_suspended(self, until: Callable[[], bool], deadline: float | None) -> None:
        """Wait on the only loop, which runs the calls meanwhile."""
        self._woken = asyncio.Event()
        while not until():
            if (timeout := _wait_seconds(deadline)) <= 0:
                return
            self._woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), timeout)

    def close(self) -> None:
        """Take no more calls; workers run the queued ones."""
        with self._lock:
            self._is_open = False
        with suppress(queue.Empty):
            while True:
                if call := self._calls.get_nowait():
                    workers().put(call)

    def interrupt_call(self, call: Call[Any], last_position: object = None) -> None:
        """Raise a KeyboardInterrupt in the abandoned `call`, if it runs here in the main thread.

        Call this on a loop: it repeats itself while the call stays at `last_position`, because a signal that arrives
        just before the thread falls asleep does not wake it. If the program has its own SIGINT handler, the call
        continues.
        """
        main = threading.main_thread()
        if threading.current_thread() is main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        with self._lock:
            # The frame and the instruction that the main thread executes.
            frame = sys._current_frames().get(main.ident or 0)  # pyright: ignore[reportPrivateUsage]
            position = frame and (frame, frame.f_lasti)
            if self._running is call and last_position in (None, position):
                self._is_interrupted = True
                _interrupt(main)
                asyncio.get_running_loop().call_later(HEARTBEAT_SECONDS, self.interrupt_call, call, position)

    def _run(self, call: Call[Any] | None) -> None:
        if call is None:
            return
        self._is_interrupted = False
        try:
            if threading.current_thread() is threading.main_thread():
                self._running = call
            try:
                call.run()
            finally:
                with self._lock:  # a signal that is already sent arrives here, not in the next call
                    self._running = None
        except KeyboardInterrupt:
            self._running = None
            if not self._is_interrupted:
                farewell.wait()
                self._on_interrupt()
                raise

    def _serve_next(self) -> None:
        """Run one call as a callback of the home loop, which a KeyboardInterrupt out of here would end."""
        loop_handler = signal.getsignal(signal.SIGINT)
        try:
            # At most one None: `wake` comes once, at the end.
            call = self._calls.get_nowait() or self._calls.get_nowait()
            with _interruptible(even_if_ignored=True):
                self._run(call)
        except queue.Empty:  # a thread inside `serve` was faster
            return
        except KeyboardInterrupt:
            if callable(loop_handler) and loop_handler is not signal.default_int_handler:
                loop_handler(signal.SIGINT, None)  # asyncio's or a kernel's: it cancels the waiting task


def _wait_seconds(deadline: float | None) -> float:
    """Seconds of the next wait: until the deadline, and no longer than a heartbeat."""
    return HEARTBEAT_SECONDS if deadline is None else min(HEARTBEAT_SECONDS, deadline - time.monotonic())


def _interrupt(main: threading.Thread) -> None:
    """Interrupt the main thread like Ctrl-C, even while it sleeps."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    elif main.ident is not None:
        signal.pthread_kill(main.ident, signal.SIGINT)


@contextmanager
def _interruptible(even_if_ignored: bool = False) -> Generator[None, None, None]:
    """Let Ctrl-C raise KeyboardInterrupt in code that blocks a running loop, whose own handler could not act."""
    handler = signal.getsignal(signal.SIGINT)
    has_handler = callable(handler) or (even_if_ignored and handler == signal.SIG_IGN)
    if not has_handler or threading.current_thread() is not threading.main_thread() or running_loop() is None:
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def ctrl_c_cancels_this_task() -> Generator[None, None, None]:
    """Let the first Ctrl-C cancel the current task where it would otherwise end the loop (terminal IPython)."""
    task = asyncio.current_task()
    is_main = threading.current_thread() is threading.main_thread()
    if task is None or not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    loop = task.get_loop()

    def cancel(_signal: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop.call_soon_threadsafe(task.cancel)

    try:
        signal.signal(signal.SIGINT, cancel)
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is cancel:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Work(Generic[T]):
    """A task on a background loop, and its outcome for the thread that waits for it.

    Cancelling a run that waits for this one (`outer`) cancels this one too, down to the innermost.
    """

    def __init__(
        self,
        coro: Coroutine[Any, Any, T],
        thread: LoopThread | ForegroundLoop,
        *,
        outer: "Work[Any] | None" = None,
        home: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not asyncio.iscoroutine(coro):
            raise TypeError(f"expected a coroutine, got {type(coro).__name__!r}; write `f()`, with an `async def f`")
        self.outcome: Future[T] = Future()
        self.call_queue = CallQueue(self.cancel, home)
        self.target_queue = None if home is None else self.call_queue
        """The queue of the task's blocking calls. None: workers run them."""
        self.loop = thread.loop
        self._thread = thread
        self._coro = coro
        self._task: asyncio.Task[T] | None = None
        self._outer = outer
        self._inner: set[Work[Any]] = set()
        self._cancel_requested = False
        self._cancel_sent = False

    def begin(self) -> None:
        """Start the task, with a copy of this thread's context variables."""
        if self._outer is not None:
            self._outer._inner.add(self)
        context = copy_context()
        context.run(current_work.set, self)
        context.run(current_call_queue.set, self.target_queue)
        self.loop.call_soon_threadsafe(self._start, context)
        if self._outer is not None and self._outer._cancel_requested and not self._outer._cancel_sent:
            self.cancel()  # after it was sent, work that the outer run's clean-up starts is not cancelled

    def ended(self) -> bool:
        """True once the task has ended, or its loop was closed."""
        return self.outcome.done() or self._thread.closed

    def wait_for_farewell(self) -> None:
        """After Ctrl-C, before the task is cancelled: let it learn whether the process ends."""
        if not self._cancel_requested:
            farewell.wait()

    def cancel(self) -> None:
        """Cancel the task, from any thread, once: a second cancellation would cut off the clean-up after the first."""
        if self.ended():
            return
        self.loop.call_soon_threadsafe(self._send_cancel)
        self._cancel_requested = True
        for inner in tuple(self._inner):
            inner.cancel()

    def stop(self, seconds: float | None) -> None:
        """Cancel it and wait up to `seconds` until it has ended; its last blocking calls run here."""
        self.cancel()
        if threading.current_thread() is not self._thread and can_wait():  # iterators are collected in any thread
            self.call_queue.serve(self.ended, seconds)

    def wait(self, seconds: float | None) -> bool:
        """Wait up to `seconds`; True if it has ended. Its blocking calls run here if this is their thread."""
        call_queue, home = self.call_queue, self.call_queue.home
        if home is None or (home is not home_here() and home.is_running()):
            call_queue = CallQueue(self.cancel)
            self.outcome.add_done_callback(lambda _: call_queue.wake())
        call_queue.serve(self.ended, seconds)
        return self.ended()

    async def wait_on(self, home: asyncio.AbstractEventLoop) -> None:
        """Wait for its end on another loop. A cancellation breaks the wait.

        The heartbeat is for kernels: their Ctrl-C schedules a cancellation without waking a loop that sleeps.
        """
        ended = home.create_future()

        def wake(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                home.call_soon_threadsafe(lambda: ended.done() or ended.set_result(None))

        self.outcome.add_done_callback(wake)
        while not self.ended():
            await asyncio.wait({ended}, timeout=HEARTBEAT_SECONDS)

    def close(self) -> None:
        """End the wait of the caller; blocking calls of tasks that remain go to workers."""
        self.call_queue.close()
        if self._outer is not None:
            self._outer._inner.discard(self)
            self._outer._cancelled_by_inner()
        if self._thread.name == _HELPER and threading.current_thread() is not self._thread:
            self._thread.close(GRACE_SECONDS)

    def _start(self, context: Context) -> None:
        self._task = self.loop.create_task(self._coro, context=context)
        self._thread.tasks.add(self._task)
        self._task.add_done_callback(self._end, context=context)

    def _end(self, task: asyncio.Task[T]) -> None:
        self._thread.tasks.discard(task)
        if task.cancelled():
            self.outcome.set_exception(asyncio.CancelledError())
        elif error := task.exception():
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())
        self.call_queue.wake()

    def _send_cancel(self) -> None:
        if self._cancel_sent:
            return
        self._cancel_sent = True
        if self._task is not None:
            self._task.cancel()
        else:  # Ctrl-C came before `_start` ran
            self._coro.close()
            self.outcome.set_exception(asyncio.CancelledError())
            self.call_queue.wake()

    def _cancelled_by_inner(self) -> None:
        """Count the cancellation of an inner run as this task's own, if this task waited for it: it gets the error."""
        is_own_thread = self._cancel_requested and threading.current_thread() is self._thread
        if is_own_thread and asyncio.current_task() is self._task:
            self._cancel_sent = True


current_work: ContextVar[Work[Any] | None] = ContextVar("adk_nb_current_work", default=None)
current_call_queue: ContextVar[CallQueue | None] = ContextVar("adk_nb_current_call_queue", default=None)
"""The queue of the current run's blocking calls. None: workers run them."""
stop_wanted: ContextVar[threading.Event | None] = ContextVar("adk_nb_stop_wanted", default=None)
"""Set when the user stops the current run; its cancellation then interrupts its blocking call."""


def interrupt_call(call: Call[Any], call_queue: CallQueue | None) -> None:
    """Interrupt an abandoned `call` if the user has stopped its run and a cell's thread runs the call."""
    if call_queue and (stop_event := stop_wanted.get()) and stop_event.is_set():
        call_queue.interrupt_call(call)


def new_work(coro: Coroutine[Any, Any, T]) -> Work[T]:
    """Create work, not begun, for a caller that blocks until it has ended.

    On a loop thread the caller blocks that loop, so the work gets a loop of its own.

    Raises:
        UserError: In a browser, the caller cannot be suspended.
    """
    if not can_wait():
        coro.close()
        raise cannot_wait()
    if on_a_loop_thread():
        _warn_once()
        work = Work(coro, LoopThread(_HELPER), outer=current_work.get())
        work.target_queue = current_call_queue.get()
    else:
        work = Work(coro, loop_thread(), outer=current_work.get())
        work.target_queue = work.call_queue
    return work


@cache
def _warn_once() -> None:
    _logger.warning("a blocking call inside an async tool holds up every other run; use await other.aask(...)")


def home_here() -> asyncio.AbstractEventLoop | None:
    """The loop of this thread, if it may run blocking calls; on a loop thread of ours, that of the current run."""
    if on_a_loop_thread():
        call_queue = current_call_queue.get()
        return None if call_queue is None else call_queue.home
    return running_loop()
