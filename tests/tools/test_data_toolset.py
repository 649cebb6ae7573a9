"""Frames, files and databases as tools: what a model asks in SQL, and all that it may not."""

import contextlib
import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.redaction import remember
from adk_nb.runners import InMemoryRunner
from adk_nb.tools import DataToolset, SqlToolset
from adk_nb.tools.base_toolset import BaseToolset
from tests.sessions.postgres import Postgres, running
from tests.support.late import late

pd, pl, pyarrow = late("pandas"), late("polars"), late("pyarrow")

CITIES = {"city": ["Oslo", "Rome", "Oslo"], "price": [1.5, 2.0, 4.0]}
TOTAL = "select city, sum(price) as total from sales group by city order by city"


def events_of(toolset: BaseToolset, *calls: Any) -> list[Event]:
    model = ScriptedLlm(*calls, "done")
    runner = InMemoryRunner(LlmAgent(name="analyst", model=model, tools=[toolset]))
    return sync.run(runner.run_debug("look", quiet=True))


def answers(toolset: BaseToolset, *calls: Any) -> list[dict[str, Any]]:
    """What a model got for each of its calls, one after another."""
    events = events_of(toolset, *calls)
    return [response.response or {} for event in events for response in event.get_function_responses()]


def asked(toolset: BaseToolset, *queries: str) -> list[dict[str, Any]]:
    """The answers to queries, of which a model asks some at once."""
    calls = [call("query", sql=sql) for sql in queries]
    return answers(toolset, *(calls[start : start + 20] for start in range(0, len(calls), 20)))


def described(toolset: BaseToolset, **arguments: Any) -> dict[str, Any]:
    [answer] = answers(toolset, call("describe", **arguments))
    return answer


@pytest.fixture(scope="module")
def sales() -> Iterator[DataToolset]:
    made = DataToolset({"sales": pd.DataFrame(CITIES)}, seconds=2)
    yield made
    sync.run(made.close())


# ---- frames and files


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_model_asks_a_frame_in_sql_and_the_notebook_keeps_the_whole_result(library: str):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pyarrow.table}[library]
    kept: list[Any] = []
    toolset = DataToolset({"sales": make(CITIES)}, keep=lambda frame: kept.append(frame) or f"sales_{len(kept)}")

    about = described(toolset)
    [total] = asked(toolset, TOTAL)

    assert about["tables"] == [
        {"name": "sales", "row_count": 3, "columns": {"city": "VARCHAR", "price": "DOUBLE"}},
    ]
    assert about["examples"] == [["Oslo", 1.5], ["Rome", 2.0], ["Oslo", 4.0]]
    assert total == {
        "columns": {"city": "VARCHAR", "total": "DOUBLE"},
        "row_count": 2,
        "frame": "sales_1",
        "rows": [["Oslo", 5.5], ["Rome", 2.0]],
    }
    [frame] = kept
    assert type(frame).__module__.partition(".")[0] == library
    assert [list(map(str, frame[name])) for name in ("city", "total")] == [["Oslo", "Rome"], ["5.5", "2.0"]]
    sync.run(toolset.close())


EDITS = {
    "pandas": ["df.loc[0, 'price'] = 100", "df['extra'] = 1", "df.columns = ['city', 'cost', 'extra']"],
    "polars": ["df[0, 'price'] = 100.0", "df.extend(df)"],
}


@pytest.mark.parametrize("library", EDITS)
def test_a_frame_that_was_edited_in_place_is_noticed(library: str):
    names: dict[str, Any] = {"pd": pd, "pl": pl}
    names["df"] = {"pandas": pd, "polars": pl}[library].DataFrame(CITIES)
    toolset = DataToolset({"sales": lambda: names["df"]})
    seen = [asked(toolset, "from sales")]
    for edit in EDITS[library]:
        exec(edit, names)
        seen.append(asked(toolset, "from sales"))
        assert seen[-1] != seen[-2], edit
    names["df"] = names["pl"].DataFrame({"a": [1]})
    assert asked(toolset, "from sales")[0]["columns"] == {"a": "BIGINT"}
    sync.run(toolset.close())


