"""The journal of runs: who holds a session, what was begun in it, and what may happen only once."""

import asyncio
import multiprocessing
import os
import platform
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adk_nb import clock
from adk_nb.errors import ConfigurationError, SessionBusyError, SessionNotFoundError, StaleSessionError, StorageError
from adk_nb.events import Event
from adk_nb.sessions import DatabaseSessionService, Session, SqliteSessionService, journal
from adk_nb.sessions.journal import LEASE_SECONDS, Intent, Journal, is_gone, this_process
from tests.sessions.postgres import Postgres
from tests.sessions.writer import claim_and_append

S = {"app_name": "app", "user_id": "u", "session_id": "s"}
PAY = Intent(run_id="run", branch="root", call_id="c1", name="pay")

JOURNALS: dict[str, Callable[[Path], SqliteSessionService | DatabaseSessionService]] = {
    "sqlite": lambda folder: SqliteSessionService(folder / "nb.db"),
}
"""Of services that have a journal. A new one is added here."""

Use = Callable[[Any], Awaitable[Any]]


@pytest.fixture(params=[*JOURNALS, pytest.param("postgres", marks=pytest.mark.postgres)])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Use], Any]:
    """Runs what it is given with a service, and closes that; the store stays."""
    url = request.getfixturevalue("postgres").url() if request.param == "postgres" else ""

    async def using(use: Use) -> Any:
        service = DatabaseSessionService(url) if url else JOURNALS[request.param](tmp_path)
        try:
            return await use(service)
        finally:
            await service.close()

    return lambda use: asyncio.run(using(use))


class ServerTicks(list[float]):
    """What the leases of a database server are, which has a clock of its own, when that has gone on."""

    def __init__(self, server: Postgres) -> None:
        super().__init__([1000.0])
        self._server = server

    def __setitem__(self, server: Any, now: Any) -> None:
        self._server.sql(f"UPDATE leases SET expires = expires - {now - self[0]}")
        super().__setitem__(server, now)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[float]:
    """The one number in it is what the clock says that leases are counted by."""
    if request.node.callspec.params["run"] == "postgres":
        return ServerTicks(request.getfixturevalue("postgres"))
    now = [1000.0]
    monkeypatch.setattr(clock, "ticks", lambda: now[0])
    return now


async def read(service: Any) -> Session:
    session = await service.get_session(**S)
    assert session
    return session


def said(text: str) -> Event:
    return Event(author="user", message=text)


def test_a_session_that_a_run_holds_is_closed_to_others(run: Callable[[Use], Any]):
    async def use(service: Any) -> None:
        assert isinstance(service, Journal)
        session = await service.create_session(**S)
        lease = await service.claim(session, "run", owner="kernel 1")
        assert session.lease is lease
        copy = await read(service)

        with pytest.raises(SessionBusyError, match=r"session 's' .* kernel 1 since .*; wait for") as raised:
            await service.claim(copy, "another", owner="kernel 2")
        assert (raised.value.owner, raised.value.session_id, raised.value.since > 0) == ("kernel 1", "s", True)
        with pytest.raises(SessionBusyError, match="kernel 1"):
            await service.append_event(copy, said("from beside"))
        await service.append_event(session, said("mine"))

        await lease.release("done")
        assert session.lease is None
        second = await service.claim(await read(service), "another", owner="kernel 2")
        assert second.fence > lease.fence

    run(use)


def test_a_stale_copy_is_refused_with_a_hint_to_reload(run: Callable[[Use], Any]):
    async def use(service: Any) -> None:
        session = await service.create_session(**S)
        copy = await read(service)
        await service.append_event(session, said("newer"))

        with pytest.raises(StaleSessionError, match="session again"):
            await service.claim(copy, "run", owner="me")
        await service.claim(await read(service), "run", owner="me")
        await service.delete_session(**S)
        with pytest.raises(SessionNotFoundError, match="no session named 's'"):
            await service.claim(session, "run", owner="me")

    run(use)


