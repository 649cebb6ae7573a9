"""Runs without threads: Python in a browser (Pyodide) has only the event loop of the page."""

import asyncio
import sys
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from adk_nb.errors import UserError
from adk_nb.lazy import require

T = TypeVar("T")

IN_A_BROWSER = sys.platform == "emscripten"


@cache
def has_threads() -> bool:
    """True if this process can start threads. Tried once, so that all work takes the same path."""
    probe = threading.Thread(target=bool, name="adk-nb-probe", daemon=True)
    try:
        probe.start()
    except RuntimeError:
        return False
    probe.join()
    return True


class ForegroundLoop:
    """The loop of the only thread: in a browser the page's; elsewhere a loop that runs while a caller waits."""

    name = "adk-nb-foreground"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.tasks: set[asyncio.Task[Any]] = set()
        """References that keep tasks alive, as in `LoopThread`."""

    @property
    def closed(self) -> bool:
        """As in `LoopThread`."""
        return self.loop.is_closed()

    def close(self, seconds: float) -> None:
        """Do nothing: the loop belongs to the page or to the caller."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread. None: no loop runs here."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def foreground_loop(last: ForegroundLoop | None) -> ForegroundLoop:
    """The running loop of this thread; else `last`; else a new loop."""
    loop = running_loop() or (asyncio.new_event_loop() if last is None or last.closed else last.loop)
    return last if last and last.loop is loop else ForegroundLoop(loop)


def wait_for(coro: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Suspend the caller until `coro` has ended on `loop`, the only loop, which meanwhile runs other tasks.

    In a browser this is JavaScript Promise Integration. Source: https://pyodide.org/en/stable/usage/api/python-api/
    ffi.html#pyodide.ffi.run_sync.
    """
    if IN_A_BROWSER:
        return require("pyodide.ffi", package="pyodide-py").run_sync(coro)
    require("nest_asyncio2", package="nest-asyncio2").apply(loop)
    return loop.run_until_complete(coro)


def can_wait() -> bool:
    """True if the current call can be suspended; in a browser this depends on how JavaScript called Python."""
    return not IN_A_BROWSER or bool(require("pyodide.ffi", package="pyodide-py").can_run_sync())


def run_at_once(coro: Coroutine[Any, Any, T]) -> T:
    """Run `coro` to its end here and now; only for reads, as it is given up where it would have to wait.

    Raises:
        UserError: It would have to wait.
    """
    try:
        coro.send(None)
    except StopIteration as end:
        return end.value
    coro.close()
    raise cannot_wait()


def cannot_wait() -> UserError:
    """The error for a wait where `can_wait` is false."""
    if hasattr(require("js", package="pyodide-py").WebAssembly, "Suspending"):
        return UserError(
            "a callback of a widget cannot wait in a browser; write chat.start(...), or make it async and await "
            "chat.aask(...)"
        )
    return UserError(
        "this browser cannot wait for a result in a cell, as it has no JavaScript Promise Integration; open the page "
        "in Chrome or Edge 137 or newer, or write: reply = await chat.aask(...)"
    )
