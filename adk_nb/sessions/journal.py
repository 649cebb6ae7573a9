"""The journal of runs: who works on a session, what was begun in it, and what may happen only once.

A second, small interface beside `BaseSessionService`. Services that keep sessions on disk have it; one without it
works, and its runs can neither be told from each other nor taken up again.
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

from adk_nb.sessions.session import Session

LEASE_SECONDS = 15.0
"""How long a run holds its session without `renew`. Renew at a third of it. A run that did not, because its process
stood still, keeps the session for as long as nobody else takes it."""

_PROCESS = re.compile(r"process (\d+) on (.*?)(?: \(([0-9a-f]{8})\))?", re.DOTALL)

Effect = Literal["pure", "idempotent", "once"]
"""What it means to do something again: nothing; nothing, if the same key is given; that it happens twice."""


@dataclass(frozen=True, kw_only=True)
class Intent:
    """Something that a run is about to do, which others will notice."""

    run_id: str
    """The invocation's id."""
    branch: str = ""
    """Of the agent; sister branches may give one call id."""
    kind: Literal["model", "tool", "wait", "callback"] = "tool"
    call_id: str
    """Of the function call; for other kinds what tells it from the run's others, the same after a restart."""
    name: str = ""
    """The tool's."""
    effect: Effect = "once"

    @property
    def key(self) -> str:
        """Its idempotency key: the same at every attempt, another for all else. 32 hexadecimal digits."""
        said = json.dumps([self.run_id, self.branch, self.kind, self.call_id])
        return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()

    def event_id(self, phase: str) -> str:
        """The id of the event that tells of it, `phase` for phase: the same at every attempt, so that a session takes
        the event in only once.
        """
        return hashlib.blake2b(f"{self.key}|{phase}".encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One time that an intent was begun."""

    intent: Intent
    number: int
    """1, 2, ... At 2 it may have happened before."""
    started: float
    """Seconds since the epoch, UTC."""
    finished: float | None = None
    """None: nobody knows whether it happened."""
    outcome: Any = None
    """The JSON value that `finish` was given."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """An invocation that was begun."""

    id: str
    owner: str
    """Who has it, or had it last."""
    version: str
    """What `claim` was given: a hash of the agents and tools, to notice that they were edited."""
    started: float
    """Seconds since the epoch, UTC."""
    is_alive: bool
    """Its lease has not run out: someone works on it."""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    """Oldest first."""


class Lease(Protocol):
    """The right of one run to write to a session, until it is released or taken over."""

    @property
    def fence(self) -> int:
        """Higher with each lease of the session. What is written under a lower one than the highest is refused."""
        ...

    @property
    def is_heir(self) -> bool:
        """True: a run that had the session before did not come to its end, and nobody has ended it since."""
        ...

    def renew(self) -> Awaitable[None]:
        """Hold the session for another LEASE_SECONDS.

        Raises:
            StaleSessionError: Another took it over.
        """
        ...

    def release(self, outcome: str | None = None) -> Awaitable[None]:
        """Let others in. Nothing happens if another took the session over.

        Args:
            outcome: How the run ended, in a word: `done`, `failed`, `cancelled`, `waiting`. None: it did not end, and
                stays in `unfinished`.
        """
        ...

    def drop(self, run_id: str) -> Awaitable[None]:
        """Write down that a run of the session which was cut does not go on: its outcome is `cancelled`.

        Raises:
            StaleSessionError: Another took the session over.
        """
        ...

    def begin(self, intent: Intent, consumes: Sequence[str] = ()) -> Awaitable[Attempt | None]:
        """Write down that `intent` is begun now, before anything is done for it.

        Args:
            intent: What is begun.
            consumes: Keys that allow it, each good for once, as in `consume`; used up in the same transaction.

        Returns:
            The attempt, with its number. None: a key was used before, and nothing was written.

        Raises:
            StaleSessionError: Another took the session over: the intent must not be carried out.
        """
        ...

    def attempts(self, run_id: str) -> Awaitable[list[Attempt]]:
        """What was begun of the session's intents with that `run_id`, oldest first; whether or not that run ended."""
        ...

    def finish(self, attempt: Attempt, outcome: Any = None) -> Awaitable[None]:
        """Write down that `attempt` has ended, and how. Of two outcomes the first stands.

        Args:
            attempt: What `begin` gave.
            outcome: A JSON value.

        Raises:
            StaleSessionError: Another took the session over, and may have begun the intent again.
            ConfigurationError: `outcome` is not JSON.
        """
        ...


@runtime_checkable
class Journal(Protocol):
    """What a session service does for runs that are to survive their process."""

    def claim(self, session: Session, run_id: str, *, owner: str, version: str = "") -> Awaitable[Lease]:
        """Take the session for a run. `session.lease` is the lease until `release`.

        A lease that ran out is taken over. A run that is in the journal already goes on.

        Args:
            session: The copy that the run is to work on.
            run_id: The invocation's id.
            owner: Who runs it, for others to read: `this_process()`.
            version: What its agents and tools are; kept from the first claim of the run.

        Raises:
            SessionBusyError: Another run has the session.
            StaleSessionError: Another wrote to the session since this copy was read; get it again.
            SessionNotFoundError: There is no such session.
        """
        ...

    def unfinished(self, session: Session) -> Awaitable[list[Run]]:
        """The runs of a session that did not end, oldest first; those that someone works on among them."""
        ...

    def consume(self, session: Session, key: str) -> Awaitable[bool]:
        """True the first time this session is asked for `key`: what may happen only once asks here first."""
        ...


def this_process() -> str:
    """`process 4711 on saturn (1b2c3d4e)`; see `_numbers` for what is in brackets, which not all systems tell."""
    where = f" ({_numbers()})" if _numbers() else ""
    return f"process {os.getpid()} on {platform.node()}{where}"


def is_gone(owner: str, *, surely: bool = False) -> bool:
    """True if `owner` is a process of this machine, as `this_process` tells it, that has ended. Else nobody knows.

    A session of a kernel that was killed can so be taken at once, and not only when its lease has run out. What nobody
    has asked yet how it ended, a zombie, is not gone.

    `surely`: it may be of any machine, and two may have one name.
    """
    said = _PROCESS.fullmatch(owner) if os.name == "posix" else None
    if said is None or said[2] != platform.node() or not (said[3] == _numbers() if said[3] else not surely):
        return False
    try:
        os.kill(int(said[1]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


@cache
def _numbers() -> str:
    """What the numbers of processes mean here: of this machine, since it was started, and of this container. Empty if
    the system does not say. Source: random(4), boot_id; pid_namespaces(7).
    """
    try:
        said = Path("/proc/sys/kernel/random/boot_id").read_text() + str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
    return hashlib.blake2b(said.encode(), digest_size=4).hexdigest()
