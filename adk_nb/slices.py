"""Long work on the event loop, in slices: between two of them the loop goes on with others."""

import asyncio
import gc
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from adk_nb import clock

_SLICE_SECONDS = 0.01
_STEPS = 16
"""How many steps are taken between two looks at the clock."""
_FROZEN_BY_PYTHON = 2_000
"""Python 3.12 counts some hundred immortal objects as frozen (gcmodule.c, `update_refs`); `gc.freeze` adds far more."""


async def in_slices(steps: Iterable[object]) -> None:
    """Take all `steps`, each of them brief."""
    left = iter(steps)
    is_over = _slice(left)
    while not is_over:
        await asyncio.sleep(0)
        with many_objects():
            is_over = _slice(left)
        if is_over:
            await asyncio.sleep(0)


def _slice(left: Iterator[object]) -> bool:
    """True if that was the last."""
    began = clock.ticks()
    while len(list(islice(left, _STEPS))) == _STEPS:
        if clock.ticks() - began > _SLICE_SECONDS:
            return False
    return True


@contextmanager
def many_objects() -> Generator[None]:
    """Make many objects that stay, without the garbage collections that look through all of those made before.

    Each such collection holds up all threads, for a second where there are a million objects. What is made within
    counts as old from the beginning, so that it is looked through with all that is old.
    """
    if not gc.isenabled():  # by its user, or by another thread that is in here
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() < _FROZEN_BY_PYTHON:  # else a user has frozen what is there, and wants it to stay so
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
        gc.enable()
