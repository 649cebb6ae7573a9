"""Processes of model-written code: their environment, groups and exit codes, and their isolation from other ones."""

import functools
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adk_nb.code_executors.base_code_executor import USER_REACH
from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.errors import ConfigurationError

logger = logging.getLogger(__name__)

_PASSED = (
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH "
    "DYLD_LIBRARY_PATH SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA "
    "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS CUDA_VISIBLE_DEVICES SSL_CERT_FILE"
)

Level = Literal["auto", "none", "processes", "sandbox"]
"""Levels of isolation.

`processes`: the code sees only its own processes, so no other's environment variables, and none of its processes
outlives it. `sandbox`: besides, no network, and no files but a folder of its own and read access to the system and this
Python. `none`: no isolation. `auto`: `processes` where available, else `none` with a warning. An explicit level that is
not available is an error.
"""
_TRY_SECONDS = 10.0
_SIGNALLED = 128
_POWERS = ("sys_admin", "sys_ptrace", "sys_rawio", "sys_module")
"""Capabilities with which root mounts other files or reads other processes."""
_BWRAP = (
    *("--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc"),
    *(option for power in _POWERS for option in ("--cap-drop", f"cap_{power}")),
)
_SANDBOX = (
    *("--die-with-parent", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
    *("--cap-drop", "ALL"),  # of root, who would otherwise mount the read-only folders anew
)
_SYSTEM_PATHS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ld.so.cache",
)
_UNSHARE = ("--pid", "--fork", "--kill-child", "--mount-proc")
_INIT = ("/bin/sh", "-c", 'exec 3>&2 2>/dev/null; (exec "$@" 2>&3 3>&-); exit $?', "sh")
"""Process 1 of a namespace: signals from within cannot end it. It writes nothing of its own."""
_IGNORING_INTERRUPTS = ("/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh")


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


SANDBOX_REACH = "in a sandbox without network: of your files it can only read this Python with its packages"


@dataclass(frozen=True)
class Isolation:
    """A program that starts a command in namespaces of its own. Empty: no isolation."""

    program: str = ""
    arguments: tuple[str, ...] = ()
    is_sandbox: bool = False
    """True: the command sees only its folder and none of the user's files."""

    def __bool__(self) -> bool:
        return bool(self.program)

    @property
    def reach(self) -> str:
        """The reach of the code, for the approver of a script."""
        return SANDBOX_REACH if self.is_sandbox else USER_REACH

    def command(
        self, command: Sequence[str], folder: str = "", *, readable: str = "", interrupted: bool = False
    ) -> list[str]:
        """The command line for `command` in isolation.

        Args:
            command: Program and arguments.
            folder: Writable folder in a sandbox, which sees no other of its parent.
            readable: A file that a sandbox can read.
            interrupted: The process group may get SIGINT, which only the command must handle.
        """
        if not self:
            return list(command)
        prefix = _IGNORING_INTERRUPTS if interrupted else ()
        if not self.is_sandbox:
            return [*prefix, self.program, *self.arguments, *command]
        bind = [
            *(("--bind", folder, folder) if folder else ()),
            *(("--ro-bind", readable, readable) if readable else ()),
        ]
        return [*prefix, self.program, *self.arguments, *bind, *command]

    def exit_code(self, code: int) -> int:
        """Map the program's exit code to the command's: 137 to -9, as for a child process."""
        return _SIGNALLED - code if self and code > _SIGNALLED else code  # shells report death by signal n as 128 + n


NONE = Isolation()


@functools.cache  # probing starts processes
def available(*, sandbox: bool = False) -> Isolation:
    """The first isolation that works here; tried, as an installed program may not work in a container. NONE: none."""
    return next(filter(_works, _sandboxes() if sandbox else _candidates()), NONE)


def strictest() -> Level:
    """The strictest level that works on this machine."""
    if available(sandbox=True):
        return "sandbox"
    return "processes" if available() else "none"


def select_isolation(level: Level, executor: str) -> Isolation:
    """Select the isolation for an executor.

    Args:
        level: The author's setting.
        executor: Name of the executor, for messages.

    Raises:
        ConfigurationError: `level` is `processes` or `sandbox`, and not available here.
    """
    if level == "none":
        return NONE
    if IN_A_BROWSER:
        logger.warning("%s", browser_message(executor))
        return NONE
    if isolation := available(sandbox=level == "sandbox"):
        return isolation
    if level != "auto":
        missing = "bwrap does not work on this machine" if level == "sandbox" else MISSING
        raise ConfigurationError(
            f'{executor}(isolation="{level}"): {missing}; install bubblewrap, or write isolation="none"'
        )
    logger.warning(
        "%s: %s, so the model's code can read this process's environment variables, with the keys in them, and leave "
        'processes behind; install bubblewrap, or write isolation="none" to do without',
        executor,
        MISSING,
    )
    return NONE


def browser_message(executor: str) -> str:
    """The message for an executor whose process a browser cannot start."""
    return (
        f"{executor} starts a process, which a browser cannot; open the notebook in JupyterLab on your machine, or "
        'write KernelCodeExecutor(kernel="this"), whose code runs in this notebook and can change all of it'
    )


def require_processes(executor: str) -> None:
    """Check that an executor can start its process.

    Raises:
        ConfigurationError: Python runs in a browser.
    """
    if IN_A_BROWSER:
        raise ConfigurationError(browser_message(executor))


MISSING = "neither bwrap nor unshare works on this machine"


def _candidates() -> Iterator[Isolation]:
    if sys.platform != "linux":
        return
    if bwrap := shutil.which("bwrap"):
        yield Isolation(bwrap, _BWRAP)
    if unshare := shutil.which("unshare"):
        yield Isolation(unshare, ("--user", "--map-current-user", *_UNSHARE, *_INIT))
        if setpriv := shutil.which("setpriv"):  # as root, in a container without user namespaces
            dropped = ",".join(f"-{power}" for power in _POWERS)
            yield Isolation(unshare, (*_UNSHARE, setpriv, "--bounding-set", dropped, *_INIT))


def _sandboxes() -> Iterator[Isolation]:
    if sys.platform == "linux" and (bwrap := shutil.which("bwrap")):
        paths = dict.fromkeys([*_SYSTEM_PATHS, sys.base_prefix, sys.prefix])
        binds = [option for path in paths for option in ("--ro-bind-try", path, path)]
        links: list[str] = []
        path = sys.executable
        while os.path.islink(path):
            # Not its folder, in which there may be other files.
            if not any(Path(path).is_relative_to(bound) for bound in paths):
                links += ["--symlink", os.readlink(path), path]
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        yield Isolation(bwrap, (*_SANDBOX, *binds, *links), is_sandbox=True)


def _works(isolation: Isolation) -> bool:
    """True if a shell in the isolation has a small process number."""
    probe = isolation.command(["/bin/sh", "-c", "echo $$"])
    try:
        probe_result = subprocess.run(
            probe, capture_output=True, text=True, timeout=_TRY_SECONDS, stdin=subprocess.DEVNULL
        )
        return (
            probe_result.returncode == 0 and int(probe_result.stdout) < 10
        )  # process numbers of a new namespace start at 1
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
