"""Sessions in one SQLite file: what outlives a process, who waits for whom, and which files are refused."""

import asyncio
import gc
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.errors import AlreadyExistsError, ConfigurationError, InputError, StaleSessionError, StorageError
from adk_nb.events import Event, EventActions
from adk_nb.events.event import NodeInfo
from adk_nb.models import ScriptedLlm
from adk_nb.runners import Runner
from adk_nb.sessions import GetSessionConfig, Session, SqliteSessionService
from adk_nb.sessions.sql import schema, sqlite_file
from tests.sessions.writer import append, append_in_a_process

S = {"app_name": "app", "user_id": "u", "session_id": "s"}
Use = Callable[[SqliteSessionService], Awaitable[Any]]


def said(text: str, at: float = 1.0, **delta: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author="user", content=content, timestamp=at, actions=EventActions(state_delta=delta))


def using(path: Path | str, use: Use, **options: Any) -> Any:
    """What `use` gives, with a service that is made for it and closed after."""

    async def run() -> Any:
        service = SqliteSessionService(path, **options)
        try:
            return await use(service)
        finally:
            await service.close()

    return asyncio.run(run())


def log_size(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


async def read(service: SqliteSessionService, session_id: str = "s", **config: Any) -> Session:
    limits = GetSessionConfig(**config) if config else None
    session = await service.get_session(app_name="app", user_id="u", session_id=session_id, config=limits)
    assert session
    return session


def texts(session: Session) -> list[str]:
    return [event.text for event in session.events]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nb.db"


def test_what_was_appended_is_there_in_the_next_process(path: Path):
    call = types.Part(function_call=types.FunctionCall(id="c", name="look", args={"at": [1, 2.5, None, "é\0"]}))
    picture = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x00\xff\x10"))
    rich = Event(
        author="guide",
        invocation_id="e-1",
        branch="a.b",
        content=types.Content(role="model", parts=[call, picture]),
        long_running_tool_ids={"b", "a"},
        output={"deep": [[{"k": 10**30}]]},
        actions=EventActions(state_delta={"k": [1, {"x": None}], "user:n": -0.0, "app:m": "\u202e"}),
    )

    rivals = [
        said("plain words", **{"k2": {}}),
        Event(author="guide", node_path="graph/ask@1", output={}),
        Event(author="guide", node_info=NodeInfo(message_as_output=True), message="words that are an output"),
        Event(author="guide", actions=EventActions(agent_state={}, end_of_agent=False, route=["a", 1])),
        Event(author="guide", message=[types.Part(text="thought", thought=True), types.Part(text="words")]),
        Event(author="guide", message=types.Content(parts=[types.Part(text="no role")]), branch="a"),
        Event(author="guide", message=types.Content(role="model", parts=[]), usage_metadata={"total_token_count": 3}),
        Event(author="guide", message=[types.Part(text="signed", thought_signature=b"\xff\x00")]),
        Event(author="guide", message=[types.Part(text="")], finish_reason="STOP", interrupted=False),
    ]

    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S, state={"first": 1})
        for event in [rich, *rivals]:
            await service.append_event(session, event)
        return session

    session = using(path, write)
    repeated_session = using(path, read)

    assert repeated_session == session
    assert repeated_session.state == {"first": 1, "k": [1, {"x": None}], "user:n": -0.0, "app:m": "\u202e", "k2": {}}
    assert repeated_session.events == [rich, *rivals]
    assert [event.model_dump_json() for event in repeated_session.events] == [
        event.model_dump_json() for event in session.events
    ]


