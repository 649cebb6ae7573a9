"""Runs and their sessions: one run at a time where a session can be held, and a run within a run as part of it."""

import asyncio
import bisect
import itertools
import logging
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import aclosing, suppress
from contextvars import ContextVar
from typing import Any

from adk_nb import clock
from adk_nb.errors import SessionBusyError, StaleSessionError, StorageError
from adk_nb.events.event import Event
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupted_runs import close_interrupted_run
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import waiting
from adk_nb.runtime.stopping import STOPPED, Stop
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.journal import LEASE_SECONDS, Journal, Lease, this_process
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

_PAUSE_SECONDS, _LONGEST_PAUSE = 0.02, 0.3
"""Between two looks at a session that another process has; they become fewer. A run of this process wakes the next."""
_CLOSE_SECONDS = 5.0
"""The most that a run waits for one that its reader dropped, and that is being closed."""
_CLOSE_ROUNDS = 4
"""Rounds of the event loop in which a dropped stream is closed, also one within two other streams."""
Find = Callable[[], Awaitable[Session]]


class Turns:
    """The turns of one runner's runs at its sessions."""

    def __init__(self, service: BaseSessionService, *, waits: bool) -> None:
        """`waits`: a run on a session that another works on waits for that one. Otherwise it is refused, where the
        service can tell, and let in beside it, where it cannot.
        """
        self.journal = service if isinstance(service, Journal) else None
        self.waits = waits
        self.running: dict[Hashable, list[Turn]] = {}
        """Session -> the run that works on it, and after it those within it, the innermost last."""
        self.lines: dict[Hashable, list[Turn]] = {}
        """Session -> the runs that wait for it here, in the order in which they came."""
        self.arrivals = itertools.count()
        self.kept: dict[Hashable, tuple[Lease, str | None]] = {}
        """Session -> what could not be released when its run ended, and how that ended."""

    def turn(self, where: tuple[str, str], stop: Stop, consumer: Hashable | None) -> "Turn | None":
        """A run's turn, which is still to be taken. None: whoever comes may work.

        Args:
            where: User and session.
            stop: The run's.
            consumer: Who takes the events: another run that it starts before it takes the next is within this one.
                None: the task that asks for the event.
        """
        return Turn(self, where, stop, consumer) if self.journal or self.waits else None

    def wake(self, where: Hashable) -> None:
        """Let the first in line look at the session again."""
        for first in self.lines.get(where, ())[:1]:
            first.wake()


