"""Sessions in PostgreSQL: what it gives back equal, who waits for whom, and which databases are refused."""

import asyncio
import gc
import multiprocessing
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from adk_nb import clock, redaction, types
from adk_nb.agents import LlmAgent
from adk_nb.errors import (
    AlreadyExistsError,
    ConfigurationError,
    InputError,
    MissingExtraError,
    StaleSessionError,
    StorageError,
)
from adk_nb.events import Event, EventActions
from adk_nb.models import ScriptedLlm
from adk_nb.runners import Runner
from adk_nb.sessions import DatabaseSessionService, GetSessionConfig, Session
from adk_nb.sessions.sql import postgres as driver
from adk_nb.sessions.sql import schema
from tests.sessions.database_writer import append_in_a_process
from tests.sessions.postgres import Postgres, running
from tests.support.late import late

psycopg = late("psycopg")

S = {"app_name": "app", "user_id": "u", "session_id": "s"}
Use = Callable[[DatabaseSessionService], Awaitable[Any]]


def said(text: str, at: float = 1.0, **delta: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author="user", content=content, timestamp=at, actions=EventActions(state_delta=delta))


def using(url: str, use: Use, **options: Any) -> Any:
    """What `use` gives, with a service that is made for it and closed after."""

    async def run() -> Any:
        service = DatabaseSessionService(url, **options)
        try:
            return await use(service)
        finally:
            await service.close()

    return asyncio.run(run())


async def read(service: DatabaseSessionService, session_id: str = "s", **config: Any) -> Session:
    limits = GetSessionConfig(**config) if config else None
    session = await service.get_session(app_name="app", user_id="u", session_id=session_id, config=limits)
    assert session
    return session


def texts(session: Session) -> list[str]:
    return [event.text for event in session.events]


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.url()


@pytest.mark.postgres
def test_what_jsonb_would_change_is_given_back_as_it_was(url: str, postgres: Postgres):
    odd = {
        "zulu": [1e23, -0.0, 1e16, 1e-07, 5e-324, 1.5, 10**400, 2**53 + 1],
        "a": {"long name": 1, "b": 2, "é": "\x00 \\u0000 \x7f\u202e</script>'; DROP TABLE events; --", "": None},
        "NUL \x00": "\x00",
    }
    call = types.Part(function_call=types.FunctionCall(id="c" * 10_000, name="look", args=odd))
    answer = types.Part(function_response=types.FunctionResponse(id="c", name="look", response=odd))
    rich = Event(author="guide", content=types.Content(role="model", parts=[call, answer]), output=odd)
    rich.actions = EventActions(
        state_delta=odd | {f"user:{name}": value for name, value in odd.items()} | {"app:a": odd}
    )
    plain = said("words", at=2.0, a=1, bb="x")

    async def write(service: DatabaseSessionService) -> Session:
        session = await service.create_session(**S, state=odd)
        for event in (rich, plain, said("\x00" + "x" * 1_000_000), said("", at=-5.0), said("", at=253402300800.0)):
            await service.append_event(session, event)
        return session

    session = using(url, write)
    repeated_session = using(url, read)

    assert repeated_session == session
    said_again, said_first = (
        [event.model_dump_json() for event in item.events] for item in (repeated_session, session)
    )
    assert said_again == said_first  # and so the order of keys, and 1e+23 no int
    assert repr(repeated_session.state["zulu"]) == repr(odd["zulu"])
    exact = postgres.sql("SELECT event_text IS NULL, jsonb_typeof(event_data) FROM events ORDER BY seq")
    assert exact == [(False, "object"), (True, "object"), (False, "object"), (True, "object"), (True, "object")]
    by_query = postgres.sql("SELECT event_data->'content'->'parts'->0->>'text' FROM events WHERE seq = 2")
    assert by_query == [("words",)]


