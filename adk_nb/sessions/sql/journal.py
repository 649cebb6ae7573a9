"""The journal in a database: leases, runs, intents, and the keys that are good for once."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from pydantic_core import from_json

from adk_nb import clock
from adk_nb.errors import ConfigurationError, SessionBusyError, StaleSessionError
from adk_nb.sessions.journal import LEASE_SECONDS, Attempt, Intent, Run, is_gone
from adk_nb.sessions.session import Session
from adk_nb.sessions.sql.codec import Key, Mark
from adk_nb.sessions.sql.driver import Driver
from adk_nb.sessions.sql.rows import Damaged, Head, Rows
from adk_nb.sessions.sql.schema import INTENTS, LEASES, RUNS, IntentRow, LeaseRow, RunRow
from adk_nb.wire import json_problem

T = TypeVar("T")
_INTENT = ("run_id", "branch", "kind", "call_id", "key", "name", "effect")


class SqlLease:
    """A run's right to write to a session; see `journal.Lease`."""

    def __init__(self, driver: Driver, session: Session, run_id: str) -> None:
        self.fence = 0
        self.is_heir = False
        self.run_id = run_id
        self._driver = driver
        self._session = session
        self._key: Key = (session.app_name, session.user_id, session.id)
        self._number = 0

    async def claim(self, owner: str, version: str) -> "SqlLease":
        """Take the session."""
        self._driver.database.check_names(**{"id of a run": self.run_id})
        since = clock.now()
        await self._ask(lambda rows: self._claim(rows, owner, version, since), then=self._hold)
        return self

    def _claim(self, rows: Rows, owner: str, version: str, since: float) -> int:
        head = rows.head(self._key)
        if head is None:
            raise rows.missing(self._key)
        lease = _lease(rows, head.number)
        _check_free(rows, self._key, lease)
        check_is_newest(self._key, head, self._session.revision)
        run = _run(rows, head.number, self.run_id) or RunRow(head.number, self.run_id, version, owner, since, None)
        fence = lease.fence + 1 if lease else 1
        rows.put(LEASES, LeaseRow(head.number, fence, self.run_id, owner, since, rows.now() + LEASE_SECONDS))
        rows.put(RUNS, run._replace(owner=owner, outcome=None))
        self._number, self.is_heir = head.number, lease is not None and lease.run_id is not None
        return fence

    def _hold(self, fence: int) -> None:
        self.fence = fence
        self._session.lease = self

    async def renew(self) -> None:
        def renew(rows: Rows) -> None:
            rows.put(LEASES, self._mine(rows)._replace(expires=rows.now() + LEASE_SECONDS))

        await self._ask(renew)

    async def release(self, outcome: str | None = None) -> None:
        await self._ask(lambda rows: self._release(rows, outcome), then=self._let_go)

    def _release(self, rows: Rows, outcome: str | None) -> None:
        rows.lock(self._number)
        lease = _lease(rows, self._number)
        if lease is None or lease.fence != self.fence:
            return
        run_id: str | None = self.run_id
        if outcome is not None:
            self._end(rows, self.run_id, outcome)
            # Whoever comes after a run that was cut, and that nobody has ended yet, is its heir, too.
            open_runs = rows.read(RUNS, session=self._number, outcome=None) if self.is_heir else []
            run_id = min((run.run_id for run in open_runs), default=None)
        rows.put(LEASES, lease._replace(run_id=run_id, expires=0.0))

    def _end(self, rows: Rows, run_id: str, outcome: str) -> None:
        if run := _run(rows, self._number, run_id):
            rows.put(RUNS, run._replace(outcome=outcome))

    def _let_go(self, _: None) -> None:
        if self._session.lease is self:
            self._session.lease = None

    async def drop(self, run_id: str) -> None:
        def drop(rows: Rows) -> None:
            self._mine(rows)
            self._end(rows, run_id, "cancelled")

        await self._ask(drop)

    async def begin(self, intent: Intent, consumes: Sequence[str] = ()) -> Attempt | None:
        self._driver.database.check_names(**{"id of a run": intent.run_id})
        at = clock.now()

        def begin(rows: Rows) -> Attempt | None:
            self._mine(rows)
            if not rows.consume(self._number, consumes):
                return None
            number = max((row.attempt for row in rows.read(INTENTS, **self._where(intent))), default=0) + 1
            about: dict[str, Any] = {name: getattr(intent, name) for name in _INTENT}
            about |= {"session": self._number, "attempt": number, "started": at}
            rows.put(INTENTS, IntentRow(**about, finished=None, outcome=None))
            return Attempt(intent=intent, number=number, started=at)

        return await self._ask(begin)

    async def attempts(self, run_id: str) -> list[Attempt]:
        """See `journal.Lease`."""
        return await self._driver.ask(lambda rows: _attempts(rows, self._number, run_id), reads=True)

    async def finish(self, attempt: Attempt, outcome: Any = None) -> None:
        if problem := json_problem(outcome):
            raise ConfigurationError(f"the outcome of {attempt.intent.name or attempt.intent.kind} cannot be {problem}")
        at, text = clock.now(), json.dumps(outcome)

        def finish(rows: Rows) -> None:
            self._mine(rows)
            for row in rows.read(INTENTS, **self._where(attempt.intent), attempt=attempt.number):
                if row.finished is None:
                    rows.put(INTENTS, row._replace(finished=at, outcome=text))

        await self._ask(finish, size=len(text))

    def _where(self, intent: Intent) -> dict[str, Any]:
        return {"session": self._number, "run_id": intent.run_id, "key": intent.key}

    def _mine(self, rows: Rows) -> LeaseRow:
        rows.lock(self._number)
        lease = _lease(rows, self._number)
        if lease is None or lease.fence != self.fence:
            raise _lost(self._key, lease)
        return lease

    def _ask(
        self, work: Callable[[Rows], T], *, size: int = 0, then: Callable[[T], None] | None = None
    ) -> Awaitable[T]:
        return self._driver.ask(work, key=self._key, size=size, then=then)


