"""Queues of the runs of each session: one run at a time, first come first served, and the runs inside it.

A run is inside another if it is started by code that the other calls (a tool, a callback, a node, and the tasks and
threads that these start), or, between two events of the other, by the task or thread that reads them.
"""

import asyncio
import logging
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, closing
from contextvars import ContextVar
from typing import Any

from adk_nb import clock
from adk_nb.concurrency.threads import farewell
from adk_nb.errors import SessionBusyError, StaleSessionError, StorageError
from adk_nb.events.event import Event
from adk_nb.runtime.cancellation import STOPPED, Stop
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import awaited_branches
from adk_nb.runtime.session_lease import SessionLease, Unreleased, wait_until_released
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.journal import Journal, this_process
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0
"""Longest wait for a run whose reader dropped it, until it is closed."""
_CLOSE_ROUNDS = 4
"""Rounds of the event loop that close a dropped stream, even one inside two other streams."""
_READER_SECONDS = 15.0
"""Longest wait for the loop body that started this run: the body may itself await this run."""

SessionKey = tuple[str, str, str]
"""App, user and session."""
LoadSession = Callable[[], Awaitable[Session]]


class SessionQueues:
    """The queues of all sessions of a service, for all its runners in this process."""

    def __init__(self, service: BaseSessionService) -> None:
        self.service = service  # held: the queues are found by its id()
        self.journal = service if isinstance(service, Journal) else None
        self.unreleased: Unreleased = {}
        self._running: dict[SessionKey, list[QueuePlace]] = {}
        """Session -> the run that holds it, and the runs inside that."""
        self._waiting: dict[SessionKey, deque[QueuePlace]] = {}
        """Session -> the runs that wait for it, first come first."""
        self._lock = threading.Lock()

    def running(self, key: SessionKey) -> "list[QueuePlace]":
        """The run that holds a session, and the runs inside that."""
        with self._lock:
            return list(self._running.get(key, ()))

    def enter(self, place: "QueuePlace") -> None:
        """Let a run hold its session, alone or inside the run that holds it.

        Raises:
            SessionBusyError: Another run holds it.
        """
        with self._lock:
            # A run whose event loop is closed can neither continue nor leave by itself.
            running = [
                other_place for other_place in self._running.get(place.key, ()) if not other_place.is_loop_closed
            ]
            place.host = place.host_among(running)
            if running and place.host is None:
                raise place.busy_error(running[0].since)
            self._running[place.key] = [*running, place]

    def join(self, place: "QueuePlace") -> None:
        """Let a run wait until `QueuePlace.admit` is called."""
        with self._lock:
            if self._running.get(place.key):
                self._waiting.setdefault(place.key, deque()).append(place)
                return
            self._running[place.key] = [place]
        place.admit()

    def leave(self, place: "QueuePlace") -> None:
        """Remove a run; if its session is free then, admit the first that waits."""
        with self._lock:
            # Popped, so that a session that nobody runs leaves no entry behind.
            running, waiting_runs = self._running.pop(place.key, []), self._waiting.pop(place.key, deque())
            for runs in (running, waiting_runs):
                if place in runs:
                    runs.remove(place)
            # Only a run whose loop is closed is not admitted: try the next.
            while waiting_runs and not running:
                if (first := waiting_runs.popleft()).admit():
                    running.append(first)
            if waiting_runs:
                self._waiting[place.key] = waiting_runs
            if running:
                self._running[place.key] = running


_queues: weakref.WeakValueDictionary[int, SessionQueues] = weakref.WeakValueDictionary()
_queues_lock = threading.Lock()


def queues_of(service: BaseSessionService) -> SessionQueues:
    """The queues of a service: the same for all its runners."""
    with _queues_lock:
        if (queues := _queues.get(id(service))) is None:
            queues = _queues[id(service)] = SessionQueues(service)
        return queues