@pytest.mark.postgres
def test_the_tables_are_those_that_others_read(postgres: Postgres):
    using(postgres.url(), lambda service: service.create_session(**S, state={"own": 1, "user:n": 2, "app:m": 3}))

    columns = postgres.sql(
        "SELECT table_name, column_name FROM information_schema.columns WHERE data_type = 'jsonb' ORDER BY 1"
    )
    assert columns == [
        ("app_states", "state"),
        ("events", "event_data"),
        ("sessions", "state"),
        ("user_states", "state"),
    ]
    for table, result in (("sessions", {"own": 1}), ("user_states", {"n": 2}), ("app_states", {"m": 3})):
        assert postgres.sql(f"SELECT state FROM {table}") == [(result,)]
    assert postgres.sql("SELECT * FROM adk_internal_metadata") == [("adk_nb_schema_version", "4")]


@pytest.mark.postgres
def test_a_name_that_no_key_column_holds_is_refused_by_its_name(postgres: Postgres):
    async def write(service: DatabaseSessionService) -> None:
        for text in ("app_name", "user_id", "session_id"):
            with pytest.raises(InputError, match=f"the {text} has 129 characters, .* 128; shorten"):
                await service.create_session(**(S | {text: "é" * 129}))
            with pytest.raises(InputError, match=f"the {text} .* has a control character"):
                await service.create_session(**(S | {text: "a\x00b"}))
            assert await service.get_session(**(S | {text: "a\x00b"})) is None
            await service.delete_session(**(S | {text: "é" * 129}))
        assert (await service.list_sessions(app_name="a\x00")).sessions == []
        assert await service.get_user_state(app_name="app", user_id="é" * 129) == {}
        longest = await service.create_session(app_name="é" * 128, user_id="é" * 128, session_id="é" * 128)
        with pytest.raises(InputError, match="event has 129 characters"):
            await service.append_event(longest, Event(author="a", id="x" * 129, actions={"state_delta": {"temp:t": 1}}))
        assert longest.events == []

    using(postgres.url(), write)


@pytest.mark.postgres
def test_another_version_and_anothers_tables_are_refused_and_left(postgres: Postgres):
    url = postgres.url()
    using(url, lambda service: service.create_session(**S, state={"k": 1}))
    for version, kind in (("5", "newer"), ("2", "older")):
        postgres.sql(f"UPDATE adk_internal_metadata SET value = '{version}'")
        with pytest.raises(StorageError, match=rf"version {version}, and this adk_nb reads version 4; .* the {kind}"):
            using(url, read)
        assert postgres.sql("SELECT value FROM adk_internal_metadata") == [(version,)]

    postgres.empty()
    postgres.sql("CREATE TABLE sessions (mine INT)", "INSERT INTO sessions VALUES (1)")
    with pytest.raises(StorageError, match="another program: sessions"):
        using(url, read)
    assert postgres.sql("SELECT * FROM sessions") == [(1,)]


def test_a_file_is_the_same_by_whatever_url_it_is_opened(tmp_path: Path):
    path = tmp_path / "nb.db"
    using(f"sqlite:///{path}", lambda service: service.create_session(**S, state={"k": 1}))

    for scheme in ("sqlite", "sqlite+aiosqlite", "sqlite+pysqlite"):
        assert using(f"{scheme}:///{path}", read).state == {"k": 1}


@pytest.mark.postgres
@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "postgresql+asyncpg"])
def test_a_database_is_the_same_by_whatever_url_it_is_opened(postgres: Postgres, scheme: str):
    url = postgres.url()
    using(url, lambda service: service.create_session(**S, state={"k": 1}))

    assert using(scheme + url[url.index(":") :], read).state == {"k": 1}


@pytest.mark.postgres
def test_tables_that_cannot_all_be_created_leave_none(postgres: Postgres, monkeypatch: pytest.MonkeyPatch):
    url = postgres.url()
    with monkeypatch.context() as patched:
        patched.setattr(schema, "POSTGRES", [*schema.POSTGRES, "ALTER TABLE nowhere ADD COLUMN x TEXT"])
        with pytest.raises(StorageError, match='relation "nowhere" does not exist'):
            using(url, lambda service: service.create_session(**S))

    using(url, lambda service: service.create_session(**S))
    assert using(url, read).events == []