def test_columns_that_no_engine_has_a_type_for_are_texts():
    frame = pd.DataFrame({"period": pd.period_range("2026-01", periods=2, freq="M"), "mixed": [1, "x"], "z": [1j, 2j]})
    frame = frame.assign(span=pd.interval_range(0, 2), many=pd.Categorical(["a", "b"]))
    frame.index = pd.Index(["first", "second"], name="row")
    frame = pd.concat([frame, frame[["mixed"]]], axis=1)
    toolset = DataToolset({"odd": frame})

    [answer] = asked(toolset, "from odd")

    assert list(answer["columns"]) == ["row", "period", "mixed", "z", "span", "many", "mixed_2"]
    assert answer["rows"][0] == ["first", "2026-01", "1", "1j", "(0, 1]", "a", "1"]
    sync.run(toolset.close())


def test_files_are_tables_and_a_file_that_was_written_again_is_noticed(tmp_path: Path):
    frame = pd.DataFrame(CITIES)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "b.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "c[1].parquet")
    toolset = DataToolset({"a": tmp_path / "a.csv", "b": str(tmp_path / "b.jsonl"), "c": tmp_path / "c[1].parquet"})

    [joined] = asked(toolset, "select count(*) n, sum(a.price) s from a join b using (city) join c using (city)")
    (tmp_path / "a.csv").write_text("city,price\nOslo,7\n")
    [again, missing] = [*asked(toolset, "select price from a"), *_after(tmp_path / "a.csv", toolset)]

    assert joined["rows"] == [[9, 24.0]]
    assert again["rows"] == [[7]]
    assert f"there is no file {tmp_path}/a.csv" in missing["error"]
    sync.run(toolset.close())


def _after(path: Path, toolset: BaseToolset) -> list[dict[str, Any]]:
    path.unlink()
    return asked(toolset, "from a")


def test_a_file_that_is_not_what_it_says_is_told_in_a_line(tmp_path: Path):
    (tmp_path / "x.parquet").write_text("hello")
    [answer] = asked(DataToolset({"x": tmp_path / "x.parquet"}), "from x")

    assert answer["error"].startswith("x.parquet cannot be read")


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({}, 'write DataToolset({"sales": df})'),
        ({"x": 3}, "table x: int is no frame of pandas, polars or Arrow, and no file"),
        ({"x": "notes.docx"}, ".csv, .tsv, .parquet, .jsonl, .ndjson can be"),
    ],
)
def test_what_is_no_table_is_refused(tables: dict[str, Any], said: str):
    with pytest.raises(ConfigurationError) as refusal:
        DataToolset(tables)
    assert said in str(refusal.value)


def test_an_unknown_name_is_answered_with_the_nearest_one_and_what_there_is(sales: DataToolset):
    assert [answer["error"] for answer in asked(sales, "select pric from sales", "select price from sale")] == [
        "there is no column pric; did you mean price? There is: sales(city, price)",
        "there is no table sale; did you mean sales? There is: sales(city, price)",
    ]
    assert "did you mean sales?" in described(sales, table="sale")["error"]


def test_a_model_gets_little_of_much():
    wide = pd.DataFrame({f"column_{n}": ["x" * 300] * 50 for n in range(500)})
    toolset = DataToolset({"wide": wide, "long": pd.DataFrame({"n": range(100_000)})})

    about, some, rows, count = answers(
        toolset,
        call("describe"),
        call("describe", like="column_77"),
        call("query", sql="from wide"),
        call("query", sql="from long"),
    )

    for answer in (about, some, rows, count):
        assert len(json.dumps(answer)) <= 4_000
    assert [table["row_count"] for table in about["tables"]] == [50, 100_000]
    assert about["tables"][0]["column_count"] == 500
    assert "like" in about["note"]
    assert list(some["tables"][0]["columns"]) == ["column_77"]
    assert rows["row_count"] == 50
    assert len(rows["columns"]) + rows["columns_left_out"] == 500
    assert (count["row_count"], len(count["rows"])) == (100_000, 20)
    sync.run(toolset.close())


