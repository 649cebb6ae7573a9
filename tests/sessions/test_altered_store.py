"""Whoever writes the database can make data wrong, and nothing else: no row is ever run, and none ends in a riddle."""

import asyncio
import inspect
import json
import pickle
import random
import re
import shutil
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import adk_nb
from adk_nb import types
from adk_nb.errors import AdkNbError, StorageError
from adk_nb.events import Event, EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.sessions import DatabaseSessionService, Session, SqliteSessionService
from adk_nb.sessions.journal import Intent
from adk_nb.sessions.sql.rows import crc
from tests.sessions.postgres import Postgres
from tests.support.bad_input import JSON, LONG

S: dict[str, Any] = {"app_name": "app", "user_id": "u", "session_id": "s"}
RAN = ("exec", "compile", "import", "open", "os.", "subprocess.", "socket.", "ctypes.", "pickle.", "marshal.")
"""Audit events of what an attacker would want. Source: https://docs.python.org/3/library/audit_events.html."""


class Gadget:
    """Opens a file, and runs a program, when it is unpickled."""

    def __reduce__(self) -> Any:
        return (exec, ("open('/tmp/pwned', 'w')",))


PICKLES = [pickle.dumps(Gadget(), protocol) for protocol in (0, 2, 5)]
TEXTS: list[str] = [
    PICKLES[0].decode(),
    *("", " ", "null", "true", "1", "-1", "1e999", "NaN", "Infinity", '"text"', "[]", "{}", "[[{}]]", '{"id": 5}'),
    *("{", "[1,]", "{'a': 1}", "{} {}", '\ufeff{"id": "x"}', '{"id": "\\ud800"}', '{"a": 1, "a": 2}', "// {}"),
    "[" * 10_000 + "]" * 10_000,
    '{"a":' * 5_000 + "1" + "}" * 5_000,
    '{"timestamp": ' + "9" * 100_000 + "}",
    json.dumps({"author": LONG["one line"], "output": [*range(20_000)]}),
    '{"message": 5}',
    '{"message": "hi", "content": {"parts": []}}',
    '{"message": "hi", "state": {"a": 1}, "route": [1], "nodePath": "x", "node_path": 5}',
    '{"state": {"a": 1}, "actions": {"stateDelta": {"a": 2}}}',
    *(
        json.dumps({"author": "a", "content": {"role": "user", "parts": item}})
        for item in (5, "x", {}, [5], ["x"], [[]])
    ),
    *(
        json.dumps({"author": "a", "content": {"role": number, "parts": [{"text": number}]}})
        for number in (5, None, [], {})
    ),
    *(json.dumps({"content": {"parts": [{"text": "x"}], "role": "user"}, "actions": item}) for item in (5, "x", [1])),
    json.dumps({"content": {"parts": [{"functionCall": {"name": "os.system", "args": "id"}}]}}),
    json.dumps({"content": {"parts": [{"inlineData": {"data": "!!", "mimeType": 5}}]}}),
    json.dumps({"__class__": "os.system", "py/reduce": ["os.system", ["id"]], "lc": 1, "type": "constructor"}),
    json.dumps(
        {"actions": {"requestedAuthConfigs": {"c": {"authScheme": {"type": "apiKey", "__class__": "os.system"}}}}}
    ),
    json.dumps({"nodeInfo": {"path": ["__import__('os').system('id')"]}, "longRunningToolIds": {"a": 1}}),
    json.dumps(JSON, default=repr),
]


_seen: list[str] | None = None


def _hear(event: str, args: Any) -> None:
    if _seen is not None and event.startswith(RAN):
        _seen.append(f"{event} {args!r:.200}")


sys.addaudithook(_hear)


@contextmanager
def nothing_runs() -> Iterator[None]:
    """No code is compiled, imported or run meanwhile, no file or program opened, by any thread."""
    global _seen
    _seen = received = []
    try:
        yield
    finally:
        _seen = None
    assert received == []


def rich() -> Event:
    """An event with something in every place that is read in a way of its own."""
    call = types.Part(function_call=types.FunctionCall(id="c", name="pay", args={"a": [1, {"b": None}]}))
    answer = types.Part(function_response=types.FunctionResponse(id="c", name="pay", response={"result": 1}))
    blob = types.Part(inline_data=types.Blob(data=b"\xff\x00", mime_type="image/png"), thought_signature=b"\x01")
    return Event(
        author="guide",
        invocation_id="e-1",
        branch="a.b",
        content=types.Content(role="model", parts=[types.Part(text="x"), call, answer, blob]),
        usage_metadata={"total_token_count": 3},
        finish_reason="STOP",
        long_running_tool_ids={"c"},
        output={"deep": [[1.5]]},
        node_path="graph/ask@1",
        actions=EventActions(
            state_delta={"k": 1, "user:n": 2, "app:m": 3},
            artifact_delta={"a.txt": 1},
            route=["a", 1],
            agent_state={"at": 1},
            requested_tool_confirmations={"c": ToolConfirmation(hint="?", payload={"n": 1})},
        ),
    )


