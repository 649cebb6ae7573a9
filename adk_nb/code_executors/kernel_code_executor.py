"""Stateful code execution: in a Jupyter kernel per session, or in the notebook's own shell."""

import ast
import asyncio
import traceback
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, PrivateAttr

from adk_nb import sync
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.code_executors.child_kernel import ChildKernel
from adk_nb.code_executors.isolation import NONE, Isolation, Level, select_isolation
from adk_nb.code_executors.output import Output
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult, CodeExecutorContext
from adk_nb.runtime.invocation_context import InvocationContext

_SessionKey = tuple[str, str, str]
_FRESH_NOTE = "[this kernel is fresh: what earlier code of this conversation defined is gone]\n"


@dataclass
class _Slot:
    """The slot of one session's kernel."""

    busy: bool = False
    kernel: ChildKernel | None = None


class KernelCodeExecutor(BaseCodeExecutor):
    """Runs code in Jupyter kernels beside this one: one per session, until this process ends or `close`.

    The code has the user's permissions, as with UnsafeLocalCodeExecutor: a separate kernel protects the notebook's
    variables, and `isolation` other processes; files and network are accessible except in a `sandbox`. Images and files
    in its folder are returned as files.

    Raises:
        ConfigurationError: `stateful=False`, or an isolation that is not available here.
    """

    stateful: bool = True
    timeout_seconds: float | None = 300
    """Time limit of one block in seconds. Then it is interrupted, and killed with its kernel if it continues."""
    kernel: Literal["child", "this"] = "child"
    """`this`: the notebook's own kernel, where the code can read, change and delete all variables. Limits do not apply,
    Ctrl-C stops the code, and it cannot use `await`."""
    memory_limit_mb: int | None = Field(default=2048, gt=0)
    """Limit of private memory in MB for a kernel and each process it starts; Linux only. None: no limit."""
    isolation: Level = "auto"
    """Isolation from other processes: see `adk_nb.code_executors.isolation.Level`."""
    max_kernels: int = Field(default=4, gt=0)
    """Limit of kernels. For another one the longest idle one is stopped; its session gets a fresh one later."""

    _slots: dict[_SessionKey, _Slot] = PrivateAttr(default_factory=dict[_SessionKey, _Slot])
    """In order of use, the least recent first."""
    _isolation: Isolation = PrivateAttr(default=NONE)
    _changed: asyncio.Condition = PrivateAttr(default_factory=asyncio.Condition)

    def __init__(self, **fields: Any) -> None:
        if fields.get("stateful") is False:
            raise ConfigurationError("KernelCodeExecutor cannot be stateful=False; use UnsafeLocalCodeExecutor")
        super().__init__(**fields)
        if self.kernel == "child":
            self._isolation = select_isolation(self.isolation, type(self).__name__)

    @property
    def reach(self) -> str:
        """The reach of its code, for the approver of a script."""
        return self._isolation.reach

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code and wait for it."""
        return sync.run(self.execute_code_async(invocation_context, code_execution_input))

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code; a cancelled run interrupts it."""
        if self.kernel == "this":
            return await sync.blocking(lambda: _run_in_shell(code_execution_input.code))
        return await sync.arun(self._run(invocation_context, code_execution_input))

    async def close(self) -> None:
        """Stop all kernels."""
        await sync.arun(self._close())

    async def _run(self, ctx: InvocationContext, code_input: CodeExecutionInput) -> CodeExecutionResult:
        session = ctx.session
        key = (session.app_name, session.user_id, code_input.execution_id or session.id)
        had_kernel = CodeExecutorContext(session.state).get_execution_id() is not None
        slot, evicted = await self._acquire(key)
        try:
            # Before another is started: the limit is for the memory of this machine.
            await _stop(*evicted)
            is_fresh = slot.kernel is None
            if slot.kernel is None:
                slot.kernel = await ChildKernel.start(self.memory_limit_mb, self._isolation)
            result = await slot.kernel.run(code_input.code, code_input.input_files, self.timeout_seconds)
        finally:
            # Also after a cancellation: another run may wait for this session's kernel.
            slot.busy = False
            async with self._changed:
                self._changed.notify_all()
        if is_fresh and had_kernel:
            result.stdout = _FRESH_NOTE + result.stdout
        return result

    async def _acquire(self, key: _SessionKey) -> tuple[_Slot, list[ChildKernel]]:
        """Acquire the session's slot, and evict kernels that the caller has to stop first. Waits while all are busy."""
        async with self._changed:
            while not self._is_available(key):
                await self._changed.wait()
            slot = self._slots.pop(key, None) or _Slot()  # added again below, as the most recent
            evicted: list[ChildKernel] = []
            if slot.kernel and not slot.kernel.alive:
                evicted, slot.kernel = [slot.kernel], None
            if len(self._slots) == self.max_kernels:
                idle = next(candidate for candidate, candidate_slot in self._slots.items() if not candidate_slot.busy)
                kernel = self._slots.pop(idle).kernel
                evicted += [kernel] if kernel else []
            slot.busy = True
            self._slots[key] = slot
        return slot, evicted

    def _is_available(self, key: _SessionKey) -> bool:
        if slot := self._slots.get(key):
            return not slot.busy
        return len(self._slots) < self.max_kernels or not all(slot.busy for slot in self._slots.values())

    async def _close(self) -> None:
        slots, self._slots = self._slots, {}
        await _stop(*(slot.kernel for slot in slots.values() if slot.kernel))


async def _stop(*kernels: ChildKernel) -> None:
    await asyncio.gather(*(kernel.stop() for kernel in kernels))


def _run_in_shell(code: str) -> CodeExecutionResult:
    """Run `code` in this thread in the shell's namespace, and capture its output.

    Raises:
        ConfigurationError: This process has no IPython shell.
        KeyboardInterrupt: Ctrl-C.
    """
    shell: Any = require("IPython", package="ipython").get_ipython()
    if shell is None:
        raise ConfigurationError(
            'KernelCodeExecutor(kernel="this") runs code in a notebook\'s own kernel, and this process is not one; '
            "leave kernel= out"
        )
    images = iter(range(1, 1_000_000))
    output = Output(lambda extension: f"image_{next(images)}.{extension}")
    exit_code = 0
    with require("IPython.utils.capture", package="ipython").capture_output() as captured:
        try:
            tree = ast.parse(shell.transform_cell(code), "<code>")
            # As in a cell, the value of a last expression is displayed.
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "<code>", "exec"), shell.user_ns)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<code>", "eval"), shell.user_ns)
                if value is not None:
                    shell.display_pub.publish(*shell.display_formatter.format(value))
        # Not KeyboardInterrupt: Ctrl-C stops the agent, too.
        except (Exception, SystemExit) as error:
            exit_code = 1
            # Without the frames of this file.
            frame = error.__traceback__
            while frame and frame.tb_frame.f_code.co_filename == __file__:
                frame = frame.tb_next
            output.write_stderr("".join(traceback.format_exception(type(error), error, frame)))
    output.write_stdout(captured.stdout)
    output.write_stderr(captured.stderr)
    for display in captured.outputs:
        output.add_display(display.data)
    return output.result(exit_code)
