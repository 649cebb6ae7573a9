"""Code in a process of its own, each time a new one: apart from this one's memory, and from nothing else."""

import asyncio
import codecs
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from adk_nb import sync
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.code_executors.environment import environment
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

    It is unsafe: the code may do whatever this user may do, on this machine and on the network. It does not get this
    process's environment variables, where keys are, but for those that programs need to run. It gets no input files
    and gives none.

    Raises:
        ConfigurationError: `stateful` or `optimize_data_file` is asked for.
    """

    timeout_seconds: float | None = 300

    def __init__(self, **given: Any) -> None:
        for field in ("stateful", "optimize_data_file"):
            if given.get(field):
                raise ConfigurationError(f"UnsafeLocalCodeExecutor cannot be {field}=True; use KernelCodeExecutor")
        super().__init__(**given)

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        return sync.run(self.execute_code_async(invocation_context, code_execution_input))

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code; a cancelled run ends it, and all that it started."""
        return await sync.arun(_run(code_execution_input.code, self.timeout_seconds))


async def _run(code: str, seconds: float | None) -> CodeExecutionResult:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _RUN),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=environment(PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
        start_new_session=True,
    )
    assert process.stdin and process.stdout and process.stderr  # they are pipes
    output = Output(lambda extension: extension)
    tasks = [
        asyncio.create_task(_feed(process.stdin, code)),
        asyncio.create_task(_read(process.stdout, output.say)),
        asyncio.create_task(_read(process.stderr, output.complain)),
    ]
    try:
        async with asyncio.timeout(seconds):
            exit_code = await process.wait()
        end_group(process.pid)  # what the code left running
        await asyncio.wait(tasks, timeout=_LAST_WORDS_SECONDS)
    except TimeoutError:
        exit_code = -1
        output.complain(f"the code was stopped: it ran for longer than {seconds:g} seconds\n")
    finally:
        end_group(process.pid)
        await process.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    result = output.result(exit_code)
    if exit_code and not result.stderr:
        result.stderr = f"the code ended with {how_it_ended(exit_code)}"
    return result


async def _feed(stdin: asyncio.StreamWriter, code: str) -> None:
    with suppress(OSError):  # it ended before it had read its code
        stdin.write(code.encode("utf-8", "surrogatepass"))
        await stdin.drain()
    stdin.close()


async def _read(stream: asyncio.StreamReader, tell: Callable[[str], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := await stream.read(_CHUNK):
        tell(decoder.decode(chunk))
    tell(decoder.decode(b"", final=True))
