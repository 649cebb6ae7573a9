"""The journal of runs: leases on sessions, intents, and keys that may be used once.

A second, small interface beside `BaseSessionService`. Services that store sessions on disk implement it. Without it a
run that was interrupted cannot be resumed, and two processes may run one session at the same time.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from adk_nb.lazy import require
from adk_nb.sessions.session import Session

LEASE_SECONDS = 15.0
"""Time without `renew` after which another run may take the session over. Renew at a third of it. A lease that ran out
stays valid until another run takes it over."""

_PROCESS = re.compile(r"process (\d+) on (.*?)(?: \(([0-9a-f]{8})\))?", re.DOTALL)

Effect = Literal["pure", "idempotent", "once"]
"""Effect of repeating an action. `pure`: none. `idempotent`: none if the key is the same. `once`: it happens twice."""


@dataclass(frozen=True, kw_only=True)
class Intent:
    """An action with effects outside the session that a run is about to take."""

    run_id: str
    """Id of the invocation."""
    branch: str = ""
    """Branch of the agent; sister branches may use the same call id."""
    kind: Literal["model", "tool", "wait", "callback"] = "tool"
    call_id: str
    """Id of the function call; for other kinds, a key that is unique in the run and the same after a restart."""
    name: str = ""
    """Name of the tool."""
    effect: Effect = "once"

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt, unique otherwise. 32 hexadecimal digits."""
        identity = json.dumps([self.run_id, self.branch, self.kind, self.call_id])
        return hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()

    def event_id(self, phase: str) -> str:
        """Id of the event that reports `phase` of this intent. It is the same for every attempt, so that a session
        accepts the event only once.
        """
        return hashlib.blake2b(f"{self.key}|{phase}".encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt at an intent."""

    intent: Intent
    number: int
    """1, 2, ... From 2 on, an earlier attempt may have taken effect."""
    started: float
    """Seconds since the epoch, UTC."""
    finished: float | None = None
    """None: unknown whether it took effect."""
    outcome: Any = None
    """The JSON value that was passed to `finish`."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """An invocation in the journal."""

    id: str
    owner: str
    """The process that holds it, or held it last."""
    version: str
    """Hash of the agents and tools, as passed to `claim`, to notice edits."""
    started: float
    """Seconds since the epoch, UTC."""
    is_alive: bool
    """Its lease has not run out."""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    """Oldest first."""


class Lease(Protocol):
    """The right of a run to write to a session, until it is released or taken over."""

    @property
    def fence(self) -> int:
        """Increases with each lease of the session. A write under a fence that is not the highest is refused."""
        ...

    @property
    def is_heir(self) -> bool:
        """True: an earlier run of the session was interrupted, and nobody has ended it since."""
        ...

    def renew(self) -> Awaitable[None]:
        """Extend the lease by LEASE_SECONDS.

        Raises:
            StaleSessionError: Another run took the session over.
        """
        ...

    def release(self, outcome: str | None = None) -> Awaitable[None]:
        """Release the session. Does nothing if another run took it over.

        Args:
            outcome: Result of the run: `done`, `failed`, `cancelled`, `waiting`. None: it was interrupted, and stays
                in `unfinished`.
        """
        ...

    def drop(self, run_id: str) -> Awaitable[None]:
        """Record that an interrupted run of the session is not resumed: its outcome is `cancelled`.

        Raises:
            StaleSessionError: Another run took the session over.
        """
        ...

    def begin(self, intent: Intent, consumes: Sequence[str] = ()) -> Awaitable[Attempt | None]:
        """Record the start of an attempt at `intent`, before it takes effect.

        Args:
            intent: The intent.
            consumes: Keys that allow it, each of which may be used once; used up in the same transaction.

        Returns:
            The attempt, with its number. None: a key was used up before, and nothing was recorded.

        Raises:
            StaleSessionError: Another run took the session over: the intent must not be carried out.
        """
        ...

    def attempts(self, run_id: str) -> Awaitable[list[Attempt]]:
        """List the attempts of the run `run_id` of this session, oldest first; also of a run that has ended."""
        ...

    def finish(self, attempt: Attempt, outcome: Any = None) -> Awaitable[None]:
        """Record the end and the outcome of `attempt`. The first of two outcomes wins.

        Args:
            attempt: As `begin` returned it.
            outcome: A JSON value.

        Raises:
            StaleSessionError: Another run took the session over, and may have begun the intent again.
            ConfigurationError: `outcome` is not JSON.
        """
        ...


@runtime_checkable
class Journal(Protocol):
    """Methods of a session service whose runs survive their process."""

    def claim(self, session: Session, run_id: str, *, owner: str, version: str = "") -> Awaitable[Lease]:
        """Take the session for a run. `session.lease` is the lease until `release`.

        A lease that ran out is taken over. A run that is in the journal already is resumed.

        Args:
            session: The copy that the run works on.
            run_id: Id of the invocation.
            owner: The claiming process, for people to read: `this_process()`.
            version: Hash of its agents and tools; stored by the first claim of the run.

        Raises:
            SessionBusyError: Another run has the session.
            StaleSessionError: Another writer appended since this copy was read; get the session again.
            SessionNotFoundError: There is no such session.
        """
        ...

    def unfinished(self, session: Session) -> Awaitable[list[Run]]:
        """List the runs of a session without an outcome, oldest first; also one that is still alive."""
        ...

    def consume(self, session: Session, key: str) -> Awaitable[bool]:
        """Use up a key that may be used once: True for the first call with `key` in this session."""
        ...


def this_process() -> str:
    """`process 4711 on saturn (1b2c3d4e)`: the hash in parentheses is `_pid_namespace`, on systems that have it."""
    namespace = f" ({_pid_namespace()})" if _pid_namespace() else ""
    return f"process {os.getpid()} on {platform.node()}{namespace}"


def is_gone(owner: str, *, strict: bool = False) -> bool:
    """True if `owner`, as `this_process` writes it, is a process of this machine that has ended. False: unknown.

    The session of a killed kernel is free at once, not only when its lease runs out. A zombie counts as alive, and so
    does a process whose id another one has by now.

    Args:
        owner: As stored with the lease.
        strict: Owners may be of other machines, and two machines may have one name.
    """
    match = _PROCESS.fullmatch(owner)
    if match is None or match[2] != platform.node() or not (match[3] == _pid_namespace() if match[3] else not strict):
        return False
    try:
        if os.name != "posix":  # there `kill` would end the process
            return not require("psutil", package="psutil").pid_exists(int(match[1]))
        # Signal 0 only asks whether the process exists. Source: kill(2).
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):  # another user's process; no process id
        pass
    return False


@cache
def _pid_namespace() -> str:
    """Hash of the boot and the container in which process ids are unique. Empty if the system does not tell them.

    Source: random(4), boot_id; pid_namespaces(7).
    """
    try:
        namespace = Path("/proc/sys/kernel/random/boot_id").read_text() + str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
    return hashlib.blake2b(namespace.encode(), digest_size=4).hexdigest()