@pytest.mark.slow
def test_a_frame_of_ten_thousand_columns_can_be_asked():
    wide = pd.DataFrame([range(10_000)], columns=[f"column_{n}" for n in range(10_000)])
    toolset = DataToolset({"wide": wide}, seconds=60)

    about, found, one = answers(
        toolset, call("describe"), call("describe", like="9_99 8888"), call("query", sql="select column_8888 from wide")
    )

    assert about["tables"][0]["column_count"] == 10_000
    assert len(json.dumps(about)) <= 4_000
    assert "column_8888" in found["tables"][0]["columns"]
    assert one["rows"] == [[8888]]
    sync.run(toolset.close())


def test_a_result_with_more_rows_than_the_limit_says_so():
    toolset = DataToolset({"t": pd.DataFrame({"n": range(5_000)})}, max_rows=1_000)
    [answer] = asked(toolset, "from t")

    assert answer["row_count"] == 1_000
    assert "there are more rows" in answer["note"]
    sync.run(toolset.close())


def test_secrets_in_values_reach_neither_the_model_nor_the_session_also_where_they_are_cut():
    secret = "correct-horse-battery-42"
    remember(secret)
    frame = pd.DataFrame({"note": [f"key {secret}", "y" * 190 + secret], "password": ["hunter2!", "hunter3!"]})
    frame["card_password"] = [471147, 471148]
    toolset = DataToolset({"t": frame})

    [*events] = events_of(toolset, call("query", sql="from t"), call("describe"))

    told = str([event.model_dump() for event in events])
    for part in (secret, secret[:10], "hunter2", "hunter3", "47114"):
        assert part not in told
    assert "[secret]" in told
    sync.run(toolset.close())


def test_a_person_sees_the_sql_and_the_table(sales: DataToolset):
    events = events_of(sales, call("query", sql=TOTAL))

    [pieces] = [shown for event in events for shown in (event.custom_metadata or {}).get("shown", {}).values()]
    assert pieces == [
        {"kind": "code", "language": "sql", "text": TOTAL},
        {
            "kind": "table",
            "columns": ["city", "total"],
            "rows": [["Oslo", "5.5"], ["Rome", "2"]],
            "row_count": 2,
            "column_count": 2,
        },
    ]


# ---- what may not be: DuckDB

OUTSIDE = [
    "copy sales to '{out}'",
    "with x as (copy sales to '{out}') from x",
    "export database '{out}'",
    "attach '{out}' as other",
    "attach '/etc/passwd' as other (read_only)",
    "install httpfs",
    "load httpfs",
    "select * from read_text('/etc/passwd')",
    "select * from read_blob('/etc/passwd')",
    "select * from read_csv('/etc/passwd')",
    "select * from read_csv_auto('/etc/passwd')",
    "select * from read_parquet('/etc/passwd')",
    "select * from parquet_scan('/etc/passwd')",
    "select * from read_ndjson('/etc/passwd')",
    "select * from read_duckdb('/etc/passwd')",
    "select * from sniff_csv('/etc/passwd')",
    "select * from glob('/etc/*')",
    "select * from '/etc/passwd'",
    "from 'sales.csv'",
    'from "/etc/passwd"',
    "from \"sales\" join '/etc/*.csv' on true",
    "select (select content from read_text('/etc/passwd'))",
    "with x as materialized (select * from read_text('/etc/passwd')) from x",
    "from sales where city in (select content from read_text('/etc/passwd'))",
    "select * from sales, lateral (select * from read_text('/etc/' || 'passwd'))",
    "pragma database_list",
    "call pragma_version()",
    "set memory_limit = '100GB'",
    "reset lock_configuration",
    "set lock_configuration = false",
    "select 1; select 2",
    "select 1; copy sales to '{out}'",
    "select 1 /* ; */; -- \ncopy sales to '{out}'",
    "select current_setting('home_directory')",
    "select getenv('HOME')",
    "select getvariable('x')",
    "select write_log('x')",
    "select * from duckdb_settings()",
    "select * from duckdb_secrets()",
    "select * from duckdb_tables",
    "select * from information_schema.tables",
    "select * from pg_catalog.pg_tables",
    "select * from system.main.sales",
    "select json_execute_serialized_sql('{{}}')",
    "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    "pragma json_execute_serialized_sql('{{}}')",
    "from query('select 1')",
    "from query_table('sales')",
    "from query_table(['sales'])",
    "from python_map_function(1)",
    "from arrow_scan(1, 2, 3)",
    "from seq_scan('sales')",
    "create macro sum(x) as 42",
    "create temp macro sum(x) as 42",
    "create table t as from sales",
    "create temp view sales as select 1",
    "create function f(x) as 1",
    "insert into sales values ('x', 1)",
    "with x as (insert into sales values ('x', 1) returning *) from x",
    "with x as materialized (delete from sales returning *) select * from x",
    "with recursive x as (update sales set price = 0 returning *) from x",
    "select * from (with x as (delete from sales returning *) from x)",
    "select (with x as (delete from sales returning *) select count(*) from x)",
    "delete from sales",
    "update sales set price = 0",
    "merge into sales using sales s on true when matched then delete",
    "drop table sales",
    "drop view sales",
    "alter table sales rename to x",
    "truncate sales",
    "vacuum",
    "checkpoint",
    "begin; commit",
    "commit",
    "rollback",
    "use memory",
    "detach memory",
    "prepare x as select 1",
    "execute x",
    "explain analyze select 1",
    "describe sales",
    "show all tables",
    "summarize sales",
    "from (describe sales)",
    "select nextval('x')",
    "select sleep_ms(60000)",
    "select pg_sleep(60)",
    "",
    "-- nothing",
    "/* copy",
    "select " + "(" * 5_000 + "1" + ")" * 5_000,
    "select '" + "x" * 60_000 + "'",
]


