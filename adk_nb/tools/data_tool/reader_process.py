"""The parent's side of `reader.py`: start it, ask it, and end it when it is late."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

from adk_nb.tools.data_tool.read_error import ReadError

_GRACE = 1.0
"""Seconds after the time-out, in which an engine may end a query by itself."""
_START_SECONDS = 120.0
_VARIABLES = (
    "HOME", "LANG", "LC_ALL", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ", "USERPROFILE", "VIRTUAL_ENV",
)  # fmt: skip
"""The variables that a reader gets, and that of PostgreSQL beside libpq's: no keys."""


class ReaderProcess:
    """A process that reads one version of the data."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Start it, and wait until it can be asked.

        Args:
            settings: `kind`, `seconds` and `memory`, and what the reader of that kind takes.

        Raises:
            ReadError: The data cannot be read.
        """
        self._seconds: float = settings["seconds"]
        self._is_late = False
        # Packages are found where this process finds them, and this one before all.
        package = str(Path(__file__).parents[3])
        paths = os.pathsep.join(dict.fromkeys([package, *(entry for entry in sys.path if entry)]))
        prefix = ("PG",) if settings["kind"] == "postgresql" else ()
        kept = {name: value for name, value in os.environ.items() if name in _VARIABLES or name.startswith(prefix)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "adk_nb.tools.data_tool.reader"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=kept | {"PYTHONPATH": paths, "PYTHONUTF8": "1"},
        )
        self.close = weakref.finalize(self, _end, self._process)
        """End it; a question that is open gets an error. Also done when nobody has it any more."""
        try:
            self._ask(settings, _START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        """False once it has ended."""
        return self._process.poll() is None

    def ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Return the answer to a request, and the bytes that come with it.

        Raises:
            ReadError: There is no answer; it says why.
        """
        return self._ask(request, self._seconds + _GRACE)

    def _ask(self, request: dict[str, Any], seconds: float) -> tuple[dict[str, Any], bytes]:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests and answers
        timer = threading.Timer(seconds, self._end_late)
        timer.daemon = True
        timer.start()
        try:
            requests.write(json.dumps(request).encode() + b"\n")
            requests.flush()
            line = answers.readline()
            answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
            payload = answers.read(answer.get("size", 0))
            is_whole = bool(answer) and len(payload) == answer["size"]
        except (OSError, ValueError):  # it has ended
            answer, payload, is_whole = {}, b"", False
        finally:
            timer.cancel()
        if not is_whole:
            self.close()
            if self._is_late:
                raise ReadError("time", "it takes longer than a query may")
            raise ReadError("memory", "the process that reads the data has ended; a query may need too much memory")
        if "error" in answer:
            raise ReadError(answer["reason"], answer["error"], answer.get("name", ""))
        return answer, payload

    def _end_late(self) -> None:
        self._is_late = True
        self._process.kill()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for file in (process.stdin, process.stdout):
        with contextlib.suppress(OSError, ValueError):
            if file:
                file.close()