def test_order_is_the_order_of_appending_whatever_the_clock_says(path: Path):
    async def write(service: SqliteSessionService) -> None:
        session = await service.create_session(**S)
        for number, index in enumerate([9.0, -1.0, 9.0, 0.0, 5.0]):
            await service.append_event(session, said(str(number), index))

    using(path, write)

    assert texts(using(path, read)) == ["0", "1", "2", "3", "4"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT seq FROM events ORDER BY rowid").fetchall() == [(1,), (2,), (3,), (4,), (5,)]


def test_events_of_one_copy_that_are_appended_at_once_stand_in_the_order_of_the_calls(path: Path):
    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        await asyncio.gather(*(service.append_event(session, said(str(n), **{f"k{n}": n})) for n in range(40)))
        assert await service.is_current(session)
        return session

    session = using(path, write)

    assert texts(session) == [str(n) for n in range(40)]
    assert using(path, read) == session


def test_a_page_is_read_without_the_rest(path: Path):
    async def write(service: SqliteSessionService) -> None:
        session = await service.create_session(**S)
        for number in range(30):
            await service.append_event(session, said(str(number), at=float(number)))
        page = await read(service, num_recent_events=3)
        assert texts(page) == ["27", "28", "29"] and not await service.is_current(page)
        await service.append_event(page, said("30"))  # a page is as new as the whole
        with pytest.raises(StaleSessionError):
            await service.append_event(session, said("31"))

    using(path, write)


def test_what_is_done_again_is_taken_in_once_and_another_event_of_its_id_is_refused(path: Path):
    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        once = said("once", at=1.0, n=1)
        await service.append_event(session, once)
        later = once.model_copy(update={"timestamp": 2.0})
        assert await service.append_event(session, later) is later
        with pytest.raises(AlreadyExistsError, match=f"session 's' .*another event .* '{once.id}'"):
            await service.append_event(session, said("twice").model_copy(update={"id": once.id}))
        return session

    assert texts(using(path, write)) == ["once"] == texts(using(path, read))


def test_what_json_cannot_hold_is_refused_with_its_place_and_nothing_is_kept(path: Path):
    call = types.FunctionCall(name="look", args={"at": {"x": float("nan")}})
    odd: list[tuple[Event, str]] = [
        (Event(author="a", output=float("inf")), "output holds the number inf"),
        (Event(author="a", output=(1, 2)), "output holds a tuple"),
        (Event(author="a", custom_metadata={"k": {1: 2}}), "custom_metadata holds a dict with the key 1"),
        (Event(author="a", message=types.Content(parts=[types.Part(function_call=call)])), "arguments of 'look' holds"),
        (said("half \ud800"), "surrogates not allowed"),
        (said("when", at=float("nan")), "its timestamp is nan"),
    ]

    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        for event, text in odd:
            with pytest.raises(InputError, match=text):
                await service.append_event(session, event)
        return session

    assert using(path, write).events == using(path, read).events == []


def test_another_service_on_the_file_is_noticed(path: Path):
    async def write(mine: SqliteSessionService) -> None:
        other_service = SqliteSessionService(path)
        session = await mine.create_session(**S)
        other_text = await read(other_service)
        assert await mine.is_current(session) and await other_service.is_current(other_text)

        await other_service.append_event(other_text, said("theirs"))
        assert not await mine.is_current(session) and await other_service.is_current(other_text)
        with pytest.raises(StaleSessionError, match="it has 1 events, this copy 0"):
            await mine.append_event(session, said("mine"))
        assert session.events == []

        await mine.delete_session(**S)
        await other_service.create_session(**S)
        with pytest.raises(StaleSessionError):
            await other_service.append_event(other_text, said("to the session of that id that was"))
        await other_service.close()

    using(path, write)


def test_a_runner_reads_a_session_only_once(path: Path):
    class Counting(SqliteSessionService):
        reads = 0

        async def get_session(self, **kwargs: Any) -> Session | None:
            self.reads += 1
            return await super().get_session(**kwargs)

    service = Counting(path)
    agent = LlmAgent(name="guide", model=ScriptedLlm("one", "two", "three"), output_key="last")
    runner = Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True)
    messages = [event.text for _ in range(3) for event in runner.run(user_id="u", session_id="s", new_message="hi")]

    async def look() -> Session:
        stored = await read(service)
        await service.close()
        return stored

    reads = service.reads
    stored = asyncio.run(look())
    assert (messages, reads) == (["one", "two", "three"], 1)
    assert texts(stored) == ["hi", "one", "hi", "two", "hi", "three"] and stored.state == {"last": "three"}


