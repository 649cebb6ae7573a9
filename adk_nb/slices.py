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
    is_frozen = None if is_over else has_frozen()
    while not is_over:
        await asyncio.sleep(0)
        with many_objects(is_frozen):
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


def has_frozen() -> bool:
    """Whether a user has frozen what is there. Python counts the objects: of a million it takes some milliseconds."""
    return gc.get_freeze_count() >= _FROZEN_BY_PYTHON


@contextmanager
def many_objects(is_frozen: bool | None = None) -> Generator[None]:
    """Make many objects that stay, without the garbage collections that look through all of those made before.

    Each such collection holds up all threads, for a second where there are a million objects. What is made within
    counts as old from the beginning, so that it is looked through with all that is old.

    Args:
        is_frozen: What `has_frozen` says; None: ask it.
    """
    if not gc.isenabled():  # by its user, or by another thread that is in here
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not (has_frozen() if is_frozen is None else is_frozen):  # else it is to stay so
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
        gc.enable()
