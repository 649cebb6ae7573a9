"""Code in a process of its own, each time a new one: apart from other processes, and from nothing else."""

import codecs
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import IO, Any

from pydantic import PrivateAttr

from adk_nb import sync
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.code_executors.environment import environment
from adk_nb.code_executors.isolation import NONE, Isolation, Level, chosen
from adk_nb.code_executors.output import Output
from adk_nb.code_executors.processes import end_group, how_it_ended
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.code import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.invocation_context import InvocationContext

_LAST_WORDS_SECONDS = 1.0
"""How long the output of a process that has ended is waited for: one that left its group may hold it open."""
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
    """Runs code in a new Python process, in the folder and with the import path of this one.

    It is unsafe: the code may do whatever this user may do, with the files of this machine and on the network; not so
    with `isolation="sandbox"`. It does not get this process's environment variables, where keys are, but for those that
    programs need to run. It gets no input files and gives none.

    Raises:
        ConfigurationError: `stateful` or `optimize_data_file` is asked for, or an isolation that is not to be had here.
    """

    timeout_seconds: float | None = 300
    isolation: Level = "auto"
    """From other processes: see `adk_nb.code_executors.isolation.Level`."""

    _isolation: Isolation = PrivateAttr(default=NONE)

    def __init__(self, **given: Any) -> None:
        for field in ("stateful", "optimize_data_file"):
            if given.get(field):
                raise ConfigurationError(f"UnsafeLocalCodeExecutor cannot be {field}=True; use KernelCodeExecutor")
        super().__init__(**given)
        self._isolation = chosen(self.isolation, type(self).__name__)

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        return _Run(code_execution_input.code, self.timeout_seconds, self._isolation).result()

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code; a cancelled run ends it, and all that it started."""
        run = _Run(code_execution_input.code, self.timeout_seconds, self._isolation)
        try:
            return await sync.blocking(run.result, thread=True)
        finally:
            run.stop()


class _Run:
    """One process, from its start to its end. `stop` may be called from another thread, at any time."""

    def __init__(self, code: str, seconds: float | None, isolated: Isolation) -> None:
        self._code = code
        self._isolation = isolated
        self._seconds = seconds
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None

    def result(self) -> CodeExecutionResult:
        """Run it, and wait for it."""
        if not self._isolation.is_sandbox:
            return self._result(None)
        with tempfile.TemporaryDirectory(prefix="adk_nb_code_", ignore_cleanup_errors=True) as folder:
            return self._result(folder)

    def _result(self, folder: str | None) -> CodeExecutionResult:
        output = Output(lambda extension: extension)
        process = self._started(folder)
        readers = [
            threading.Thread(target=_read, args=(stream, tell), daemon=True)
            for stream, tell in ((process.stdout, output.say), (process.stderr, output.complain))
        ]
        for reader in readers:
            reader.start()
        try:
            exit_code = self._isolation.exit_code(process.wait(self._seconds))
        except subprocess.TimeoutExpired:
            exit_code = -1
            output.complain(f"the code was stopped: it ran for longer than {self._seconds or 0:g} seconds\n")
        finally:
            end_group(process.pid)  # the code, or what it left running
            process.wait()
            for reader in readers:
                reader.join(_LAST_WORDS_SECONDS)
        result = output.result(exit_code)
        if exit_code and not result.stderr:
            result.stderr = f"the code ended with {how_it_ended(exit_code)}"
        return result

    def stop(self) -> None:
        """End it, if it runs, and do not let it begin."""
        with self._lock:
            self._stopped = True
            if self._process and self._process.poll() is None:
                end_group(self._process.pid)

    def _started(self, folder: str | None) -> "subprocess.Popen[bytes]":
        with tempfile.TemporaryFile() as source, self._lock:
            if self._stopped:
                raise CancelledError
            source.write(self._code.encode("utf-8", "surrogatepass"))
            source.seek(0)
            self._process = subprocess.Popen(
                self._isolation.command([sys.executable, "-c", _RUN], folder or ""),
                cwd=folder,
                bufsize=0,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
                start_new_session=True,
            )
            return self._process


def _read(stream: IO[bytes], tell: Callable[[str], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with stream:
        while chunk := stream.read(_CHUNK):
            tell(decoder.decode(chunk))
    tell(decoder.decode(b"", final=True))
