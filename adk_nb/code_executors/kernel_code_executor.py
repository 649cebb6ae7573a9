"""Code in a Jupyter kernel: what one block defines, the next blocks of the same session find."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, PrivateAttr

from adk_nb import sync
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.code_executors.child_kernel import ChildKernel
from adk_nb.code_executors.isolation import NONE, Isolation, Level, chosen
from adk_nb.code_executors.this_kernel import run_here
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.code import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.code_executor_context import CodeExecutorContext
from adk_nb.runtime.invocation_context import InvocationContext

_Key = tuple[str, str, str]
_FRESH = "[this kernel is fresh: what earlier code of this conversation defined is gone]\n"


@dataclass
class _Place:
    """Room for one session's kernel."""

    busy: bool = False
    kernel: ChildKernel | None = None


class KernelCodeExecutor(BaseCodeExecutor):
    """Runs code in a Jupyter kernel beside this one: one for each session, ended with this process or by `close`.

    The code may do whatever this user may do, as with UnsafeLocalCodeExecutor: a kernel of its own keeps it out of
    this notebook's variables, and `isolation` away from other processes; files and the network are open to it, but in a
    `sandbox`. Pictures it shows and files it writes to its folder come back as files.

    Raises:
        ConfigurationError: `stateful=False` is asked for, or an isolation that is not to be had here.
    """

    stateful: bool = True
    timeout_seconds: float | None = 300
    """The longest that one block may run. Then it is interrupted, and killed with its kernel if it goes on."""
    kernel: Literal["child", "this"] = "child"
    """`this`: the notebook's own kernel, with all its variables, which the code can read, change and delete. No limits
    hold there, a Ctrl-C stops the code, and it may not await."""
    memory_limit_mb: int | None = Field(default=2048, gt=0)
    """MB of memory of its own that a kernel, and each process it starts, may have; on Linux. None: no limit."""
    isolation: Level = "auto"
    """From other processes: see `adk_nb.code_executors.isolation.Level`."""
    max_kernels: int = Field(default=4, gt=0)
    """Kernels at once. For one more, the one that was idle longest is ended; its session gets a fresh one later."""

    _isolation: Isolation = PrivateAttr(default=NONE)
    _places: dict[_Key, _Place] = PrivateAttr(default_factory=dict[_Key, _Place])
    """The least recently used first."""
    _changed: asyncio.Condition = PrivateAttr(default_factory=asyncio.Condition)

    def __init__(self, **given: Any) -> None:
        if given.get("stateful") is False:
            raise ConfigurationError("KernelCodeExecutor cannot be stateful=False; use UnsafeLocalCodeExecutor")
        super().__init__(**given)
        if self.kernel == "child":
            self._isolation = chosen(self.isolation, type(self).__name__)

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        return sync.run(self.execute_code_async(invocation_context, code_execution_input))

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code; a cancelled run interrupts it."""
        if self.kernel == "this":
            return await sync.blocking(lambda: run_here(code_execution_input.code))
        return await sync.arun(self._run(invocation_context, code_execution_input))

    async def close(self) -> None:
        await sync.arun(self._close())

    async def _run(self, ctx: InvocationContext, asked: CodeExecutionInput) -> CodeExecutionResult:
        session = ctx.session
        key = (session.app_name, session.user_id, asked.execution_id or session.id)
        before = CodeExecutorContext(session.state).get_execution_id() is not None
        place, put_out = await self._take(key)
        try:
            await _stop(*put_out)
            fresh = place.kernel is None
            if place.kernel is None:
                place.kernel = await ChildKernel.start(self.memory_limit_mb, self._isolation)
            result = await place.kernel.run(asked.code, asked.input_files, self.timeout_seconds)
        finally:
            place.busy = False
            async with self._changed:
                self._changed.notify_all()
        if fresh and before:
            result.stdout = _FRESH + result.stdout
        return result

    async def _take(self, key: _Key) -> tuple[_Place, list[ChildKernel]]:
        """The session's place, busy from now on, and kernels that are to be ended first. Waits while all are busy."""
        async with self._changed:
            while not self._has_room(key):
                await self._changed.wait()
            place = self._places.pop(key, None) or _Place()
            put_out: list[ChildKernel] = []
            if place.kernel and not place.kernel.alive:
                put_out, place.kernel = [place.kernel], None
            if len(self._places) == self.max_kernels:
                idle = next(one for one, other in self._places.items() if not other.busy)
                kernel = self._places.pop(idle).kernel
                put_out += [kernel] if kernel else []
            place.busy = True
            self._places[key] = place
        return place, put_out

    def _has_room(self, key: _Key) -> bool:
        if place := self._places.get(key):
            return not place.busy
        return len(self._places) < self.max_kernels or not all(place.busy for place in self._places.values())

    async def _close(self) -> None:
        places, self._places = self._places, {}
        await _stop(*(place.kernel for place in places.values() if place.kernel))


async def _stop(*kernels: ChildKernel) -> None:
    await asyncio.gather(*(kernel.stop() for kernel in kernels))
