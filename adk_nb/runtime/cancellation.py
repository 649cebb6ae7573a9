"""Stop a run from outside, between two steps or by cancelling a step; and the handle of a run in the background."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import aclosing, suppress
from typing import Any, Self

from adk_nb import sync
from adk_nb.concurrency.threads import running_loop
from adk_nb.events.event import Event

INVOCATION_ABORTED = "INVOCATION_ABORTED"
"""Error code of the event that closes a run which was stopped from outside."""
RUN_TIMEOUT = "RUN_TIMEOUT"
"""Error code of the event that closes a run which took longer than `RunConfig.timeout`."""

StopReason = tuple[str, str]
"""Error code and message of the event that closes the run."""
STOPPED: StopReason = (INVOCATION_ABORTED, "the run was stopped")


INTERRUPTED = "interrupted"
"""Key in the metadata of an event that says why a run was cut off, as `by a restart of the kernel`."""


def foreign_cancellation(raised: BaseException, name: str) -> Exception | None:
    """A RuntimeError for a CancelledError of another task that was awaited here; None for any other exception.

    Unconverted, it would look like a cancellation of the current task to the code that awaits it.
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
        # Also if the step ended in spite of the cancellation: restore the task's cancellation count.
        is_own = task is not None and task.uncancel() <= self._cancelled_before
        return is_own and kind is asyncio.CancelledError

    def request(self) -> None:
        """Stop the run, from any thread: at once for those who poll `reason`.

        The current step is cancelled, unless this is called from its task.
        """
        if self.loop is None or self.loop is running_loop():
            self._request(STOPPED)
        elif not self.reason:
            self.reason = STOPPED
            with suppress(RuntimeError):  # the loop is closed, and the run has ended with it
                self.loop.call_soon_threadsafe(self._cancel_step)

    async def _listen(self, signal: asyncio.Event) -> None:
        await signal.wait()
        self._request(STOPPED)

    def _request(self, reason: StopReason) -> None:
        if not self.reason:
            self.reason = reason
            self._cancel_step()

    def _cancel_step(self) -> None:
        task = self.step_task
        # A step that stops its own run is not cancelled: `invoke` reads `reason` after it.
        if task and not self._cancelled and task is not asyncio.current_task(self.loop):
            self._cancelled, self._cancelled_before = task, task.cancelling()
            task.cancel()


class RunHandle:
    """A run in the background, returned by `Runner.start`. It runs whether or not its events are read."""

    def __init__(self, invocation_id: str, run: AsyncGenerator[Event, None], stop: Stop) -> None:
        """Start `run` on the caller's event loop, or without one on the package's own."""
        self.invocation_id = invocation_id
        """Id of the invocation. A run that resumes another takes over that id with its first event."""
        self._stop = stop
        self._events: list[Event] = []
        self._error: Exception | None = None
        self._done = False
        self._signal = _new_signal()
        """Completed and replaced at each event and at the end, to wake up readers."""
        try:
            self._task = asyncio.get_running_loop().create_task(self._follow(run))
        except RuntimeError:
            self._task = sync.start(self._follow(run))

    def __repr__(self) -> str:
        return f"RunHandle({self.invocation_id!r}, {'done' if self._done else 'running'})"

    @property
    def done(self) -> bool:
        """True once the run has ended, successfully or not."""
        return self._done

    async def events(self) -> AsyncGenerator[Event, None]:
        """All events of the run from the first; may be called late, and more than once.

        Raises:
            Exception: What `Runner.run_async` would raise, after its event.
        """
        seen = 0
        while True:
            # Read before the list: an event that arrives in between completes this signal.
            signal = self._signal
            while seen < len(self._events):
                yield self._events[seen]
                seen += 1
            if self._done:
                break
            await asyncio.wrap_future(signal)
        if self._error:
            raise self._error

    async def cancel(self) -> None:
        """Stop the run and wait for its end; its last events say so. No effect after the end."""
        self._stop.request()
        while not self._done:
            await asyncio.wrap_future(self._signal)

    async def _follow(self, run: AsyncGenerator[Event, None]) -> None:
        try:
            async with aclosing(run):
                async for event in run:
                    self.invocation_id = event.invocation_id
                    self._events.append(event)
                    self._notify()
        except Exception as error:
            self._error = error
        finally:
            self._done = True
            self._notify()

    def _notify(self) -> None:
        signal, self._signal = self._signal, _new_signal()
        signal.set_result(None)


def _new_signal() -> Future[None]:
    future = Future[None]()
    future.set_running_or_notify_cancel()  # so that a cancelled reader does not cancel it for other readers
    return future
