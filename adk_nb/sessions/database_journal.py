"""The journal of a database server: leases, runs, intents, and what was used up."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from adk_nb import clock
from adk_nb.errors import ConfigurationError, SessionBusyError, StaleSessionError, StorageError
from adk_nb.sessions.database_engine import Database
from adk_nb.sessions.database_rows import MAX_KEY, Head, check_keys, execute, locked, missing, to_json
from adk_nb.sessions.journal import LEASE_SECONDS, Attempt, Intent, Run, is_gone
from adk_nb.sessions.session import Session
from adk_nb.sessions.sqlite_rows import Key, Mark
from adk_nb.wire import not_json


class DatabaseLease:
    """A run's right to write to a session; see `journal.Lease`."""

    def __init__(self, database: Database, session: Session, run_id: str) -> None:
        self.fence = 0
        self.is_heir = False
        self.run_id = run_id
        self._database = database
        self._session = session
        self._key: Key = (session.app_name, session.user_id, session.id)
        self._number = 0

    async def claim(self, owner: str, version: str) -> "DatabaseLease":
        """Take the session."""
        check_keys(**{"id of a run": self.run_id})
        since = clock.now()
        await self._database.ask(
            lambda db: self._claim(db, owner, version, since), lane=self._key, done=self._note, then=self._hold
        )
        return self

    def _claim(self, db: Any, owner: str, version: str, since: float) -> tuple[int, int, bool]:
        head = locked(db, self._key)
        if head is None:
            raise missing(db, self._key)
        held = _held(db, head.number)
        if held and held.is_alive:
            raise SessionBusyError(self._key[2], held.owner, held.since)
        check_is_newest(self._key, head, self._session.revision)
        fence = held.fence + 1 if held else 1
        execute(
            db,
            "INSERT INTO leases (session, fence, run_id, owner, since, expires) "
            "VALUES (:number, :fence, :run_id, :owner, :since, :expires) ON CONFLICT (session) DO UPDATE SET "
            "fence = excluded.fence, run_id = excluded.run_id, owner = excluded.owner, since = excluded.since, "
            "expires = excluded.expires",
            number=head.number, fence=fence, run_id=self.run_id, owner=owner, since=since,
            expires=_now(db) + LEASE_SECONDS,
        )  # fmt: skip
        execute(
            db,
            "INSERT INTO runs (session, run_id, version, owner, started) VALUES (:number, :run_id, :version, :owner, "
            ":since) ON CONFLICT (session, run_id) DO UPDATE SET owner = excluded.owner, outcome = NULL",
            number=head.number, run_id=self.run_id, version=version, owner=owner, since=since,
        )  # fmt: skip
        return head.number, fence, held is not None and held.run_id is not None

    def _note(self, told: tuple[int, int, bool]) -> None:
        self._number, self.fence, self.is_heir = told

    def _hold(self, _: Any) -> None:
        self._session.lease = self

    async def renew(self) -> None:
        def renew(db: Any) -> None:
            self._mine(db)
            given = {"number": self._number, "expires": _now(db) + LEASE_SECONDS}
            execute(db, "UPDATE leases SET expires = :expires WHERE session = :number", **given)

        await self._database.ask(renew, lane=self._key)

    async def release(self, outcome: str | None = None) -> None:
        await self._database.ask(lambda db: self._release(db, outcome), lane=self._key, then=self._let_go)

    def _release(self, db: Any, outcome: str | None) -> None:
        _lock(db, self._number)
        held = _held(db, self._number)
        if held is None or held.fence != self.fence:
            return
        left: str | None = self.run_id
        if outcome is not None:
            self._end(db, self.run_id, outcome)
            left = self._cut(db) if self.is_heir else None
        given = {"number": self._number, "left": left}
        execute(db, "UPDATE leases SET run_id = :left, expires = 0 WHERE session = :number", **given)

    def _cut(self, db: Any) -> str | None:
        """A run that was cut, and that nobody has ended yet: who comes next is its heir, too."""
        query = "SELECT min(run_id) FROM runs WHERE session = :number AND outcome IS NULL"
        return execute(db, query, number=self._number).fetchone()[0]

    def _end(self, db: Any, run_id: str, outcome: str) -> None:
        given = {"number": self._number, "run_id": run_id, "outcome": outcome}
        execute(db, "UPDATE runs SET outcome = :outcome WHERE session = :number AND run_id = :run_id", **given)

    def _let_go(self, _: None) -> None:
        if self._session.lease is self:
            self._session.lease = None

    async def drop(self, run_id: str) -> None:
        def drop(db: Any) -> None:
            self._mine(db)
            self._end(db, run_id, "cancelled")

        await self._database.ask(drop, lane=self._key)

    async def begin(self, intent: Intent, consumes: Sequence[str] = ()) -> Attempt | None:
        check_keys(**{"id of a run": intent.run_id})
        at = clock.now()

        def begin(db: Any) -> Attempt | None:
            self._mine(db)
            if not consume(db, self._number, consumes):
                return None
            query = "SELECT coalesce(max(attempt), 0) FROM intents WHERE session = :number AND key = :key"
            last = execute(db, query, number=self._number, key=intent.key).fetchone()[0]
            attempt = Attempt(intent=intent, number=last + 1, started=at)
            _add_attempt(db, self._number, attempt)
            return attempt

        return await self._database.ask(begin, lane=self._key)

    async def attempts(self, run_id: str) -> list[Attempt]:
        """What was begun of the session's intents with that `run_id`, oldest first; see `journal.Lease`."""
        return await self._database.ask(lambda db: _attempts(db, self._number, run_id))

    async def finish(self, attempt: Attempt, outcome: Any = None) -> None:
        if odd := not_json(outcome):
            raise ConfigurationError(f"the outcome of {attempt.intent.name or attempt.intent.kind} cannot be {odd}")
        ended = replace(attempt, finished=clock.now(), outcome=outcome)

        def finish(db: Any) -> None:
            self._mine(db)
            execute(
                db,
                "UPDATE intents SET finished = :finished, outcome = :outcome "
                "WHERE session = :number AND key = :key AND attempt = :attempt AND finished IS NULL",
                number=self._number, key=ended.intent.key, attempt=ended.number, finished=ended.finished,
                outcome=json.dumps(ended.outcome),
            )  # fmt: skip

        await self._database.ask(finish, lane=self._key)

    def _mine(self, db: Any) -> None:
        _lock(db, self._number)
        held = _held(db, self._number)
        if held is None or held.fence != self.fence:
            raise _lost(self._key, held)


