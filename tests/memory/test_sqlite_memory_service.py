"""Memories in a file: they outlive the service, several processes share them, and a file that fails says so."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from adk_nb import types
from adk_nb.errors import InputError, StorageError
from adk_nb.events import Event
from adk_nb.memory import SqliteMemoryService
from adk_nb.sessions import Session

U = {"app_name": "app", "user_id": "u"}


def event(text: str, key: str | None = None) -> Event:
    return Event(id=key or text, author="user", content=types.Content(role="user", parts=[types.Part(text=text)]))


def add(service: SqliteMemoryService, *texts: str) -> None:
    asyncio.run(service.add_events_to_memory(**U, events=[event(text) for text in texts]))


def found(service: SqliteMemoryService, query: str) -> list[str]:
    return [one.text for one in asyncio.run(service.search_memory(**U, query=query)).memories]


def test_another_service_on_the_same_file_finds_what_is_there(tmp_path: Path):
    add(SqliteMemoryService(tmp_path / "m.db"), "a cat", "eine Katze für dich")

    other = SqliteMemoryService(db_path=str(tmp_path / "m.db"))

    assert found(other, "cat") == ["a cat"] and found(other, "für") == ["eine Katze für dich"]


def test_looking_for_something_makes_no_file(tmp_path: Path):
    service = SqliteMemoryService(tmp_path / "m.db")

    assert found(service, "cat") == [] and list(tmp_path.iterdir()) == []


def test_a_database_that_is_used_for_other_things_too_keeps_both(tmp_path: Path):
    with sqlite3.connect(tmp_path / "m.db") as db:
        db.execute("create table deleted (x)")
        db.execute("pragma user_version = 7")
    db.close()
    service = SqliteMemoryService(tmp_path / "m.db")
    assert found(service, "cat") == []

    add(service, "a cat")

    assert found(service, "cat") == ["a cat"]
    db = sqlite3.connect(tmp_path / "m.db")
    assert db.execute("select count(*) from deleted").fetchone() == (0,)
    assert db.execute("pragma user_version").fetchone() == (7,)
    db.close()


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path):
    code = (
        "import asyncio, sys\n"
        "from adk_nb import types\n"
        "from adk_nb.memory import MemoryEntry, SqliteMemoryService\n"
        "async def main():\n"
        "    service = SqliteMemoryService(sys.argv[1])\n"
        "    for turn in range(5):\n"
        "        content = types.Content(role='user', parts=[types.Part(text=f'{sys.argv[2]} {turn}')])\n"
        "        await service.add_memory(app_name='app', user_id='u', memories=[MemoryEntry(content=content)])\n"
        "asyncio.run(main())\n"
    )
    asked = [sys.executable, "-c", code, str(tmp_path / "m.db")]
    running = [subprocess.Popen([*asked, who]) for who in ("one", "two")]

    assert [one.wait(60) for one in running] == [0, 0]
    service = SqliteMemoryService(tmp_path / "m.db")
    assert found(service, "one") == [f"one {turn}" for turn in range(5)]
    assert found(service, "two") == [f"two {turn}" for turn in range(5)]


def test_the_index_holds_no_more_than_the_memories(tmp_path: Path):
    service = SqliteMemoryService(tmp_path / "m.db")
    for text in ("one cat", "two cats", "no pets"):
        session = Session(id="s", app_name="app", user_id="u", events=[event(text, key="e"), event("old " + text)])
        asyncio.run(service.add_session_to_memory(session))
    asyncio.run(service.delete_memory(**U, memory_id="e"))

    db = sqlite3.connect(tmp_path / "m.db")
    assert [words for (words,) in db.execute("select words from memory_words")] == ["1_old 1_no 1_pets"]
    assert db.execute("select count(*) from memories").fetchone() == (1,)
    db.close()


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_what_is_no_file_is_refused(path: str):
    with pytest.raises(InputError, match="use InMemoryMemoryService"):
        SqliteMemoryService(path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path):
    (tmp_path / "m.db").write_text("hello, this is a text file, and quite a long one at that, " * 20)
    service = SqliteMemoryService(tmp_path / "m.db")

    for use in (add, found):
        with pytest.raises(StorageError, match=r"m\.db' .*not a database"):
            use(service, "cat")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match=r"m\.db' cannot be used"):
        add(SqliteMemoryService(tmp_path / "file" / "m.db"), "cat")


def test_a_change_that_fails_half_way_is_not_there_at_all(tmp_path: Path):
    service = SqliteMemoryService(tmp_path / "m.db")
    add(service, "first cat")
    db = sqlite3.connect(tmp_path / "m.db")
    db.execute(
        "create trigger full before insert on memories when new.id = 'third cat' begin select raise(abort, 'full'); end"
    )
    db.commit()
    db.close()

    with pytest.raises(StorageError, match="full"):
        add(service, "second cat", "third cat")

    assert found(service, "cat") == ["first cat"]


def test_tables_of_a_later_version_are_left_alone(tmp_path: Path):
    service = SqliteMemoryService(tmp_path / "m.db")
    add(service, "a cat")
    db = sqlite3.connect(tmp_path / "m.db")
    db.execute("update memory_schema set version = 2")
    db.commit()
    db.close()

    for use in (add, found):
        with pytest.raises(StorageError, match=r"version 2.*adk_nb reads 1"):
            use(service, "cat")


def test_a_user_whose_name_no_file_can_hold_is_refused(tmp_path: Path):
    service = SqliteMemoryService(tmp_path / "m.db")

    with pytest.raises(InputError, match=r"user_id '\\ud800' cannot.*UTF-8"):
        asyncio.run(service.search_memory(app_name="app", user_id="\ud800", query="cat"))
    with pytest.raises(InputError, match="app_name"):
        asyncio.run(service.delete_memory(app_name="\ud800", user_id="u", memory_id="m"))


def test_a_search_reads_only_what_is_the_users(tmp_path: Path):
    service = SqliteMemoryService(tmp_path / "m.db")
    asyncio.run(
        service.add_events_to_memory(app_name="app", user_id="v", events=[event(f"cat {n}") for n in range(3_000)])
    )
    add(service, "my cat")
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connect = sqlite3.connect

    def counting(*given: object, **more: object) -> sqlite3.Connection:
        db = connect(*given, **more)
        db.set_progress_handler(count, 100)
        return db

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite3, "connect", counting)
        assert found(service, "cat") == ["my cat"]

    assert steps < 30  # of 100 instructions each; to look at 3,000 rows takes more than 300
