"""Process groups of model-written code."""

import os
import signal
from contextlib import suppress


def end_group(pid: int, signal_number: int = getattr(signal, "SIGKILL", signal.SIGTERM)) -> None:
    """Signal a process and its group. A missing process is ignored.

    A process that left the group deliberately is not reached.
    """
    with suppress(OSError):
        if hasattr(os, "killpg"):  # not on Windows
            os.killpg(pid, signal_number)  # the leader's pid is the id of the group
        else:
            os.kill(pid, signal_number)


def exit_text(exit_code: int) -> str:
    """`status 3`, or `signal SIGKILL`."""
    if exit_code >= 0:
        return f"status {exit_code}"
    try:
        return f"signal {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"signal {-exit_code}"
