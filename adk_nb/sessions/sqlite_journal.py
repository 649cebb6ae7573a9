"""The journal of a file of sessions: leases, runs, intents, and what was used up."""

import json
import sqlite3
from collections.abc import Sequence
from types import NoneType
from typing import Any, NamedTuple

from pydantic_core import from_json

from adk_nb import clock
from adk_nb.errors import ConfigurationError, SessionBusyError, StaleSessionError
from adk_nb.sessions.journal import LEASE_SECONDS, Attempt, Intent, Run, is_gone
from adk_nb.sessions.session import Session
from adk_nb.sessions.sqlite_file import Damaged, crc
from adk_nb.sessions.sqlite_here import is_brief
from adk_nb.sessions.sqlite_rows import Head, Key, Mark, head_in, head_of, missing
from adk_nb.sessions.sqlite_thread import SqliteThread
from adk_nb.wire import not_json


class SqliteLease:
    """A run's right to write to a session; see `journal.Lease`."""

    def __init__(self, thread: SqliteThread, session: Session, run_id: str) -> None:
        self.fence = 0
        self.is_heir = False
        self.run_id = run_id
        self._thread = thread
        self._session = session
        self._key: Key = (session.app_name, session.user_id, session.id)
        self._number = 0

    async def claim(self, owner: str, version: str) -> "SqliteLease":
        """Take the session."""
        since = clock.now()
        await self._thread.ask(lambda db: self._claim(db, owner, version, since), is_brief=True, then=self._hold)
        return self

    def _claim(self, db: sqlite3.Connection, owner: str, version: str, since: float) -> int:
        head = head_of(db, self._key)
        if head is None:
            raise missing(db, self._key)
        held = _held(db, head.number)
        if held and held.is_alive:
            raise SessionBusyError(self._key[2], held.owner, held.since)
        check_is_newest(self._key, head, self._session.revision)
        fence = held.fence + 1 if held else 1
        run = _run_of(db, head.number, self.run_id) or (version, owner, since, None)
        _put_lease(db, Held(head.number, fence, self.run_id, owner, since, clock.ticks() + LEASE_SECONDS))
        _put_run(db, (head.number, self.run_id, run[0], owner, run[2], None))
        self._number, self.is_heir = head.number, held is not None and held.run_id is not None
        return fence

    def _hold(self, fence: int) -> None:
        self.fence = fence
        self._session.lease = self

    async def renew(self) -> None:
        def renew(db: sqlite3.Connection) -> None:
            _put_lease(db, self._mine(db)._replace(expires=clock.ticks() + LEASE_SECONDS))

        await self._thread.ask(renew, is_brief=True)

    async def release(self, outcome: str | None = None) -> None:
        await self._thread.ask(lambda db: self._release(db, outcome), is_brief=True, then=self._let_go)

    def _release(self, db: sqlite3.Connection, outcome: str | None) -> None:
        held = _held(db, self._number)
        if held is None or held.fence != self.fence:
            return
        left: str | None = self.run_id
        if outcome is not None:
            self._end(db, self.run_id, outcome)
            left = self._cut(db) if self.is_heir else None
        _put_lease(db, held._replace(run_id=left, expires=0.0))

    def _cut(self, db: sqlite3.Connection) -> str | None:
        """A run that was cut, and that nobody has ended yet: who comes next is its heir, too."""
        query = "SELECT min(run_id) FROM runs WHERE session = ? AND outcome IS NULL"
        return db.execute(query, [self._number]).fetchone()[0]

    def _end(self, db: sqlite3.Connection, run_id: str, outcome: str) -> None:
        if run := _run_of(db, self._number, run_id):
            _put_run(db, (self._number, run_id, *run[:3], outcome))

    def _let_go(self, _: None) -> None:
        if self._session.lease is self:
            self._session.lease = None

    async def drop(self, run_id: str) -> None:
        def drop(db: sqlite3.Connection) -> None:
            self._mine(db)
            self._end(db, run_id, "cancelled")

        await self._thread.ask(drop, is_brief=True)

    async def begin(self, intent: Intent, consumes: Sequence[str] = ()) -> Attempt | None:
        at, which = clock.now(), (intent.run_id, intent.branch, intent.kind, intent.call_id)

        def begin(db: sqlite3.Connection) -> Attempt | None:
            self._mine(db)
            if not consume(db, self._number, consumes):
                return None
            (last,) = db.execute(
                "SELECT coalesce(max(attempt), 0) FROM intents "
                "WHERE session = ? AND run_id = ? AND branch = ? AND kind = ? AND call_id = ?",
                (self._number, *which),
            ).fetchone()
            attempt = Attempt(intent=intent, number=last + 1, started=at)
            _put_attempt(db, self._number, attempt)
            return attempt

        return await self._thread.ask(begin, is_brief=True)

    async def attempts(self, run_id: str) -> list[Attempt]:
        return await self._thread.ask(lambda db: _attempts(db, self._number, run_id), reads=True)

    async def finish(self, attempt: Attempt, outcome: Any = None) -> None:
        if odd := not_json(outcome):
            raise ConfigurationError(f"the outcome of {attempt.intent.name or attempt.intent.kind} cannot be {odd}")
        at, said = clock.now(), json.dumps(outcome)

        def finish(db: sqlite3.Connection) -> None:
            self._mine(db)
            if not _is_finished(db, self._number, attempt):
                _put_attempt(db, self._number, attempt, at, said)

        await self._thread.ask(finish, is_brief=is_brief(said))

    def _mine(self, db: sqlite3.Connection) -> "Held":
        held = _held(db, self._number)
        if held is None or held.fence != self.fence:
            raise _lost(self._key, held)
        return held


