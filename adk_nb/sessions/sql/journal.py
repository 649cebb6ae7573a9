"""The journal in a database: leases, runs, intents, and keys that may be used once."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from pydantic_core import from_json

from adk_nb import clock
from adk_nb.errors import ConfigurationError, SessionBusyError, StaleSessionError
from adk_nb.sessions.journal import LEASE_SECONDS, Attempt, Intent, Run, is_gone
from adk_nb.sessions.session import Session
from adk_nb.sessions.sql.codec import Key, Mark, key_of
from adk_nb.sessions.sql.driver import Driver
from adk_nb.sessions.sql.rows import Damaged, Head, Rows
from adk_nb.sessions.sql.schema import INTENTS, LEASES, RUNS, IntentRow, LeaseRow, RunRow
from adk_nb.wire import json_problem

T = TypeVar("T")
_INTENT = ("run_id", "branch", "kind", "call_id", "key", "name", "effect")


class SqlLease:
    """A lease on a session; see `journal.Lease`."""

    def __init__(self, driver: Driver, session: Session, run_id: str) -> None:
        self.fence = 0
        self.is_heir = False
        self.run_id = run_id
        self._driver = driver
        self._session = session
        self._key = key_of(session)
        self._number = 0

    async def claim(self, owner: str, version: str) -> "SqlLease":
        """Take the session; see `journal.Journal.claim`."""
        self._driver.database.check_names(**{"id of a run": self.run_id})
        since = clock.now()

        def claim(rows: Rows) -> int:
            head = rows.head(self._key)
            if head is None:
                raise rows.missing(self._key)
            lease = _lease(rows, head.number)
            _check_free(rows, self._key, lease)
            check_is_newest(self._key, head, self._session.revision)
            # A resumed run keeps its version and its start.
            run = _run(rows, head.number, self.run_id) or RunRow(head.number, self.run_id, version, owner, since, None)
            fence = lease.fence + 1 if lease else 1
            # By the database's clock: those of several machines may differ.
            rows.put(LEASES, LeaseRow(head.number, fence, self.run_id, owner, since, rows.now() + LEASE_SECONDS))
            rows.put(RUNS, run._replace(owner=owner, outcome=None))
            self._number, self.is_heir = head.number, lease is not None and lease.run_id is not None
            return fence

        def hold(fence: int) -> None:
            self.fence = fence
            self._session.lease = self

        await self._run_job(claim, on_commit=hold)
        return self

    async def renew(self) -> None:
        """Extend the lease; see `journal.Lease`."""

        def renew(rows: Rows) -> None:
            rows.put(LEASES, self._locked_lease(rows)._replace(expires=rows.now() + LEASE_SECONDS))

        await self._run_job(renew)

    async def release(self, outcome: str | None = None) -> None:
        """Release the session; see `journal.Lease`."""

        def release(rows: Rows) -> None:
            rows.lock(self._number)
            lease = _lease(rows, self._number)
            if lease is None or lease.fence != self.fence:
                return
            run_id: str | None = self.run_id
            if outcome is not None:
                self._set_outcome(rows, self.run_id, outcome)
                # The next run inherits an interrupted run that nobody has ended yet.
                open_runs = rows.read(RUNS, session=self._number, outcome=None) if self.is_heir else []
                run_id = min((run.run_id for run in open_runs), default=None)
            rows.put(LEASES, lease._replace(run_id=run_id, expires=0.0))

        def let_go(_: None) -> None:
            if self._session.lease is self:
                self._session.lease = None

        await self._run_job(release, on_commit=let_go)

    def _set_outcome(self, rows: Rows, run_id: str, outcome: str) -> None:
        if run := _run(rows, self._number, run_id):
            rows.put(RUNS, run._replace(outcome=outcome))

    async def drop(self, run_id: str) -> None:
        """Record that an interrupted run is not resumed; see `journal.Lease`."""

        def drop(rows: Rows) -> None:
            self._locked_lease(rows)
            self._set_outcome(rows, run_id, "cancelled")

        await self._run_job(drop)

    async def begin(self, intent: Intent, consumes: Sequence[str] = ()) -> Attempt | None:
        """Record the start of an attempt; see `journal.Lease`."""
        self._driver.database.check_names(**{"id of a run": intent.run_id})
        started = clock.now()

        def begin(rows: Rows) -> Attempt | None:
            self._locked_lease(rows)
            # In the transaction that checks the lease: a run that has lost the session uses up no key.
            if not rows.consume(self._number, consumes):
                return None
            number = max((row.attempt for row in rows.read(INTENTS, **self._intent_key(intent))), default=0) + 1
            columns: dict[str, Any] = {name: getattr(intent, name) for name in _INTENT}
            columns |= {"session": self._number, "attempt": number, "started": started}
            rows.put(INTENTS, IntentRow(**columns, finished=None, outcome=None))
            return Attempt(intent=intent, number=number, started=started)

        return await self._run_job(begin)

    async def attempts(self, run_id: str) -> list[Attempt]:
        """List the attempts of a run of this session; see `journal.Lease`."""
        return await self._driver.run(lambda rows: _attempts(rows, self._number, run_id), reads=True)

    async def finish(self, attempt: Attempt, outcome: Any = None) -> None:
        """Record the end of an attempt; see `journal.Lease`."""
        if problem := json_problem(outcome):
            raise ConfigurationError(f"the outcome of {attempt.intent.name or attempt.intent.kind} cannot be {problem}")
        finished, text = clock.now(), json.dumps(outcome)

        def finish(rows: Rows) -> None:
            self._locked_lease(rows)
            for row in rows.read(INTENTS, **self._intent_key(attempt.intent), attempt=attempt.number):
                # The first outcome counts: later runs may have read it.
                if row.finished is None:
                    rows.put(INTENTS, row._replace(finished=finished, outcome=text))

        await self._run_job(finish, size=len(text))

    def _intent_key(self, intent: Intent) -> dict[str, Any]:
        return {"session": self._number, "run_id": intent.run_id, "key": intent.key}

    def _locked_lease(self, rows: Rows) -> LeaseRow:
        rows.lock(self._number)
        lease = _lease(rows, self._number)
        if lease is None or lease.fence != self.fence:
            raise _lost_lease(self._key, lease)
        return lease

    def _run_job(
        self, work: Callable[[Rows], T], *, size: int = 0, on_commit: Callable[[T], None] | None = None
    ) -> Awaitable[T]:
        return self._driver.run(work, key=self._key, size=size, on_commit=on_commit)


def check_may_write(rows: Rows, key: Key, stored: LeaseRow | None, lease: Any) -> None:
    """Refuse a writer while another run holds the session.

    Args:
        rows: Rows of a transaction in which the session is locked.
        key: The session.
        stored: The session's lease.
        lease: The writer's lease, or None.

    Raises:
        SessionBusyError: The writer has no lease, and another run has one.
        StaleSessionError: The writer's lease was taken over.
    """
    if lease is None:
        _check_free(rows, key, stored)
    elif stored is None or stored.fence != lease.fence:
        raise _lost_lease(key, stored)


def check_is_newest(key: Key, head: Head, mark: Any) -> None:
    """Refuse a copy of a session that is older than the stored session.

    Raises:
        StaleSessionError: It is older. A copy without a mark, which was not read from a store, is accepted.
    """
    if isinstance(mark, Mark) and (mark.number, mark.seq) != (head.number, head.seq):
        raise StaleSessionError(
            f"session {key[2]!r} was changed since this copy was read "
            f"(it has {head.seq} events, this copy {mark.seq}); get the session again"
        )


def unfinished(rows: Rows, key: Key) -> list[Run]:
    """List the runs of a session that have no outcome, oldest first."""
    head = rows.head(key, lock=False)
    if head is None:
        return []
    lease = _lease(rows, head.number)
    alive = lease.run_id if lease and _is_alive(rows, lease) else None
    return [
        Run(
            id=run.run_id,
            version=run.version,
            owner=run.owner,
            started=run.started,
            is_alive=run.run_id == alive,
            attempts=_attempts(rows, head.number, run.run_id),
        )
        for run in rows.read(RUNS, session=head.number, outcome=None)
    ]


def _lease(rows: Rows, number: int) -> LeaseRow | None:
    return next(iter(rows.read(LEASES, session=number)), None)


def _run(rows: Rows, number: int, run_id: str) -> RunRow | None:
    return next(iter(rows.read(RUNS, session=number, run_id=run_id)), None)


def _is_alive(rows: Rows, lease: LeaseRow) -> bool:
    """True if nobody else may take the session yet."""
    if lease.run_id is None:
        return False
    # More time left than a lease lasts: the clock was set back or restarted, so the owner is gone.
    return 0 < lease.expires - rows.now() <= LEASE_SECONDS and not is_gone(lease.owner, strict=rows.is_of_many_machines)


def _check_free(rows: Rows, key: Key, lease: LeaseRow | None) -> None:
    if lease and _is_alive(rows, lease):
        raise SessionBusyError(key[2], lease.owner, lease.since)


def _lost_lease(key: Key, lease: LeaseRow | None) -> StaleSessionError:
    by = f" was taken over by {lease.owner}" if lease and lease.run_id else " is no longer this run's"
    return StaleSessionError(f"session {key[2]!r}{by}, and nothing was written; end this run")


def _attempts(rows: Rows, number: int, run_id: str) -> list[Attempt]:
    return [_attempt(row) for row in rows.read(INTENTS, session=number, run_id=run_id)]


def _attempt(row: IntentRow) -> Attempt:
    fields: dict[str, Any] = {name: getattr(row, name) for name in _INTENT if name != "key"}
    try:
        outcome = from_json(row.outcome) if row.outcome else None
    except ValueError as error:
        raise Damaged(f"the outcome in a row of intents was altered: {error}") from error
    return Attempt(
        intent=Intent(**fields), number=row.attempt, started=row.started, finished=row.finished, outcome=outcome
    )