def test_a_url_that_names_no_such_database_is_refused_without_its_password(tmp_path: Path):
    wrong = {
        "mysql://u:hunter2-hunter2@h/d": "of PostgreSQL or SQLite, got 'mysql'; write postgresql://",
        "mysql+u:hunter2-hunter2@h/d": "of PostgreSQL or SQLite, got 'mysql'; write postgresql://",
        "no url": "of PostgreSQL or SQLite, got 'no url'; write postgresql://",
        "postgresql:hunter2-hunter2@h/d": "is not a database URL",
        "sqlite+pysqlite://": "is not a file path",
        "postgresql+nothing://h/d": "is not a database URL",
        "postgresql://u:hunter2-hunter2@h:port/d": "is not a database URL",
        "postgresql://u:hun@ter2-hunter2@h/d": "has an '@'; write it as %40",
        "postgresql://u:hunter2-hunter2@h/d?ssl=require": "is not a database URL: .*ssl",
    }
    for url, message in wrong.items():
        with pytest.raises(InputError, match=message) as raised:
            DatabaseSessionService(url)
        assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigurationError, match=r"pool_size: unknown option of sqlite sessions; there is durability"):
        DatabaseSessionService(f"sqlite:///{tmp_path}/nb.db", pool_size=5)
    with pytest.raises(
        ConfigurationError, match=r"echo: unknown option of postgresql sessions; there is pool_size and connect_args"
    ):
        DatabaseSessionService("postgresql://h/d", echo=True)
    with pytest.raises(ConfigurationError, match=r"pool_size must.*integer, got 0"):
        DatabaseSessionService("postgresql://h/d", pool_size=0)


def test_what_is_not_installed_is_told_with_what_to_type(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"'psycopg'.*type: %pip install \"psycopg\[binary\]>="):
        DatabaseSessionService("postgresql://h/d")