def check_may_write(db: Any, key: Key, head: Head, lease: Any) -> None:
    """Refuse who writes beside the run that holds the session; its row has to be locked.

    Raises:
        SessionBusyError: The writer has no `lease`, and another has one.
        StaleSessionError: The writer's lease was taken over.
    """
    held = _held(db, head.number)
    if lease is None:
        if held and held.is_alive:
            raise SessionBusyError(key[2], held.owner, held.since)
    elif held is None or held.fence != lease.fence:
        raise _lost(key, held)


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


def unfinished(db: Any, key: Key) -> list[Run]:
    """The runs of a session that have no outcome, oldest first."""
    head = locked(db, key)
    if head is None:
        return []
    held = _held(db, head.number)
    alive = held.run_id if held and held.is_alive else None
    query = (
        "SELECT run_id, version, owner, started FROM runs WHERE session = :number AND outcome IS NULL ORDER BY place"
    )
    return [
        Run(
            id=run_id,
            version=version,
            owner=owner,
            started=started,
            is_alive=run_id == alive,
            attempts=_attempts(db, head.number, run_id),
        )
        for run_id, version, owner, started in execute(db, query, number=head.number).fetchall()
    ]


def consume(db: Any, number: int, keys: Sequence[str]) -> bool:
    """Use up all of `keys` in the session of that number, whose row is locked. False: one was used before, and none
    is used now.
    """
    used = "SELECT 1 FROM consumed WHERE session = :number AND key = :key"
    kept = [_short(key) for key in keys]
    if any(execute(db, used, number=number, key=key).fetchone() for key in kept):
        return False
    for key in kept:
        execute(db, "INSERT INTO consumed (session, key) VALUES (:number, :key)", number=number, key=key)
    return True


class _Held(NamedTuple):
    """A row of `leases`."""

    fence: int
    run_id: str | None
    """None: it was released."""
    owner: str
    since: float
    left: float
    """Seconds."""

    @property
    def is_alive(self) -> bool:
        """More left than a lease lasts: the clock was set back since, or the machine restarted. A process of this
        machine that has ended holds nothing either.
        """
        held = self.run_id is not None and 0 < self.left <= LEASE_SECONDS
        return held and not is_gone(self.owner, surely=True)


def _now(db: Any) -> float:
    """The time that leases are counted in: the server's, or, where there is none, this machine's."""
    if db.dialect.name == "postgresql":
        return float(execute(db, "SELECT CAST(extract(epoch FROM clock_timestamp()) AS FLOAT)").fetchone()[0])
    return clock.ticks()


def _held(db: Any, number: int) -> _Held | None:
    query = "SELECT fence, run_id, owner, since, expires FROM leases WHERE session = :number"
    row = execute(db, query, number=number).fetchone()
    if row is None:
        return None
    fence, run_id, owner, since, expires = row
    return _Held(fence, run_id, owner, since, 0.0 if run_id is None else expires - _now(db))


def _lock(db: Any, number: int) -> None:
    execute(db, "SELECT number FROM sessions WHERE number = :number{lock}", number=number)


def _lost(key: Key, held: _Held | None) -> StaleSessionError:
    by = f" was taken over by {held.owner}" if held and held.run_id else " is no longer this run's"
    return StaleSessionError(f"session {key[2]!r}{by}, and nothing was written; end this run")


_SAID = ("branch", "kind", "call_id", "name", "effect")


def _add_attempt(db: Any, number: int, one: Attempt) -> None:
    said = to_json({name: getattr(one.intent, name) for name in _SAID})
    execute(
        db,
        "INSERT INTO intents (session, run_id, key, attempt, intent, started) "
        "VALUES (:number, :run_id, :key, :attempt, :intent, :started)",
        number=number, run_id=one.intent.run_id, key=one.intent.key, attempt=one.number, intent=said,
        started=one.started,
    )  # fmt: skip


def _attempts(db: Any, number: int, run_id: str) -> list[Attempt]:
    rows = execute(
        db,
        "SELECT intent, attempt, started, finished, outcome FROM intents "
        "WHERE session = :number AND run_id = :run_id ORDER BY place",
        number=number,
        run_id=run_id,
    )
    return [_attempt(run_id, *row) for row in rows.fetchall()]


def _attempt(
    run_id: str, said: str, number: int, started: float, finished: float | None, outcome: str | None
) -> Attempt:
    try:
        intent = Intent(run_id=run_id, **json.loads(said))
        given = json.loads(outcome) if outcome else None
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(
            f"the database holds an intent of run {run_id!r} that was not written here: {error}; "
            "put a copy of it in its place"
        ) from error
    return Attempt(intent=intent, number=number, started=started, finished=finished, outcome=given)


def _short(key: str) -> str:
    """`key`, or what stands for it where no key column holds it."""
    return key if len(key) <= MAX_KEY and "\0" not in key else hashlib.blake2b(key.encode()).hexdigest()
