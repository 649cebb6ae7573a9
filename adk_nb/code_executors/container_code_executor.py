"""Code execution in a Docker container, by the `docker` program of this machine."""

import shutil
import subprocess
import threading
import weakref
from pathlib import Path
from typing import IO, Any, Self

from pydantic import Field, PrivateAttr

from adk_nb import clock, sync
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.code_executors.code_run import RUN, CodeRun
from adk_nb.code_executors.isolation import require_processes
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.invocation_context import InvocationContext

DEFAULT_IMAGE_TAG = "adk-code-executor:latest"
"""Name of an image that is built from `docker_path`, if `image` names no other."""
_STOP_SECONDS = 10.0
_MARGIN_SECONDS = 10.0
"""What `docker exec` gets beyond the time limit, which the container keeps itself."""
_SIGNALLED = 128
_LIFE = "import sys; print('ready', flush=True); sys.stdin.read()"
"""The container's own program: it ends when this process closes its end of the pipe, or is gone."""
_SUPERVISE = """
import os, signal, subprocess, sys, threading
program, size, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
source = sys.stdin.buffer.read(size)
code = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, start_new_session=True)

def end():
    try:
        os.killpg(code.pid, signal.SIGKILL)
    except OSError:
        pass

def watch():
    sys.stdin.buffer.read()
    end()

threading.Thread(target=watch, daemon=True).start()
try:
    code.communicate(source, timeout=seconds)
    status = code.returncode
except subprocess.TimeoutExpired:
    end()
    code.wait()
    print("the code was stopped: it ran for longer than %g seconds" % seconds, file=sys.stderr)
    status = 124
end()
sys.stdout.flush()
os._exit(status if status >= 0 else 128 - status)
"""
"""Runs the code in a container in a group of its own, and ends that with the time limit or when stdin is closed."""


