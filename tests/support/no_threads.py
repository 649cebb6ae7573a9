"""A plugin of pytest that forbids threads, as Python in a browser has none: `pytest -p tests.support.no_threads`."""

import threading


def _refuse(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


threading.Thread.start = _refuse
