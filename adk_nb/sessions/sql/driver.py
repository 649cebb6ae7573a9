"""Jobs on a database: event loops ask for them, threads do them in transactions, and each caller hears on its loop."""

import asyncio
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from adk_nb import clock
from adk_nb.errors import AdkNbError, InputError, StorageError
from adk_nb.sessions.sql.codec import Key
from adk_nb.sessions.sql.rows import Rows
from adk_nb.wire import json_problem

T = TypeVar("T")
_LOOK_SECONDS = 0.1
"""How often a thread looks at jobs that cannot be done yet, if no call has woken it."""


@dataclass(eq=False)
class Job(Generic[T]):
    """Work to be done in one transaction."""

    work: Callable[[Rows], T]
    """Mostly called in another thread. It has to look at everything before it writes anything: other jobs may be in
    the same transaction, and an error of this package undoes nothing."""
    key: Key | None = None
    """The session that it writes: the jobs of a session are done in the order of the calls."""
    reads: bool = False
    """It writes nothing."""
    size: int | None = None
    """Characters that it writes; None: unknown."""
    undo: Callable[[], None] | None = None
    """Called if the transaction was not committed, for what `work` changed in memory."""
    then: Callable[[T], None] | None = None
    """Called on the caller's loop with the result, also if the caller was cancelled."""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    future: "asyncio.Future[None] | None" = None
    """Of the caller; touched on its loop alone. The result is not in it: the loop keeps a future for a while."""
    result: T | None = None
    error: Exception | None = None
    is_over: bool = False
    since: float = field(default_factory=clock.ticks)

    def report(self) -> None:
        """On the caller's loop: it is over."""
        self.is_over = True
        if self.error is None and self.then:
            self.then(cast(T, self.result))
        if not self.future or self.future.done():  # its caller was cancelled
            return
        if self.error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(self.error)