class Held(NamedTuple):
    """A row of `leases`."""

    number: int
    fence: int
    run_id: str | None
    """None: it was released."""
    owner: str
    since: float
    expires: float
    """In `clock.ticks()`."""

    @property
    def is_alive(self) -> bool:
        """More left than a lease lasts: the machine was restarted since, and so the owner is gone, as it is if its
        process has ended.
        """
        return self.run_id is not None and 0 < self.expires - clock.ticks() <= LEASE_SECONDS and not is_gone(self.owner)


_BEFORE_APPEND = """SELECT s.number, state_crc, create_time, update_time, seq, s.crc,
    EXISTS (SELECT 1 FROM events e WHERE e.session = s.number AND e.id = ?), l.*
    FROM sessions s LEFT JOIN leases l ON l.session = s.number WHERE app_name = ? AND user_id = ? AND s.id = ?"""


def before_append(db: sqlite3.Connection, key: Key, event_id: str) -> tuple[Head, Held | None, bool]:
    """What an append looks at first, in one statement: the session's row, its lease, and whether it has that event.

    Raises:
        SessionNotFoundError: There is no such session.
    """
    row = db.execute(_BEFORE_APPEND, (event_id, *key)).fetchone()
    if row is None:
        raise missing(db, key)
    held = Held(*_checked(row[7:], "leases")) if row[7] is not None else None
    return head_in(row[:6], key), held, bool(row[6])


def check_may_write(key: Key, held: Held | None, lease: Any) -> None:
    """Refuse who writes beside the run that holds the session.

    Args:
        key: The session.
        held: Its lease, as it is stored.
        lease: The writer's, or None.

    Raises:
        SessionBusyError: The writer has no lease, and another has one.
        StaleSessionError: The writer's lease was taken over.
    """
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


def unfinished(db: sqlite3.Connection, key: Key) -> list[Run]:
    """The runs of a session that have no outcome, oldest first."""
    head = head_of(db, key)
    if head is None:
        return []
    held = _held(db, head.number)
    alive = held.run_id if held and held.is_alive else None
    found = db.execute("SELECT * FROM runs WHERE session = ? AND outcome IS NULL ORDER BY rowid", [head.number])
    return [
        Run(
            id=run_id,
            version=version,
            owner=owner,
            started=started,
            is_alive=run_id == alive,
            attempts=_attempts(db, head.number, run_id),
        )
        for _, run_id, version, owner, started, _ in [_checked(row, "runs") for row in found.fetchall()]
    ]


