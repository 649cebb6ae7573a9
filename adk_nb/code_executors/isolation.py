"""How far a model's code is kept apart from the processes beside it, and what does that on this machine."""

import functools
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from adk_nb.errors import ConfigurationError

logger = logging.getLogger(__name__)

Level = Literal["auto", "none", "processes"]
"""`processes`: the code sees no process but its own, so no other's environment variables, and none that it starts
outlives it. `none`: it has neither. `auto`: `processes` where this machine can do that, else `none` and a warning."""
_TRY_SECONDS = 10.0
_SIGNALLED = 128
_BWRAP = ("--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc", "--")
_UNSHARE = ("--pid", "--fork", "--kill-child", "--mount-proc")
_INIT = ("sh", "-c", 'exec 3>&2 2>/dev/null; "$@" 2>&3 3>&-; exit $?', "sh")
"""Process 1 of a namespace, which signals from within do not end: not the code itself. It says nothing of its own."""
_IGNORING_INTERRUPTS = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")


@dataclass(frozen=True)
class Isolation:
    """A program that starts another one in namespaces of its own. No program: none is."""

    program: str = ""
    arguments: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.program)

    def command(self, command: Sequence[str], *, interrupted: bool = False) -> list[str]:
        """`command`, isolated.

        Args:
            command: It, with its arguments.
            interrupted: Its group gets SIGINT, which is for it alone.
        """
        if not self:
            return list(command)
        before = _IGNORING_INTERRUPTS if interrupted else ()
        return [*before, self.program, *self.arguments, *command]

    def exit_code(self, code: int) -> int:
        """The exit code of the isolated command, for that of the program: -9 for 137, as of a process of one's own."""
        return _SIGNALLED - code if self and code > _SIGNALLED else code


NONE = Isolation()


@functools.cache
def available() -> Isolation:
    """The first that works here. In a container, or with namespaces switched off, one that is installed may not."""
    return next(filter(_works, _candidates()), NONE)


def chosen(level: Level, executor: str) -> Isolation:
    """What an executor's code is started with.

    Args:
        level: As its author says.
        executor: Its name, for the error or the warning.

    Raises:
        ConfigurationError: `level` is `processes`, and nothing here does that.
    """
    found = NONE if level == "none" else available()
    if found or level == "none":
        return found
    if level == "processes":
        raise ConfigurationError(
            f'{executor}(isolation="processes"): {MISSING}; install bubblewrap, or write isolation="none"'
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


def _works(isolation: Isolation) -> bool:
    """Whether it runs a program that sees itself as a process of a small number."""
    seen = isolation.command(["sh", "-c", "echo $$"])
    try:
        done = subprocess.run(seen, capture_output=True, text=True, timeout=_TRY_SECONDS, stdin=subprocess.DEVNULL)
        return done.returncode == 0 and int(done.stdout) < 10
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
