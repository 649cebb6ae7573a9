"""A process that is killed anywhere in a run: another one goes on, and nothing is lost, doubled or skipped."""

import asyncio
import multiprocessing
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adk_nb.runtime import approvals
from adk_nb.sessions import SqliteSessionService
from tests.runtime.cut_run import DONE, WHERE, lines, work

SECONDS = 20


@pytest.fixture(scope="module")
def processes() -> Any:
    """Makes processes that have imported what they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tests.runtime.cut_run_ready"])
    return context


def run(processes: Any, folder: Path, fatal: int) -> int:
    process = processes.Process(target=work, args=(folder, fatal))
    process.start()
    process.join(SECONDS)
    assert process.exitcode is not None, "the process goes on and on"
    return process.exitcode


def check(folder: Path, point: int) -> None:
    async def read() -> Any:
        service = SqliteSessionService(folder / "nb.db")
        session = await service.get_session(**WHERE)
        assert session
        left = await service.unfinished(session)
        await service.close()
        return session, left

    session, left = asyncio.run(read())
    told = f"killed at point {point}"
    ids = [event.id for event in session.events]
    assert left == [] and approvals.pending(session.events) == [], told
    assert set(lines(folder / "seen")) <= set(ids) and len(set(ids)) == len(ids), told
    with closing(sqlite3.connect(folder / "nb.db")) as db:
        stored = [seq for (seq,) in db.execute("SELECT seq FROM events ORDER BY seq")]
    assert stored == list(range(1, len(ids) + 1)), told

    said = [event.text for event in session.events if event.text == DONE]
    assert len(said) == 1, told
    done = lines(folder / "done")
    assert {name for name, *_ in done} == {"look", "stamp", "pay"}, told
    attempts = [(key, attempt) for _, key, attempt in done]
    assert len(set(attempts)) == len(attempts), f"{told}: a repeat that is not marked: {done}"
    assert [name for name, *_ in done if name != "look"].count("pay") == 1, f"{told}: paid twice: {done}"
    assert [name for name, *_ in done].count("stamp") == 1, f"{told}: stamped twice: {done}"
    calls = [call.id for event in session.events for call in event.get_function_calls() if call.name == "pay"]
    assert len(calls) == 1, told
    results = [
        (one.id, one.response)
        for event in session.events
        for one in event.get_function_responses()
        if one.name in ("look", "stamp", "pay") and one.response != approvals.placeholder()
    ]
    assert len({key for key, _ in results}) == len(results) == 3, f"{told}: {results}"


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
def test_a_run_that_is_killed_at_any_point_goes_on_in_another_process(processes: Any, tmp_path: Path, step: int):
    point, killed = 1 - step, True
    while killed:
        point += step
        folder = tmp_path / str(point)
        folder.mkdir()
        killed = run(processes, folder, point) == -signal.SIGKILL
        if killed:
            assert run(processes, folder, 0) == 0, f"after point {point}"
        check(folder, point)
    assert point > 30
