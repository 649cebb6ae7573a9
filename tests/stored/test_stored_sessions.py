"""Sessions that an earlier version left paused are read, and their runs go on."""

import asyncio
import json
import shutil
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from adk_nb import clock, sync
from adk_nb.errors import InputError
from adk_nb.events import Event
from adk_nb.runners import Runner
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import History, open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, INPUTS
from adk_nb.sessions import (
    BaseSessionService,
    DatabaseSessionService,
    InMemorySessionService,
    Session,
    SqliteSessionService,
    session_file,
)
from tests.stored import every_table, paused
from tests.support.shop import part_of

WRITTEN = 1795443930.0
"""When the files were written; approvals count for some days."""
SAME_TOOLS = sys.version_info[:2] == (3, 11)
"""Python 3.11 wrote the files. An approval holds for a tool's bytecode, which differs in other versions of Python."""


@pytest.fixture(autouse=True)
def soon_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: WRITTEN + 3600)
    paused.PAID.clear()
    paused.READ.clear()


def store(kind: str, tmp_path: Path) -> BaseSessionService:
    """The stored sessions, as a file of SQLite or loaded from the exported ones."""
    if kind == "sqlite":
        shutil.copy(paused.FOLDER / "paused.db", tmp_path / "paused.db")
        return SqliteSessionService(tmp_path / "paused.db")
    service = InMemorySessionService()
    for name in [*paused.PAUSES, "reused"]:
        loaded = session_file.read(paused.FOLDER / f"{name}.json")
        sync.run(loaded.put(service, app_name="app", user_id="u", session_id=name))
    return service


def stored(service: BaseSessionService, name: str) -> Session:
    async def get() -> Any:
        return await service.get_session(app_name="app", user_id="u", session_id=name)

    return sync.run(get())


def say(service: BaseSessionService, agent: Any, name: str, message: Any) -> list[Event]:
    async def run() -> list[Event]:
        runner = Runner(app_name="app", agent=agent, session_service=service)
        turn = runner.run_async(user_id="u", session_id=name, new_message=message)
        async with runner, aclosing(turn) as events:
            return [event async for event in events]

    return sync.run(run())


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("approval", lambda: paused.approval("Paid.")),
        ("team", lambda: paused.team("Paid.", inside=("Booked.",))),
    ],
)
def test_a_run_resumes_after_an_approval(name: str, agent: Any, tmp_path: Path):
    service = store("sqlite", tmp_path)
    [asked] = open_interrupts(stored(service, name).events, APPROVALS)

    events = say(service, agent(), name, [part_of(asked.id, {"confirmed": True})])

    assert [5] * SAME_TOOLS == paused.PAID and events[-1].text == "Paid."


def test_a_graph_resumes_after_an_approval(tmp_path: Path):
    service = store("sqlite", tmp_path)
    [asked] = open_interrupts(stored(service, "graph").events, INPUTS)

    events = say(service, paused.graph(), "graph", [interrupts.answer(asked, {"confirmed": True})])
    if not SAME_TOOLS:
        assert paused.PAID == []
        [asked] = open_interrupts(stored(service, "graph").events, INPUTS)
        events = say(service, paused.graph(), "graph", [interrupts.answer(asked, {"confirmed": True})])

    assert paused.PAID == [5] and events[-1].output == "paid"


def test_a_run_resumes_after_a_credential(tmp_path: Path):
    service = store("sqlite", tmp_path)
    [asked] = open_interrupts(stored(service, "credential").events, CREDENTIALS)

    answer = interrupts.answer(asked, {"apiKey": "a-persons-key"})
    events = say(service, paused.credential("Read."), "credential", [answer])

    assert paused.READ == ["a-persons-key"] and events[-1].text == "Read."


@pytest.mark.parametrize("kind", ["sqlite", "file"])
def test_a_run_resumes_after_an_answer(kind: str, tmp_path: Path):
    service = store(kind, tmp_path)
    [asked] = open_interrupts(stored(service, "question").events, INPUTS)

    events = say(service, paused.question("Hello, Ada."), "question", [interrupts.answer(asked, "Ada")])

    assert events[-1].text == "Hello, Ada."


