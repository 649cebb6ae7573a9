"""Waiting in tests: until what another thread, process or server does has happened."""

import os
import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

SECONDS = 30
"""The longest a test waits for what normally takes milliseconds."""


def patience(seconds: float) -> float:
    """`seconds`, times as many as there are processes for each processor: a busy machine takes so much longer."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return seconds * max(1.0, load / (os.cpu_count() or 1))


def eventually(read: Callable[[], T], *, seconds: float = SECONDS, pause: float = 0.01) -> T:
    """Call `read` until its result is true; return that result.

    Args:
        read: What to poll. An error that it raises ends the wait.
        seconds: Longest wait, on a machine that does nothing else.
        pause: Seconds between two calls.

    Raises:
        AssertionError: The result was not true in time.
    """
    ticks, began = threading.Event(), monotonic()
    while not (value := read()):
        assert (waited := monotonic() - began) < patience(seconds), f"still {value!r} after {waited:.0f} s"
        ticks.wait(pause)
    return value