async def fill(service: SqliteSessionService | DatabaseSessionService) -> None:
    session = await service.create_session(**S, state={"own": 1, "user:name": "Ann", "app:motd": "hi"})
    lease = await service.claim(session, "e-1", owner="a test")
    await service.append_event(session, rich())
    attempt = await lease.begin(Intent(run_id="e-1", call_id="c", name="pay"), consumes=["approval"])
    assert attempt
    await lease.finish(attempt, {"paid": 1})
    await lease.begin(Intent(run_id="e-1", call_id="d", name="pay"))
    await lease.release()


async def look(service: SqliteSessionService | DatabaseSessionService) -> list[Any]:
    """All that can be asked of it, and all of it looked at; one line is written, too."""
    session = await service.get_session(**S)
    founds: list[Any] = [session, session and [event.model_dump() for event in session.events]]
    founds += [await service.list_sessions(app_name="app"), await service.get_user_state(app_name="app", user_id="u")]
    if session:
        founds += [
            await service.unfinished(session),
            await service.consume(session, "approval"),
            await current(service, session),
        ]
        lease = await service.claim(session, "e-2", owner="a test")
        await service.append_event(session, Event(author="a", actions=EventActions(state_delta={"k": 2, "user:k": 3})))
        founds += [await lease.attempts("e-1")]
        await lease.release("done")
    return founds


async def current(service: Any, session: Session) -> bool:
    lines = service.is_current(session)
    return await lines if inspect.isawaitable(lines) else lines


async def ends_well(service: SqliteSessionService | DatabaseSessionService) -> bool:
    """Whether something was told; if not, it was refused in words."""
    try:
        await look(service)
    except AdkNbError as error:
        assert str(error) and "Traceback" not in str(error)
        return False
    return True


def replace_event(path: Path, data: Any) -> None:
    """As an attacker does who has read the source: the checksum fits."""
    raw = data if isinstance(data, bytes) else data.encode()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        seq, position = db.execute("SELECT seq, timestamp FROM events").fetchone()
        fits = zlib.crc32(raw, zlib.crc32(b"%d %a" % (seq, position)))
        db.execute("UPDATE events SET event_data = ?, crc = ?", (data, fits))


def test_an_event_that_was_replaced_by_anything_is_data_or_refused_with_its_file(tmp_path: Path):
    path, good, outcomes = tmp_path / "nb.db", tmp_path / "good.db", list[str]()

    async def using(use: Any, path: Path = path) -> Any:
        service = SqliteSessionService(path)
        try:
            with nothing_runs() if use is read else nullcontext():
                return await use(service)
        finally:
            await service.close()

    async def read(service: SqliteSessionService) -> str:
        session = await service.get_session(**S)
        assert session
        try:
            dumped = session.events[0].model_dump_json()
        except StorageError as error:
            assert f"{path} (schema version 4): an event of session 's' is not a valid event: " in str(error)
            assert len(str(error)) < 1_000
            return "refused"
        assert Event.model_validate_json(dumped) == session.events[0]
        return "data"

    asyncio.run(using(fill, good))
    asyncio.run(using(look, shutil.copy(good, path)))  # what is read for the first time is imported
    for data in [*TEXTS, *PICKLES, b"\xff\xfe", zlib.compress(b"[" * 1_000_000)]:
        shutil.copy(good, path)
        replace_event(path, data)
        outcomes.append(asyncio.run(using(read)))
    assert outcomes.count("refused") > 20 and outcomes.count("data") > 5