def check_may_write(rows: Rows, key: Key, stored: LeaseRow | None, lease: Any) -> None:
    """Refuse who writes beside the run that holds the session.

    Args:
        rows: In which the session is locked.
        key: The session.
        stored: Its lease.
        lease: The writer's, or None.

    Raises:
        SessionBusyError: The writer has no lease, and another has one.
        StaleSessionError: The writer's lease was taken over.
    """
    if lease is None:
        _check_free(rows, key, stored)
    elif stored is None or stored.fence != lease.fence:
        raise _lost(key, stored)


def check_is_newest(key: Key, head: Head, mark: Any) -> None:
    """Refuse a copy of a session that is older than what is stored.

    Raises:
        StaleSessionError: It is; one that was not read from a store, and has no mark, is not.
    """
    if isinstance(mark, Mark) and (mark.number, mark.seq) != (head.number, head.seq):
        raise StaleSessionError(
            f"session {key[2]!r} was written to by another since this copy was read "
            f"(it has {head.seq} events, and this copy knew of {mark.seq}); get the session again"
        )


def unfinished(rows: Rows, key: Key) -> list[Run]:
    """The runs of a session that have no outcome, oldest first."""
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
    """True if nobody else may have the session yet."""
    if lease.run_id is None:
        return False
    # More left than a lease lasts: its clock was set back or begun anew since, and so the owner is gone.
    return 0 < lease.expires - rows.now() <= LEASE_SECONDS and not is_gone(lease.owner, surely=rows.is_of_many_machines)


def _check_free(rows: Rows, key: Key, lease: LeaseRow | None) -> None:
    if lease and _is_alive(rows, lease):
        raise SessionBusyError(key[2], lease.owner, lease.since)


def _lost(key: Key, lease: LeaseRow | None) -> StaleSessionError:
    by = f" was taken over by {lease.owner}" if lease and lease.run_id else " is no longer this run's"
    return StaleSessionError(f"session {key[2]!r}{by}, and nothing was written; end this run")


def _attempts(rows: Rows, number: int, run_id: str) -> list[Attempt]:
    return [_attempt(row) for row in rows.read(INTENTS, session=number, run_id=run_id)]


def _attempt(row: IntentRow) -> Attempt:
    about: dict[str, Any] = {name: getattr(row, name) for name in _INTENT if name != "key"}
    try:
        outcome = from_json(row.outcome) if row.outcome else None
    except ValueError as error:
        raise Damaged(f"the outcome in a row of intents is not what was written: {error}") from error
    return Attempt(
        intent=Intent(**about), number=row.attempt, started=row.started, finished=row.finished, outcome=outcome
    )
