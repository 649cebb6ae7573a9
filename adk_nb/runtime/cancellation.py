"""Stop a run from outside: between two steps, or by cancelling the current step."""

import asyncio
from contextlib import suppress
from typing import Any, Self

INVOCATION_ABORTED = "INVOCATION_ABORTED"
"""Error code of the event that closes a run which was stopped from outside."""
CANCELLED = INVOCATION_ABORTED
RUN_TIMEOUT = "RUN_TIMEOUT"
"""Error code of the event that closes a run which took longer than `RunConfig.timeout`."""

StopReason = tuple[str, str]
"""Error code and message of the event that closes the run."""
STOPPED: StopReason = (INVOCATION_ABORTED, "the run was stopped")


def foreign_cancellation(raised: BaseException, name: str) -> Exception | None:
    """A RuntimeError for a CancelledError of another task that was awaited here; None for any other exception.

    Left as it is, it would look like a cancellation of the current task to whoever awaits that.
    """
    task = asyncio.current_task()
    if not isinstance(raised, asyncio.CancelledError) or (task and task.cancelling()):
        return None
    error = RuntimeError(f"{name} awaited a task that was cancelled elsewhere; catch asyncio.CancelledError there")
    error.__cause__ = raised
    return error


class Stop:
    """The stop signal of a run: `with stop.watching(...)` around its steps.

    The block swallows the cancellation that it sends itself; check `reason` after it.
    """

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        """Set once the run is to stop, possibly before it started: it takes no further step."""
        self.step_task: asyncio.Task[Any] | None = None
        """The task of the current step, to cancel. None: between steps."""
        self.has_trigger = False
        """True: a signal or a timeout may stop it."""
        self._signal: asyncio.Event | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop of the run; None before it starts."""
        self._cancelled: asyncio.Task[Any] | None = None
        self._cancelled_before = 0
        self._deadline: float | None = None
        """Time of the timeout on the loop's clock. None: no timeout."""
        self._timeout_reason: StopReason = STOPPED
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None

    def watching(self, signal: asyncio.Event | None, seconds: float | None) -> Self:
        """Stop when `signal` is set, or after `seconds`; None: never."""
        self._signal = signal
        self.has_trigger = signal is not None or seconds is not None
        self.loop = asyncio.get_running_loop()
        if signal is not None and signal.is_set():
            self._request(STOPPED)
        elif signal is not None:
            self._watch = self.loop.create_task(self._listen(signal))
        if seconds is not None:
            message = f"the run took longer than {seconds:g} seconds, its RunConfig.timeout, and was stopped; "
            self._timeout_reason = (
                RUN_TIMEOUT,
                message + "raise that if it needs longer, in a notebook with %config AdkNb.timeout",
            )
            self._deadline = self.loop.time() + seconds
            self._timer = self.loop.call_at(self._deadline, self._request, self._timeout_reason)
        return self

    def is_due(self) -> bool:
        """True if the timeout is over or the signal is set; polled, because a run that never awaits blocks both."""
        if self._deadline is not None and self.loop and self.loop.time() >= self._deadline:
            self._request(self._timeout_reason)
        return self.reason is not None or (self._signal is not None and self._signal.is_set())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.step_task = None
        if self._timer:
            self._timer.cancel()
        if self._watch:
            self._watch.cancel()
        task, self._cancelled = self._cancelled, None
        # Also if the step completed in spite of the cancellation: leave the task's cancellation count as it was.
        alone = task is not None and task.uncancel() <= self._cancelled_before
        return alone and kind is asyncio.CancelledError

    def request(self) -> None:
        """Stop the run, from any thread. The current step is cancelled, unless this is called from it."""
        try:
            running_loop = asyncio.get_running_loop()
        except RuntimeError:
            running_loop = None
        if self.loop is None or self.loop is running_loop:
            self._request(STOPPED)
        else:
            with suppress(RuntimeError):  # the loop is closed, and the run has ended with it
                self.loop.call_soon_threadsafe(self._request, STOPPED)

    async def _listen(self, signal: asyncio.Event) -> None:
        await signal.wait()
        self._request(STOPPED)

    def _request(self, reason: StopReason) -> None:
        if self.reason:
            return
        self.reason = reason
        task = self.step_task
        if task is not None and task is not asyncio.current_task(self.loop):
            self._cancelled, self._cancelled_before = task, task.cancelling()
            task.cancel()