def consume(db: sqlite3.Connection, number: int, keys: Sequence[str]) -> bool:
    """Use up all of `keys` in the session of that number. False: one was used before, and none is used now."""
    used = "SELECT 1 FROM consumed WHERE session = ? AND key = ?"
    if any(db.execute(used, (number, key)).fetchone() for key in keys):
        return False
    db.executemany("INSERT INTO consumed VALUES (?, ?)", [(number, key) for key in keys])
    return True


def _held(db: sqlite3.Connection, number: int) -> Held | None:
    row = db.execute("SELECT * FROM leases WHERE session = ?", [number]).fetchone()
    return Held(*_checked(row, "leases")) if row else None


def _lost(key: Key, held: Held | None) -> StaleSessionError:
    by = f" was taken over by {held.owner}" if held and held.run_id else " is no longer this run's"
    return StaleSessionError(f"session {key[2]!r}{by}, and nothing was written; end this run")


def _put_lease(db: sqlite3.Connection, held: Held) -> None:
    db.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?, ?, ?)", (*held, crc(*held)))


def _run_of(db: sqlite3.Connection, number: int, run_id: str) -> tuple[str, str, float, str | None] | None:
    """Version, owner, start and outcome."""
    row = db.execute("SELECT * FROM runs WHERE session = ? AND run_id = ?", (number, run_id)).fetchone()
    return row and _checked(row, "runs")[2:]


def _put_run(db: sqlite3.Connection, row: tuple[int, str, str, str, float, str | None]) -> None:
    db.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "  # not REPLACE: it keeps its place
        "owner = excluded.owner, outcome = excluded.outcome, crc = excluded.crc",
        (*row, crc(*row)),
    )


def _is_finished(db: sqlite3.Connection, number: int, one: Attempt) -> bool:
    of = one.intent
    found = db.execute(
        "SELECT * FROM intents WHERE session = ? AND run_id = ? AND branch = ? AND kind = ? AND call_id = ? "
        "AND attempt = ?",
        (number, of.run_id, of.branch, of.kind, of.call_id, one.number),
    ).fetchone()
    return found is not None and _checked(found, "intents")[-2] is not None


def _put_attempt(
    db: sqlite3.Connection, number: int, one: Attempt, finished: float | None = None, outcome: str | None = None
) -> None:
    """`outcome`: as JSON."""
    of = one.intent
    row = (number, of.run_id, of.branch, of.kind, of.call_id, one.number, of.name, of.effect, of.key)
    row += (one.started, finished, outcome)
    db.execute(
        f"INSERT INTO intents VALUES ({', '.join('?' * 13)}) ON CONFLICT DO UPDATE SET "
        "finished = excluded.finished, outcome = excluded.outcome, crc = excluded.crc",
        (*row, crc(*row)),
    )


def _attempts(db: sqlite3.Connection, number: int, run_id: str) -> list[Attempt]:
    rows = db.execute("SELECT * FROM intents WHERE session = ? AND run_id = ? ORDER BY rowid", (number, run_id))
    return [_attempt(*_checked(row, "intents")[1:]) for row in rows.fetchall()]


def _attempt(*row: Any) -> Attempt:
    run_id, branch, kind, call_id, number, name, effect, _, started, finished, outcome = row
    intent = Intent(run_id=run_id, branch=branch, kind=kind, call_id=call_id, name=name, effect=effect)
    try:
        said = from_json(outcome) if outcome else None
    except ValueError as error:
        raise Damaged(f"the outcome in a row of intents is not what was written: {error}") from error
    return Attempt(intent=intent, number=number, started=started, finished=finished, outcome=said)


_KINDS: dict[str, set[tuple[type, ...]]] = {
    "leases": {(int, int, run, str, float, float) for run in (str, NoneType)},
    "runs": {(int, str, str, str, float, ended) for ended in (str, NoneType)},
    "intents": {
        (int, str, str, str, str, int, str, str, str, float, *ended)
        for ended in ((NoneType, NoneType), (float, NoneType), (float, str))
    },
}
"""The types of a row's values: SQLite lets any value stand in any column."""


def _checked(row: tuple[Any, ...], table: str) -> tuple[Any, ...]:
    if crc(*row[:-1]) != row[-1] or tuple(map(type, row[:-1])) not in _KINDS[table]:
        raise Damaged(f"a row of {table} is not what was written")
    return row[:-1]