class ContainerCodeExecutor(BaseCodeExecutor):
    """Runs code in a Docker container: without network, capabilities, and files of this machine.

    The container starts with the first code, serves all sessions, keeps the files that code writes, and ends with
    `close` or with this process. Variables are not kept. Input and output files are not supported.

    Raises:
        ConfigurationError: There is no program `docker`, neither an image nor a Dockerfile is named, or `stateful` or
            `optimize_data_file` is set.
    """

    base_url: str | None = None
    """Address of a Docker daemon. None: that of the `docker` program."""
    image: str | None = None
    """An image with `python3`, such as `python:3-slim`."""
    docker_path: str | None = None
    """Folder with a Dockerfile; `image` is then the name of what is built from it."""
    network_enabled: bool = False
    """True: the code can reach the network."""
    timeout_seconds: float | None = Field(default=300, gt=0)

    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _container: "_Container | None" = PrivateAttr(default=None)

    def __init__(
        self, base_url: str | None = None, image: str | None = None, docker_path: str | None = None, **fields: Any
    ) -> None:
        for field in ("stateful", "optimize_data_file"):
            if fields.get(field):
                raise ConfigurationError(f"ContainerCodeExecutor cannot be {field}=True; use KernelCodeExecutor")
        if not image and not docker_path:
            raise ConfigurationError(
                "ContainerCodeExecutor needs an image, or a Dockerfile's folder; write image='python:3-slim'"
            )
        if fields.get("timeout_seconds", 300) is None:
            raise ConfigurationError("ContainerCodeExecutor needs a time limit; write timeout_seconds=300")
        fields |= {"base_url": base_url, "image": image or DEFAULT_IMAGE_TAG, "docker_path": docker_path}
        super().__init__(**fields)
        require_processes(type(self).__name__)
        if shutil.which("docker") is None:
            raise ConfigurationError(
                "ContainerCodeExecutor needs Docker, and there is no program 'docker' on this machine; install it, or "
                "use KernelCodeExecutor()"
            )

    @property
    def reach(self) -> str:
        """The reach of its code, for the approver of a script."""
        network = "with network" if self.network_enabled else "without network"
        return f"in a container of {self.image} {network}: it can reach none of your files"

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code and wait for it."""
        return _ContainerRun(self, code_execution_input.code).result()

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code; a cancelled run kills it with the processes that it started."""
        run = _ContainerRun(self, code_execution_input.code)
        try:
            return await sync.blocking(run.result, thread=True)
        finally:
            run.stop()

    async def close(self) -> None:
        """Stop and remove the container."""
        await sync.blocking(self._stop, thread=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def docker(self) -> list[str]:
        """The beginning of a command line."""
        return ["docker", *(["--host", self.base_url] if self.base_url else [])]

    def started(self) -> str:
        """The name of the container, which is started if it is not there.

        Raises:
            ConfigurationError: Docker does not run, cannot build or fetch the image, or that has no `python3`.
        """
        with self._lock:
            if self._container is None or self._container.process.poll() is not None:
                if self.docker_path:
                    self._build(Path(self.docker_path))
                network = [] if self.network_enabled else ["--network", "none"]
                self._container = _Container(self.docker, [*network, "--entrypoint", "python3", self.image or ""])
                weakref.finalize(self, self._container.stop)
            return self._container.name

    def _build(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigurationError(f"docker_path {str(folder)!r} is no folder; name the one with the Dockerfile")
        done = subprocess.run(
            [*self.docker, "build", "--tag", self.image or "", str(folder)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise ConfigurationError(f"docker could not build {self.image}: {_last_line(done.stderr)}")

    def _stop(self) -> None:
        with self._lock:
            container, self._container = self._container, None
        if container:
            container.stop()


class _ContainerRun(CodeRun):
    """A run in the container of an executor."""

    def __init__(self, executor: ContainerCodeExecutor, code: str) -> None:
        source, seconds = code.encode("utf-8", "surrogatepass"), executor.timeout_seconds or 0
        super().__init__(self._new_process, seconds + _MARGIN_SECONDS, sent=source, exit_code_of=_exit_code)
        self._executor = executor
        self._arguments = ["python3", "-c", _SUPERVISE, RUN, str(len(source)), str(seconds)]
        self._container = ""

    def result(self) -> CodeExecutionResult:
        """Run it, after the container has started, and wait for it."""
        self._container = self._executor.started()
        return super().result()

    def _new_process(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*self._executor.docker, "exec", "-i", self._container, *self._arguments],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


class _Container:
    """A container that lives until `stop`, or until this process is gone."""

    def __init__(self, docker: list[str], options: list[str]) -> None:
        """Start it and wait until it is there; an image that is missing is fetched.

        Raises:
            ConfigurationError: Docker does not run, or cannot start the image's `python3`.
        """
        self.name = f"adk-nb-{clock.new_id()}"
        hardened = ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        self.process = subprocess.Popen(
            [*docker, "run", "--rm", "-i", "--init", "--name", self.name, *hardened, *options, "-c", _LIFE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the code, not for the container
        )
        assert self.process.stdout and self.process.stderr
        if self.process.stdout.readline().strip() != b"ready":
            reason = _last_line(self.process.communicate()[1])
            raise ConfigurationError(f"docker could not start a container of {options[-1]}: {reason}")
        self.process.stdout.close()
        # Else a full pipe of warnings would stop it.
        threading.Thread(target=_drain, args=(self.process.stderr,), daemon=True).start()

    def stop(self) -> None:
        """End it; Docker removes it."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _drain(stream: IO[bytes]) -> None:
    with stream:
        stream.read()


def _exit_code(code: int) -> int:
    return _SIGNALLED - code if code > _SIGNALLED else code  # 137: ended by signal 9


def _last_line(said: bytes) -> str:
    """The last line that docker wrote, without the advice to read its help."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip() and "--help'" not in line]
    return lines[-1].strip() if lines else "it said nothing"
