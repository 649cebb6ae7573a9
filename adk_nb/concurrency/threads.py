"""The threads this package owns: one background event loop, and workers for blocking calls.

Python in a browser (Pyodide) has no threads, only the event loop of the page: the foreground loop stands in for them.
"""

import asyncio
import atexit
import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context
from functools import cache
from typing import Any, Generic, TypeVar

from adk_nb.errors import ThreadsExhaustedError, UserError
from adk_nb.lazy import require

T = TypeVar("T")

IN_A_BROWSER = sys.platform == "emscripten"


@cache
def has_threads() -> bool:
    """True if this process can start threads. Tried once, so that all work takes the same path."""
    probe = threading.Thread(target=bool, name="adk-nb-probe", daemon=True)
    try:
        probe.start()
    except RuntimeError:
        return False
    probe.join()
    return True


class ForegroundLoop:
    """The loop of the only thread: in a browser the page's; elsewhere a loop that runs while a caller waits."""

    name = "adk-nb-foreground"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.tasks: set[asyncio.Task[Any]] = set()
        """References that keep tasks alive, as in `LoopThread`."""

    @property
    def closed(self) -> bool:
        """As in `LoopThread`."""
        return self.loop.is_closed()

    def close(self, seconds: float) -> None:
        """Do nothing: the loop belongs to the page or to the caller."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread. None: no loop runs here."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def foreground_loop(last: ForegroundLoop | None) -> ForegroundLoop:
    """The running loop of this thread; else `last`; else a new loop."""
    loop = running_loop() or (asyncio.new_event_loop() if last is None or last.closed else last.loop)
    return last if last and last.loop is loop else ForegroundLoop(loop)


def wait_for(coro: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Suspend the caller until `coro` has ended on `loop`, the only loop, which meanwhile runs other tasks.

    In a browser this is JavaScript Promise Integration. Source: https://pyodide.org/en/stable/usage/api/python-api/
    ffi.html#pyodide.ffi.run_sync.
    """
    if IN_A_BROWSER:
        return require("pyodide.ffi", package="pyodide-py").run_sync(coro)
    require("nest_asyncio2", package="nest-asyncio2").apply(loop)
    return loop.run_until_complete(coro)


def can_wait() -> bool:
    """True if the current call can be suspended; in a browser this depends on how JavaScript called Python."""
    return not IN_A_BROWSER or bool(require("pyodide.ffi", package="pyodide-py").can_run_sync())


def run_at_once(coro: Coroutine[Any, Any, T]) -> T:
    """Run `coro` to its end here and now; only for reads, as it is given up where it would have to wait.

    Raises:
        UserError: It would have to wait.
    """
    try:
        coro.send(None)
    except StopIteration as end:
        return end.value
    coro.close()
    raise cannot_wait()


def cannot_wait(instead: str = "") -> UserError:
    """The error for a wait where `can_wait` is false. `instead`: a cell that awaits the same, if there is one."""
    if hasattr(require("js", package="pyodide-py").WebAssembly, "Suspending"):
        return UserError(
            "a callback of a widget cannot wait in a browser; write chat.start(...), or make it async and await "
            "chat.aask(...)"
        )
    return UserError(
        "this browser cannot wait for a result in a cell, as it has no JavaScript Promise Integration; open the page "
        f"in Chrome or Edge 137 or newer{f', or write: {instead}' if instead else ''}"
    )


class Farewell:
    """Word that this process ends, for runs that a later process can resume: they are left open, as after a kill.

    A kernel is restarted by an interrupt and, right after it, a request to end. Without the second word a run could not
    be told from one that the user has stopped, and would be closed.
    """

    def __init__(self) -> None:
        self.is_expected = False
        """Somebody tells that the process ends, before it does."""
        self.seconds = 0.5
        """How long an interrupt waits for that word."""
        self.reason = ""
        """Why the process ends: what follows `interrupted`, as `by a restart of the kernel`; empty: it does not."""
        self._is_told = threading.Event()

    def tell(self, reason: str) -> None:
        """The process ends, from any thread. `reason`: as the attribute; the first one counts."""
        self.reason = self.reason or reason
        self._is_told.set()

    def wait(self) -> None:
        """After an interrupt: wait for the word where it is expected. A second interrupt ends the wait."""
        if self.is_expected:
            with suppress(KeyboardInterrupt):
                self._is_told.wait(self.seconds)


