"""A Jupyter kernel in a child process for model-written code."""

import asyncio
import json
import secrets
import signal
import socket
import sys
import time
import weakref
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, Protocol, cast

from adk_nb.code_executors.isolation import Isolation, end_group, environment, exit_text, require_processes
from adk_nb.code_executors.output import Output
from adk_nb.code_executors.work_folder import WorkFolder
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.runtime.code_execution import CodeExecutionResult, File

START_SECONDS = 60.0
INTERRUPT_SECONDS = 2.0
"""Grace period for interrupted code before its kernel is killed."""
FILES_SECONDS = 2.0
"""Grace period for the files that the code wrote by the end of its time."""
_MAX_DROPPED = 10_000_000
"""Limit of characters dropped from the output; code that prints more is interrupted."""
_REPLY_SECONDS = 2.0
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What jupyter_client and the reading of a message raise for one that is wrong."""
_MAX_SOCKET_PATH = 100
"""Characters, a few fewer than sun_path has on macOS: jupyter_client appends a number. Source: unix(4)."""
# The kernel's standard input is a pipe of this process, which the system closes however this process ends.
_BOOT = """
import json, os, sys, threading

def end_with_its_owner(pipe):
    os.read(pipe, 1)
    os._exit(1)

threading.Thread(target=end_with_its_owner, args=(os.dup(0),), daemon=True).start()
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
limit, listening = int(sys.argv.pop(1)), json.loads(sys.argv.pop(1))
try:
    import resource
except ImportError:
    pass
else:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
import zmq
bind = zmq.Socket.bind

def bind_open_socket(self, address):
    if address in listening:
        self.setsockopt(zmq.USE_FD, listening[address])
    return bind(self, address)

zmq.Socket.bind = bind_open_socket
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""
LOST_NOTE = "what earlier code defined is gone; the next code begins in a fresh kernel"


