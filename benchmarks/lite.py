"""How long a reader of the site in a browser waits: python -m benchmarks.lite

Serves build/lite on loopback and opens it in Chromium twice, the second time with what the first has left in the cache.
Of each step: seconds since the page was opened, and the processor's seconds of all of Chromium since then, of which
another load of the machine takes nothing away.
"""

import os
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "lite"
sys.path[:0] = [str(ROOT / "tests" / "browser"), str(ROOT / "tests" / "lite")]

from lab_server import chromium  # noqa: E402
from lite_page import BOOT, LitePage  # noqa: E402

STEPS = {1: "load_ext", 2: "first %%tool", 3: "first %%agent", 4: "first answer"}
"""Cell of the first tutorial -> its name here."""


class _Files(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sent = 0
    """Bytes of files so far."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def copyfile(self, source: object, outputfile: object) -> None:
        """Count what is sent, too."""
        _Files.sent += os.fstat(source.fileno()).st_size  # type: ignore[attr-defined]
        super().copyfile(source, outputfile)  # type: ignore[arg-type]


def processor(profile: str) -> float:
    """The processor's seconds of the processes that have `profile` among their arguments, and of their children."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    ours: set[int] = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            command = (path / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has ended
            continue
        number = int(path.name)
        parents[number], seconds[number] = (
            int(fields[1]),
            (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        )
        if profile in command and "chromedriver" not in command:
            ours.add(number)
    while more := {number for number, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(seconds[number] for number in ours)


def visit(page: LitePage, profile: str) -> dict[str, tuple[float, float]]:
    """Seconds, and the processor's seconds, from the opening of the page until each step is done."""
    page.browser.get("about:blank")
    began, used = time.monotonic(), processor(profile)
    done: dict[str, tuple[float, float]] = {}

    def note(name: str) -> None:
        done[name] = time.monotonic() - began, processor(profile) - used

    page.open("00_start_here.ipynb")
    note("notebook shown")
    page.until(lambda: page.line() == "", "the kernel", BOOT)
    note("Python ready")
    for cell, name in STEPS.items():
        page.run_cell(cell, timeout=BOOT)
        note(name)
    return done


def main() -> None:
    """Print the seconds of both visits, and the size of the site."""
    with (
        tempfile.TemporaryDirectory() as profile,
        ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(SITE))) as server,
        chromium(Path(profile)) as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = LitePage(f"http://127.0.0.1:{server.server_port}", browser)
        for name in ("first visit", "warm cache"):
            before = _Files.sent
            steps = [f"{step} {wall:.1f} s ({cpu:.1f})" for step, (wall, cpu) in visit(page, profile).items()]
            print(name, *steps, f"{(_Files.sent - before) / 1e6:.0f} MB sent", sep=" · ")
        server.shutdown()
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    print(f"size {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
