"""The process that reads data: `python -m adk_nb.tools.data_tool.reader`, with limits that it cannot lift.

It gets lines of JSON on stdin, the first of which names the data, and answers each with a line of JSON, followed by the
bytes of a result where there is one. It ends with its stdin, and so with the process that started it.
"""

import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

from adk_nb.tools.data_tool.read_error import ReadError

_READERS = {
    "frames": "adk_nb.tools.data_tool.duckdb_reader",
    "sqlite": "adk_nb.tools.data_tool.sqlite_reader",
    "postgresql": "adk_nb.tools.data_tool.postgres_reader",
}
MAX_SQL = 50_000
"""Characters of a query."""
_ALONE = 10
"""Seconds after a time-out at which it ends by itself, if its parent does not end it."""
_IDLE = 3_600
"""Seconds without a question, after which it ends; the next question starts another one."""
_SLACK = 192 * 1024 * 1024
"""Bytes of address space for threads and libraries, beside the memory of a query."""


class Reader(Protocol):
    """Reads one kind of data."""

    opens_files: bool
    """True: it has to open files or connections while it answers."""

    def tables(self) -> list[dict[str, Any]]:
        """`{"name", "row_count", "columns": [[name, type], ...]}` of each table."""
        ...

    def query(self, sql: str, rows: int, size: int) -> tuple[dict[str, Any], bytes]:
        """Run one query.

        Args:
            sql: What a model wrote.
            rows: The most rows.
            size: The most bytes of the result.

        Returns:
            `{"form": "arrow" | "json", "columns": [[name, type], ...], "rows", "more"}`, and the rows.
        """
        ...


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    requests = sys.stdin.buffer
    settings: dict[str, Any] = json.loads(requests.readline())
    try:
        reader: Reader = importlib.import_module(_READERS[settings["kind"]]).open_reader(settings)
        _limit(settings["memory"], opens_files=reader.opens_files)
    except Exception as error:
        _answer(answers, _fault(error))
        return
    _answer(answers, {})
    for line in requests:
        _wake(settings["seconds"] + _ALONE)
        with suppress(BrokenPipeError):
            _answer(answers, *_reply(reader, json.loads(line)))
        _wake(_IDLE)


def _wake(seconds: float) -> None:
    """End this process after so many seconds, also where nobody is left to end it."""
    if hasattr(signal, "alarm"):
        signal.alarm(int(seconds))


def _reply(reader: Reader, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    try:
        if request["do"] == "tables":
            return {"tables": reader.tables()}, b""
        if len(request["sql"]) > MAX_SQL:
            raise ReadError("refused", f"the query has {len(request['sql']):,} characters; {MAX_SQL:,} are the most")
        return reader.query(request["sql"], request["rows"], request["size"])
    except Exception as error:
        return _fault(error), b""


def _fault(error: Exception) -> dict[str, Any]:
    if isinstance(error, ReadError):
        return {"reason": error.reason, "error": str(error), "name": error.name}
    if isinstance(error, MemoryError):
        return {"reason": "memory", "error": "it needs more memory than a query may have", "name": ""}
    if isinstance(error, ImportError):
        return {"reason": "missing", "error": str(error), "name": error.name or ""}
    return {"reason": "other", "error": f"{type(error).__name__}: {error}"[:2_000], "name": ""}


def _answer(file: BinaryIO, answer: dict[str, Any], payload: bytes = b"") -> None:
    file.write(json.dumps({**answer, "size": len(payload)}).encode() + b"\n" + payload)
    file.flush()


def _limit(memory: int, *, opens_files: bool) -> None:
    """Take from this process what a query does not need: writing files, opening any, and more memory."""
    if sys.platform == "win32":  # has no such limits; the time-out and the engines' own ones stay
        return
    import resource  # noqa: PLC0415 - no such module on Windows

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with suppress(OSError, ValueError):  # macOS has no statm, and takes no such limit
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        most = used + memory + _SLACK
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if not opens_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


if __name__ == "__main__":
    main()
