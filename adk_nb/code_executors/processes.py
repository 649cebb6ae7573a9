"""Processes of model-written code: their environment variables, groups and exit codes."""

import os
import signal
from contextlib import suppress

_PASSED = (
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH "
    "DYLD_LIBRARY_PATH SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA "
    "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS CUDA_VISIBLE_DEVICES SSL_CERT_FILE"
)


def environment(**extra: str) -> dict[str, str]:
    """The variables of this process that are known to be harmless, and `extra`."""
    # An allowlist: variables with keys and tokens can have any name.
    passed = _PASSED.split()
    variables = {name: value for name, value in os.environ.items() if name.upper() in passed or name.startswith("LC_")}
    return variables | {"PYTHONIOENCODING": "utf-8"} | extra


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
