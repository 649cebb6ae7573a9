"""What is asked of a file of sessions: done in one transaction, with others or alone, and told to who asked."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from adk_nb import clock
from adk_nb.errors import AdkNbError

T = TypeVar("T")
Told = Callable[[Exception], Exception]


@dataclass(eq=False)
class Job(Generic[T]):
    """A piece of work, and who waits for it; see `SqliteThread.ask`."""

    work: Callable[[sqlite3.Connection], T]
    reads: bool
    undo: Callable[[], None] | None
    then: Callable[[T], None] | None
    loop: asyncio.AbstractEventLoop
    heard: "asyncio.Future[None]"
    """Of the caller; touched on its loop alone. The result is not in it: the loop keeps a future for a while."""
    result: T | None = None
    error: Exception | None = None
    is_told: bool = False
    asked_at: float = field(default_factory=clock.ticks)

    def tell(self) -> None:
        """On the caller's loop: it is over."""
        self.is_told = True
        if self.error is None and self.then:
            self.then(cast(T, self.result))
        if self.heard.done():  # its caller was cancelled
            return
        if self.error is None:
            self.heard.set_result(None)
        else:
            self.heard.set_exception(self.error)


def finish(db: sqlite3.Connection, jobs: Sequence[Job[Any]], told: Told) -> None:
    """Do `jobs` in the transaction that was begun, and commit: then each has its result or its error.

    What is no error, as a KeyboardInterrupt, is raised on; if it came when all was committed, the jobs are told first.
    """
    done, is_over = list[Job[Any]](), False
    try:
        for job in jobs:
            try:
                job.result = job.work(db)
                done.append(job)
            except AdkNbError as error:
                job.error = error
        is_over = True
        db.execute("COMMIT")
    except BaseException as error:
        if is_over and not (isinstance(error, sqlite3.Error) or db.in_transaction):
            for job in jobs:
                job.tell()
            raise
        _undo(db, done)
        if not isinstance(error, Exception):
            raise
        said = told(error)
        for job in jobs:
            job.error = said


def _undo(db: sqlite3.Connection, done: Sequence[Job[Any]]) -> None:
    with suppress(sqlite3.Error):  # a full disk has ended the transaction already
        db.execute("ROLLBACK")
    for undo in [job.undo for job in reversed(done) if job.undo]:
        undo()
