"""An event loop that does not wait: when nothing more can come, its clock jumps to what is due next."""

import asyncio
import selectors
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Tells what is there. If that is nothing, and the other side has fallen silent, time passes at once."""

    def __init__(self, silent: threading.Event) -> None:
        super().__init__()
        self.passed = 0.0
        self.at_work = 0
        """Threads that the loop waits for: they need time of the other kind."""
        self._silent = silent

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        while True:
            silent = self._silent.is_set()  # asked first: what was sent before can be read by now
            if (found := super().select(0)) or timeout == 0:
                return found
            if silent and timeout is not None and not self.at_work:
                self.passed += timeout
                return []
            if found := super().select(0.005 if timeout is None else min(timeout, 0.005)):
                return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, selector: _Selector) -> None:
        self._jumps = selector
        super().__init__(selector)

    def time(self) -> float:
        return super().time() + self._jumps.passed

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - its signature
        self._jumps.at_work += 1  # from Python 3.12 on the threads are joined under a timeout
        await super().shutdown_default_executor()
        self._jumps.at_work -= 1

    def run_in_executor(self, *given: Any) -> Any:
        def over(_: Any) -> None:
            self._jumps.at_work -= 1

        self._jumps.at_work += 1
        work = super().run_in_executor(*given)
        work.add_done_callback(over)
        return work


def run(work: Coroutine[Any, Any, T], silent: threading.Event) -> tuple[T, float]:
    """What `work` returns, and how many seconds it took by the loop's own clock."""
    selector = _Selector(silent)
    with asyncio.Runner(loop_factory=lambda: _Loop(selector)) as runner:
        began = runner.get_loop().time()
        return runner.run(work), runner.get_loop().time() - began