def mutated(chance: random.Random, value: Any) -> Any:
    """`value`, a JSON value, with something else somewhere in it."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice([*value])
        other_key = key if chance.random() < 0.8 else chance.choice(["__class__", "message", "state", "", *value])
        return {name: stored_value for name, stored_value in value.items() if name != key} | {
            other_key: mutated(chance, value[key])
        }
    if isinstance(value, list) and value and chance.random() < 0.85:
        number = chance.randrange(len(value))
        return [*value[:number], mutated(chance, value[number]), *value[number + 1 :]]
    return chance.choice(ODD)


ODD: list[Any] = [None, True, 0, -1, 1.5, 2**70, "", "x", "\x00", "os.system", [], {}, [[]], [None], {"a": 1}]
ODD += ["!!python/object/apply:os.system", "__import__('os')", {"__class__": "os.system"}, {"__reduce__": ["exec"]}]


@pytest.mark.filterwarnings("ignore:.*is not a valid:UserWarning")  # google-genai, of a name that is none of its own
def test_three_thousand_mutated_rows_load_as_data_or_are_refused_and_nothing_runs(tmp_path: Path):
    path, chance = tmp_path / "nb.db", random.Random(7)
    base: Any = json.loads(rich().model_dump_json(by_alias=True, exclude_none=True))
    whole = json.dumps(base).encode()
    rows = [whole, *(whole[:length] for length in range(0, len(whole), 3))]
    while len(rows) < 3_000:
        rows.append(json.dumps(mutated(chance, mutated(chance, base)), ensure_ascii=chance.random() < 0.5).encode())

    async def read() -> tuple[int, int]:
        service = SqliteSessionService(path)
        try:
            session = await service.create_session(**S)
            await service.append_event(session, Event(author="a"))
            with closing(sqlite3.connect(path)) as db:
                put_rows(db, rows)
            stored_session = await service.get_session(**S)
            assert stored_session and len(stored_session.events) == len(rows) and stored_session.events[0].text == "x"
            with nothing_runs():
                return count(stored_session)
        finally:
            await service.close()

    data, refused = asyncio.run(read())
    assert data + refused == len(rows) and data > 300 and refused > 300


def put_rows(db: sqlite3.Connection, rows: list[bytes]) -> None:
    """The events of the one session in it from now on."""
    db.execute("DELETE FROM events")
    number, state_crc, built, used = db.execute(
        "SELECT number, state_crc, create_time, update_time FROM sessions"
    ).fetchone()
    for seq, raw in enumerate(rows, 1):
        fits = zlib.crc32(raw, zlib.crc32(b"%d %a" % (seq, 1.5)))
        row = (number, seq, f"e{seq}", "", 1.5, raw.decode(), fits)
        db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    fits = crc("app", "u", "s", number, state_crc, built, used, len(rows))
    db.execute("UPDATE sessions SET seq = ?, crc = ?", (len(rows), fits))
    db.commit()


def count(session: Session) -> tuple[int, int]:
    data = refused = 0
    for event in session.events:
        try:
            event.model_dump_json()
            data += 1
        except StorageError as error:
            assert "an event of session 's' is not a valid event" in str(error)
            refused += 1
    return data, refused


def columns(db: sqlite3.Connection) -> list[tuple[str, str]]:
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [
        (table, row[1])
        for table in tables
        if table not in ("adk_internal_metadata", "sqlite_sequence")
        for row in db.execute(f"PRAGMA table_info({table})")
    ]


CHECKED = {
    "sessions": ("app_name", "user_id", "id", "number", "state_crc", "create_time", "update_time", "seq"),
    "app_states": ("app_name", "state", "update_time", "changes"),
    "user_states": ("app_name", "user_id", "state", "update_time", "changes"),
    "leases": ("session", "fence", "run_id", "owner", "since", "expires"),
    "runs": ("session", "run_id", "version", "owner", "started", "outcome"),
    "intents": (
        *("session", "run_id", "branch", "kind", "call_id", "attempt"),
        *("name", "effect", "key", "started", "finished", "outcome"),
    ),
}
"""What each table's checksum is of, in order."""


def make_fit(db: sqlite3.Connection, table: str) -> None:
    """Write the checksums that go with what is there, as an attacker does who has read the source."""
    if table in ("sessions", "state_keys"):
        for (number,) in db.execute("SELECT number FROM sessions").fetchall():
            check = 0
            for row in db.execute("SELECT session, key, value FROM state_keys WHERE session = ?", [number]):
                check ^= crc(*row)
            db.execute("UPDATE sessions SET state_crc = ? WHERE number = ?", [check, number])
        table = "sessions"
    if table == "events":
        for rowid, seq, position, raw in db.execute(
            "SELECT rowid, seq, timestamp, CAST(event_data AS BLOB) FROM events"
        ):
            data = b"%d %a" % (seq, position) if isinstance(seq, int) else b"?"
            db.execute("UPDATE events SET crc = ? WHERE rowid = ?", (zlib.crc32(raw or b"", zlib.crc32(data)), rowid))
    if names := CHECKED.get(table):
        for rowid, *values in db.execute(f"SELECT rowid, {', '.join(names)} FROM {table}").fetchall():
            db.execute(f"UPDATE {table} SET crc = ? WHERE rowid = ?", (crc(*values), rowid))