def test_a_file_needs_no_extra(tmp_path: Path):
    code = (
        "import asyncio, sys\nfrom adk_nb.sessions import DatabaseSessionService as D\n"
        f"async def run():\n    s = D('sqlite:///{tmp_path}/nb.db', durability='full')\n"
        "    await s.create_session(app_name='a', user_id='u')\n    await s.close()\n"
        "asyncio.run(run())\nprint({'psycopg', 'sqlalchemy'}.intersection(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (output.stdout, output.stderr) == ("set()\n", "")
    assert (tmp_path / "nb.db").exists()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_server_that_is_not_there_is_one_error_without_the_password(driver: str, tmp_path: Path):
    async def look(service: DatabaseSessionService) -> None:
        with pytest.raises(StorageError, match=r"not be read .*; see that") as raised:
            await service.flush()
        assert "hunter2" not in str(raised.value) and "u:[redacted]@" in str(raised.value)
        assert "hunter2" not in repr(service)

    using(f"postgresql+{driver}://u:hunter2-hunter2@/d?host={tmp_path}", look)
    assert redaction.hidden("it was hunter2-hunter2") == "it was [secret]"


@pytest.mark.postgres
def test_who_may_not_connect_is_told_what_the_server_said(url: str):
    async def look(service: DatabaseSessionService) -> None:
        with pytest.raises(StorageError, match=r'read or written: .*role "nobody-here"'):
            await service.flush()

    using(url.replace("tester", "nobody-here"), look)


@pytest.mark.postgres
def test_a_server_that_was_restarted_is_connected_to_again():
    async def write(service: DatabaseSessionService) -> Session:
        session = await service.create_session(**S)
        await service.append_event(session, said("before", k=1))
        server.stop()
        assert not await service.is_current(session)
        late = said("late", **{"k": 2, "temp:t": 3})
        with pytest.raises(StorageError, match="it runs"):
            await service.append_event(session, late)
        assert (texts(session), session.state, late.actions.state_delta) == (
            ["before"],
            {"k": 1},
            {"k": 2, "temp:t": 3},
        )
        server.start()
        await service.append_event(session, late)
        assert await service.is_current(session) is False  # temp: keys are in it
        return session

    with running() as server:
        assert texts(using(server.url(), write)) == ["before", "late"] == texts(using(server.url(), read))


@pytest.mark.postgres
def test_the_event_loop_goes_on_while_it_is_asked_whether_a_copy_is_current(url: str, postgres: Postgres):
    async def look(service: DatabaseSessionService) -> None:
        session = await service.create_session(**S)
        with psycopg.connect(f"host={postgres.folder} user=tester dbname=postgres") as other_connect:
            other_connect.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
            asking = asyncio.ensure_future(service.is_current(session))
            assert await asyncio.wait({asking}, timeout=0.1) == (set(), {asking})
        assert await asyncio.wait_for(asking, 30)

    using(url, look)


@pytest.mark.postgres
def test_events_of_one_copy_that_are_appended_at_once_stand_in_the_order_of_the_calls(url: str, postgres: Postgres):
    async def write(service: DatabaseSessionService) -> Session:
        session = await service.create_session(**S)
        await asyncio.gather(*(service.append_event(session, said(str(n), 9.0 - n, **{f"k{n}": n})) for n in range(40)))
        assert await service.is_current(session)
        return session

    session = using(url, write)

    assert texts(session) == [str(n) for n in range(40)]
    assert using(url, read) == session
    assert postgres.sql("SELECT seq FROM events ORDER BY seq") == [(n + 1,) for n in range(40)]


@pytest.mark.postgres
def test_another_service_on_the_database_is_noticed(url: str):
    async def write(mine: DatabaseSessionService) -> None:
        other_service = DatabaseSessionService(url)
        session = await mine.create_session(**S)
        other_text = await read(other_service)
        assert await mine.is_current(session) and await other_service.is_current(other_text)

        await other_service.append_event(other_text, said("theirs", **{"app:k": 1}))
        assert not await mine.is_current(session) and await other_service.is_current(other_text)
        with pytest.raises(StaleSessionError, match="it has 1 events, this copy 0"):
            await mine.append_event(session, said("mine"))
        assert session.events == []
        twice = said("twice").model_copy(update={"id": other_text.events[0].id})
        with pytest.raises(AlreadyExistsError, match="session 's' has another"):
            await mine.append_event(session, twice)
        await other_service.close()

    using(url, write)


@pytest.mark.postgres
def test_a_runner_reads_a_session_only_once(postgres: Postgres):
    class Counting(DatabaseSessionService):
        reads = 0

        async def get_session(self, **kwargs: Any) -> Session | None:
            self.reads += 1
            return await super().get_session(**kwargs)

    service = Counting(postgres.url())
    agent = LlmAgent(name="guide", model=ScriptedLlm("one", "two", "three"), output_key="last")
    runner = Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True)
    messages = [event.text for _ in range(3) for event in runner.run(user_id="u", session_id="s", new_message="hi")]
    reads = service.reads

    async def look() -> Session:
        stored = await read(service)
        await service.close()
        return stored

    stored = asyncio.run(look())
    assert (messages, reads) == (["one", "two", "three"], 1)
    assert texts(stored) == ["hi", "one", "hi", "two", "hi", "three"] and stored.state == {"last": "three"}


@pytest.mark.postgres
def test_a_row_that_is_locked_is_waited_for_and_the_loop_goes_on(url: str, postgres: Postgres):
    async def write(service: DatabaseSessionService) -> Session:
        session = await service.create_session(**S)
        with psycopg.connect(f"host={postgres.folder} user=tester dbname=postgres") as other_connect:
            other_connect.execute("SELECT * FROM sessions FOR UPDATE")
            appending = asyncio.ensure_future(service.append_event(session, said("a")))
            text = await read(service)  # who only reads need not wait
            assert await service.is_current(session) and text.events == [] and not appending.done()
        await asyncio.wait_for(appending, 30)
        return session

    assert texts(using(url, write)) == ["a"]