def test_several_processes_write_to_one_file_and_nothing_is_lost(path: Path):
    names, count = ["a", "b", "c"], 15
    using(path, lambda service: service.create_session(**(S | {"session_id": "shared"})))
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=append_in_a_process, args=(path, name, count)) for name in names[1:]]
    for process in processes:
        process.start()
    using(path, lambda service: append(service, "a", count))
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0, 0]
    for name in names:
        assert texts(using(path, lambda service, name=name: read(service, name))) == [str(n) for n in range(count)]
    shared = texts(using(path, lambda service: read(service, "shared")))
    assert len(shared) == len(names) * count
    for name in names:
        assert [text for text in shared if text[0] == name] == [f"{name}{n}" for n in range(count)]


def test_a_new_file_may_be_made_by_several_at_once(tmp_path: Path):
    start = threading.Barrier(8)

    async def make(service: SqliteSessionService) -> None:
        start.wait()
        await service.flush()

    with ThreadPoolExecutor(8) as threads:
        for number in range(30):
            list(threads.map(lambda path: using(path, make), [tmp_path / f"{number}.db"] * 8))


def test_a_killed_process_loses_nothing_that_it_was_told_is_stored(path: Path):
    child = subprocess.Popen([sys.executable, "-m", "tests.sessions.writer", path, "normal"], stdout=subprocess.PIPE)
    assert child.stdout
    readlines = [child.stdout.readline() for _ in range(40)]
    child.kill()  # in the middle of what it writes: five sessions at once
    readlines += child.stdout.read().splitlines(keepends=True)
    child.wait(30)
    child.stdout.close()
    acknowledged = [line.decode().split() for line in readlines if line.endswith(b"\n")]

    for name in "abcde":
        stored = using(path, lambda service, name=name: read(service, name))
        last = max(int(number) for session, number in acknowledged if session == name)
        assert texts(stored) == [str(n) for n in range(len(stored.events))]
        assert last < len(stored.events) <= last + 2  # one more may be stored that nobody was told of
        assert stored.state == {"n": len(stored.events) - 1}


def test_a_locked_file_is_waited_for_and_the_loop_goes_on(path: Path):
    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        with closing(sqlite3.connect(path, isolation_level=None)) as other_closing:
            other_closing.execute("BEGIN EXCLUSIVE")
            appending = asyncio.ensure_future(service.append_event(session, said("a")))
            text = await read(service)  # who only reads need not wait
            assert await service.is_current(session) and text.events == [] and not appending.done()
            other_closing.execute("COMMIT")
        await asyncio.wait_for(appending, 30)
        return session

    assert texts(using(path, write)) == ["a"]


def test_nobody_overtakes_who_waited_for_a_locked_file(path: Path):
    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        await service.append_event(session, said("before"))
        with closing(sqlite3.connect(path, isolation_level=None)) as other_closing:
            other_closing.execute("BEGIN EXCLUSIVE")
            first = asyncio.ensure_future(service.append_event(session, said("first")))
            await read(service)
            other_closing.execute("COMMIT")
        await service.append_event(session, said("second"))
        await first
        return session

    assert texts(using(path, write)) == ["before", "first", "second"] == texts(using(path, read))


