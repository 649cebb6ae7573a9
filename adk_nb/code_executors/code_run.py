"""One run of model-written code in a process: start, output, time limit and end."""

import codecs
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import IO

from adk_nb.code_executors.isolation import end_group, exit_text
from adk_nb.code_executors.output import Output
from adk_nb.runtime.code_execution import CodeExecutionResult

_DRAIN_SECONDS = 1.0
"""Maximum wait for output after the process ended: a process that left its group may keep the pipe open."""
_CHUNK = 65_536
RUN = """
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
"""A Python program that runs the code of its stdin, with tracebacks that begin in that code."""


class CodeRun:
    """One process from start to end. `stop` is thread-safe and may be called at any time."""

    def __init__(
        self,
        start: Callable[[], "subprocess.Popen[bytes]"],
        seconds: float | None,
        *,
        sent: bytes = b"",
        exit_code_of: Callable[[int], int] = int,
    ) -> None:
        """Nothing is started yet.

        Args:
            start: Starts the process, with pipes, as the leader of a group.
            seconds: The time limit.
            sent: Is written to its stdin, if that is a pipe, which then stays open to the end.
            exit_code_of: The code's exit code, by that of the process.
        """
        self._start = start
        self._seconds = seconds
        self._sent = sent
        self._exit_code_of = exit_code_of
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None

    def result(self) -> CodeExecutionResult:
        """Run it and wait for it."""
        output = Output(lambda extension: extension)
        with self._lock:
            if self._stopped:
                raise CancelledError  # stopped before it was started
            process = self._process = self._start()
        threads = [
            threading.Thread(target=_read, args=(stream, write), daemon=True)
            for stream, write in ((process.stdout, output.write_stdout), (process.stderr, output.write_stderr))
        ]
        if process.stdin:
            threads.append(threading.Thread(target=_write, args=(process.stdin, self._sent), daemon=True))
        for thread in threads:
            thread.start()
        try:
            exit_code = self._exit_code_of(process.wait(self._seconds))
        except subprocess.TimeoutExpired:
            exit_code = -1
            output.write_stderr(f"the code was stopped: it ran for longer than {self._seconds or 0:g} seconds\n")
        finally:
            end_group(process.pid)  # the process, or processes that it left running
            process.wait()
            for thread in threads:
                thread.join(_DRAIN_SECONDS)
            if process.stdin:
                with suppress(OSError):
                    process.stdin.close()
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


def _read(stream: IO[bytes], write: Callable[[str], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with stream:
        while chunk := stream.read(_CHUNK):
            write(decoder.decode(chunk))
    write(decoder.decode(b"", final=True))


def _write(stream: IO[bytes], sent: bytes) -> None:
    with suppress(OSError):  # the process ended without reading it
        stream.write(sent)
        stream.flush()
