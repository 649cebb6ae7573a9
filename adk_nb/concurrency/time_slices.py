"""Run long work on the event loop in time slices, so that other tasks run in between."""

import asyncio
import gc
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from adk_nb import clock

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
