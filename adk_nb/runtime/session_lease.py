"""A run's lease on a session that is kept in a journal: against runs of other processes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable

from adk_nb.errors import SessionBusyError, StaleSessionError, StorageError
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupted_runs import close_interrupted_run
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.stopping import Stop
from adk_nb.sessions.journal import LEASE_SECONDS, Journal, Lease, this_process
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.3
"""Seconds between two attempts to claim a session that another process has; the pause doubles up to the longest."""

Unreleased = dict[Hashable, tuple[Lease, str | None]]
"""Session -> a lease that the store did not release when its run ended, and how that run ended."""


class SessionLease:
    """The lease of one run, renewed until it is released."""

    def __init__(self, journal: Journal, where: Hashable, stop: Stop, unreleased: Unreleased) -> None:
        """`where`: the session. `stop`: of the run, which is stopped if another process takes the session over."""
        self._journal = journal
        self._where = where
        self._stop = stop
        self._unreleased = unreleased
        self._lease: Lease | None = None
        self._session_id = ""
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def claim(self, session: Session, run_id: str, version: str) -> None:
        """Hold a session for a run.

        Raises:
            SessionBusyError: A run of another process holds it.
            StaleSessionError: Another process wrote to it since it was read.
        """
        if unreleased := self._unreleased.get(self._where):
            await unreleased[0].release(unreleased[1])
            self._unreleased.pop(self._where, None)
        self._session_id = session.id
        try:
            self._lease = await self._journal.claim(session, run_id, owner=this_process(), version=version)
        except asyncio.CancelledError:
            self._lease = session.lease  # the journal may have noted the claim by then
            raise
        self._renew_later()

    async def claim_for(self, ctx: InvocationContext, version: str) -> None:
        """Hold the session for the invocation of `ctx` in place of the run that claimed it."""
        if self._lease:
            self._stop_renewing()
            await self._lease.release("done")
        await self.claim(ctx.session, ctx.invocation_id, version)

    async def close_interrupted_runs(self, ctx: InvocationContext) -> None:
        """Close interrupted runs: after a new message nobody resumes them.

        A message that answers what an interrupted run had been answered takes the place of that run.
        """
        if self._lease is None or not self._lease.is_heir:
            return
        for run in await self._journal.unfinished(ctx.session):
            if run.id == ctx.invocation_id or (ctx.responses and not _has_same_answers(ctx, run.id)):
                continue
            if not ctx.responses:
                await close_interrupted_run(ctx, run.id)
            await self._lease.drop(run.id)

    async def release(self, outcome: str | None) -> None:
        """Let runs of other processes in. `outcome`: as in `Lease.release`."""
        self._stop_renewing()
        if (lease := self._lease) is None:
            return
        try:
            try:
                await lease.release(outcome)
            except asyncio.CancelledError:
                await lease.release(outcome)  # the first may not have begun; a second one does nothing
                raise
        except StorageError as error:
            self._unreleased[self._where] = lease, outcome
            logger.warning("session %r stays held until its next run, or for 15 s: %s", self._session_id, error)

    def _stop_renewing(self) -> None:
        for renewing in (self._timer, self._renewing):
            if renewing:
                renewing.cancel()

    def _renew_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LEASE_SECONDS / 3, self._start_renewing)

    def _start_renewing(self) -> None:
        self._renewing = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        try:
            if self._lease:
                await self._lease.renew()
        except StaleSessionError as error:
            logger.warning("a run is stopped: %s", error)
            self._stop.request()
            return
        except StorageError as error:
            logger.warning("session %r could not be held on to yet: %s", self._session_id, error)
        self._renew_later()


async def when_released(attempt: Callable[[], Awaitable[Session]]) -> Session:
    """Claim a session once the process that holds it releases it; a journal does not notify, so this tries again.

    Args:
        attempt: Claims it; a SessionBusyError of it is waited out.
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            return await attempt()
        except SessionBusyError:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _has_same_answers(ctx: InvocationContext, run_id: str) -> bool:
    """True if the message of `ctx` answers what the message of another run has answered."""
    calls = history_of(ctx.session).calls
    return any(run_id in calls.answered_in(response.id) for response in ctx.responses)