farewell = Farewell()

HEARTBEAT_SECONDS = 0.2
"""Longest sleep of a wait, to notice a Ctrl-C that does not wake it (Windows, `interrupt_main`)."""
EXIT_SECONDS = 1.0
"""How long the exit of the process waits for cancelled work."""
MAX_WORKERS = 128
MAX_REPLACED = 96
"""Most threads of a pool that are replaced while abandoned functions occupy them."""


class LoopThread(threading.Thread):
    """An event loop on a daemon thread of its own, running from the start."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.loop = asyncio.new_event_loop()
        self.tasks: set[asyncio.Task[Any]] = set()
        """References that keep tasks alive: the loop refers to its tasks only weakly (asyncio.create_task)."""
        self.closed = False
        """True: the loop has ended or was abandoned; do not wait for its work."""
        self.start()

    def run(self) -> None:
        while True:
            try:
                self.loop.run_forever()
                return
            except (KeyboardInterrupt, SystemExit):  # the outcome of a task; the other tasks continue
                continue

    def close(self, seconds: float) -> None:
        """Cancel the running tasks, wait up to `seconds` for them, and close the loop."""

        async def end_tasks() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=seconds)
            await asyncio.get_running_loop().shutdown_asyncgens()

        ended = asyncio.run_coroutine_threadsafe(end_tasks(), self.loop)
        with suppress(TimeoutError):
            ended.result(seconds + HEARTBEAT_SECONDS)
        self.closed = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join(HEARTBEAT_SECONDS)
        if not self.is_alive():
            self.loop.close()


class Call(Generic[T]):
    """A blocking function queued for a thread.

    Its `outcome` can be cancelled until a thread takes the call; then only a Ctrl-C in that thread stops it.
    """

    def __init__(self, fn: Callable[[], T], context: Context) -> None:
        self.outcome: Future[T] = Future()
        self.pool: Workers | None = None
        """The pool whose thread runs the call. None: not started, or run by the thread that waits for the run."""
        self._fn = fn
        self._context = context

    def abandon(self) -> None:
        """Stop waiting for the call: if a worker runs it, replace that thread."""
        if self.pool:
            self.pool.abandon(self)

    def run(self) -> None:
        """Run the function in this thread, unless it was cancelled.

        Raises:
            KeyboardInterrupt: Ctrl-C stopped it. The outcome stays open: its waiter is about to be cancelled,
                and a second cancellation would cut off the clean-up after the first.
        """
        if not self.outcome.set_running_or_notify_cancel():
            return
        try:
            result = self._context.run(self._fn)
        except KeyboardInterrupt:
            raise
        except StopIteration as error:  # a future refuses StopIteration, so its waiter would hang
            stopped = RuntimeError("the function raised StopIteration; give next() a default")
            stopped.__cause__ = error
            self.outcome.set_exception(stopped)
        except BaseException as error:
            self.outcome.set_exception(error)
            del self  # breaks the cycle of the error, its traceback and this frame
        else:
            self.outcome.set_result(result)


class WorkerThread(threading.Thread):
    """A thread of `Workers`."""


class Workers:
    """A pool of threads for blocking calls. They are daemons, so a sleeping call does not delay the end of the process.

    Threads whose call was abandoned are replaced, up to MAX_REPLACED of them. A thread ends when the pool has too many.
    """

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._calls: queue.SimpleQueue[Call[Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = 0
        self._threads = 0
        self._abandoned: set[Call[Any]] = set()
        self._numbers = itertools.count(1)

    def put(self, call: Call[Any]) -> None:
        """Run `call` in a worker, as soon as one is free.

        Raises:
            ThreadsExhaustedError: Abandoned calls occupy all threads.
        """
        if not has_threads():
            loop_thread().loop.call_soon(_run_here, call)
            return
        with self._lock:
            if self._is_exhausted():
                raise self._exhausted()
            self._calls.put(call)
            self._unfinished += 1
            self._grow()

    def abandon(self, call: Call[Any]) -> None:
        """Replace the thread that runs `call`, unless the call has ended."""
        with self._lock:
            if call.outcome.done():
                return
            self._abandoned.add(call)
            self._grow()
            if self._is_exhausted():
                self._refuse_queued()

    def _capacity(self) -> int:
        return self._max_threads + min(len(self._abandoned), MAX_REPLACED)

    def _grow(self) -> None:
        if self._threads < min(self._unfinished, self._capacity()):
            self._threads += 1
            name = f"adk-nb-worker-{next(self._numbers)}"
            WorkerThread(target=self._work, name=name, daemon=True).start()

    def _is_exhausted(self) -> bool:
        return len(self._abandoned) >= self._max_threads + MAX_REPLACED

    def _exhausted(self) -> ThreadsExhaustedError:
        return ThreadsExhaustedError(
            f"no worker thread is free: {len(self._abandoned)} are busy with functions that ran past their timeout, or "
            "whose run was stopped; give what they wait for (requests, sockets, locks) a timeout, or restart"
        )

    def _refuse_queued(self) -> None:
        with suppress(queue.Empty):
            while True:
                call = self._calls.get_nowait()
                self._unfinished -= 1
                if call.outcome.set_running_or_notify_cancel():
                    call.outcome.set_exception(self._exhausted())

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            call.pool = self
            _run_here(call)
            with self._lock:
                self._unfinished -= 1
                self._abandoned.discard(call)
                if self._threads > self._capacity():
                    self._threads -= 1
                    return
            del call


def _run_here(call: Call[Any]) -> None:
    try:
        call.run()
    except KeyboardInterrupt as error:  # raised by the function itself: Ctrl-C reaches only the main thread
        call.outcome.set_exception(error)


class _Process:
    """The threads of one process; a forked child starts without any."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.workers: dict[tuple[str, int], Workers] = {}
        """(purpose, maximum number of threads) -> pool."""
        self.loop_thread: LoopThread | None = None
        self.foreground: ForegroundLoop | None = None