def test_two_calls_that_are_open_under_one_id_are_answered_by_their_requests(tmp_path: Path):
    service = store("sqlite", tmp_path)
    first, second = open_interrupts(stored(service, "reused").events, APPROVALS)
    assert first.call.id == second.call.id

    with pytest.raises(InputError, match="not open"):
        say(service, paused.approval("Paid."), "reused", [part_of(first.call.id, {"confirmed": True})])
    say(service, paused.approval("Paid."), "reused", [part_of(first.id, {"confirmed": True})])

    assert [5] * SAME_TOOLS == paused.PAID
    assert [one.id for one in open_interrupts(stored(service, "reused").events, APPROVALS)] == [second.id]
    say(service, paused.approval("Paid."), "reused", [part_of(second.id, {"confirmed": True})])
    assert [5, 9000] * SAME_TOOLS == paused.PAID


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("approval", lambda: paused.approval(paused.numbered("pay", amount=5), "Paid.")),
        ("reused", lambda: paused.reused(paused.numbered("pay", amount=5), "Paid.")),
        (
            "team",
            lambda: paused.team(
                paused.numbered("books", request="book"), "Paid.", inside=(paused.numbered("pay", amount=5), "Booked.")
            ),
        ),
    ],
)
def test_an_approval_that_was_open_in_a_file_is_asked_for_again(name: str, agent: Any, tmp_path: Path):
    service, who = store("file", tmp_path), agent()
    session = stored(service, name)
    assert not open_interrupts(session.events, APPROVALS) and not list(History(session.events).calls.open())

    say(service, who, name, "Pay it now")
    [asked] = open_interrupts(stored(service, name).events, APPROVALS)
    assert paused.PAID == []
    events = say(service, who, name, [part_of(asked.id, {"confirmed": True})])

    assert paused.PAID == [5] and events[-1].text == "Paid."


def test_a_credential_request_that_was_open_in_a_file_is_asked_for_again(tmp_path: Path):
    service = store("file", tmp_path)
    assert open_interrupts(stored(service, "credential").events, CREDENTIALS) == []

    agent = paused.credential(paused.numbered("mail"), "Read.")
    say(service, agent, "credential", "Read it now")
    [asked] = open_interrupts(stored(service, "credential").events, CREDENTIALS)
    events = say(service, agent, "credential", [interrupts.answer(asked, {"apiKey": "a-persons-key"})])

    assert paused.READ == ["a-persons-key"] and events[-1].text == "Read."


def test_a_graph_that_waited_for_approval_in_a_file_asks_for_it_again(tmp_path: Path):
    service = store("file", tmp_path)
    assert open_interrupts(stored(service, "graph").events, INPUTS) == []

    say(service, paused.graph(), "graph", "Please begin")
    [asked] = open_interrupts(stored(service, "graph").events, INPUTS)
    events = say(service, paused.graph(), "graph", [interrupts.answer(asked, {"confirmed": True})])

    assert paused.PAID == [5] and events[-1].output == "paid"


@pytest.mark.parametrize("kind", ["every_table.db", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_every_table_of_an_earlier_version_is_read_equal_and_written_on(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
):
    def made() -> Any:
        if kind == "postgres":
            return DatabaseSessionService(request.getfixturevalue("postgres").url())
        return DatabaseSessionService(f"sqlite:///{tmp_path}/{kind}")

    async def go_on() -> None:
        service = made()
        assert await every_table.look(service) == json.loads((every_table.FOLDER / "every_table.json").read_text())
        session = await service.get_session(**every_table.WHERE)
        for key, is_new in (("yes", False), ("y" * 300, False), ("z" * 300, True)):
            assert await service.consume(session, key) is is_new
        assert await service.append_event(session, session.events[0].model_copy())  # it is there already
        lease = await service.claim(session, "cut", owner="me", version="another")
        assert (lease.fence, lease.is_heir) == (3, True)
        third = await lease.begin(every_table.PAY)
        assert third and third.number == 3
        await lease.finish(third, ["paid"])
        await service.append_event(session, Event(author="user", message="on", actions={"state_delta": {"user:n": 3}}))
        await lease.release("done")
        found = await service.get_session(**every_table.WHERE)
        assert found == session and len(found.events) == 3 and found.state["user:n"] == 3
        assert await service.is_current(found) and await service.unfinished(found) == []
        await service.close()

    if kind == "postgres":
        request.getfixturevalue("postgres").sql(
            *(every_table.FOLDER / "every_table_postgres.sql").read_text().split(";\n")
        )
    else:
        shutil.copy(every_table.FOLDER / kind, tmp_path)
    asyncio.run(go_on())
