"""Stateless code execution in a new process per block."""

import codecs
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import IO, Any

from adk_nb import sync
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.code_executors.isolation import Isolation, Level, require_processes, select_isolation
from adk_nb.code_executors.output import Output
from adk_nb.code_executors.processes import end_group, environment, exit_text
from adk_nb.code_executors.work_folder import WorkFolder
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.invocation_context import InvocationContext

_DRAIN_SECONDS = 1.0
"""Maximum wait for output after the process ended: a process that left its group may keep the pipe open."""
_CHUNK = 65_536
_RUN = """
import linecache, sys, traceback
source = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
linecache.cache["<code>"] = (len(source), None, source.splitlines(True), "<code>")
try:
    exec(compile(source, "<code>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
except SystemExit:
    raise
except BaseException as error:
    traceback.print_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
    sys.exit(1)
"""


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

    def __init__(self, **fields: Any) -> None:
        for field in ("stateful", "optimize_data_file"):
            if fields.get(field):
                raise ConfigurationError(f"UnsafeLocalCodeExecutor cannot be {field}=True; use KernelCodeExecutor")
        super().__init__(**fields)
        self._isolation = select_isolation(self.isolation, type(self).__name__)

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code and wait for it."""
        return _Run(code_execution_input.code, self.timeout_seconds, self._isolation).result()

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code; a cancelled run kills it with all processes that it started."""
        run = _Run(code_execution_input.code, self.timeout_seconds, self._isolation)
        try:
            return await sync.blocking(run.result, thread=True)
        finally:
            run.stop()


class _Run:
    """One process from start to end. `stop` is thread-safe and may be called at any time."""

    def __init__(self, code: str, seconds: float | None, isolation: Isolation) -> None:
        self._code = code
        self._isolation = isolation
        self._seconds = seconds
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None

    def result(self) -> CodeExecutionResult:
        """Run it and wait for it."""
        require_processes(UnsafeLocalCodeExecutor.__name__)
        if not self._isolation.is_sandbox:
            return self._result(None)
        folder = WorkFolder()
        try:
            return self._result(str(folder.path))
        finally:
            folder.close()

    def _result(self, folder: str | None) -> CodeExecutionResult:
        output = Output(lambda extension: extension)
        process = self._start(folder)
        readers = [
            threading.Thread(target=_read, args=(stream, write), daemon=True)
            for stream, write in ((process.stdout, output.write_stdout), (process.stderr, output.write_stderr))
        ]
        for reader in readers:
            reader.start()
        try:
            exit_code = self._isolation.exit_code(process.wait(self._seconds))
        except subprocess.TimeoutExpired:
            exit_code = -1
            output.write_stderr(f"the code was stopped: it ran for longer than {self._seconds or 0:g} seconds\n")
        finally:
            end_group(process.pid)  # the process, or processes that it left running
            process.wait()
            for reader in readers:
                reader.join(_DRAIN_SECONDS)
        result = output.result(exit_code)
        if exit_code and not result.stderr:
            result.stderr = f"the code ended with {exit_text(exit_code)}"
        return result

    def stop(self) -> None:
        """Kill the process if it runs, and prevent it from starting."""
        with self._lock:
            self._stopped = True
            if self._process and self._process.poll() is None:
                end_group(self._process.pid)

    def _start(self, folder: str | None) -> "subprocess.Popen[bytes]":
        with tempfile.TemporaryFile() as source, self._lock:  # a pipe could fill up
            if self._stopped:
                raise CancelledError  # stopped before it was started
            source.write(self._code.encode("utf-8", "surrogatepass"))
            source.seek(0)
            self._process = subprocess.Popen(
                self._isolation.command([sys.executable, "-c", _RUN], folder or ""),
                cwd=folder,
                bufsize=0,  # read what is there, without waiting for a full buffer
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
                start_new_session=True,
            )
            return self._process


def _read(stream: IO[bytes], write: Callable[[str], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with stream:
        while chunk := stream.read(_CHUNK):
            write(decoder.decode(chunk))
    write(decoder.decode(b"", final=True))