class QueuePlace:
    """A run's place in the queue of its session, and the token by which runs inside it are known."""

    def __init__(self, queues: SessionQueues, key: SessionKey, stop: Stop, *, waits: bool) -> None:
        """`stop`: of the run. `waits`: it waits while another run holds the session; False: it is refused."""
        self.key = key
        self.since = 0.0
        self.body: _LoopBody | None = None
        """The loop body of the reader. None: the run takes a step."""
        self.is_over = False
        self.outer: QueuePlace | None = None
        """Place of the run that this run is inside, of this session or another."""
        self.host: QueuePlace | None = None
        """Place of the run of this session that this run is inside."""
        self._queues = queues
        self._stop = stop
        self._waits = waits
        self._outer_scope: _Scope = None
        self._ctx: InvocationContext | None = None
        self._id = self._version = ""
        self._session: Session | None = None
        self._lease: SessionLease | None = None
        self._is_closing = False
        self._stream: weakref.ref[AsyncGenerator[Event, None]] | None = None
        """The generator that the reader holds."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._admission: asyncio.Future[None] | None = None
        """Completed when the run is admitted. None: the run does not wait."""

    @property
    def has_journal(self) -> bool:
        """True if the session service has a journal, which records the runs."""
        return self._queues.journal is not None

    # -- the stream of events

    def wrap(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """`events`; the run leaves the queue when they end."""
        stream = self._wrap(events)
        self._stream = weakref.ref(stream)
        return stream

    async def _wrap(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        outcome: str | None = "cancelled"
        self.outer = _enclosing_place()
        self._begin_step()
        try:
            async with aclosing(events):
                async for event in events:
                    self._end_step()
                    try:
                        yield event
                    except GeneratorExit:
                        self._is_closing = True
                        raise
                    finally:
                        # Also before the stream is closed: `finally` blocks of the run are part of the step.
                        self._begin_step()
            outcome = self._outcome() or "done"
        except GeneratorExit:
            outcome = self._outcome() or outcome
            raise
        except Exception as error:
            outcome = None if isinstance(error, StorageError) else "failed"  # None: stays resumable
            raise
        finally:
            try:
                if self.host and self._session:
                    # A nested run has only borrowed the lease of its host.
                    self._session.lease = None
                # Before leaving: the next run in the queue claims the lease at once.
                if self._lease:
                    is_cut_off = outcome == "cancelled" and self._stop.reason in (None, STOPPED) and farewell.reason
                    await self._lease.release(None if is_cut_off else outcome)
                self._ctx = self._session = self._lease = None
            finally:
                # Even if the lease was not released: the queue of this process must continue.
                self.is_over = True
                self._queues.leave(self)
                _scope.set(self._outer_scope)
                self._outer_scope = None

    def wrap_for_thread(self, events: Generator[Event]) -> Generator[Event]:
        """`events` for a reader thread: runs that it starts between two events are inside this run."""
        body = _LoopBody(self, None)
        with closing(events):
            for event in events:
                outer_scope = _scope.get()
                _scope.set(body)
                try:
                    yield event
                finally:
                    _scope.set(outer_scope)

    def _begin_step(self) -> None:
        """Let code that the run calls be inside it, until the next event."""
        scope = _scope.get()
        if scope is not self.body:  # another task reads now
            self._outer_scope = scope
        self.body = None
        _scope.set(self)

    def _end_step(self) -> None:
        # A function of its own, and a weak reference: a failed task refers to its stream, and the stream to this place
        # and its variables; the cycle would keep them all.
        task = asyncio.current_task()
        self.body = _LoopBody(self, weakref.ref(task) if task else None)
        _scope.set(self.body)

    def _outcome(self) -> str | None:
        """`cancelled` for a stopped run, `waiting` for one with open interrupts; None otherwise."""
        if self._stop.reason or self._ctx is None:
            return "cancelled"
        if self._lease is None:  # nothing records the outcome
            return None
        return "waiting" if awaited_branches(self._ctx.agent, history_of(self._ctx.session), run=self._id) else None

    # -- holding the session

    async def take(
        self,
        load: LoadSession,
        run_id: str,
        version: str,
        signal: asyncio.Event | None = None,
        seconds: float | None = None,
    ) -> Session | None:
        """Hold the session, and claim it in the journal, until the end of the run.

        Args:
            load: Loads the current session.
            run_id: Id of the invocation.
            version: Version of its agents and tools.
            signal: Set to stop the run.
            seconds: Longest wait. None: no limit.

        Returns:
            The session. None: the run was stopped while it waited.

        Raises:
            SessionBusyError: Another run holds it, and this one does not wait, or the wait is over.
        """
        self._id, self._version, self.since = run_id, version, clock.now()
        self._loop = asyncio.get_running_loop()
        # Else a stream that is just being closed could refuse this run, or let it wait for its own reader.
        if (not self._waits or (self.outer and self.outer.body)) and any(
            place.body for place in self._queues.running(self.key)
        ):
            for _ in range(_CLOSE_ROUNDS):
                await asyncio.sleep(0)
        try:
            self._queues.enter(self)
            return await self._open(load)
        except SessionBusyError as busy:
            if not self._waits:
                # Even then it waits for a moment for a run whose reader has left.
                if not any(place.is_dropped for place in self._queues.running(self.key)):
                    raise
                seconds = _CLOSE_SECONDS
            return await self._wait(load, signal, seconds, busy)

    async def _wait(
        self, load: LoadSession, signal: asyncio.Event | None, seconds: float | None, busy: SessionBusyError
    ) -> Session | None:
        with self._stop.watching(signal, seconds):
            if not self._stop.reason:
                self._stop.step_task = asyncio.current_task()
                # If it waits for another process, it already holds the session in this process.
                if self not in self._queues.running(self.key):
                    await self._wait_in_queue()
                return await wait_until_released(lambda: self._open(load))
        if self._stop.reason != STOPPED:
            raise busy  # it took too long
        return None

    async def _wait_in_queue(self) -> None:
        self._admission = asyncio.get_running_loop().create_future()
        self._queues.join(self)
        # The run of the reader that started this run holds the session; if its loop body awaits this run, both hang.
        if isinstance(body := self._outer_scope, _LoopBody) and body.place in self._queues.running(self.key):
            await asyncio.wait([self._admission], timeout=_READER_SECONDS)
            if body.is_current and not self._admission.done():
                raise self.busy_error(body.place.since, _READER_HINT)
        if not (await asyncio.wait([self._admission], timeout=_READER_SECONDS))[0]:
            logger.warning(
                "a run waits for another one on session %r; if nobody reads that one to its end, close its events, or "
                "set RunConfig(timeout=...)",
                self.key[2],
            )
        await self._admission
        self.since = clock.now()

    def admit(self) -> bool:
        """End the wait of this run, from any thread. False: its event loop is closed."""
        loop, admission = self._loop, self._admission
        if not loop or not admission:
            return False
        try:
            # Checked on the loop: the run may be cancelled before the call gets there.
            loop.call_soon_threadsafe(lambda: admission.done() or admission.set_result(None))
        except RuntimeError:  # the loop is closed
            return False
        return True

    async def _open(self, load: LoadSession) -> Session:
        """Read the session, and hold it in the journal."""
        journal = self._queues.journal
        while True:
            session = await load()
            host_session = self.host and self.host._session
            if journal and self.host is None:
                self._lease = SessionLease(journal, self.key, self._stop, self._queues.unreleased)
                try:
                    await self._lease.claim(session, self._id, self._version)
                except StaleSessionError:
                    continue  # another process wrote to it a moment ago
            elif journal and host_session and host_session.lease is not None:
                # A nested run writes under its host's lease, and continues from the host's revision.
                session.lease, session.revision = host_session.lease, host_session.revision
            self._session = session
            return session

    async def begin(self, ctx: InvocationContext) -> None:
        """Register the run under the id of `ctx`. A resumed run gets the attempts of its calls from the journal."""
        self._ctx = ctx
        if self._lease and ctx.invocation_id != self._id:
            self._id = ctx.invocation_id
            await self._lease.claim_for(ctx, self._version)
        if self._queues.journal and ctx.checkpoints:
            # Resumed: its calls must not take effect twice, and edits since then are detected.
            runs = [run for run in await self._queues.journal.unfinished(ctx.session) if run.id == self._id]
            ctx.shared.is_edited = any(run.version not in ("", self._version) for run in runs)
            ctx.shared.earlier_attempts |= {attempt.intent.key: attempt for run in runs for attempt in run.attempts}
        elif self._lease:
            # A new run: interrupted runs can no longer be resumed.
            await self._lease.close_interrupted_runs(ctx)

    # -- for other runs

    def host_among(self, running: "list[QueuePlace]") -> "QueuePlace | None":
        """The innermost run of `running` that this run is inside. None: there is none, or it is being closed."""
        place = self.outer
        while place and place not in running:
            place = place.outer
        return place if place and not place.is_dropped else None

    @property
    def is_dropped(self) -> bool:
        """True if the reader dropped the events before their end: the run is being closed."""
        return self._is_closing or (self._stream is not None and self._stream() is None)

    @property
    def is_loop_closed(self) -> bool:
        """True if its event loop is closed, so that it never ends."""
        return self._loop is not None and self._loop.is_closed()

    def busy_error(self, since: float, hint: str = "") -> SessionBusyError:
        """The error that refuses this run. `since`: when the run that holds the session began."""
        return SessionBusyError(self.key[2], this_process(), since, hint)


class _LoopBody:
    """Code of a reader, between two events of a run."""

    __slots__ = ("place", "task")

    def __init__(self, place: QueuePlace, task: weakref.ref[asyncio.Task[Any]] | None) -> None:
        """`task`: the reader. None: a thread without an event loop, which waits for what it starts."""
        self.place = place
        self.task = task

    @property
    def is_current(self) -> bool:
        """True until the reader wants the next event."""
        return self.place.body is self or (self.task is None and self.place.body is not None)

    @property
    def is_here(self) -> bool:
        """True for code of the reader itself; its other tasks run beside the loop."""
        return self.is_current and (self.task is None or self.task() is asyncio.current_task())


_Scope = QueuePlace | _LoopBody | None
_scope: ContextVar[_Scope] = ContextVar("adk_nb_queue_place", default=None)
"""The owner of the current code: a step of a run, or the loop body of its reader. Set only here, around each step;
tasks and threads inherit it."""

_READER_HINT = (
    "the loop that reads that run has started this one in another task, and takes no event: if it awaits this run, "
    "await it in the loop's own task"
)


def _enclosing_place() -> QueuePlace | None:
    """The place of the innermost run that contains the current code, and is not over."""
    scope = _scope.get()
    place = scope.place if isinstance(scope, _LoopBody) else scope
    if isinstance(scope, _LoopBody) and not scope.is_here:
        place = scope.place.outer
    while place and place.is_over:
        place = place.outer
    return place