def test_a_lease_that_ran_out_is_taken_over_and_its_owners_late_writes_are_refused(
    run: Callable[[Use], Any], ticks: list[float]
):
    async def use(service: Any) -> None:
        session = await service.create_session(**S)
        old = await service.claim(session, "run", owner="paused")
        attempt = await old.begin(PAY)
        ticks[0] += LEASE_SECONDS - 1
        await old.renew()
        ticks[0] += LEASE_SECONDS - 1
        with pytest.raises(SessionBusyError):
            await service.claim(await read(service), "run", owner="heir")
        ticks[0] += 2
        await service.append_event(session, said("late, and nobody has taken it over"))
        heirs = await read(service)
        new = await service.claim(heirs, "run", owner="heir")
        assert new.fence > old.fence

        late: list[Callable[[], Awaitable[Any]]] = [
            lambda: service.append_event(session, said("late")),
            lambda: old.renew(),
            lambda: old.begin(PAY),
            lambda: old.finish(attempt, {"result": 1}),
        ]
        for write in late:
            with pytest.raises(StaleSessionError, match="session 's' was taken"):
                await write()
        await old.release("done")  # of what is not his any more
        await service.append_event(heirs, said("heir's"))
        assert [event.text for event in (await read(service)).events][1:] == ["heir's"]
        (still,) = await service.unfinished(session)
        assert (still.id, still.owner, still.is_alive) == ("run", "heir", True)

    run(use)


def test_a_lease_from_before_the_machine_was_restarted_has_run_out(run: Callable[[Use], Any], ticks: list[float]):
    async def use(service: Any) -> None:
        session = await service.create_session(**S)
        await service.claim(session, "run", owner="before")
        ticks[0] = 3.0  # counted anew
        await service.claim(await read(service), "run", owner="after")

    run(use)


def test_a_run_that_did_not_end_is_told_of_with_all_that_it_began(run: Callable[[Use], Any], ticks: list[float]):
    async def die(service: Any) -> None:
        session = await service.create_session(**S)
        lease = await service.claim(session, "done before", owner="me")
        await lease.release("done")
        lease = await service.claim(session, "run", owner="me", version="v1")
        looked = await lease.begin(Intent(run_id="run", call_id="c0", name="look", effect="pure"))
        assert looked
        await lease.finish(looked, {"result": [1, None]})
        await lease.finish(looked, {"result": "another"})
        assert await lease.begin(PAY)

    async def go_on(service: Any) -> None:
        session = await read(service)
        (remaining_run,) = await service.unfinished(session)
        assert (remaining_run.id, remaining_run.version, remaining_run.owner, remaining_run.is_alive) == (
            "run",
            "v1",
            "me",
            True,
        )
        ticks[0] += LEASE_SECONDS + 1
        (remaining_run,) = await service.unfinished(session)
        assert not remaining_run.is_alive
        lines = [
            (attempt.intent.name, attempt.intent.effect, attempt.number, attempt.outcome)
            for attempt in remaining_run.attempts
        ]
        assert lines == [("look", "pure", 1, {"result": [1, None]}), ("pay", "once", 1, None)]
        assert [attempt.finished is None for attempt in remaining_run.attempts] == [False, True]
        assert remaining_run.attempts[1].intent == PAY

        lease = await service.claim(session, "run", owner="heir", version="v2")
        repeated_attempt = await lease.begin(PAY)
        assert repeated_attempt and (repeated_attempt.number, repeated_attempt.intent.key) == (
            2,
            remaining_run.attempts[1].intent.key,
        )
        (remaining_run,) = await service.unfinished(session)
        assert (remaining_run.version, remaining_run.owner, [attempt.number for attempt in remaining_run.attempts]) == (
            "v1",
            "heir",
            [1, 1, 2],
        )
        await lease.release()  # it pauses
        assert [item.is_alive for item in await service.unfinished(session)] == [False]
        lease = await service.claim(session, "run", owner="heir")
        await lease.release("done")
        assert await service.unfinished(session) == []
        await service.delete_session(**S)
        assert await service.unfinished(session) == []

    run(die)
    run(go_on)


@pytest.fixture(scope="module")
def ended() -> str:
    """The owner of what a process began that has ended since."""
    process = multiprocessing.get_context("spawn").Process()
    process.start()
    process.join(30)
    return this_process().replace(f"process {os.getpid()} ", f"process {process.pid} ")


