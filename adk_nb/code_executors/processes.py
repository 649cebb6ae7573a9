"""Processes that run a model's code, and all they started: ended together."""

import os
import signal
from contextlib import suppress


def end_group(pid: int, signal_number: int = getattr(signal, "SIGKILL", signal.SIGTERM)) -> None:
    """Signal a process that leads a group, and everyone in the group. None there: nothing happens.

    A process that left the group on purpose is not reached.
    """
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal_number)
        else:
            os.kill(pid, signal_number)


def how_it_ended(exit_code: int) -> str:
    """`status 3`, or the signal that ended it."""
    if exit_code >= 0:
        return f"status {exit_code}"
    try:
        return f"signal {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"signal {-exit_code}"