_process = _Process()


def loop_thread() -> LoopThread | ForegroundLoop:
    """The package's background loop, started at the first call; without threads, the loop of the only thread."""
    with _process.lock:
        if not has_threads():
            _process.foreground = foreground_loop(_process.foreground)
            return _process.foreground
        if _process.loop_thread is None or _process.loop_thread.closed:
            _process.loop_thread = LoopThread("adk-nb-loop")
        return _process.loop_thread


def on_a_loop_thread() -> bool:
    """True in a LoopThread, where a blocking call stops all other runs."""
    return isinstance(threading.current_thread(), LoopThread)


def workers(max_threads: int = MAX_WORKERS, /, *, purpose: str = "tools") -> Workers:
    """The process's worker threads for `purpose`, shared by all callers with the same `max_threads`."""
    key = purpose, max_threads
    return _process.workers.get(key) or _process.workers.setdefault(key, Workers(max_threads))


def repeat(step: Callable[[], float | None], *, name: str, after: float = 0) -> None:
    """Call `step` in the background after `after` seconds, then again after the seconds it returns; None: stop.

    On a daemon thread called `name`; without threads, on timers of the only loop.
    """

    def run() -> None:
        seconds: float | None = after
        while seconds is not None:
            time.sleep(seconds)
            seconds = step()

    if has_threads():
        threading.Thread(target=run, name=name, daemon=True).start()
    else:
        loop_thread().loop.call_later(after, _repeat_on_timers, step)


def _repeat_on_timers(step: Callable[[], float | None]) -> None:
    if (seconds := step()) is not None:
        loop_thread().loop.call_later(seconds, _repeat_on_timers, step)


def _after_fork() -> None:
    global _process
    _process = _Process()


@atexit.register
def _at_exit() -> None:
    farewell.tell("by the end of its process")
    if _process.loop_thread is not None:
        _process.loop_thread.close(EXIT_SECONDS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
