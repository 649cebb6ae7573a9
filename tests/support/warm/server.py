"""Kernels that are copies of a process which has imported all that they need: `python server.py DOOR MODULE...`.

A start costs a tenth of what a new Python takes. Each request (`ask.py`) brings arguments, environment, folder and
files; its copy is a process as any other, in a session of its own. It ends with whoever asked for it, and all of them
end with this server: when its input is closed.
"""

import array
import gc
import importlib
import json
import os
import random
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any


class Server:
    def __init__(self, door: int, modules: list[str]) -> None:
        """`door`: the number of a socket on which it listens."""
        self._modules = modules
        self._waiting = selectors.DefaultSelector()
        self._children: dict[int, socket.socket] = {}
        self._door = socket.socket(fileno=door)
        self._ended, awake = os.pipe()
        for end in (self._ended, awake):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(awake)
        for readable in (self._door, self._ended, sys.stdin):
            self._waiting.register(readable, selectors.EVENT_READ)

    def serve(self) -> dict[str, Any] | None:
        """Return in a copy, with what it was asked for; in the server at its end, with None."""
        while True:
            for key, _ in self._waiting.select():
                if key.fileobj is sys.stdin:
                    for child in self._children:
                        _signal(child, signal.SIGKILL)
                    return None
                if key.fileobj == self._ended:
                    self._reap()
                elif key.fileobj is self._door:
                    if asked := self._copy():
                        return asked
                elif key.data in self._children:  # it may have ended a moment ago
                    self._pass_on(key.fileobj, key.data)

    def _copy(self) -> dict[str, Any] | None:
        asking, _ = self._door.accept()
        text, ancillary, _, _ = asking.recvmsg(1 << 20, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        files = array.array("i", b"".join(data for _, _, data in ancillary))
        for module in self._modules:
            importlib.import_module(module)
        self._modules.clear()
        gc.collect()
        gc.freeze()
        if child := os.fork():
            self._children[child] = asking
            self._waiting.register(asking, selectors.EVENT_READ, child)
            for file in files:
                os.close(file)
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._waiting.close()
        for held in (self._door, asking, *self._children.values()):
            held.close()
        os.setsid()
        for place, file in enumerate(files):
            os.dup2(file, place)
            os.close(file)
        return json.loads(text)

    def _pass_on(self, asking: Any, child: int) -> None:
        """Send a signal that was sent to who asked; kill the copy if that process is gone."""
        _signal(child, (asking.recv(1) or bytes([signal.SIGKILL]))[0])

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._ended, 4096)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                asking = self._children.pop(ended[0])
                self._waiting.unregister(asking)
                with suppress(OSError):
                    asking.send(str(os.waitstatus_to_exitcode(ended[1])).encode())
                asking.close()


def _signal(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child, number)


def become(module: str, arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Be the process that `python -m MODULE ARGUMENTS` would be in this environment."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment, JPY_PARENT_PID=str(os.getppid()))
    sys.path[:1] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [module, *arguments]
    tempfile.tempdir = None
    time.tzset()
    random.seed()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__" and (asked := Server(int(sys.argv[1]), sys.argv[2:]).serve()):
    become(**asked)