def test_nothing_outside_the_tables_is_read_or_written(sales: DataToolset, tmp_path: Path):
    before = asked(sales, "from sales")
    out = tmp_path / "out"

    told = asked(sales, *(statement.format(out=out) for statement in OUTSIDE))

    assert len(told) == len(OUTSIDE)
    for statement, answer in zip(OUTSIDE, told, strict=True):
        assert set(answer) == {"error"}, statement
        assert "root:" not in str(answer)
    assert os.listdir(tmp_path) == []
    assert asked(sales, "from sales") == before
    assert asked(sales, "select sum(price) from sales")[0]["rows"] == [[7.5]]


ALLOWED = [
    ("select 1 -- ; drop table sales", [[1]]),
    ("/* copy */ select ';' as x", [[";"]]),
    ("with s as (select * from sales) select count(*) from s join sales using (city)", [[5]]),
    ("with sales as (select 42 x) select x from sales", [[42]]),
    ("with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select sum(n) from t", [[15]]),
    ("from main.sales select max(price)", [[4.0]]),
    ("select sum(x) from range(5) t(x)", [[10]]),
    ("from sales pivot (sum(price) for city in ('Oslo'))", [[5.5]]),
    ("values (1), (2)", [[1], [2]]),
    ("select price from sales union select price from sales order by all limit 1", [[1.5]]),
    ("select first(city) over (order by price desc) from sales limit 1", [["Oslo"]]),
    ("select 'read_text(''/etc/passwd'')'", [["read_text('/etc/passwd')"]]),
]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
def test_a_reader_of_frames_gets_no_password_of_postgresql(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGPASSWORD", "only-for-postgresql-42")
    toolset = DataToolset({"sales": pd.DataFrame(CITIES)})
    described(toolset)

    readers: list[bytes] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"data_tool.reader" in (process / "cmdline").read_bytes():
                readers.append((process / "environ").read_bytes())

    assert readers
    assert not [variables for variables in readers if b"only-for-postgresql" in variables]
    sync.run(toolset.close())


def test_what_a_select_can_say_is_answered(sales: DataToolset):
    told = asked(sales, *(statement for statement, _ in ALLOWED))

    assert [answer.get("rows", answer) for answer in told] == [rows for _, rows in ALLOWED]


RUNAWAY = [
    "select count(*) from range(1000000000) a, range(1000000000) b",
    "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t",
    "select repeat('x', 1000000000)",
    "select sum(length(repeat('x', 100000000))) from range(50)",
    "select list_sort(range(1000000000))",
    "select array_agg(x) from range(1000000000) t(x)",
    "select levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
]


@pytest.mark.slow
def test_nothing_runs_past_its_limits_and_the_next_question_is_answered():
    toolset = DataToolset({"sales": pd.DataFrame(CITIES)}, seconds=1)
    for statement in RUNAWAY:
        [runaway], [after] = asked(toolset, statement), asked(toolset, TOTAL)
        assert "longer than a query may: 1 s" in str(runaway) or "more memory" in str(runaway), runaway
        assert after["rows"] == [["Oslo", 5.5], ["Rome", 2.0]]
    sync.run(toolset.close())


# ---- SQLite


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as db:
        db.executescript(
            "create table items (id integer primary key, name text, price real, picture blob);"
            "insert into items values (1, 'cup', 2.5, x'0102'), (2, 'pot', 3, null);"
            "create view names as select name from items;"
            "create virtual table notes using fts5(body); insert into notes values ('hello world');"
        )
    db.close()
    return path


def state_of(folder: Path) -> dict[str, str]:
    """The sum of each file but what readers of SQLite share, by another process: this one would lose its locks."""
    names = sorted(path.name for path in folder.iterdir() if not path.name.endswith("-shm"))
    lines = subprocess.run(["sha256sum", *names], cwd=folder, capture_output=True, text=True, check=True).stdout
    return dict(reversed(line.split()) for line in lines.splitlines())


def test_a_model_asks_a_sqlite_file(shop: Path):
    kept: list[Any] = []
    toolset = SqlToolset(f"sqlite:///{shop}", keep=lambda frame: kept.append(frame) or "shop_1")

    about = described(toolset)
    items, found, wrong = asked(
        toolset,
        "select * from items",
        "select body from notes where notes match 'hello'",
        "select nam from items",
    )

    assert [table["name"] for table in about["tables"]] == ["items", "names", "notes"]
    assert items["rows"] == [[1, "cup", 2.5, "<2 bytes>"], [2, "pot", 3.0, None]]
    assert list(kept[0].price) == [2.5, 3.0]
    assert found["rows"] == [["hello world"]]
    assert wrong["error"].startswith("there is no column nam; did you mean name?")
    with sqlite3.connect(shop) as db:
        db.execute("insert into items values (3, 'jug', 1, null)")
    db.close()
    assert asked(toolset, "select count(*) from items")[0]["rows"] == [[3]]
    sync.run(toolset.close())


SQLITE_OUTSIDE = [
    "insert into items values (9, 'x', 1, null)",
    "with x as (select 1) insert into items select 9, 'x', 1, null",
    "update items set price = 0",
    "delete from items",
    "drop table items",
    "create table t (x)",
    "create temp table t (x)",
    "attach '{out}' as other",
    "attach 'file:{out}?mode=rwc' as other",
    "detach main",
    "vacuum into '{out}'",
    "vacuum",
    "pragma table_info(items)",
    "pragma hard_heap_limit = 1",
    "pragma query_only = 0",
    "pragma journal_mode = wal",
    "pragma writable_schema = 1",
    "select * from pragma_table_info('items')",
    "select * from sqlite_master",
    "select * from sqlite_schema",
    "select * from dbstat",
    "select load_extension('/tmp/x')",
    "select readfile('/etc/passwd')",
    "select writefile('{out}', 'x')",
    "select * from fsdir('/etc')",
    "select edit('x')",
    "select zeroblob(1000000000)",
    "select hex(randomblob(1000000))",
    "select fts3_tokenizer('x')",
    "insert into notes (notes) values ('rebuild')",
    "begin immediate",
    "savepoint x",
    "reindex",
    "analyze",
    "select 1; select 2",
    "select 1; drop table items",
    "",
    "/* */",
    "explain insert into items values (9, 'x', 1, null)",
]


@pytest.mark.parametrize("mode", ["delete", "wal", "open wal"])
def test_a_sqlite_file_is_never_written_and_no_file_comes_beside_it(shop: Path, mode: str):
    db = sqlite3.connect(shop)
    db.execute(f"pragma journal_mode = {mode.split()[-1]}")
    db.execute("insert into notes values ('more')")
    db.commit()
    if mode != "open wal":
        db.close()
    toolset = SqlToolset(f"sqlite:///{shop}")
    before = state_of(shop.parent)

    told = asked(toolset, *(statement.format(out=shop.parent / "out") for statement in SQLITE_OUTSIDE))
    [after] = asked(toolset, "select count(*) from notes")

    for statement, answer in zip(SQLITE_OUTSIDE, told, strict=True):
        assert set(answer) == {"error"}, (statement, answer)
    assert after["rows"] == [[2]]
    assert state_of(shop.parent) == before
    db.close()
    sync.run(toolset.close())


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t",
        "with recursive t(s) as (select 'x' union all select s || s from t) select max(length(s)) from t",
        "select replace(printf('%9999999d', 1), ' ', 'xxxxxxxxxx')",
        "select like('%' || printf('%900d', 1) || '%', printf('%9000000d', 2))",
    ],
)
def test_no_query_of_sqlite_runs_past_its_limits(shop: Path, statement: str):
    toolset = SqlToolset(f"sqlite:///{shop}", seconds=1)
    [runaway], [after] = asked(toolset, statement), asked(toolset, "select count(*) from items")

    assert "longer than a query may" in str(runaway) or "more memory" in str(runaway)
    assert after["rows"] == [[2]]
    sync.run(toolset.close())


