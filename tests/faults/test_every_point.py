"""At every place that a run comes by, in the store and at both calls: what goes wrong there, and what comes of it."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb.errors import StorageError
from adk_nb.sessions.sql import sqlite_file
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from tests.faults.clerk import Desk, Points, lines
from tests.faults.disk import Disk
from tests.faults.outcome import check
from tests.faults.workers import finish_one, forkserver

SECONDS = 20
EVERY = [pytest.param(31, id="some"), pytest.param(1, id="all", marks=[pytest.mark.faults])]


class Fault(Exception):
    """What goes wrong without a reason."""


def fail() -> None:
    raise Fault("here")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk, and nobody waits long for it."""
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.002)
    monkeypatch.setattr(sqlite_file, "LOCKED_SECONDS", 0.01)
    with Disk().inserted() as disk:
        yield disk


async def faulted(folder: Path, points: Points, disk: Disk) -> list[Exception]:
    """A run, gone on with after each error once there is no reason for it any more; the errors."""
    desk, errors = Desk(folder, points), list[Exception]()
    while len(errors) < 5:
        try:
            await desk.finish("s")
            break
        except Exception as error:
            errors.append(error)
        points.counts = False
        await same_as_on_disk(folder, desk)
        points.counts = True
        disk.well()
    points.counts = False
    await desk.service.close()
    disk.well()
    return errors


async def same_as_on_disk(folder: Path, desk: Desk) -> None:
    if locked := desk.held:
        other_service = SqliteSessionService(folder / "nb.db")
        stored = await other_service.get_session(app_name="app", user_id="u", session_id="s")
        await other_service.close()
        assert stored and [event.id for event in stored.events] == [event.id for event in locked.events]
        assert stored.state == locked.state


FAULTS: dict[str, tuple[Callable[[Disk], Callable[[], None]], tuple[type[Exception], ...]]] = {
    "an exception": (lambda disk: fail, (Fault, StorageError)),
    "a full disk": (lambda disk: disk.full, (StorageError,)),
    "a locked database": (lambda disk: disk.locked, (StorageError,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", EVERY)
@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_at_any_place_is_told_once_and_the_next_turn_goes_on(
    tmp_path: Path,
    disk: Disk,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    step: int,
    record: Callable[[str], None],
):
    open_file = sqlite_file.SessionFile.open
    do, kinds = FAULTS[fault]
    number, names, index, passed = 1 - step // 2, set[str](), 0, 0
    while True:
        number += step
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr(sqlite_file.SessionFile, "open", open_file)
        points = Points(number, do(disk))
        points.in_the_store()
        errors = asyncio.run(faulted(folder, points, disk))
        assert all(type(error) in kinds for error in errors) and len(errors) <= 1, (number, points.names, errors)
        check(folder, f"{fault} at point {number}", failed=bool(errors))
        if len(points.names) < number:
            break
        names.add(points.where)
        passed, index = passed + 1, index + len(errors)
    assert index > passed / 3
    record(f"{fault} at {passed} points of {len(names)} names: {index} turns ended with it, 0 of the faults looked for")


@pytest.mark.slow
@pytest.mark.parametrize("step", EVERY)
def test_a_run_that_is_killed_at_any_place_goes_on_in_another_process(
    tmp_path: Path, step: int, record: Callable[[str], None]
):
    processes = forkserver()
    number, killed = 1 - step, list[str]()
    while True:
        number += step
        folder = tmp_path / str(number)
        folder.mkdir()
        ended = _run(processes, folder, number)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        killed += lines(folder / "point")
        assert _run(processes, folder, 0) == 0, f"after point {number}"
        check(folder, f"killed at point {number}")
    assert number > 200
    record(f"killed at {len(killed)} points of {len(set(killed))} names: 0 of the faults looked for")


def _run(processes: Any, folder: Path, fatal: int) -> int:
    process = processes.Process(target=finish_one, args=(folder, fatal))
    process.start()
    process.join(SECONDS)
    assert process.exitcode is not None, "the process goes on and on"
    return process.exitcode
