"""`adk-nb eval` and `adk-nb map`: the cases of a notebook and the rows of a table, as CI runs them."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from tests.command_line.conftest import Ran
from tests.command_line.test_run import CLERK, LOAD, PAY

Cli = Callable[..., Ran]
Write = Callable[..., str]

CASES = """%%eval clerk
| message | calls |
| --- | --- |
| Pay 5 euros to "Bo" | pay(to="Bo", amount=5) |
| Pay 6 euros to "Bo" | pay(to="Bo", amount=7) |"""


def test_the_cases_of_a_notebook_pass_or_fail_a_job(adk_nb: Cli, notebook: Write):
    shop = notebook(LOAD, PAY, CLERK, CASES)
    failed = adk_nb("eval", shop)
    assert failed.code == 1 and "cell 4: clerk: 1 of 2 cases passed" in failed.out and "case2" in failed.out
    assert failed.err == "adk-nb: clerk: 1 of 2 cases passed, 1 failed, score 0.50; the minimum is 1\n"
    assert adk_nb("eval", shop, "--min", "0.5").code == 0
    assert adk_nb("eval", shop, "--min", "0.9").code == 1


def test_a_cell_that_names_its_minimum_is_held_to_that(adk_nb: Cli, notebook: Write):
    shop = notebook(LOAD, PAY, CLERK, CASES.replace("clerk", "clerk --min 0.5", 1))
    assert adk_nb("eval", shop).code == 0
    assert adk_nb("eval", shop, "--min", "1").code == 1


def test_all_eval_cells_run_or_those_of_one_agent(adk_nb: Cli, notebook: Write):
    other = '%%eval second\n| message | calls |\n| --- | --- |\n| Pay 5 euros to "Bo" | pay |'
    shop = notebook(LOAD, PAY, CLERK, CASES, CLERK.replace("clerk", "second"), other)
    both = adk_nb("eval", shop, "--json")
    assert both.code == 1 and [one["agent"] for one in both.json["evaluations"]] == ["clerk", "second"]
    one = adk_nb("eval", shop, "second", "--json")
    assert one.code == 0 and one.json["passed"] and one.json["evaluations"][0]["place"] == "cell 6"
    outcomes = {case["id"]: case["outcome"] for case in both.json["evaluations"][0]["cases"]}
    assert outcomes == {"case1": "passed", "case2": "failed"}


def test_cases_are_in_a_file_beside_the_command(adk_nb: Cli, notebook: Write, tmp_path: Path):
    notebook(LOAD, PAY, CLERK)
    (tmp_path / "away").mkdir()
    (tmp_path / "cases.csv").write_text('message,calls\n"Pay 5 euros to ""Bo""",pay\n')
    (tmp_path / "shop.ipynb").rename(tmp_path / "away" / "shop.ipynb")
    ran = adk_nb("eval", "away/shop.ipynb", "clerk", "--cases", "cases.csv")
    assert ran.code == 0 and "1 of 1 case" in ran.out


def test_a_case_that_waits_for_approval_is_no_pass(adk_nb: Cli, notebook: Write):
    cell = '%%eval clerk\n| message | calls |\n| --- | --- |\n| Pay 500 euros to "Bo" | pay |'
    shop = notebook(LOAD, PAY, CLERK, cell)
    assert adk_nb("eval", shop).code == 3
    assert adk_nb("eval", shop, "--yes").code == 0


def test_what_cannot_be_evaluated_is_told_in_a_line(adk_nb: Cli, notebook: Write):
    shop = notebook(LOAD, PAY, CLERK)
    for arguments, problem in {
        (): "shop.ipynb has no %%eval cell",
        ("clrek",): "did you mean 'clerk'?",
        ("clerk", "--cases", "none.csv"): "cannot read",
        ("--min", "2"): "'2' is no score",
    }.items():
        ran = adk_nb("eval", shop, *arguments)
        assert ran.code == 2 and problem in ran.err and ran.err.count("\n") == 1


def test_a_table_is_answered_row_by_row_as_csv_or_json_lines(adk_nb: Cli, notebook: Write, tmp_path: Path):
    shop = notebook(LOAD, PAY, CLERK)
    (tmp_path / "letters.csv").write_text("who,amount\nBo,5\nAnna,200\n")
    asked = ("map", shop, "clerk", "--over", "letters.csv", "--message", 'Pay {{amount}} euros to "{{who}}"')
    ran = adk_nb(*asked)
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert ran.code == 3 and [row["_status"] for row in rows] == ["done", "pending"]
    assert rows[0]["answer"] == "Paid 5 euros to Bo." and "1 of 2 rows wait for approval" in ran.err
    done = adk_nb(*asked, "--yes", "--out", "answers.jsonl")
    written = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    assert done.code == 0 and done.out == "" and written[1]["answer"] == "Paid 200 euros to Anna."
    assert adk_nb(*asked[:3], "--over", "none.csv").code == 2
    assert adk_nb(*asked, "--out", "nowhere/x.csv").code == 2
    folder = adk_nb(*asked, "--out", ".")
    assert folder.code == 2 and "is a folder; name a file in it" in folder.err