@pytest.mark.parametrize(("count", "length"), [(1600, 200), (150, 100_000)])
def test_what_was_appended_does_not_pile_up_beside_the_file(path: Path, count: int, length: int):
    async def write(service: SqliteSessionService) -> list[int]:
        session = await service.create_session(**S)
        sizes: list[int] = []
        for number in range(count):
            await service.append_event(session, said(f"{number} " * (length // 4)))
            sizes.append(beside())
        return sizes

    beside = partial(os.path.getsize, f"{path}-wal")
    assert max(using(path, write)) < 7_000_000  # it would be twice to four times that


def test_who_appends_again_and_again_lets_others_have_the_loop(path: Path):
    async def write(service: SqliteSessionService) -> int:
        session, turns = await service.create_session(**S), 0

        async def count() -> None:
            nonlocal turns
            while len(session.events) < 200:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.ensure_future(count())
        for number in range(200):
            await service.append_event(session, said(str(number)))
        await counting
        return turns

    assert using(path, write) >= 10


def test_a_copy_of_a_service_in_a_forked_process_is_refused(path: Path):
    script = f"""
import asyncio, os
from adk_nb.errors import StorageError
from adk_nb.sessions import SqliteSessionService
service = SqliteSessionService({str(path)!r})
asyncio.run(service.flush())
if os.fork() == 0:
    try:
        asyncio.run(service.flush())
    except StorageError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert "in another process" in output.stdout, output.stderr


def test_a_file_that_stays_locked_is_told_of_once_and_nothing_is_half_done(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sqlite_file, "LOCKED_SECONDS", 0.1)

    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        event = said("a", **{"k": 1, "temp:t": 2})
        with closing(sqlite3.connect(path, isolation_level=None)) as other_closing:
            other_closing.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StorageError, match=r"nb.db \(schema version 4\) was locked"):
                await service.append_event(session, event)
            assert (session.events, session.state) == ([], {}) and await service.is_current(session)
            other_closing.execute("ROLLBACK")
        await service.append_event(session, event)
        return session

    assert using(path, write).state == {"k": 1, "temp:t": 2}
    assert using(path, read).state == {"k": 1}


def test_an_append_that_is_cancelled_before_it_began_leaves_nothing(path: Path):
    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        with closing(sqlite3.connect(path, isolation_level=None)) as other_closing:
            other_closing.execute("BEGIN EXCLUSIVE")
            appending = asyncio.ensure_future(service.append_event(session, said("never")))
            await read(service)
            appending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await appending
            other_closing.execute("ROLLBACK")
        await service.append_event(session, said("after"))
        return session

    assert texts(using(path, write)) == ["after"] == texts(using(path, read))


def test_a_cancelled_append_that_began_is_in_the_copy_as_in_the_store(path: Path):
    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        for number in range(30):
            appending = asyncio.ensure_future(service.append_event(session, said(str(number))))
            await asyncio.wait([appending], timeout=number / 10_000)  # from too early to too late
            appending.cancel()
            await asyncio.wait([appending])
        return session

    assert using(path, write) == using(path, read)


def test_a_full_disk_ends_in_one_error_and_what_was_kept_stays(path: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[sqlite3.Connection] = []

    open_file = sqlite_file.SessionFile.open

    def note(self: sqlite_file.SessionFile) -> sqlite3.Connection:
        opened.append(open_file(self))
        return opened[-1]

    monkeypatch.setattr(sqlite_file.SessionFile, "open", note)

    async def write(service: SqliteSessionService) -> Session:
        session = await service.create_session(**S)
        await service.append_event(session, said("kept", k=1))
        (pages,) = opened[0].execute("PRAGMA page_count").fetchone()
        for db in opened:
            db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite then says what it says of a full disk
        many = [said(f"{n} " * 5000, **{f"k{n}": n}) for n in range(3)]
        ended = await asyncio.gather(*(service.append_event(session, event) for event in many), return_exceptions=True)
        assert all(isinstance(error, StorageError) and "full" in str(error) for error in ended), ended
        assert texts(session) == ["kept"] and session.state == {"k": 1} and await service.is_current(session)
        for db in opened:
            db.execute("PRAGMA max_page_count = 100000")
        await service.append_event(session, said("after"))
        return session

    assert texts(using(path, write)) == ["kept", "after"] == texts(using(path, read))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            "UPDATE adk_internal_metadata SET value = '5'",
            "version 5, .* reads version 4; install the newer",
        ),
        (
            "UPDATE adk_internal_metadata SET value = '3'",
            "version 3, .* reads version 4; install the older",
        ),
        ("UPDATE adk_internal_metadata SET value = 'x'", "damaged: .* no schema version"),
        ("DROP TABLE runs", "damaged: its tables"),
        ("UPDATE events SET event_data = replace(event_data, 'hello', 'hullo')", "event 1 of session 's' was altered"),
        ("DELETE FROM events WHERE seq = 2", "event 2 of session 's' was altered"),
        ("DELETE FROM events WHERE seq = 3", "session 's' has 3 events, and event 3 is missing"),
        ("UPDATE sessions SET seq = 2", "row of session 's' .*altered"),
        ("UPDATE state_keys SET value = '2'", "state in row 1 of sessions"),
        ("DELETE FROM state_keys", "state in row 1 of sessions"),
        ("UPDATE app_states SET state = '{}'", "a row of app_states was altered"),
        ("PRAGMA application_id = 7", "damaged: its application id .* 7"),
    ],
)
def test_a_file_of_another_version_or_a_damaged_one_is_refused_by_its_name(path: Path, change: str, text: str):
    async def write(service: SqliteSessionService) -> None:
        session = await service.create_session(**S)
        for _ in range(3):
            await service.append_event(session, said("hello", **{"k": 1, "app:k": 1}))

    using(path, write)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(change)
    earlier_data = path.read_bytes()

    for _ in range(2):
        with pytest.raises(StorageError, match=text) as raised:
            using(path, read)
        assert str(path) in str(raised.value) and "version" in str(raised.value)
    assert path.read_bytes() == earlier_data


def test_a_file_of_another_program_is_refused_and_left_as_it_is(path: Path, tmp_path: Path):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TABLE sessions (app_name TEXT)")
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"no database at all " * 100)
    earlier_data = path.read_bytes()

    with pytest.raises(StorageError, match=r"unknown\) .* another program, .* tables: sessions;"):
        using(path, lambda service: service.flush())
    with pytest.raises(StorageError, match=r"noise.db .*damaged"):
        using(noise, lambda service: service.flush())
    with pytest.raises(StorageError, match="no folder"):
        using(tmp_path / "none" / "nb.db", lambda service: service.flush())
    with pytest.raises(StorageError, match="is a folder"):
        using(tmp_path, lambda service: service.flush())
    assert path.read_bytes() == earlier_data


def test_a_small_append_writes_little_beside_a_large_state(path: Path):
    async def write(service: SqliteSessionService) -> Session:
        return await service.create_session(**S, state={f"k{n}": "x" * 1_000 for n in range(2_000)})

    async def grow(service: SqliteSessionService) -> int:
        session = await read(service)
        earlier_log_size = log_size(path)
        await service.append_event(session, said("small", k5="y", new=1))
        return log_size(path) - earlier_log_size

    whole = using(path, write)
    assert 0 < using(path, grow) < 100_000
    assert using(path, read).state == whole.state | {"k5": "y", "new": 1}


def test_tables_that_cannot_all_be_created_leave_an_empty_file(path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patched:
        patched.setattr(schema, "SQLITE", [*schema.SQLITE, "no sql"])
        with pytest.raises(StorageError, match='near "no": syntax error'):
            using(path, lambda service: service.create_session(**S))

    assert using(path, lambda service: service.create_session(**S)).id == "s"


@pytest.mark.parametrize("wrong", ["", ":memory:", "sqlite:///", "postgresql://host/db", "a\0b"])
def test_what_names_no_file_is_refused(wrong: str):
    with pytest.raises(InputError, match="InMemorySessionService"):
        SqliteSessionService(wrong)


def test_options_that_open_another_database_are_refused():
    with pytest.raises(InputError, match=r"'sqlite:///nb.db' has the option 'mode', .*; leave it out"):
        SqliteSessionService("sqlite:///nb.db?mode=ro")


def test_options_of_a_url_that_mean_nothing_here_are_left_out_with_a_warning(path: Path):
    async def create(service: SqliteSessionService) -> None:
        await service.create_session(app_name="app", user_id="u", session_id="s")

    with pytest.warns(UserWarning, match="check_same_thread, timeout: no effect") as warned:
        using(f"sqlite:///{path}?check_same_thread=False&timeout=hunter2", create)

    assert using(path, read).id == "s" and "hunter2" not in str(warned[0].message)


def test_a_durability_that_is_none_is_refused(path: Path):
    with pytest.raises(ConfigurationError, match=r"durability .*'normal'.*'full'.*'async'"):
        SqliteSessionService(path, durability="async")


def test_a_closed_service_says_so_and_one_that_nothing_refers_to_closes_its_file(path: Path):
    async def close_twice() -> None:
        service = SqliteSessionService(path)
        await service.create_session(**S)
        await service.close()
        await service.close()
        with pytest.raises(StorageError, match="service is closed"):
            await service.get_session(**S)
        await SqliteSessionService(path).close()  # one that was never used

    async def forget() -> None:
        service = SqliteSessionService(path)
        await service.append_event(await read(service), said("hello"))

    asyncio.run(close_twice())
    asyncio.run(forget())
    gc.collect()
    assert texts(using(path, read)) == ["hello"]


def test_a_file_that_was_moved_away_takes_all_with_it_and_goes_on_once_it_is_back(path: Path):
    removed_with_name = path.with_name("gone.db")

    async def move(service: SqliteSessionService) -> None:
        session = await service.create_session(**S)
        await service.append_event(session, said("one"))
        os.rename(path, removed_with_name)
        for _ in range(2):
            with pytest.raises(StorageError, match=r"nb.db was moved"):
                await service.append_event(session, said("two"))
        with closing(sqlite3.connect(removed_with_name)) as db:
            assert db.execute("SELECT count(*) FROM events").fetchone() == (1,)

        os.rename(removed_with_name, path)
        await service.append_event(session, said("three"))

    using(path, move)
    assert texts(using(path, read)) == ["one", "three"]


def test_a_file_that_was_deleted_is_missed_and_so_is_one_that_was_replaced(path: Path):
    async def delete(service: SqliteSessionService) -> None:
        session = await service.create_session(**S)
        os.remove(path)
        with pytest.raises(StorageError, match=r"moved, deleted or replaced .*nothing was written"):
            await service.append_event(session, said("lost"))
        assert not await SqliteSessionService(path).get_session(**S)

    async def replace(service: SqliteSessionService) -> None:
        session = await service.create_session(**S)
        await service.append_event(session, said("replaced"))
        os.replace(copy, path)
        with pytest.raises(StorageError, match=r"moved, deleted"):
            await service.get_session(**S)

    copy = path.with_name("copy.db")
    using(copy, lambda service: service.create_session(**S))
    using(path, delete)
    using(path, replace)
    assert texts(using(path, read)) == []


def test_fields_of_a_newer_version_stay_in_the_file_and_are_read_past(path: Path):
    class NewerEvent(Event):
        mood: str = ""

    async def append_newer(service: SqliteSessionService) -> None:
        session = await service.create_session(**S)
        await service.append_event(session, NewerEvent(author="guide", mood="calm", message="hello"))

    async def append_older(service: SqliteSessionService) -> list[str]:
        session = await read(service)
        await service.append_event(session, said("and on"))
        return texts(await read(service))

    using(path, append_newer)

    assert using(path, append_older) == ["hello", "and on"]
    with closing(sqlite3.connect(path)) as db:
        stored = [json.loads(row[0]) for row in db.execute("SELECT event_data FROM events ORDER BY seq")]
    assert [event.get("mood") for event in stored] == ["calm", None]
