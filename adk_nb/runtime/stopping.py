"""How a run is stopped from outside: asked between two of its steps, or cancelled within one."""

import asyncio
from contextlib import suppress
from typing import Any, Self

INVOCATION_ABORTED = "INVOCATION_ABORTED"
"""Error code of the event that closes a run which was stopped from outside."""
CANCELLED = INVOCATION_ABORTED
RUN_TIMEOUT = "RUN_TIMEOUT"
"""Error code of the event that closes a run which took longer than `RunConfig.timeout`."""

Why = tuple[str, str]
"""Error code and message of the event that closes the run."""
STOPPED: Why = (INVOCATION_ABORTED, "the run was stopped")


def foreign_cancellation(raised: BaseException, name: str) -> Exception | None:
    """An error for a CancelledError that nobody sent to the current task; None for anything else.

    Such a cancellation is of a task that was awaited here. Let out, it would cancel whoever waits for this task.
    """
    task = asyncio.current_task()
    if not isinstance(raised, asyncio.CancelledError) or (task and task.cancelling()):
        return None
    error = RuntimeError(f"{name} awaited a task that was cancelled elsewhere; catch asyncio.CancelledError there")
    error.__cause__ = raised
    return error


class Stop:
    """One run's ear for those who want it stopped: `with stop.hearing(...)` around its steps.

    A cancellation of its own does not leave that block; a reader of `why` knows that the run is to end there.
    """

    def __init__(self) -> None:
        self.why: Why | None = None
        """Set once the run is to stop: it takes no further step. It may be asked before the run has begun."""
        self.within: asyncio.Task[Any] | None = None
        """The task that is within a step, so that the step can be cancelled. None: nothing is under way."""
        self.listens = False
        """Somebody may ask for it by a signal, or the clock does."""
        self._signal: asyncio.Event | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        """Where the run is; None before it has begun."""
        self._cancelled: asyncio.Task[Any] | None = None
        self._cancelled_before = 0
        self._ends: float | None = None
        """When it is to stop, by the loop's clock; None: at no time."""
        self._late: Why = STOPPED
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None

    def hearing(self, signal: asyncio.Event | None, seconds: float | None) -> Self:
        """Stop when `signal` is set, and after `seconds`; None: not for that."""
        self._signal = signal
        self.listens = signal is not None or seconds is not None
        self.loop = asyncio.get_running_loop()
        if signal is not None and signal.is_set():
            self._request(STOPPED)
        elif signal is not None:
            self._watch = self.loop.create_task(self._listen(signal))
        if seconds is not None:
            said = f"the run took longer than {seconds:g} seconds, its RunConfig.timeout, and was stopped; "
            self._late = RUN_TIMEOUT, said + "raise that if it needs longer, in a notebook with %config AdkNb.timeout"
            self._ends = self.loop.time() + seconds
            self._timer = self.loop.call_at(self._ends, self._request, self._late)
        return self

    def is_asked(self) -> bool:
        """True if it is time, or the signal was given: neither is heard while a run never waits."""
        if self._ends is not None and self.loop and self.loop.time() >= self._ends:
            self._request(self._late)
        return self.why is not None or (self._signal is not None and self._signal.is_set())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.within = None
        if self._timer:
            self._timer.cancel()
        if self._watch:
            self._watch.cancel()
        task, self._cancelled = self._cancelled, None
        # Also where a step came to its end although it was cancelled: the task is as if it never had been.
        alone = task is not None and task.uncancel() <= self._cancelled_before
        return alone and kind is asyncio.CancelledError

    def request(self) -> None:
        """Stop the run, from any thread. A step under way is cancelled, unless it is the one that asks."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if self.loop is None or self.loop is here:
            self._request(STOPPED)
        else:
            with suppress(RuntimeError):  # the loop is closed, and the run has ended with it
                self.loop.call_soon_threadsafe(self._request, STOPPED)

    async def _listen(self, signal: asyncio.Event) -> None:
        await signal.wait()
        self._request(STOPPED)

    def _request(self, why: Why) -> None:
        if self.why:
            return
        self.why = why
        task = self.within
        if task is not None and task is not asyncio.current_task(self.loop):
            self._cancelled, self._cancelled_before = task, task.cancelling()
            task.cancel()
