"""The lease of a run on its session in a journal, against runs of other processes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable

from adk_nb.errors import SessionBusyError, StaleSessionError, StorageError
from adk_nb.runtime.cancellation import Stop
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import close_interrupted_run
from adk_nb.sessions.journal import LEASE_SECONDS, Journal, Lease, this_process
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.3
"""Seconds between two attempts to claim a session that another process holds; the pause doubles up to the longest."""

Unreleased = dict[Hashable, tuple[Lease, str | None]]
"""Session key -> a lease that could not be released at the end of its run, and the outcome of that run."""


class SessionLease:
    """The lease of one run, renewed until it is released."""

    def __init__(self, journal: Journal, session_key: Hashable, stop: Stop, unreleased: Unreleased) -> None:
        """`stop`: of the run, which is stopped if another process takes the session over."""
        self._journal = journal
        self._session_key = session_key
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
        if unreleased := self._unreleased.get(self._session_key):
            # This process holds that lease itself: release it, else the claim below is refused.
            await unreleased[0].release(unreleased[1])
            self._unreleased.pop(self._session_key, None)
        self._session_id = session.id
        try:
            self._lease = await self._journal.claim(session, run_id, owner=this_process(), version=version)
        except asyncio.CancelledError:
            self._lease = session.lease  # the journal may have stored the claim already
            raise
        self._renew_later()

    async def claim_for(self, ctx: InvocationContext, version: str) -> None:
        """Move the lease from the run that claimed it to the invocation of `ctx`, which that run resumes."""
        if self._lease:
            self._stop_renewing()
            # The new id was never used; without an outcome it would look like an interrupted run.
            await self._lease.release("done")
        await self.claim(ctx.session, ctx.invocation_id, version)

    async def close_interrupted_runs(self, ctx: InvocationContext) -> None:
        """Close interrupted runs, which cannot be resumed after a new message.

        A message that repeats the answers of an interrupted run replaces that run.
        """
        if self._lease is None or not self._lease.is_heir:
            return
        calls = history_of(ctx.session).calls
        answered_in = {run for response in ctx.responses for run in calls.answered_in(response.id)}
        for run in await self._journal.unfinished(ctx.session):
            if run.id == ctx.invocation_id or (ctx.responses and run.id not in answered_in):
                continue
            # A message that repeats the answers needs these calls open; a new message closes them.
            if not ctx.responses:
                await close_interrupted_run(ctx, run.id)
            await self._lease.drop(run.id)

    async def release(self, outcome: str | None) -> None:
        """Release the lease. `outcome`: as in `Lease.release`."""
        self._stop_renewing()
        if (lease := self._lease) is None:
            return
        try:
            try:
                await lease.release(outcome)
            except asyncio.CancelledError:
                await lease.release(outcome)  # the first may not have started; releasing twice is harmless
                raise
        except StorageError as error:
            self._unreleased[self._session_key] = lease, outcome
            logger.warning("session %r stays locked until its next run, or for 15 s: %s", self._session_id, error)

    def _stop_renewing(self) -> None:
        for renewing in (self._timer, self._renewing):
            if renewing:
                renewing.cancel()

    def _renew_later(self) -> None:
        async def renew() -> None:
            try:
                if self._lease:
                    await self._lease.renew()
            except StaleSessionError as error:
                logger.warning("a run is stopped: %s", error)
                self._stop.request()
                return
            except StorageError as error:
                logger.warning("the lease of session %r was not renewed yet: %s", self._session_id, error)
            self._renew_later()

        def start() -> None:
            self._renewing = asyncio.get_running_loop().create_task(renew())

        # A third: two renewals may fail before the lease runs out.
        self._timer = asyncio.get_running_loop().call_later(LEASE_SECONDS / 3, start)


async def wait_until_released(attempt: Callable[[], Awaitable[Session]]) -> Session:
    """Claim a session once the other process releases it, by polling: a journal has no notifications.

    Args:
        attempt: Claims the session; raises SessionBusyError while another process holds it.
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            return await attempt()
        except SessionBusyError:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