def test_a_process_of_this_machine_that_has_ended_is_gone(ended: str):
    labelled, _, numbers = ended.partition(" (")
    container = f"{labelled} (00000000)"
    assert is_gone(ended) and is_gone(labelled)
    assert is_gone(ended, strict=True) == bool(numbers) and not is_gone(labelled, strict=True)
    for second in (this_process(), container, labelled.replace(platform.node(), "another-machine"), "kernel 1", ""):
        assert not is_gone(second)


def test_a_system_without_signals_knows_the_processes_that_have_ended_too(ended: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(journal, "os", SimpleNamespace(name="nt", getpid=os.getpid))
    labelled = ended.partition(" (")[0]
    assert is_gone(labelled)
    assert not is_gone(labelled, strict=True)
    assert not is_gone(f"process {os.getpid()} on {platform.node()}")
    assert not is_gone(f"process {2**80} on {platform.node()}")


def test_a_session_that_an_ended_process_of_this_machine_holds_is_taken_at_once(run: Callable[[Use], Any], ended: str):
    async def use(service: Any) -> None:
        session = await service.create_session(**S)
        await service.claim(session, "run", owner=f"{ended.partition(' (')[0]} (00000000)")
        with pytest.raises(SessionBusyError, match="in use by process"):  # of another container: nobody can tell
            await service.claim(await read(service), "mine", owner=this_process())
        await session.lease.release("done")

        first = await service.claim(session, "run", owner=ended)
        heir = await read(service)
        lease = await service.claim(heir, "mine", owner=this_process())
        assert lease.fence > first.fence
        with pytest.raises(StaleSessionError, match=r"taken over by process \d+ "):
            await service.append_event(session, said("late"))

    run(use)


def test_who_comes_after_a_run_that_was_cut_knows_of_it_and_can_drop_it(run: Callable[[Use], Any], ended: str):
    async def use(service: Any) -> None:
        session = await service.create_session(**S)
        first = await service.claim(session, "first", owner=ended)
        await first.begin(PAY)
        heir = await service.claim(await read(service), "second", owner="me")
        assert not first.is_heir and heir.is_heir
        await heir.drop("first")
        await heir.drop("never was")
        assert [item.id for item in await service.unfinished(session)] == ["second"]
        assert [attempt.finished for attempt in await heir.attempts("run")] == [None]  # it stays marked
        await heir.release()  # nobody knows how far it came
        third = await service.claim(session, "third", owner="me")
        assert third.is_heir
        with pytest.raises(StaleSessionError):
            await heir.drop("second")
        await third.release("failed")
        fourth = await service.claim(session, "fourth", owner="me")
        assert fourth.is_heir  # what was cut has no end yet
        await fourth.drop("second")
        await fourth.release("done")
        assert not (await service.claim(session, "fifth", owner="me")).is_heir

    run(use)


def test_nothing_of_the_journal_is_in_the_history(run: Callable[[Use], Any]):
    async def use(service: Any) -> None:
        session = await service.create_session(**S)
        lease = await service.claim(session, "run", owner="me")
        assert await lease.begin(PAY)
        assert await service.is_current(session)
        stored = await read(service)
        assert (stored.events, stored.lease, session.model_dump()) == ([], None, stored.model_dump())

    run(use)


def test_an_intent_and_what_allows_it_are_written_together_or_not_at_all(run: Callable[[Use], Any]):
    async def use(service: Any) -> None:
        session = await service.create_session(**S)
        lease = await service.claim(session, "run", owner="me")
        results = await asyncio.gather(*(lease.begin(PAY, consumes=["approval:1"]) for _ in range(5)))
        assert [attempt and attempt.number for attempt in results] == [1, None, None, None, None]
        other_intent = Intent(run_id="run", call_id="c2", name="pay")
        assert await lease.begin(other_intent, consumes=["approval:2", "approval:1"]) is None
        assert await service.consume(session, "approval:2")  # it was not used up with the other
        assert not await service.consume(session, "approval:1")
        (remaining_run,) = await service.unfinished(session)
        assert [attempt.intent.call_id for attempt in remaining_run.attempts] == ["c1"]

    run(use)


def test_an_outcome_that_is_not_json_is_refused(run: Callable[[Use], Any]):
    async def use(service: Any) -> None:
        lease = await service.claim(await service.create_session(**S), "run", owner="me")
        attempt = await lease.begin(PAY)
        with pytest.raises(ConfigurationError, match="the outcome of pay cannot be a set"):
            await lease.finish(attempt, {1})

    run(use)


def test_a_key_is_the_same_at_every_attempt_and_for_nothing_else():
    rivals = [
        PAY,
        Intent(run_id="run2", branch="root", call_id="c1"),
        Intent(run_id="run", branch="root.a", call_id="c1"),
        Intent(run_id="run", branch="root", call_id="c2"),
        Intent(run_id="run", branch="root", call_id="c1", kind="wait"),
        Intent(run_id="run", branch="", call_id='root", "tool", "c1'),
    ]
    assert len({rival.key for rival in rivals}) == len(rivals)
    assert PAY.key == Intent(run_id="run", branch="root", call_id="c1", name="renamed").key
    assert PAY.key == "79518c20c8a59db2339d03d0a8d61306"  # kept in files: it must not change
    assert len({PAY.event_id(phase) for phase in ("result", "asked")} | {PAY.key}) == 3


def test_an_event_with_an_id_made_from_its_intent_is_taken_in_once_by_whoever_repeats_it(run: Callable[[Use], Any]):
    async def use(service: Any) -> None:
        session = await service.create_session(**S)
        for number in (1.0, 2.0):
            event = Event(id=PAY.event_id("result"), author="guide", message="paid", timestamp=number)
            await service.append_event(session, event)
        assert [event.text for event in (await read(service)).events] == ["paid"]

    run(use)


@pytest.mark.parametrize("run", ["sqlite"], indirect=True)
def test_a_damaged_row_of_the_journal_in_a_file_is_refused(tmp_path: Path, run: Callable[[Use], Any]):
    async def use(service: Any) -> None:
        lease = await service.claim(await service.create_session(**S), "run", owner="me")
        await lease.begin(PAY)

    async def look(service: Any) -> None:
        await service.unfinished(await read(service))

    run(use)
    for change in ("leases SET fence = 0", "runs SET version = 'x'", "intents SET effect = 'pure'"):
        with closing(sqlite3.connect(tmp_path / "nb.db", isolation_level=None)) as db:
            db.execute("BEGIN")
            earlier_fetchone = db.execute(f"SELECT * FROM {change.split()[0]}").fetchone()
            db.execute(f"UPDATE {change}")
            db.execute("COMMIT")
            with pytest.raises(StorageError, match=f"a row of {change.split()[0]} was altered"):
                run(look)
            marks = ", ".join("?" * len(earlier_fetchone))
            db.execute(f"REPLACE INTO {change.split()[0]} VALUES ({marks})", earlier_fetchone)
    run(look)


def test_of_two_processes_one_gets_the_session_and_a_stopped_owner_is_fenced_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, real = tmp_path / "nb.db", clock.ticks
    spawn = multiprocessing.get_context("spawn")
    own, foreign = spawn.Pipe()
    other_process = spawn.Process(target=claim_and_append, args=(path, foreign))

    async def take_over() -> list[str]:
        service = SqliteSessionService(path)
        session = await read(service)
        with pytest.raises(SessionBusyError, match=f"in use by process {other_process.pid} on "):
            await service.claim(session, "run", owner=this_process())
        assert other_process.pid
        os.kill(other_process.pid, signal.SIGSTOP)
        monkeypatch.setattr(clock, "ticks", lambda: real() + LEASE_SECONDS)  # it stands still for that long
        lease = await service.claim(session, "run", owner=this_process())
        await service.append_event(session, said("heir's"))
        os.kill(other_process.pid, signal.SIGCONT)
        own.send("go on")
        assert own.poll(30) and own.recv() == "StaleSessionError"
        await lease.release("done")
        stored = await read(service)
        await service.close()
        return [event.text for event in stored.events]

    other_process.start()
    try:
        assert own.poll(60) and own.recv() == "claimed"
        assert asyncio.run(take_over()) == ["theirs", "heir's"]
    finally:
        other_process.kill()
        other_process.join(30)
        own.close()
