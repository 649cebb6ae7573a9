"""Waiting in tests: until what another thread, process or server does has happened."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

SECONDS = 30
"""The longest a test waits for what normally takes milliseconds; a busy machine needs the margin."""


def eventually(read: Callable[[], T], *, seconds: float = SECONDS, pause: float = 0.01) -> T:
    """Call `read` until its result is true; return that result.

    Args:
        read: What to poll. An error that it raises ends the wait.
        seconds: Longest wait.
        pause: Seconds between two calls.

    Raises:
        AssertionError: The result was not true in time.
    """
    ticks, deadline = threading.Event(), monotonic() + seconds
    while not (value := read()):
        assert monotonic() < deadline, f"still {value!r} after {seconds:g} s"
        ticks.wait(pause)
    return value
