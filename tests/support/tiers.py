"""Which tests run, where, and side by side: hooks of pytest that conftest.py takes in."""

import os
import re
import shutil
from collections.abc import Iterable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

FIRST = ("tests/package/test_style.py", "tests/browser/", "tests/kernel/", "tests/notebooks/", "tests/code_executors/")
"""What takes long begins early: the rest fills the gaps."""


@cache
def missing(mark: str) -> str:
    """What this machine lacks for the tests with a mark, in a line; empty if it has all."""
    in_a_browser = mark in ("browser", "browser_all", "lite", "editors")
    if in_a_browser and not (shutil.which("chromium") and shutil.which("chromedriver")):
        return "browser tests skipped: no chromium on PATH; apt-get install chromium chromium-driver"
    if mark == "postgres" and not [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]:
        return "PostgreSQL tests skipped: no server under /usr/lib/postgresql; apt-get install postgresql"
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers():
        if why := missing(mark.name):
            pytest.skip(why)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell in a line each what was skipped for want of a program."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ())]
    for why in sorted({missing("browser"), missing("postgres")} - {""}):
        if count := sum(reason.endswith(why) for reason in reasons):
            terminalreporter.write_line(f"{why} ({count})")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file none of whose tests can be meant by `-m`, as the marks in its text say."""
    asked = config.option.markexpr
    if not asked or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    return None if may_match(asked, text, (line.split(":")[0] for line in config.getini("markers"))) else True


def may_match(asked: str, text: str, marks: Iterable[str]) -> bool:
    """True if some of the tests in a file may have marks that fit: those of `pytestmark` all have, others some."""
    named = {*marks} & {*re.findall(r"\w+", text)}
    always = {name for line in re.findall(r"^pytestmark = .*", text, re.M) for name in re.findall(r"mark\.(\w+)", line)}
    return _some_fit(asked, frozenset(always), frozenset(named - always))


@cache
def _some_fit(asked: str, always: frozenset[str], others: frozenset[str]) -> bool:
    code = compile(asked, "-m", "eval")
    words = {word for word in re.findall(r"\w+", asked) if word not in ("and", "or", "not")}
    asked_of = sorted(others & words)
    chosen = (always | {*some} for count in range(len(asked_of) + 1) for some in combinations(asked_of, count))
    return any(eval(code, {"__builtins__": {}}, {word: word in has for word in words}) for has in chosen)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((at for at, path in enumerate(FIRST) if item.nodeid.startswith(path)), len(FIRST)))


@pytest.hookimpl(optionalhook=True)  # absent under `-p no:xdist`
def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: who waits for a kernel or a page leaves its own to others."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


class ByFile(LoadScopeScheduling):
    """A worker takes a file after the other, in the order of collection; all that share one browser, as one file."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::")[0]
        return "browser" if path.startswith("tests/browser/") else path