class Turn:
    """One run's turn at a session."""

    def __init__(self, turns: Turns, where: tuple[str, str], stop: Stop, consumer: Hashable | None) -> None:
        self._turns = turns
        self._where = where
        self._stop = stop
        self._fixed = consumer
        self._consumer: Hashable | None = None
        self._outer: Turn | None = None
        self._ctx: InvocationContext | None = None
        self._id = self._version = ""
        self._session: Session | None = None
        self._lease: Lease | None = None
        self._since = 0.0
        self._arrival = 0
        self._is_paused = self._is_closing = False
        self._stream: weakref.ref[AsyncGenerator[Event, None]] | None = None
        """What the reader holds."""
        self._woken: asyncio.Future[None] | None = None
        """Of a run in line."""
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    def around(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """`events`, which take the turn; it ends with them."""
        stream = self._around(events)
        self._stream = weakref.ref(stream)
        return stream

    async def _around(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        outcome: str | None = "cancelled"
        try:
            async with aclosing(events):
                async for event in events:
                    self._pause()
                    try:
                        yield event
                    except GeneratorExit:
                        self._is_closing = True
                        raise
                    finally:
                        self._resume()
            outcome = self._ended() or "done"
        except GeneratorExit:
            outcome = self._ended() or outcome
            raise
        except Exception as error:
            outcome = None if isinstance(error, StorageError) else "failed"  # what was begun may not be written down
            raise
        finally:
            try:
                await self._end(outcome)
            finally:
                if self._id:
                    self._turns.wake(self._where)

    async def take(
        self, find: Find, run_id: str, version: str, signal: asyncio.Event | None = None, seconds: float | None = None
    ) -> Session | None:
        """The session, held for this run until its end. None: it was stopped while it waited.

        Args:
            find: Gets the session as it is now.
            run_id: The invocation's id.
            version: What its agents and tools are.
            signal: Set by who wants the run stopped.
            seconds: The most that it waits. None: as long as it takes.

        Raises:
            SessionBusyError: Another run works on it, and is not waited for, or not any longer.
        """
        self._id, self._version, self._since = run_id, version, clock.now()
        self._arrival = next(self._turns.arrivals)
        if any(turn._is_paused for turn in self._turns.running.get(self._where, ())):  # its reader may have dropped it
            for _ in range(_CLOSE_ROUNDS):
                await asyncio.sleep(0)
        try:
            return await self._newest(find)
        except SessionBusyError:
            if not self._turns.waits:
                if not any(turn.is_dropped() for turn in self._turns.running.get(self._where, ())):
                    raise
                seconds = _CLOSE_SECONDS
            if session := await self._waited_for(find, signal, seconds):
                return session
            if self._stop.why != STOPPED:
                raise  # it took too long
            return None

    async def _waited_for(self, find: Find, signal: asyncio.Event | None, seconds: float | None) -> Session | None:
        stop, pause, where = self._stop, _PAUSE_SECONDS, self._where
        line = self._turns.lines.setdefault(where, [])
        bisect.insort(line, self, key=lambda turn: turn._arrival)  # the first look takes one longer than another
        try:
            with stop.hearing(signal, seconds):
                stop.within = None if stop.why else asyncio.current_task()
                while not stop.why:
                    self._woken = asyncio.get_running_loop().create_future()
                    is_ours = where in self._turns.running or line[0] is not self
                    await asyncio.wait([self._woken], timeout=None if is_ours else pause)
                    with suppress(SessionBusyError):
                        return await self._newest(find)
                    pause = _PAUSE_SECONDS if is_ours else min(2 * pause, _LONGEST_PAUSE)
            return None
        finally:
            line.remove(self)
            if not line:
                self._turns.lines.pop(where, None)
            self._turns.wake(where)

    def wake(self) -> None:
        """Let a run in line look again, from any thread."""
        if (woken := self._woken) and not woken.done():
            with suppress(RuntimeError):  # its loop is closed
                woken.get_loop().call_soon_threadsafe(lambda: woken.done() or woken.set_result(None))

    async def _newest(self, find: Find) -> Session:
        while True:
            try:
                return await self._taken(find)
            except StaleSessionError:
                continue  # someone wrote to it a moment ago

    async def _taken(self, find: Find) -> Session:
        others, line = self._turns.running.get(self._where, []), self._turns.lines.get(self._where)
        self._outer = others[-1] if any(one.has_within(self._who()) for one in others) else None
        if self._outer is None and (others or (line and line[0] is not self)):
            raise SessionBusyError(self._where[1], this_process(), [*others, *(line or ())][0]._since)
        self._turns.running.setdefault(self._where, []).append(self)
        self._since = clock.now()
        try:
            session = await find()
            if held := self._outer and self._outer._session:
                if held.lease is not None:  # each goes on after what the other writes
                    session.lease, session.revision = held.lease, held.revision
            else:
                await self._claim(session)
        except BaseException:
            self._leave()
            self._turns.wake(self._where)
            raise
        self._session = session
        _inside.set(self)
        return session

    async def begin(self, ctx: InvocationContext) -> None:
        """`ctx` is what works on the session: the run is known by its id from now on, in the place of another."""
        self._ctx = ctx
        if self._lease and ctx.invocation_id != self._id:
            self._rest()
            await self._lease.release("done")
            self._id = ctx.invocation_id
            await self._claim(ctx.session)
        if self._turns.journal and ctx.checkpoints:
            mine = [run for run in await self._turns.journal.unfinished(ctx.session) if run.id == self._id]
            ctx.shared.is_edited = any(run.version not in ("", self._version) for run in mine)
            ctx.shared.begun |= {one.intent.key: one for run in mine for one in run.attempts}
        elif self._lease and self._lease.is_heir:
            await self._end_cut_runs(ctx, self._lease)

    async def _end_cut_runs(self, ctx: InvocationContext, lease: Lease) -> None:
        """New words end what was cut before: nobody goes on with it after them. What answers the same as a run that was
        cut takes its place.
        """
        runs = await self._turns.journal.unfinished(ctx.session) if self._turns.journal else []
        for run in runs:
            if run.id == self._id or (ctx.responses and not _answers_the_same(ctx, run.id)):
                continue
            if not ctx.responses:
                await close_interrupted_run(ctx, run.id)
            await lease.drop(run.id)

    async def _claim(self, session: Session) -> None:
        if journal := self._turns.journal:
            if kept := self._turns.kept.get(self._where):
                await kept[0].release(kept[1])
                self._turns.kept.pop(self._where, None)
            try:
                self._lease = await journal.claim(session, self._id, owner=this_process(), version=self._version)
            except asyncio.CancelledError:
                self._lease = session.lease  # it is held all the same, if it was claimed by then
                raise
            self._renew_later()

    def has_within(self, who: Hashable | None) -> bool:
        """True if a run that `who` starts now is within this one."""
        return _inside.get() is self or (self._is_paused and self._consumer == who and not self.is_dropped())

    def is_dropped(self) -> bool:
        """True if the reader let go of the events before their end: the run is being closed, and not read on."""
        return self._is_closing or (self._stream is not None and self._stream() is None)

    def _pause(self) -> None:
        """An event is out: what its reader starts now is within this run."""
        self._consumer, self._is_paused = self._who(), True
        _inside.set(self._outer)

    def _resume(self) -> None:
        """The next event is asked for."""
        self._is_paused = False
        _inside.set(self)

    def _ended(self) -> str | None:
        """How the run ended, if it was stopped, or something that it asked waits for an answer."""
        if self._stop.why or self._ctx is None:
            return "cancelled"
        return "waiting" if waiting(self._ctx.agent, history_of(self._ctx.session), run=self._id) else None

    async def _end(self, outcome: str | None) -> None:
        """Let others in."""
        self._leave()
        _inside.set(self._outer)
        self._rest()
        if self._outer and self._session:
            self._session.lease = None
        if self._lease:
            try:
                await self._let_go(self._lease, outcome)
            except StorageError as error:
                self._turns.kept[self._where] = self._lease, outcome
                logger.warning("session %r stays held until its next run, or for 15 s: %s", self._where[1], error)

    async def _let_go(self, lease: Lease, outcome: str | None) -> None:
        try:
            await lease.release(outcome)
        except asyncio.CancelledError:
            await lease.release(outcome)  # it may not have begun; twice is once
            raise

    def _leave(self) -> None:
        if not self._id:
            return  # it was never taken
        running = self._turns.running.get(self._where, [])
        if self in running:
            running.remove(self)
        if not running:
            self._turns.running.pop(self._where, None)

    def _who(self) -> Hashable | None:
        # Weak: a task that failed holds the stream it read, and the stream this turn, which would never end.
        return self._fixed or ((task := asyncio.current_task()) and weakref.ref(task))

    def _rest(self) -> None:
        """Renew no more: the lease is let go."""
        for renewing in (self._timer, self._renewing):
            if renewing:
                renewing.cancel()

    def _renew_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(LEASE_SECONDS / 3, self._due)

    def _due(self) -> None:
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
            logger.warning("session %r could not be held on to yet: %s", self._where[1], error)
        self._renew_later()


_inside: ContextVar[Any] = ContextVar("adk_nb_turn", default=None)
"""The turn that the code belongs to which runs now: of a tool, say."""


def _answers_the_same(ctx: InvocationContext, run_id: str) -> bool:
    """True if the message of this run answers what that of another has answered: it was cut before it could tell."""
    calls = history_of(ctx.session).calls
    return any(run_id in calls.answered_in(response.id) for response in ctx.responses)