def test_a_locked_a_missing_and_a_broken_file_are_a_line_each(shop: Path):
    toolset = SqlToolset(f"sqlite:///{shop}")
    writer = sqlite3.connect(shop, isolation_level=None)
    writer.execute("begin exclusive")
    [locked] = asked(toolset, "select * from items")
    writer.execute("rollback")
    writer.close()
    (shop.parent / "text.db").write_text("hello " * 100)

    missing = described(SqlToolset(f"sqlite:///{shop.parent}/shp.db"))
    broken = described(SqlToolset(f"sqlite:///{shop.parent}/text.db"))
    sqlite3.connect(shop.parent / "empty.db").close()
    empty = described(SqlToolset(f"sqlite:///{shop.parent}/empty.db"))

    assert locked["error"] == "shop.db is locked by a program that writes to it; wait until it has ended, and ask again"
    assert missing["error"] == "there is no file shp.db; did you mean shop.db?"
    assert broken["error"].startswith("text.db cannot be read: file is not a database; ")
    assert empty["note"] == "empty.db has no tables"
    assert asked(toolset, "select count(*) from items")[0]["rows"] == [[2]]
    sync.run(toolset.close())


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "shop.db"])
def test_another_url_is_refused_with_what_to_write(url: str):
    with pytest.raises(ConfigurationError, match=r"write sqlite:///shop\.db"):
        SqlToolset(url)


