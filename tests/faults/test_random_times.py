"""Two rivals at one store of sessions, one of which is killed, or stands still, at any time; over and over."""

import itertools
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.outcome import FAULTS, Counts, check
from tests.faults.workers import finish_all, forkserver
from tests.sessions.postgres import Postgres
from tests.support.polling import eventually

A_ROUND = 25
"""So often is done to one store what is done; then it is looked at, and another one is begun."""
LEASE, STILL = 0.3, 0.4
"""Seconds that a session is held without renewing, and that a process stands still."""
LONGEST = 0.06
"""Seconds that a process is left to work. A run takes about so long."""


class Rivals:
    """Two processes at one store: a file in `folder`, or the database of `url`."""

    def __init__(self, folder: Path, lease: float, *, sees: bool, url: str) -> None:
        self._folder = folder
        self._given = (folder, lease, sees)
        self._forkserver = forkserver()
        folder.mkdir(parents=True)
        if url:
            (folder / "url").write_text(url)
        self._both = [self._start(), self._start()]

    def _start(self) -> Any:
        process = self._forkserver.Process(target=finish_all, args=self._given)
        process.start()
        return process

    def wait_until_ready(self, which: int) -> None:
        eventually((self._folder / str(self._both[which].pid)).exists, pause=0.001)

    def ends_within(self, which: int, seconds: float) -> bool:
        self._both[which].join(seconds)
        return self._both[which].exitcode is not None

    def kill(self, which: int) -> None:
        """Kill one, and let another take its place."""
        self._both[which].kill()
        self._both[which].join(20)
        assert self._both[which].exitcode == -signal.SIGKILL, "it had ended by itself"
        self._both[which] = self._start()

    def stand_still(self, which: int) -> None:
        os.kill(self._both[which].pid, signal.SIGSTOP)
        time.sleep(STILL)  # the time that its rival has is what is tested
        os.kill(self._both[which].pid, signal.SIGCONT)

    def end(self) -> None:
        """Let both come to the end of what was begun."""
        (self._folder / "enough").touch()
        for process in self._both:
            process.join(60)
        assert [process.exitcode for process in self._both] == [0, 0]

    def give_up(self) -> None:
        for process in self._both:
            process.kill()


def campaign(
    folder: Path, times: int, seed: str, lease: float, kind: str, new_url: Callable[[], str] = lambda: ""
) -> Counts:
    """Do `what` to one of two, `times` times; what was found. `new_url` makes a database; without it, it is a file."""
    chance, counts = random.Random(seed), Counts(dict.fromkeys(FAULTS, 0))
    for first in range(0, times, A_ROUND):
        rivals = Rivals(folder / str(first), lease, sees=kind == "kill", url=new_url())
        try:
            for _ in range(min(A_ROUND, times - first)):
                which = chance.randrange(2)
                rivals.wait_until_ready(which)
                assert rivals.ends_within(which, chance.uniform(0, LONGEST)) is False
                getattr(rivals, kind)(which)
            rivals.end()
        finally:
            rivals.give_up()
        counts.update(check(folder / str(first), f"{kind}, seed {seed}, round {first}"))
        counts["runs"] += len(list((folder / str(first)).glob("ended-*")))
    return counts


MANY = [pytest.mark.faults, pytest.mark.timeout(1800)]


@pytest.mark.slow
@pytest.mark.parametrize("times", [pytest.param(8, id="some"), pytest.param(1000, id="all", marks=MANY)])
def test_killed_at_any_time(tmp_path: Path, times: int, record: Callable[[str], None]):
    result = campaign(tmp_path / "rounds", times, f"kill {times}", 15.0, "kill")
    assert result["events acknowledged"] > 0  # how many depends on the machine
    record(f"{times} SIGKILLs: {result}")


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("times", [pytest.param(8, id="some"), pytest.param(1000, id="all", marks=MANY)])
def test_killed_at_any_time_beside_a_database_server(
    tmp_path: Path, postgres: Postgres, times: int, record: Callable[[str], None]
):
    schemas = (f"round_{number}" for number in itertools.count())

    def new_url() -> str:
        name = next(schemas)
        postgres.sql(f"CREATE SCHEMA {name}")
        return f"postgresql://tester@/postgres?host={postgres.folder}&options=-csearch_path%3D{name}"

    result = campaign(tmp_path / "rounds", times, f"kill {times}", 15.0, "kill", new_url)
    assert result["events acknowledged"] > 0  # how many depends on the machine
    record(f"PostgreSQL, {times} SIGKILLs: {result}")


@pytest.mark.parametrize("times", [pytest.param(2, id="some"), pytest.param(300, id="all", marks=MANY)])
def test_standing_still_for_longer_than_the_lease_at_any_time(
    tmp_path: Path, times: int, record: Callable[[str], None]
):
    result = campaign(tmp_path / "rounds", times, f"still {times}", LEASE, "stand_still")
    assert result["events acknowledged"] > 0  # how many depends on the machine
    record(f"{times} times SIGSTOP, {STILL} s, SIGCONT, where a lease is {LEASE} s: {result}")