def test_any_column_may_hold_anything_and_what_comes_of_it_is_data_or_an_error_in_words(tmp_path: Path):
    good, path = tmp_path / "good.db", tmp_path / "nb.db"

    async def using(use: Any, path: Path) -> Any:
        service = SqliteSessionService(path)
        try:
            with nothing_runs() if use is ends_well else nullcontext():
                return await use(service)
        finally:
            await service.close()

    asyncio.run(using(fill, good))
    asyncio.run(using(look, shutil.copy(good, path)))  # what is done for the first time is imported
    with closing(sqlite3.connect(good)) as db:
        every = columns(db)
    outcomes: list[bool] = []
    for table, column in every:
        for value in (PICKLES[2], -0.5):
            shutil.copy(good, path)
            with closing(sqlite3.connect(path, isolation_level=None)) as db:
                try:
                    db.execute(f"UPDATE {table} SET {column} = ?", [value])
                except sqlite3.IntegrityError:
                    continue
                if column != "crc":
                    make_fit(db, table)
            outcomes.append(asyncio.run(using(ends_well, path)))
    assert outcomes.count(False) > 40 and outcomes.count(True) > 10


async def try_columns(service: DatabaseSessionService, every: list[tuple[str, str, Any]], sql: Any) -> list[bool]:
    """`sql` writes in the database by another way."""
    outcomes: list[bool] = []
    for table, column, value in every:
        for session in (await service.list_sessions(app_name="app")).sessions:
            await service.delete_session(app_name="app", user_id="u", session_id=session.id)
        sql("DELETE FROM app_states", ())
        sql("DELETE FROM user_states", ())
        await fill(service)
        if sql(f"UPDATE {table} SET {column} = {value[0]}", value[1:]):
            outcomes.append(await ends_well(service))
        for name in ("intents", "runs", "leases", "consumed", "events", "sessions", "app_states", "user_states"):
            sql(f"DELETE FROM {name}", ())
    return outcomes


JSON_COLUMNS = [
    *((table, "state") for table in ("sessions", "app_states", "user_states")),
    *((table, "state_text") for table in ("sessions", "app_states", "user_states")),
    *(("events", "event_data"), ("events", "event_text"), ("intents", "intent"), ("intents", "outcome")),
]
VALUES = ["5", '{"a": {"__class__": "os.system"}}', PICKLES[0].decode(), "[" * 5_000 + "]" * 5_000]


@pytest.mark.postgres
def test_json_of_a_server_may_be_anything_and_what_comes_of_it_is_data_or_an_error_in_words(postgres: Postgres):
    def sql(statement: str, values: tuple[Any, ...]) -> bool:
        text = statement
        for value in values:
            as_json = "::jsonb" if "_data" in statement or "SET state =" in statement else ""
            text = text.replace("?", "'" + str(value).replace("'", "''") + f"'{as_json}")
        try:
            postgres.sql(text)
        except Exception:  # JSONB takes no such thing
            return False
        return True

    async def run() -> list[bool]:
        service = DatabaseSessionService(postgres.url())
        try:
            return await try_columns(
                service, [(*json_column, ("?", value)) for json_column in JSON_COLUMNS for value in VALUES], sql
            )
        finally:
            await service.close()

    outcomes = asyncio.run(run())
    assert outcomes.count(False) > 15 and outcomes.count(True) > 5


UNSAFE = re.compile(
    r"^\s*(import|from)\s+(c?[pP]ickle|_pickle|marshal|shelve|dill|cloudpickle|joblib|jsonpickle)\b|PickleType",
    re.MULTILINE,
)
RUNS = re.compile(r"(?<!re\.)(?<!def )\b(eval|exec|compile|__import__|import_module|literal_eval|yaml\.\w*load\w*)\(")
STORAGE = ("sessions", "events", "artifacts", "memory", "auth", "engines", "wire.py", "parts.py", "types.py")


def test_nothing_unpickles_and_nothing_that_stores_runs_what_it_reads():
    root = Path(adk_nb.__file__).parent
    files = {file.relative_to(root): file.read_text() for file in root.rglob("*.py")}
    stores = {file: text for file, text in files.items() if file.parts[0] in STORAGE}
    assert len(stores) > 40 and len({file.parts[0] for file in stores}) >= len(STORAGE) - 1
    assert UNSAFE.search("import pickle") and RUNS.search("x = eval(y)") and RUNS.search("yaml.safe_load(x)")
    assert {file: match[0] for file, text in files.items() if (match := UNSAFE.search(text))} == {}
    assert {file: match[0] for file, text in stores.items() if (match := RUNS.search(text))} == {}
