"""How far a model's code is kept apart from the processes beside it, and what does that on this machine."""

import functools
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from adk_nb.errors import ConfigurationError

logger = logging.getLogger(__name__)

Level = Literal["auto", "none", "processes", "sandbox"]
"""How far code is kept apart.

`processes`: it sees no process but its own, so no other's environment variables, and none that it starts outlives it.
`sandbox`: besides, it has no network, and of the files a folder of its own, and to read those of the system and of this
Python. `none`: nothing of that. `auto`: `processes` where this machine can do it, else `none` and a warning. A level
that is named and not to be had is an error.
"""
_TRY_SECONDS = 10.0
_SIGNALLED = 128
_BWRAP = ("--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc")
_SANDBOX = ("--die-with-parent", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
_OF_THE_SYSTEM = (
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
"""Process 1 of a namespace, which signals from within do not end: not the code itself. It says nothing of its own."""
_IGNORING_INTERRUPTS = ("/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh")


@dataclass(frozen=True)
class Isolation:
    """A program that starts another one in namespaces of its own. No program: none is."""

    program: str = ""
    arguments: tuple[str, ...] = ()
    is_sandbox: bool = False
    """The command sees the folder that it is given, and no other of the user's."""

    def __bool__(self) -> bool:
        return bool(self.program)

    def command(self, command: Sequence[str], folder: str = "", *, interrupted: bool = False) -> list[str]:
        """`command`, isolated.

        Args:
            command: It, with its arguments.
            folder: What it may write to in a sandbox.
            interrupted: Its group gets SIGINT, which is for it alone.
        """
        if not self:
            return list(command)
        before = _IGNORING_INTERRUPTS if interrupted else ()
        own = ("--bind", folder, folder) if self.is_sandbox and folder else ()
        return [*before, self.program, *self.arguments, *own, *command]

    def exit_code(self, code: int) -> int:
        """The exit code of the isolated command, for that of the program: -9 for 137, as of a process of one's own."""
        return _SIGNALLED - code if self and code > _SIGNALLED else code


NONE = Isolation()


@functools.cache
def available(*, sandbox: bool = False) -> Isolation:
    """The first that works here. In a container, or with namespaces switched off, one that is installed may not."""
    return next(filter(_works, _sandboxes() if sandbox else _candidates()), NONE)


def chosen(level: Level, executor: str) -> Isolation:
    """What an executor's code is started with.

    Args:
        level: As its author says.
        executor: Its name, for the error or the warning.

    Raises:
        ConfigurationError: `level` is `processes` or `sandbox`, and nothing here does that.
    """
    if level == "none":
        return NONE
    if found := available(sandbox=level == "sandbox"):
        return found
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


MISSING = "neither bwrap nor unshare works on this machine"


def _candidates() -> Iterator[Isolation]:
    if sys.platform != "linux":
        return
    if bwrap := shutil.which("bwrap"):
        yield Isolation(bwrap, _BWRAP)
    if unshare := shutil.which("unshare"):
        yield Isolation(unshare, ("--user", "--map-current-user", *_UNSHARE, *_INIT))
        yield Isolation(unshare, (*_UNSHARE, *_INIT))  # as root, in a container without user namespaces


def _sandboxes() -> Iterator[Isolation]:
    if sys.platform == "linux" and (bwrap := shutil.which("bwrap")):
        paths = dict.fromkeys([*_OF_THE_SYSTEM, sys.base_prefix, sys.prefix, *_links(sys.executable)])
        seen = [word for path in paths for word in ("--ro-bind-try", path, path)]
        yield Isolation(bwrap, (*_SANDBOX, *seen), is_sandbox=True)


def _links(path: str) -> Iterator[str]:
    """The folders of the links that lead from `path` to its file."""
    while os.path.islink(path):
        yield os.path.dirname(path)
        path = os.path.join(os.path.dirname(path), os.readlink(path))


def _works(isolation: Isolation) -> bool:
    """Whether it runs a program that sees itself as a process of a small number."""
    seen = isolation.command(["/bin/sh", "-c", "echo $$"])
    try:
        done = subprocess.run(seen, capture_output=True, text=True, timeout=_TRY_SECONDS, stdin=subprocess.DEVNULL)
        return done.returncode == 0 and int(done.stdout) < 10
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