class Database(ABC):
    """The jobs of a database, and the threads that do them, which begin with the first job.

    The threads refer to this, and not to the `Driver`, which may so be collected.
    """

    most_threads = 1
    is_jsonb = False
    max_name: int | None = None
    """Characters of a name or an id."""

    def __init__(self, address: str) -> None:
        self.address = address
        """Its URL, without a password."""
        self.threads: list[threading.Thread] = []
        self.jobs: list[Job[Any]] = []
        """In the order of the calls, until a thread takes them."""
        self.waiting: set[Job[Any]] = set()
        """Jobs that write, until their callers go on: no caller overtakes them."""
        self.changed = threading.Condition()
        self.is_closed = False
        self._idle = 0

    @abstractmethod
    def work(self) -> None:
        """Do jobs, in a thread, until it is closed and all are done."""

    @abstractmethod
    def rows_of(self, db: Any) -> Rows:
        """The rows of the transaction that was begun on a connection."""

    @abstractmethod
    def describe(self, error: Exception) -> Exception:
        """The error that names the database, and what to do; an error of this package as it is."""

    def do_now(self, job: Job[Any]) -> bool:
        """Do a job in the caller's thread, if that waits for nothing. False: a thread shall do it."""
        del job
        return False

    def put(self, job: Job[Any]) -> None:
        """Let a thread do it.

        Raises:
            StorageError: The service is closed.
        """
        with self.changed:
            if self.is_closed:
                raise StorageError("this session service is closed; make another")
            self.jobs.append(job)
            if not job.reads:
                self.waiting.add(job)
            if len(self.threads) < self.most_threads and self._idle < len(self.jobs):
                self.threads.append(threading.Thread(target=self.work, name="adk-nb-sessions", daemon=True))
                self.threads[-1].start()
            self.changed.notify()

    def wait(self, is_ready: Callable[[], bool]) -> bool:
        """Wait in a thread, with `changed` held. False: there is nothing left to wait for."""
        self._idle += 1
        try:
            while not (ready := is_ready()) and not (self.is_closed and not self.jobs):
                self.changed.wait(_LOOK_SECONDS if self.jobs else None)
            return ready
        finally:
            self._idle -= 1

    def take(self, is_wanted: Callable[[Job[Any]], bool]) -> list[Job[Any]]:
        """Take jobs out: from now on they cannot be withdrawn."""
        with self.changed:
            jobs = [job for job in self.jobs if is_wanted(job)]
            self.jobs = [job for job in self.jobs if not is_wanted(job)]
        return jobs

    def withdraw(self, job: Job[Any]) -> bool:
        """False: a thread has taken it."""
        return bool(self.take(lambda other: other is job))

    def close(self) -> None:
        """Let the threads end when all is done."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()

    def finish(self, db: Any, jobs: Sequence[Job[Any]]) -> None:
        """Do `jobs` in the transaction that was begun on `db`, and commit: then each has its result or its error."""
        rows, done = self.rows_of(db), list[Job[Any]]()
        try:
            for job in jobs:
                try:
                    job.result = job.work(rows)
                    done.append(job)
                except AdkNbError as error:
                    job.error = error
            db.execute("COMMIT")
        except Exception as error:
            _undo(db, done)
            described = self.describe(error)
            for job in jobs:
                job.error = described
        except BaseException:  # a signal, in a caller's thread
            if db.in_transaction:
                _undo(db, done)
            else:
                _report_here(jobs)
            raise

    def check_names(self, **names: str) -> None:
        """Refuse names and ids that the database does not keep.

        Raises:
            InputError: One is too long, or holds a NUL.
        """
        for what, name in names.items() if self.max_name else ():
            if len(name) > (self.max_name or 0):
                raise InputError(
                    f"the {what} has {len(name)} characters, and a database keeps {self.max_name}; shorten {name!r:.60}"
                )
            if "\0" in name:
                raise InputError(f"the {what} holds the character NUL, which a database does not keep: {name!r:.60}")

    def is_name(self, *names: Any) -> bool:
        """True if all of `names` can be names or ids here."""
        try:
            self.check_names(**{str(number): name for number, name in enumerate(names) if isinstance(name, str)})
        except InputError:
            return False
        return all(isinstance(name, str) and not json_problem(name) for name in names)


class Driver:
    """The door to a database, for any number of event loops."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._made_in = os.getpid()
        weakref.finalize(self, database.close)

    def ask(self, work: Callable[[Rows], T], **about: Any) -> Awaitable[T]:
        """`do` a job of `work`, with other fields of a `Job` in `about`."""
        return self.do(Job(work, **about))

    async def do(self, job: Job[T]) -> T:
        """The result of the job's work, once it is committed. The event loop goes on meanwhile.

        A caller that is cancelled before the work began leaves it undone; later the cancellation takes effect when the
        work has ended, so that the caller's copy is what is stored.

        Raises:
            AdkNbError: What `work` raised.
            StorageError: The database could not be used, and nothing was written.
        """
        if os.getpid() != self._made_in:
            raise StorageError("this session service was made in another process; make one in each")
        job.future = job.loop.create_future()
        if self.database.do_now(job):
            await job.future
            return cast(T, job.result)
        self.database.put(job)
        try:
            await job.future
        except asyncio.CancelledError:
            if not (self.database.withdraw(job) or job.is_over):
                job.future = job.loop.create_future()
                while not job.is_over:
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([job.future])
                job.future.exception()  # nobody asks for it any more
            raise
        finally:
            self.database.waiting.discard(job)
        return cast(T, job.result)

    async def close(self) -> None:
        """Finish what was asked for, and let the connections go. Again is no error."""
        self.database.close()
        for thread in self.database.threads:
            await asyncio.to_thread(thread.join)


def report(jobs: Sequence[Job[Any]]) -> None:
    """Let the callers hear, each on its loop; a loop is woken once for all of its own."""
    for loop in {job.loop for job in jobs}:
        mine = [job for job in jobs if job.loop is loop]
        with suppress(RuntimeError):  # it was closed: nobody listens any more
            loop.call_soon_threadsafe(_report_here, mine)


def _undo(db: Any, jobs: Sequence[Job[Any]]) -> None:
    with suppress(Exception):  # a full disk has ended the transaction already, and so has a lost connection
        db.execute("ROLLBACK")
    for undo in [job.undo for job in reversed(jobs) if job.undo]:
        undo()


def _report_here(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        job.report()