@pytest.mark.postgres
def test_a_row_that_stays_locked_is_told_of_and_nothing_is_half_done(
    url: str, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(driver, "LOCKED_SECONDS", 0.1)

    async def write(service: DatabaseSessionService) -> Session:
        session = await service.create_session(**S)
        with psycopg.connect(f"host={postgres.folder} user=tester dbname=postgres") as other_connect:
            other_connect.execute("SELECT * FROM sessions FOR UPDATE")
            with pytest.raises(StorageError, match=r"program for 0.1 s"):
                await service.append_event(session, said("a", k=1))
            assert (session.events, session.state) == ([], {}) and await service.is_current(session)
        await service.append_event(session, said("b"))
        return session

    assert texts(using(url, write)) == ["b"] == texts(using(url, read))


@pytest.mark.postgres
def test_a_cancelled_append_is_in_the_copy_as_in_the_store(url: str, postgres: Postgres):
    async def write(service: DatabaseSessionService) -> Session:
        session = await service.create_session(**S)
        with psycopg.connect(f"host={postgres.folder} user=tester dbname=postgres") as other_connect:
            other_connect.execute("SELECT * FROM sessions FOR UPDATE")
            first = asyncio.ensure_future(service.append_event(session, said("first")))
            second = asyncio.ensure_future(service.append_event(session, said("never")))
            await read(service)
            second.cancel()
            await asyncio.wait([second])
        await first
        for number in range(20):
            appending = asyncio.ensure_future(service.append_event(session, said(str(number))))
            await asyncio.wait([appending], timeout=number / 2_000)  # from too early to too late
            appending.cancel()
            await asyncio.wait([appending])
        return session

    session = using(url, write)
    assert session == using(url, read) and "never" not in texts(session)


@pytest.mark.postgres
def test_an_append_that_is_cancelled_twice_still_ends_before_its_caller_goes_on(url: str, postgres: Postgres):
    async def write(service: DatabaseSessionService) -> Session:
        session = await service.create_session(**S)
        with psycopg.connect(f"host={postgres.folder} user=tester dbname=postgres") as other_connect:
            other_connect.execute("SELECT * FROM sessions FOR UPDATE")
            appending = asyncio.ensure_future(service.append_event(session, said("a")))
            while not postgres.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                await read(service)
            for _ in range(2):
                appending.cancel()
                await read(service)
            assert not appending.done()
        await asyncio.wait([appending])
        assert appending.cancelled()
        return session

    session = using(url, write)
    assert texts(session) == ["a"] and session == using(url, read)


@pytest.mark.postgres
@pytest.mark.parametrize(("names", "count"), [("abc", 8), pytest.param("abcdefgh", 200, marks=pytest.mark.long)])
def test_processes_that_begin_at_once_on_an_empty_database_lose_nothing(postgres: Postgres, names: str, count: int):
    url = postgres.url()
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=append_in_a_process, args=(url, name, count)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(500)

    assert {process.exitcode for process in processes} == {0}
    for name in names:
        assert texts(using(url, lambda service, name=name: read(service, name))) == [str(n) for n in range(count)]
    shared = texts(using(url, lambda service: read(service, "shared")))
    assert len(shared) == len(names) * count
    for name in names:
        assert [text for text in shared if text[0] == name] == [f"{name}{n}" for n in range(count)]
    seqs = postgres.sql("SELECT seq FROM events WHERE session_id = 'shared' ORDER BY seq")
    assert seqs == [(n + 1,) for n in range(len(names) * count)]


@pytest.mark.postgres
def test_an_event_that_is_gone_is_noticed(postgres: Postgres):
    async def write(service: DatabaseSessionService) -> None:
        session = await service.create_session(**S)
        for text in "abc":
            await service.append_event(session, said(text))
        postgres.sql("DELETE FROM events WHERE seq = 2")
        with pytest.raises(StorageError, match="event 2 of session 's' was altered"):
            await read(service)
        assert texts(await read(service, num_recent_events=1)) == ["c"]

    using(postgres.url(), write)


@pytest.mark.postgres
def test_a_service_that_nobody_closed_lets_its_connections_go(postgres: Postgres):
    service = DatabaseSessionService(postgres.url())
    asyncio.run(service.create_session(**S))
    [thread] = service._database.threads
    del service
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()
    own_text = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    end = clock.ticks() + 10  # the server sees to it in its own time
    while postgres.sql(own_text) != [(1,)]:
        assert clock.ticks() < end


@pytest.mark.postgres
def test_a_closed_service_says_so(postgres: Postgres):
    async def use(service: DatabaseSessionService) -> None:
        await service.create_session(**S)
        await service.close()
        await service.close()
        with pytest.raises(StorageError, match="service is closed"):
            await service.flush()

    using(postgres.url(), use)
