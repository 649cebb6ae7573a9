"""How long a reader of the site in a browser waits, from a warm cache: python -m benchmarks.lite

Serves build/lite on loopback and opens it in Chromium twice, the second time with what the first has left in the cache.
"""

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

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def visit(page: LitePage) -> dict[str, float]:
    """Seconds from the opening of the page until each step is done."""
    page.browser.get("about:blank")
    began = time.monotonic()
    page.open("00_start_here.ipynb")
    seconds = {"notebook shown": time.monotonic() - began}
    page.until(lambda: "Starting" in page.line(), "Python", BOOT)
    page.until(lambda: page.line() == "", "the kernel", BOOT)
    seconds["Python ready"] = time.monotonic() - began
    for cell, name in STEPS.items():
        page.run_cell(cell, timeout=BOOT)
        seconds[name] = time.monotonic() - began
    return seconds


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
            print(name, *(f"{step} {seconds:.1f} s" for step, seconds in visit(page).items()), sep=" · ")
        server.shutdown()
    loaded = sum(path.stat().st_size for path in (SITE / "static" / "pyodide").iterdir())
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    print(f"size {size / 1e6:.0f} MB, Python and its wheels {loaded / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
