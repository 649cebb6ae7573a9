"""Code that runs in a Python of its own, in asyncio's debug mode, and what it prints."""

import signal
import subprocess
import sys
import time

_UNTIMED = (
    "import logging; logging.getLogger('asyncio').addFilter(lambda said: 'took %.3f seconds' not in str(said.msg))\n"
)
"""How long a callback took depends on the load of the machine: asyncio, which tells it with -X dev, keeps it back."""


def pause_before_signal() -> None:
    """Let a program that has said that it will block get there."""
    # CPython: a signal just before a system call that blocks is seen after it; no event tells of that moment.
    time.sleep(0.1)


def script(code: str, *, interrupt: bool = False, dev: bool = True) -> tuple[str, str, float]:
    """Run `code`; with `interrupt`, send SIGINT once it has printed a line. Returns output, errors, seconds since."""
    command = [sys.executable, *(["-X", "dev"] if dev else []), "-u", "-c", _UNTIMED + code]
    # Unbuffered: what `readline` reads beyond the line, `communicate` does not see.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        began = time.monotonic()
        if interrupt:
            pause_before_signal()
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return (first + out).decode(), err.decode(), time.monotonic() - began
