"""One Jupyter kernel in a process of its own, for a model's code: started, asked, interrupted, ended."""

import asyncio
import secrets
import signal
import sys
import weakref
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from adk_nb.code_executors.environment import environment
from adk_nb.code_executors.isolation import Isolation
from adk_nb.code_executors.output import Output
from adk_nb.code_executors.processes import end_group, how_it_ended
from adk_nb.code_executors.work_folder import WorkFolder
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.runtime.code import CodeExecutionResult, File

START_SECONDS = 60.0
INTERRUPT_SECONDS = 2.0
"""How long interrupted code may take to end before its kernel is killed."""
_TOO_MUCH = 10_000_000
"""Characters of output beyond what is kept: code that prints more is interrupted."""
_REPLY_SECONDS = 2.0
_BOOT = """
import os, sys, threading

def end_with_its_owner(pipe):
    os.read(pipe, 1)
    os._exit(1)

threading.Thread(target=end_with_its_owner, args=(os.dup(0),), daemon=True).start()
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
limit = int(sys.argv.pop(1))
try:
    import resource
except ImportError:
    pass
else:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""
LOST = "what earlier code defined is gone; the next code begins in a fresh kernel"


class ChildKernel:
    """A running kernel. It belongs to the event loop it was started on.

    It works in a folder of its own, knows no startup file and no history of the user, and ends with this process.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, client: "_Client", folder: WorkFolder, isolation: Isolation
    ) -> None:
        self._process = process
        self._isolation = isolation
        self._client = client
        self._folder = folder
        self._ended = asyncio.ensure_future(self._exit_code())
        self._images = 0
        self._at_exit = weakref.finalize(self, end_group, process.pid)

    @classmethod
    async def start(cls, memory_limit_mb: int | None, isolation: Isolation) -> "ChildKernel":
        """A fresh kernel that is ready to run code.

        Args:
            memory_limit_mb: MB of memory of its own that it and each process it starts may have; kept on Linux only.
            isolation: What it is started with.

        Raises:
            MissingExtraError: jupyter_client or ipykernel is not installed.
            ConfigurationError: It did not start; the message has its last words.
        """
        asyncio_client = require("jupyter_client.asynchronous", package="ipykernel")
        require("ipykernel", package="ipykernel")
        connect = require("jupyter_client.connect", package="ipykernel")
        folder = WorkFolder()
        connection = str(folder.beside / "kernel.json")
        # A sandbox has a network of its own; sockets in the folder are reached from both sides.
        place = {"transport": "ipc", "ip": str(folder.beside / "socket")} if isolation.is_sandbox else {}
        connect.write_connection_file(connection, key=secrets.token_hex(32).encode(), **place)
        log = folder.beside / "kernel.log"
        kernel = [sys.executable, "-c", _BOOT, str((memory_limit_mb or 0) * 1024 * 1024), "-f", connection]
        quiet = ["--HistoryManager.enabled=False", "--HistoryManager.hist_file=:memory:", "--IPKernelApp.quiet=True"]
        with log.open("wb") as words:
            process = await asyncio.create_subprocess_exec(
                *isolation.command([*kernel, *quiet], str(folder.beside), interrupted=True),
                stdin=asyncio.subprocess.PIPE,  # it ends by itself when this process does, which closes the pipe
                stdout=words,
                stderr=words,
                cwd=folder.path,
                env=environment(
                    IPYTHONDIR=str(folder.beside / "ipython"),
                    JUPYTER_RUNTIME_DIR=str(folder.beside),
                ),
                start_new_session=True,
            )
        client = cast(_Client, asyncio_client.AsyncKernelClient())
        client.load_connection_file(connection)
        client.start_channels(stdin=False, hb=False, control=False)
        started = cls(process, client, folder, isolation)
        try:
            await started._until_ready()
        except BaseException as error:
            said = log.read_text(errors="replace")[-2_000:].strip()
            await started.stop()
            if isinstance(error, RuntimeError | TimeoutError):
                raise ConfigurationError(f"the kernel for the model's code did not start: {said or error}") from error
            raise
        return started

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        return not self._ended.done()

    async def run(self, code: str, files: Iterable[File], seconds: float | None) -> CodeExecutionResult:
        """Run `code`, beside what ran before. Whatever becomes of the code, or the kernel, is a result.

        Code that runs for too long, or whose run is cancelled, is interrupted; if it goes on all the same, the
        kernel is killed.
        """
        await asyncio.to_thread(self._folder.put, files)
        output = Output(self._image_name)
        asked = self._client.execute(code, store_history=False, allow_stdin=False, stop_on_error=False)
        answer = asyncio.ensure_future(self._answer(asked, output))
        try:
            await asyncio.wait({answer, self._ended}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and self.alive:
                output.complain(f"the code was stopped: it ran for longer than {seconds or 0:g} seconds\n")
                await self._interrupt(answer)
            exit_code = await self._outcome(answer, output)
        except asyncio.CancelledError:
            await self._interrupt(answer)
            raise
        finally:
            answer.cancel()
        return await self._with_files(output, exit_code)

    async def stop(self) -> None:
        """End it at once, with all that its code started, and delete its folder."""
        end_group(self._process.pid)
        self._client.stop_channels()
        await self._ended
        self._at_exit.detach()
        await asyncio.to_thread(self._folder.close)

    async def _exit_code(self) -> int:
        return self._isolation.exit_code(await self._process.wait())

    async def _until_ready(self) -> None:
        ready = asyncio.ensure_future(self._client.wait_for_ready(timeout=START_SECONDS))
        try:
            await asyncio.wait({ready, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise RuntimeError(f"its process ended with {how_it_ended(self._ended.result())}")
            ready.result()
        finally:
            ready.cancel()

    async def _answer(self, asked: str, output: Output) -> bool:
        """Take in what the kernel says of one question until it is idle again. True: the code ran to its end."""
        ok, too_much = True, False
        while True:
            if output.dropped > _TOO_MUCH and not too_much:
                too_much = True
                output.complain(f"the code was stopped: it printed more than {_TOO_MUCH:,} characters\n")
                end_group(self._process.pid, signal.SIGINT)
            message = await self._client.get_iopub_msg()
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                (output.complain if content["name"] == "stderr" else output.say)(content["text"])
            elif kind in ("execute_result", "display_data"):
                output.show(content["data"])
            elif kind == "error":
                ok = False
                output.complain("\n".join([*content["traceback"], ""]))
            elif kind == "status" and content["execution_state"] == "idle":
                return ok and await self._replied_ok(asked)

    async def _replied_ok(self, asked: str) -> bool:
        """The kernel's own word; it comes on another socket, and would fill it if nobody took it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_REPLY_SECONDS):
                while True:
                    message = await self._client.get_shell_msg()
                    if message["parent_header"].get("msg_id") == asked:
                        return message["content"]["status"] == "ok"
        return True

    async def _interrupt(self, answer: "asyncio.Future[bool]") -> None:
        if sys.platform != "win32":
            end_group(self._process.pid, signal.SIGINT)
            await asyncio.wait({answer, self._ended}, timeout=INTERRUPT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            end_group(self._process.pid)
            await self._ended

    async def _outcome(self, answer: "asyncio.Future[bool]", output: Output) -> int:
        """The exit code of the code, or of the kernel that ended with it."""
        if answer.done():
            return 0 if answer.result() else 1
        exit_code = await self._ended
        await asyncio.wait({answer}, timeout=0.1)  # its last words may be on their way
        output.complain(f"the kernel ended with {how_it_ended(exit_code)}; {LOST}\n")
        return exit_code or 1

    async def _with_files(self, output: Output, exit_code: int) -> CodeExecutionResult:
        files, left = await asyncio.to_thread(self._folder.taken)
        output.files += files
        if left:
            output.say(f"\n[not kept, too large or too many: {', '.join(left)}]\n")
        return output.result(exit_code)

    def _image_name(self, extension: str) -> str:
        self._images += 1
        return f"image_{self._images}.{extension}"


class _Client(Protocol):
    """What is used of jupyter_client's AsyncKernelClient."""

    def load_connection_file(self, connection_file: str) -> None: ...
    def start_channels(self, *, stdin: bool, hb: bool, control: bool) -> None: ...
    def stop_channels(self) -> None: ...
    def wait_for_ready(self, timeout: float) -> Coroutine[Any, Any, None]: ...
    def execute(self, code: str, *, store_history: bool, allow_stdin: bool, stop_on_error: bool) -> str: ...
    def get_iopub_msg(self) -> Coroutine[Any, Any, Mapping[str, Any]]: ...
    def get_shell_msg(self) -> Coroutine[Any, Any, Mapping[str, Any]]: ...