# ---- PostgreSQL


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running() as server:
        server.sql(
            "create table items (id int primary key, name text, price numeric(10, 2), at timestamptz, tags text[])",
            "insert into items values (1, 'cup', 2.5, '2026-01-02 03:04:05+00', '{a,b}')",
            "insert into items values (2, 'pot', null, 'infinity', null)",
            "create table hidden (x int)",
            "create schema other",
            "create table other.things (x int)",
            "create sequence counter",
            "create role reader login",
            "create role writer login",
            "grant usage on schema other to reader",
            "grant usage on sequence counter to reader",
            "grant select on items, other.things to reader",
            "grant select, insert on items to writer",
            "create function write_it() returns int language plpgsql security definer as "
            "$$ begin insert into items (id) values (99); return 1; end $$",
        )
        yield server


def url_of(server: Postgres, role: str) -> str:
    return f"postgresql://{role}@/postgres?host={server.folder}"


@pytest.fixture
def reader(postgres: Postgres) -> Iterator[SqlToolset]:
    made = SqlToolset(url_of(postgres, "reader"), seconds=1)
    yield made
    sync.run(made.close())


@pytest.mark.postgres
def test_a_model_asks_postgresql(reader: SqlToolset):
    about = described(reader)
    items, things, wrong, lost = asked(
        reader,
        "select * from items order by id;",
        "select count(*) from other.things",
        "select nam from items",
        "select * from item",
    )

    assert [(table["name"], table["row_count"]) for table in about["tables"]] == [("items", 2), ("other.things", 0)]
    assert items["rows"][0] == [1, "cup", 2.5, "2026-01-02 03:04:05+00", '["a", "b"]']
    assert items["rows"][1][3] == "infinity"
    assert things["rows"] == [[0]]
    assert "did you mean name?" in wrong["error"]
    assert "did you mean items?" in lost["error"]


