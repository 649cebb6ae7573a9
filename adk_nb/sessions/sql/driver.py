"""Jobs on a database: event loops queue them, threads run them in transactions and report to the caller's loop."""

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
from adk_nb.concurrency.threads import has_threads
from adk_nb.errors import AdkNbError, InputError, StorageError
from adk_nb.sessions.sql.codec import Key
from adk_nb.sessions.sql.rows import Rows
from adk_nb.wire import json_problem

T = TypeVar("T")
_POLL_SECONDS = 0.1
"""Interval at which a thread retries jobs that are not ready, such as behind another program's lock."""


@dataclass(eq=False)
class Job(Generic[T]):
    """Work for one transaction."""

    work: Callable[[Rows], T]
    """Called in any thread. It must check everything before it writes anything: other jobs may share the transaction,
    and an `AdkNbError` does not roll it back."""
    key: Key | None = None
    """The session that it writes: jobs of one session run in the order of the calls."""
    reads: bool = False
    """It only reads."""
    size: int | None = None
    """Characters that it writes; None: unknown."""
    undo: Callable[[], None] | None = None
    """Called if the transaction was not committed, to undo changes in memory."""
    on_commit: Callable[[T], None] | None = None
    """Called on the caller's loop with the result, also if the caller was cancelled."""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    future: "asyncio.Future[None] | None" = None
    """The caller's; used on its loop alone. It does not hold the result, since a loop keeps futures for a while."""
    result: T | None = None
    error: Exception | None = None
    is_done: bool = False
    since: float = field(default_factory=clock.ticks)
    """Time of the call, in the seconds of `clock.ticks`."""

    def report(self) -> None:
        """Complete the job on the caller's loop."""
        self.is_done = True
        if self.error is None and self.on_commit:
            self.on_commit(cast(T, self.result))
        if not self.future or self.future.done():  # its caller was cancelled
            return
        if self.error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(self.error)


