"""Stateless code execution in a new process per block."""

import os
import subprocess
import sys
import tempfile
from typing import Any

from pydantic import PrivateAttr

from adk_nb import sync
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.code_executors.code_run import RUN, CodeRun
from adk_nb.code_executors.isolation import NONE, Isolation, Level, environment, require_processes, select_isolation
from adk_nb.code_executors.work_folder import WorkFolder
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.invocation_context import InvocationContext


class UnsafeLocalCodeExecutor(BaseCodeExecutor):
    """Runs code in a new Python process, with the working folder and import path of this one.

    It is unsafe: the code has the user's permissions for files and the network, except with `isolation="sandbox"`. It
    gets only the environment variables that programs need, so no keys. Input and output files are not supported.

    Raises:
        ConfigurationError: `stateful` or `optimize_data_file` is set, or the isolation is not available here.
    """

    timeout_seconds: float | None = 300
    isolation: Level = "auto"
    """Isolation from other processes: see `adk_nb.code_executors.isolation.Level`."""

    _isolation: Isolation = PrivateAttr(default=NONE)

    def __init__(self, **fields: Any) -> None:
        for field in ("stateful", "optimize_data_file"):
            if fields.get(field):
                raise ConfigurationError(f"UnsafeLocalCodeExecutor cannot be {field}=True; use KernelCodeExecutor")
        super().__init__(**fields)
        self._isolation = select_isolation(self.isolation, type(self).__name__)

    @property
    def reach(self) -> str:
        """The reach of its code, for the approver of a script."""
        return self._isolation.reach

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code and wait for it."""
        return _LocalRun(code_execution_input.code, self.timeout_seconds, self._isolation).result()

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code; a cancelled run kills it with all processes that it started."""
        run = _LocalRun(code_execution_input.code, self.timeout_seconds, self._isolation)
        try:
            return await sync.blocking(run.result, thread=True)
        finally:
            run.stop()


class _LocalRun(CodeRun):
    """A run in a process of this machine."""

    def __init__(self, code: str, seconds: float | None, isolation: Isolation) -> None:
        super().__init__(self._new_process, seconds, exit_code_of=isolation.exit_code)
        self._code = code
        self._isolation = isolation
        self._folder: str | None = None

    def result(self) -> CodeExecutionResult:
        """Run it, in a sandbox in a folder of its own, and wait for it."""
        require_processes(UnsafeLocalCodeExecutor.__name__)
        if not self._isolation.is_sandbox:
            return super().result()
        folder = WorkFolder()
        self._folder = str(folder.path)
        try:
            return super().result()
        finally:
            folder.close()

    def _new_process(self) -> "subprocess.Popen[bytes]":
        with tempfile.TemporaryFile() as source:  # a pipe could fill up
            source.write(self._code.encode("utf-8", "surrogatepass"))
            source.seek(0)
            return subprocess.Popen(
                self._isolation.command([sys.executable, "-c", RUN], self._folder or ""),
                cwd=self._folder,
                bufsize=0,  # read what is there, without waiting for a full buffer
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
                start_new_session=True,
            )