POSTGRES_OUTSIDE = [
    "insert into items (id) values (5)",
    "with x as (insert into items (id) values (5) returning id) select * from x",
    "update items set price = 0",
    "delete from items",
    "select 1; drop table items",
    "select 1; select 2",
    "set transaction read write",
    "commit; begin read write; insert into items (id) values (5)",
    "rollback",
    "copy items to '/tmp/x'",
    "copy items to program 'id'",
    "do $$ begin null; end $$",
    "call x()",
    "create temp table t (x int)",
    "select * into t from items",
    "select * from items for update",
    "lock table items",
    "listen x",
    "notify x",
    "select pg_notify('a', 'b')",
    "select pg_sleep(60)",
    'select u&"pg_sl\\0065ep"(60)',
    "select pg_read_file('/etc/passwd')",
    "select pg_read_binary_file('/etc/passwd')",
    "select pg_ls_dir('/')",
    "select lo_create(0)",
    "select lo_import('/etc/passwd')",
    "select nextval('counter')",
    "select set_config('transaction_read_only', 'off', true)",
    "select pg_advisory_lock(1)",
    "select pg_terminate_backend(pg_backend_pid())",
    "select query_to_xml('select 1', true, true, '')",
    "select dblink('host=x', 'select 1')",
    "select write_it()",
    "select * from hidden",
    "select * from pg_authid",
    "declare x cursor for select 1",
    "fetch all from adk_nb",
    "close adk_nb",
    "explain analyze select 1",
    "prepare x as select 1",
    "",
    "--",
]


@pytest.mark.postgres
def test_postgresql_is_never_written_and_nothing_outside_is_read(postgres: Postgres, reader: SqlToolset):
    told = asked(reader, *POSTGRES_OUTSIDE)

    for statement, answer in zip(POSTGRES_OUTSIDE, told, strict=True):
        assert set(answer) == {"error"}, (statement, answer)
        assert "root:" not in str(answer)
    assert postgres.sql("select count(*), sum(price) from items")[0][0] == 2
    assert postgres.sql("select is_called from counter") == [(False,)]
    assert postgres.sql("select count(*) from pg_largeobject_metadata") == [(0,)]


@pytest.mark.postgres
@pytest.mark.slow
def test_no_query_of_postgresql_runs_past_its_limits_on_the_server_either(postgres: Postgres, reader: SqlToolset):
    runaways = [
        "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t",
        "select count(*) from generate_series(1, 1000000000) a, generate_series(1, 1000000000) b",
        "select repeat('x', 100000000) from generate_series(1, 100)",
    ]
    for statement in runaways:
        [runaway], [after] = asked(reader, statement), asked(reader, "select count(*) from items")
        assert "longer than a query may" in str(runaway) or "more memory" in str(runaway), runaway
        assert after["rows"] == [[2]]
    others = "select count(*) from pg_stat_activity where state = 'active' and usename = 'reader'"
    assert postgres.sql(others) == [(0,)]


@pytest.mark.postgres
@pytest.mark.parametrize(("role", "why"), [("tester", "is a superuser"), ("writer", "may write to items")])
def test_a_role_that_may_write_is_refused_with_how_to_make_one_that_may_not(postgres: Postgres, role: str, why: str):
    answer = described(SqlToolset(url_of(postgres, role)))

    assert answer["error"].startswith(f"the role {role} {why}; make one that may only read: create role reader")


@pytest.mark.postgres
def test_a_server_that_goes_away_is_told_and_found_again(postgres: Postgres, reader: SqlToolset):
    [before] = asked(reader, "select 1")
    postgres.stop()
    try:
        [gone] = asked(reader, "select 1")
    finally:
        postgres.start()
    [after] = asked(reader, "select 1")

    assert before["rows"] == after["rows"] == [[1]]
    assert gone["error"].startswith("the database cannot be reached")
    assert gone["error"].endswith("start the server, or mend the address, and ask again")