class Database(ABC):
    """The jobs of a database and the threads that run them, started by the first job.

    The threads refer to this object, not to the `Driver`, so that a driver can be collected.
    """

    max_threads = 1
    is_jsonb = False
    """The database stores JSONB."""
    max_name: int | None = None
    """Maximum length of a name or an id, in characters; None: unlimited."""

    def __init__(self, address: str) -> None:
        self.address = address
        """URL of the database, without a password."""
        self.threads: list[threading.Thread] = []
        self.jobs: list[Job[Any]] = []
        """Queued jobs, in the order of the calls."""
        self.waiting: set[Job[Any]] = set()
        """Writing jobs whose callers have not resumed yet: no later call overtakes them."""
        self.changed = threading.Condition()
        self.is_closed = False
        self._idle = 0

    @abstractmethod
    def work(self) -> None:
        """Run jobs, in a thread, until the database is closed and the queue is empty."""

    @abstractmethod
    def rows_of(self, db: Any) -> Rows:
        """The rows of the transaction that is open on a connection."""

    @abstractmethod
    def describe(self, error: Exception) -> Exception:
        """Convert an error to one that names the database and the remedy; returns an AdkNbError as it is."""

    def do_now(self, job: Job[Any]) -> bool:
        """Run a job in the caller's thread, if it need not wait. False: queue it."""
        del job
        return False

    def put(self, job: Job[Any]) -> None:
        """Queue a job for a thread.

        Raises:
            StorageError: The service is closed.
        """
        with self.changed:
            if self.is_closed:
                raise StorageError("this session service is closed; make another")
            self.jobs.append(job)
            if not job.reads:
                self.waiting.add(job)
            # Another thread only if more jobs are queued than threads wait.
            if not has_threads():
                job.loop.call_soon(self.work)
            elif len(self.threads) < self.max_threads and self._idle < len(self.jobs):
                self.threads.append(threading.Thread(target=self.work, name="adk-nb-sessions", daemon=True))
                self.threads[-1].start()
            self.changed.notify()

    def wait(self, is_ready: Callable[[], bool]) -> bool:
        """Wait in a thread, with `changed` held. False: closed and empty; without threads, empty."""
        if not has_threads():
            return is_ready()
        self._idle += 1
        try:
            # With jobs in the queue it polls: one may become ready by time, or by another process's lock.
            while not (ready := is_ready()) and not (self.is_closed and not self.jobs):
                self.changed.wait(_POLL_SECONDS if self.jobs else None)
            return ready
        finally:
            self._idle -= 1

    def take(self, is_wanted: Callable[[Job[Any]], bool]) -> list[Job[Any]]:
        """Take jobs out of the queue: from now on they cannot be withdrawn."""
        # `is_wanted` is called twice for each job: its answer must not depend on the time.
        with self.changed:
            jobs = [job for job in self.jobs if is_wanted(job)]
            self.jobs = [job for job in self.jobs if not is_wanted(job)]
        return jobs

    def withdraw(self, job: Job[Any]) -> bool:
        """Take a job out of the queue. False: a thread has taken it."""
        return bool(self.take(lambda queued: queued is job))

    def close(self) -> None:
        """Let the threads end when the queue is empty."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()

    def finish(self, db: Any, jobs: Sequence[Job[Any]]) -> None:
        """Run `jobs` in the transaction that is open on `db`, and commit; each job gets its result or its error."""
        rows, done = self.rows_of(db), list[Job[Any]]()
        try:
            for job in jobs:
                try:
                    job.result = job.work(rows)
                    done.append(job)
                # The job refused before it wrote anything: the other jobs of the transaction are not affected.
                except AdkNbError as error:
                    job.error = error
            db.execute("COMMIT")
        except Exception as error:
            _undo(db, done)
            described = self.describe(error)
            for job in jobs:
                job.error = described
        except BaseException:  # a signal in a caller's thread
            if db.in_transaction:
                _undo(db, done)
            else:
                _report_here(jobs)
            raise

    def check_names(self, **names: str) -> None:
        """Refuse names and ids that the database cannot store.

        Raises:
            InputError: A name is too long, or has a NUL character.
        """
        for label, name in names.items() if self.max_name else ():
            if len(name) > (self.max_name or 0):
                raise InputError(
                    f"the {label} has {len(name)} characters, a database stores at most {self.max_name}; "
                    f"shorten {name!r:.60}"
                )
            if "\0" in name:
                raise InputError(f"the {label} has a NUL character, which a database cannot store: {name!r:.60}")

    def is_name(self, *names: Any) -> bool:
        """True if the database can store all of `names` as names or ids."""
        try:
            self.check_names(**{str(number): name for number, name in enumerate(names) if isinstance(name, str)})
        except InputError:
            return False
        return all(isinstance(name, str) and not json_problem(name) for name in names)


class Driver:
    """A database for any number of event loops."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._process_id = os.getpid()
        weakref.finalize(self, database.close)

    def run(self, work: Callable[[Rows], T], **job_fields: Any) -> Awaitable[T]:
        """Run a job of `work`; `job_fields` are other fields of the `Job`."""
        return self.run_job(Job(work, **job_fields))

    async def run_job(self, job: Job[T]) -> T:
        """Run a job without blocking the event loop, and return its result once it is committed.

        A caller that is cancelled withdraws the job if its work has not begun. Otherwise the cancellation takes effect
        when the work has ended, so that the caller's copy matches the store.

        Raises:
            AdkNbError: As `work` raised it.
            StorageError: The database cannot be used, and nothing was written.
        """
        # After a fork the threads are gone, and a connection must not be shared. Source: sqlite.org/howtocorrupt.html.
        if os.getpid() != self._process_id:
            raise StorageError("this session service was made in another process; make one in each")
        job.future = job.loop.create_future()
        if self.database.do_now(job):
            await job.future
            return cast(T, job.result)
        self.database.put(job)
        try:
            await job.future
        except asyncio.CancelledError:
            if not (self.database.withdraw(job) or job.is_done):
                job.future = job.loop.create_future()
                while not job.is_done:
                    # A second cancellation waits, too: the caller's copy must not miss a committed event.
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([job.future])
                job.future.exception()  # retrieved, or asyncio logs it
            raise
        finally:
            self.database.waiting.discard(job)
        return cast(T, job.result)

    async def close(self) -> None:
        """Finish the queued jobs and close the connections. May be called again."""
        self.database.close()
        for thread in self.database.threads:
            await asyncio.to_thread(thread.join)
        if not has_threads():
            self.database.work()


def report(jobs: Sequence[Job[Any]]) -> None:
    """Complete jobs, each on its caller's loop; one wake-up for each loop."""
    for loop in {job.loop for job in jobs}:
        loop_jobs = [job for job in jobs if job.loop is loop]
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(_report_here, loop_jobs)


def _undo(db: Any, jobs: Sequence[Job[Any]]) -> None:
    with suppress(Exception):  # a full disk or a lost connection has ended the transaction already
        db.execute("ROLLBACK")
    for undo in [job.undo for job in reversed(jobs) if job.undo]:
        undo()


def _report_here(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        job.report()