class ChildKernel:
    """A running kernel, bound to the event loop that started it.

    It runs in a folder of its own, without the user's startup files and history, and ends with this process.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, client: "_Client", folder: WorkFolder, isolation: Isolation
    ) -> None:
        self._process = process
        self._isolation = isolation
        self._client = client
        self._folder = folder
        self._exit_task = asyncio.ensure_future(self._exit_code())
        self._images = 0
        # Runs at the exit of the interpreter, too.
        self._at_exit = weakref.finalize(self, end_group, process.pid)

    @classmethod
    async def start(cls, memory_limit_mb: int | None, isolation: Isolation) -> "ChildKernel":
        """Start a kernel and wait until it is ready.

        Args:
            memory_limit_mb: Limit of private memory in MB for it and each process it starts; Linux only.
            isolation: The isolation to start it with.

        Raises:
            MissingExtraError: jupyter_client or ipykernel is not installed.
            ConfigurationError: It did not start; the message has the end of its output.
        """
        require_processes("KernelCodeExecutor")
        asyncio_client = require("jupyter_client.asynchronous", package="ipykernel")
        require("ipykernel", package="ipykernel")
        connect = require("jupyter_client.connect", package="ipykernel")
        folder = WorkFolder()
        connection = str(folder.private / "kernel.json")
        # Jupyter: messages without this key's HMAC signature are dropped, so no other process can send code.
        transport = _transport(folder)
        _, ports = connect.write_connection_file(connection, key=secrets.token_hex(32).encode(), **transport)
        log = folder.private / "kernel.log"
        # Else the model's code would be in the user's own IPython history.
        options = ["--HistoryManager.enabled=False", "--HistoryManager.hist_file=:memory:", "--IPKernelApp.quiet=True"]
        with ExitStack() as opened:
            log_file = opened.enter_context(log.open("wb"))
            sockets = _listen(transport, ports, opened)
            memory = str((memory_limit_mb or 0) * 1024 * 1024)
            kernel = [sys.executable, "-c", _BOOT, memory, json.dumps(sockets), "-f", connection]
            process = await asyncio.create_subprocess_exec(
                *isolation.command([*kernel, *options], str(folder.path), readable=connection, interrupted=True),
                stdin=asyncio.subprocess.PIPE,  # closed when this process ends, which makes the kernel exit
                stdout=log_file,
                stderr=log_file,
                cwd=folder.path,
                env=environment(
                    IPYTHONDIR=str(folder.private / "ipython"),
                    JUPYTER_RUNTIME_DIR=str(folder.private),
                ),
                start_new_session=True,  # a process group of its own, which end_group signals
                pass_fds=[*sockets.values()],
            )
        client = cast(_Client, asyncio_client.AsyncKernelClient())
        client.load_connection_file(connection)
        # Without stdin `input()` raises at once instead of waiting forever.
        client.start_channels(stdin=False, hb=False, control=False)
        # From here on `stop` cleans up: process, sockets and folder.
        started = cls(process, client, folder, isolation)
        try:
            await started._until_ready()
        except BaseException as error:
            output = log.read_text(errors="replace")[-2_000:].strip()
            await started.stop()
            if isinstance(error, RuntimeError | TimeoutError):
                raise ConfigurationError(f"the kernel for the model's code did not start: {output or error}") from error
            raise
        return started

    @property
    def alive(self) -> bool:
        """True while its process runs."""
        return not self._exit_task.done()

    async def run(self, code: str, files: Iterable[File], seconds: float | None) -> CodeExecutionResult:
        """Run `code` in the kernel's namespace. Failures of the code or the kernel are part of the result.

        Code that exceeds the time limit, or whose run is cancelled, is interrupted; if it continues, the kernel is
        killed. The limit is for its files, too: for those it gets, and, with what is left of it and a few seconds, for
        those it wrote.
        """
        start = time.monotonic()
        output = Output(self._image_name)
        try:
            async with asyncio.timeout(seconds):
                problems = await asyncio.to_thread(self._folder.put, [*files])
        except TimeoutError:
            output.fail(f"the code was not run: its files were not written within {seconds:g} seconds")
            return output.result(1)
        for problem in problems:
            output.fail(f"a file for the code was not written: {problem}")
        remaining = None if seconds is None else max(0.0, seconds - (time.monotonic() - start))
        message_id = self._client.execute(code, store_history=False, allow_stdin=False, stop_on_error=False)
        collecting = asyncio.ensure_future(self._collect_output(message_id, output))
        try:
            # The kernel may die without sending a status.
            await asyncio.wait({collecting, self._exit_task}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            if not collecting.done() and self.alive:
                output.write_stderr(f"the code was stopped: it ran for longer than {seconds or 0:g} seconds\n")
                await self._interrupt(collecting)
            exit_code = await self._outcome(collecting, output)
        except asyncio.CancelledError:
            await self._interrupt(collecting)
            raise
        finally:
            collecting.cancel()
        remaining = None if seconds is None else max(FILES_SECONDS, seconds - (time.monotonic() - start))
        try:
            async with asyncio.timeout(remaining):
                limit = float("inf") if remaining is None else remaining
                changed, skipped = await asyncio.to_thread(self._folder.take_changed, limit)
            output.files += changed
            output.skip(*skipped)
        except (TimeoutError, OSError) as error:
            reason = "it took too long to read them" if isinstance(error, TimeoutError) else error.strerror
            output.fail(f"the files that the code wrote are not returned: {reason}")
        return output.result(exit_code)

    async def stop(self) -> None:
        """Kill it with all processes that its code started, and delete its folder."""
        end_group(self._process.pid)
        self._client.stop_channels()
        await self._exit_task
        self._at_exit.detach()
        await asyncio.to_thread(self._folder.close)

    async def _exit_code(self) -> int:
        return self._isolation.exit_code(await self._process.wait())

    async def _until_ready(self) -> None:
        ready = asyncio.ensure_future(self._client.wait_for_ready(timeout=START_SECONDS))
        try:
            await asyncio.wait({ready, self._exit_task}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise RuntimeError(f"its process ended with {exit_text(self._exit_task.result())}")
            ready.result()
        finally:
            ready.cancel()

    async def _collect_output(self, message_id: str, output: Output) -> bool:
        """Collect the messages of one request until the kernel is idle. True: the code succeeded."""
        succeeded, over_limit = True, False
        while True:
            if output.dropped > _MAX_DROPPED and not over_limit:
                over_limit = True
                output.write_stderr(f"the code was stopped: it printed more than {_MAX_DROPPED:,} characters\n")
                end_group(self._process.pid, signal.SIGINT)
            # The code can write to the kernel's sockets itself, and anything at all.
            try:
                message = await self._client.get_iopub_msg()
                if message["parent_header"].get("msg_id") != message_id:  # output of an interrupted request
                    continue
                kind, content = message["msg_type"], message["content"]
                if kind == "stream":
                    (output.write_stderr if content["name"] == "stderr" else output.write_stdout)(content["text"])
                elif kind in ("execute_result", "display_data"):
                    output.add_display(content["data"])
                elif kind == "error":
                    succeeded = False
                    output.write_stderr("\n".join([*content["traceback"], ""]))
                # Jupyter: `idle` is the last message on iopub for a request; the reply may come before output.
                elif kind == "status" and content["execution_state"] == "idle":
                    return succeeded and await self._reply_is_ok(message_id)
            except _MALFORMED as error:
                if succeeded:
                    output.fail(f"the kernel sent a message that cannot be read: {error!r:.200}")
                succeeded = False

    async def _reply_is_ok(self, message_id: str) -> bool:
        """Read the status from the shell channel, whose unread replies would pile up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_REPLY_SECONDS):
                while True:
                    message = await self._client.get_shell_msg()
                    if message["parent_header"].get("msg_id") == message_id:
                        return message["content"]["status"] == "ok"
        return True

    async def _interrupt(self, collecting: "asyncio.Future[bool]") -> None:
        if sys.platform != "win32":
            end_group(self._process.pid, signal.SIGINT)
            await asyncio.wait(
                {collecting, self._exit_task}, timeout=INTERRUPT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        if not collecting.done():
            end_group(self._process.pid)
            await self._exit_task

    async def _outcome(self, collecting: "asyncio.Future[bool]", output: Output) -> int:
        """The exit code of the code, or of the kernel if that ended."""
        if collecting.done():
            return 0 if collecting.result() else 1
        exit_code = await self._exit_task
        await asyncio.wait({collecting}, timeout=0.1)  # its last output may still arrive
        output.write_stderr(f"the kernel ended with {exit_text(exit_code)}; {LOST_NOTE}\n")
        return exit_code or 1

    def _image_name(self, extension: str) -> str:
        self._images += 1
        return f"image_{self._images}.{extension}"


def _transport(folder: WorkFolder) -> dict[str, str]:
    """Sockets in the folder: a TCP port that is free now may be taken when the kernel binds it.

    They also work in a sandbox, which has a network of its own.
    """
    path = str(folder.private / "socket")
    return {} if sys.platform == "win32" or len(path) > _MAX_SOCKET_PATH else {"transport": "ipc", "ip": path}


def _listen(transport: Mapping[str, str], ports: Mapping[str, Any], opened: ExitStack) -> dict[str, int]:
    """Open the kernel's sockets for it: the code could replace those in a folder that the kernel can write.

    Returns:
        zmq's address -> descriptor. Nothing for TCP.
    """
    descriptors: dict[str, int] = {}
    if transport and sys.platform != "win32":
        for name in ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port"):
            path = f"{transport['ip']}-{ports[name]}"
            listener = opened.enter_context(socket.socket(socket.AF_UNIX))
            listener.setblocking(False)
            listener.bind(path)
            listener.listen()
            descriptors[f"ipc://{path}"] = listener.fileno()
    return descriptors


class _Client(Protocol):
    """The members of jupyter_client's AsyncKernelClient in use."""

    def load_connection_file(self, connection_file: str) -> None:
        """Read ports and key."""
        ...

    def start_channels(self, *, stdin: bool, hb: bool, control: bool) -> None:
        """Open the sockets."""
        ...

    def stop_channels(self) -> None:
        """Close the sockets."""
        ...

    def wait_for_ready(self, timeout: float) -> Coroutine[Any, Any, None]:
        """Wait until the kernel responds."""
        ...

    def execute(self, code: str, *, store_history: bool, allow_stdin: bool, stop_on_error: bool) -> str:
        """Request the execution of code; returns the message id."""
        ...

    def get_iopub_msg(self) -> Coroutine[Any, Any, Mapping[str, Any]]:
        """The next message about output or status."""
        ...

    def get_shell_msg(self) -> Coroutine[Any, Any, Mapping[str, Any]]:
        """The next reply."""
        ...
