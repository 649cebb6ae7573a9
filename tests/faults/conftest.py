"""Where the numbers of a campaign go that are to be read: under the results of all tests, by whatever worker."""

from collections.abc import Callable

import pytest

from tests.sessions.conftest import postgres, running_postgres

__all__ = ["postgres", "running_postgres"]
_FOUND = "found"


@pytest.fixture
def record(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keeps a line of what was found, to be printed at the end."""
    return lambda words: record_property(_FOUND, words)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind)]
    found = [str(words) for one in reports for name, words in one.user_properties if name == _FOUND]
    if found:
        terminalreporter.section("faults")
    for words in sorted(found):
        terminalreporter.write_line(words)
