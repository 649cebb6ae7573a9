"""Generators beside other work: blocking ones item by item in a thread, long ones in time slices on the event loop."""

import asyncio
import gc
import logging
import queue
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from adk_nb import clock
from adk_nb.concurrency.threads import MAX_WORKERS, Call, has_threads, workers
from adk_nb.concurrency.work import current_call_queue, interrupt_call

T = TypeVar("T")

_END = object()

logger = logging.getLogger(__name__)


async def blocking_items(
    new_generator: Callable[[], Generator[T, None, Any]],
    *,
    thread: bool = False,
    threads: int | None = None,
    on_abandon: Callable[[Future[Any]], object] | None = None,
) -> AsyncGenerator[T, None]:
    """`sync.blocking` for a generator: yield each item as it comes; the next is computed only on request.

    The generator runs in one thread and one context from start to end, and is closed there. A cancellation while an
    item is computed does not wait for the item.

    Args:
        new_generator: Creates the generator; called in the same thread.
        thread: As for `sync.blocking`.
        threads: As for `sync.blocking`.
        on_abandon: As for `sync.blocking`, while an item is computed.
    """
    call_queue = None if thread else current_call_queue.get()
    context, stepper = copy_context(), _Stepper(new_generator)
    context.run(current_call_queue.set, None)  # the queue's thread is busy with an item
    calls: queue.SimpleQueue[Call[Any] | None] = queue.SimpleQueue()
    server_call = Call(lambda: _serve(calls), copy_context())
    if call_queue is None and has_threads():
        server_call.outcome.add_done_callback(partial(_fail_calls, calls))
        workers(threads or MAX_WORKERS).put(server_call)
    # Without threads, nothing serves `calls`: each step is a call of its own on the only loop.
    put = call_queue.put if call_queue else calls.put if has_threads() else workers().put
    is_suspended, step = False, None
    try:
        while True:
            step = Call(stepper.next, context)
            put(step)
            item = await asyncio.wrap_future(step.outcome)
            if item is _END:
                return
            is_suspended = True
            yield cast(T, item)
            is_suspended = False
    except asyncio.CancelledError:
        if step and not step.outcome.done():
            server_call.abandon()
            if on_abandon:
                on_abandon(step.outcome)
            interrupt_call(step, call_queue)
        raise
    finally:
        closing = Call(stepper.close, context)
        put(closing)
        calls.put(None)
        if is_suspended:
            await asyncio.wait({asyncio.wrap_future(closing.outcome)})


class _Stepper(Generic[T]):
    """Steps through a generator, which it creates on the first step."""

    def __init__(self, new_generator: Callable[[], Generator[T, None, Any]]) -> None:
        self._new_generator = new_generator
        self._items: Generator[T, None, Any] | None = None

    def next(self) -> T | object:
        if self._items is None:
            self._items = self._new_generator()
        return next(self._items, _END)

    def close(self) -> None:
        try:
            if self._items is not None:
                self._items.close()
        except Exception:
            logger.warning("a generator raised when it was closed", exc_info=True)


def _fail_calls(calls: "queue.SimpleQueue[Call[Any] | None]", served: Future[None]) -> None:
    """Fail the queued steps if no thread was free for the generator."""
    while error := served.exception():
        try:
            call = calls.get_nowait()
        except queue.Empty:
            return
        if call and call.outcome.set_running_or_notify_cancel():
            call.outcome.set_exception(error)


def _serve(calls: "queue.SimpleQueue[Call[Any] | None]") -> None:
    while call := calls.get():
        try:
            call.run()
        except KeyboardInterrupt as error:  # raised by the generator itself: Ctrl-C reaches only the main thread
            call.outcome.set_exception(error)


_SLICE_SECONDS = 0.01
_STEPS_PER_CHECK = 16
"""Number of steps between two checks of the clock."""
_FROZEN_BY_PYTHON = 2_000
"""Python 3.12 counts some hundred immortal objects as frozen (gcmodule.c, `update_refs`); `gc.freeze` adds far more."""


async def run_in_slices(steps: Iterable[object]) -> None:
    """Run all `steps`, each of them short."""
    remaining = iter(steps)
    is_over = _run_slice(remaining)
    is_frozen = None if is_over else has_frozen()
    while not is_over:
        await asyncio.sleep(0)
        with many_objects(is_frozen):
            is_over = _run_slice(remaining)
        if is_over:
            await asyncio.sleep(0)


def _run_slice(remaining: Iterator[object]) -> bool:
    """True if no step remains."""
    started = clock.ticks()
    while len(list(islice(remaining, _STEPS_PER_CHECK))) == _STEPS_PER_CHECK:
        if clock.ticks() - started > _SLICE_SECONDS:
            return False
    return True


def has_frozen() -> bool:
    """True if the user called `gc.freeze`. Takes some milliseconds per million objects, which Python counts."""
    return gc.get_freeze_count() >= _FROZEN_BY_PYTHON


@contextmanager
def many_objects(is_frozen: bool | None = None) -> Generator[None]:
    """Disable garbage collection while creating many long-lived objects.

    A full collection stops all threads, for a second with a million objects. Objects created here go to the oldest
    generation.

    Args:
        is_frozen: The result of `has_frozen`. None: call it.
    """
    if not gc.isenabled():  # disabled by the user, or by another thread in this function
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not (has_frozen() if is_frozen is None else is_frozen):  # else `unfreeze` would undo the user's `gc.freeze`
            gc.freeze()
            gc.unfreeze()  # moves all objects to the oldest generation
        gc.enable()
