"""`%tool --data`, `%tool --sql`: frames, files and databases as toolsets of a notebook."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from turns import reply_forms

from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.view.rows import RunRows
from adk_nb.tools import DataToolset, SqlToolset
from tests.notebook.conftest import Shell
from tests.support.hostile_texts import Page
from tests.support.late import late

pd = late("pandas")
SQL = "select city, sum(price) as total\nfrom sales -- all of it\ngroup by city order by total desc"


@pytest.fixture
def work(tmp_path: Path, shell: Shell) -> Path:
    """The folder of the notebook, with data; the variable `df` has a frame."""
    shell.ip.starting_dir = str(tmp_path)
    shell.names["df"] = pd.DataFrame({"city": ["Oslo", "Rome", "Oslo"], "price": [1.5, 2.0, 4.0]})
    shell.names["df"].to_csv(tmp_path / "trips.csv", index=False)
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.executescript("create table items (id integer, name text); insert into items values (1, 'cup')")
    db.close()
    return tmp_path


def asked(shell: Shell, tools: str, *calls: Any) -> Any:
    shell.names["model"] = ScriptedLlm(*calls, "Oslo.")
    shell.cell(f"%%agent analyst -m model -t {tools}\nAnswer from the data.")
    return shell.cell("%chat analyst Where did we sell most?")


def results(reply: Any) -> list[dict[str, Any]]:
    return [found.response for event in reply.events for found in event.get_function_responses()]


def test_a_frame_is_asked_in_sql_and_the_row_names_the_variable_with_the_whole_result(shell: Shell, work: Path):
    told = shell.cell("%tool sales --data df")
    again = shell.cell("%tool sales --data df")
    shell.names["sales_1"] = "mine"
    reply = asked(shell, "sales", call("sales_describe"), call("sales_query", sql=SQL))

    assert str(told) == "sales v1\ntable sales: 3 rows, columns city, price"
    assert str(again).startswith("sales v1, unchanged")
    assert isinstance(shell.names["sales"], DataToolset)
    assert shell.names["sales_1"] == "mine"
    assert shell.names["sales_2"].to_dict("list") == {"city": ["Oslo", "Rome"], "total": [5.5, 2.0]}
    assert results(reply)[1]["frame"] == "sales_2"
    assert "→ table of 2 rows in sales_2" in str(shell.cell("%trace"))


def test_the_sql_is_shown_with_colours_and_the_table_below_it_live_and_saved(shell: Shell, work: Path):
    shell.cell("%tool sales --data df")
    reply = asked(shell, "sales", call("sales_query", sql=SQL))

    rows = RunRows()
    [pieces] = [op["shown"] for event in reply.events for op in rows.feed(event) if op.get("shown")]
    assert [piece["kind"] for piece in pieces] == ["code", "table"]
    assert (pieces[0]["text"], pieces[0]["language"]) == (SQL, "sql")
    shown = reply_forms(reply)
    assert pieces[1]["html"] in shown["text/html"]
    colours = [at["style"] for tag, at in Page(shown["text/html"]).elements if tag == "span" and "color" in str(at)]
    assert {"keyword-color" in style for style in colours} == {True, False}
    assert f"```sql\n{SQL}\n```" in shown["text/markdown"]
    assert "group by city order by total desc" in shown["text/plain"]


def test_markup_in_a_query_and_in_values_is_shown_as_text(shell: Shell, work: Path):
    shell.cell("%tool sales --data df")
    reply = asked(shell, "sales", call("sales_query", sql="select '<img src=x onerror=alert(1)>' as \"<b>x</b>\""))

    assert not [tag for tag, _ in Page(reply_forms(reply)["text/html"]).elements if tag in ("img", "b")]


def test_several_sources_are_tables_of_their_own_names_and_edits_and_new_files_are_seen(shell: Shell, work: Path):
    told = shell.cell("%tool both --data df,trips.csv")
    query = call("both_query", sql="select (select sum(price) from df), (select sum(price) from trips)")
    before = results(asked(shell, "both", query))
    shell.cell("df.loc[0, 'price'] = 100")
    (work / "trips.csv").write_text("city,price\nOslo,7\n")
    after = results(asked(shell, "both", query))

    assert str(told).splitlines()[1] == "2 tables: df, trips"
    assert [answer["rows"] for answer in (*before, *after)] == [[[7.5, 7.5]], [[106.0, 7]]]


def test_a_variable_with_the_name_of_a_suffix_is_a_variable(shell: Shell, work: Path):
    shell.names["csv"] = shell.names["df"]

    assert str(shell.cell("%tool sales --data csv")).splitlines()[1] == "table sales: 3 rows, columns city, price"


def test_a_variable_that_is_gone_is_told_with_what_to_do(shell: Shell, work: Path):
    shell.cell("%tool sales --data df")
    shell.cell("del df\nother = 3")
    [answer] = results(asked(shell, "sales", call("sales_query", sql="from sales")))

    assert answer == {"error": "there is no variable df; there is: no frame yet; run the cell that makes it"}


def test_a_database_beside_the_notebook_has_its_name(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir("/")
    told = shell.cell("%tool --sql sqlite:///shop.db")
    shell.names["url"] = f"sqlite:///{work}/shop.db"
    assert str(shell.cell("%tool other --sql url")) == "other v1\ntable items: 1 row, columns id, name"
    [answer] = results(asked(shell, "shop", call("shop_query", sql="select * from items")))

    assert str(told) == "shop v1\ntable items: 1 row, columns id, name"
    assert isinstance(shell.names["shop"], SqlToolset)
    assert answer["rows"] == [[1, "cup"]]
    assert answer["frame"] == "shop_1"
    assert shell.names["shop_1"].to_dict("list") == {"id": [1], "name": ["cup"]}


def test_a_query_that_needs_approval_waits_on_a_card_with_its_sql(shell: Shell, work: Path):
    told = shell.cell("%tool sales --data df --confirm")
    reply = asked(shell, "sales", call("sales_query", sql="select 1 as one"))

    assert "asks before each call" in str(told)
    assert reply.status == "pending"
    assert "select 1 as one" in str(reply)
    shell.cell("%confirm yes")
    assert shell.names["sales_1"].to_dict("list") == {"one": [1]}


WRONG = [
    ("%tool sales --data dff", "there is no variable dff; did you mean df?"),
    ("%tool sales --data pd", "pd is no frame of pandas, polars or Arrow, but of type Late"),
    ("%tool --data df", "'df' is another variable here; give the toolset a name of its own, as %tool sales --data df"),
    ("%tool df --data df", "'df' is another variable here"),
    ("%tool --data df,trips.csv", "give the toolset a name, as %tool sales --data df,trips.csv"),
    ("%tool sales --data trps.csv", "there is no file {work}/trps.csv; did you mean trips.csv?"),
    ("%tool a b --data df", "makes one toolset, and there are 2 names: a, b"),
    ("%tool x --data df --sql sqlite:///shop.db", "--data and --sql are two toolsets; write a line for each"),
    ("%tool x --data df --mcp http://a/b", "--data and --mcp are two toolsets"),
    ("%tool x --data df --timeout 3", "%tool --data has no --timeout, which is for functions"),
    ("%tool x --data df --only look", "there is no tool 'look'; there is: describe, query"),
    ("%%tool x --data df\ny", "write %tool --data df"),
    ("%tool x --sql sqlite:///shp.db", "there is no file shp.db; did you mean shop.db?"),
    ("%tool x --sql mysql://a/b", "write sqlite:///shop.db or postgresql://reader@host/database"),
    ("%tool x --sql postgresql://me:hunter2hunter2@127.0.0.1:9/x", "start the server, or mend the address"),
    ("%tool --sql url", "give the toolset a name, as %tool shop --sql url"),
    ("%tool --sql postgresql://me:hunter2hunter2@127.0.0.1:9/2026", "give the toolset a name"),
    ("%%tool x --sql url\ny", "write %tool --sql url"),
    ('%tool x --data df --confirm "slq == 1"', "there is no 'slq'; did you mean sql?"),
]


def test_what_is_wrong_with_the_line_is_said_with_what_to_write(shell: Shell, work: Path):
    shell.names["pd"], shell.names["url"] = pd, "postgresql://me:hunter2hunter2@127.0.0.1:9/2026"
    for line, said in WRONG:
        printed = shell.fails(line)
        assert said.format(work=work) in printed, printed
        assert "hunter2hunter2" not in printed
    assert shell.ip.adk_nb.tool_names == []


def test_tab_proposes_frames_files_and_databases(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(work)

    assert shell.complete("%tool sales --data d") == ["%tool sales --data df"]
    assert "%tool sales --data trips.csv" in shell.complete("%tool sales --data ")
    assert "%tool shop --sql sqlite:///shop.db" in shell.complete("%tool shop --sql sq")
    assert "%tool sales --data" in shell.complete("%tool sales --da")


def test_without_the_extra_a_line_says_what_to_install(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "duckdb", None)

    assert "'duckdb' is not installed; type: %pip install" in shell.fails("%tool sales --data df")
