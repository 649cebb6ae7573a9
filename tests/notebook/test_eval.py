"""`%%eval`: cases in a cell, the table of results, and what can be done with it."""

import json
from pathlib import Path

import pytest

from adk_nb.evaluation.eval_set import read_eval_set
from adk_nb.evaluation.evaluation import Evaluation
from adk_nb.models.scripted_llm import ScriptedLlm
from tests.notebook.conftest import Shell
from tests.support.each import each

MODEL = """
from adk_nb.models.llm_response import LlmResponse
from adk_nb import types

asked = []
def answer(callback_context, llm_request):
    last = llm_request.contents[-1].parts[-1]
    if last.function_response:
        part = types.Part(text=f"It has {last.function_response.response['day_hours']} hours.")
    else:
        asked.append(last.text)
        planet = next((word for word in ("Jupiter", "Venus") if word in last.text), None)
        call = types.FunctionCall(name="planet_facts", args={"planet": planet})
        part = types.Part(function_call=call) if planet else types.Part(text="Which planet?")
    return LlmResponse(content=types.Content(role="model", parts=[part]))
"""
TOOL = '''%%tool
def planet_facts(planet: str) -> dict:
    """Facts about a planet."""
    return {"planet": planet, "day_hours": 9.9}
'''
REJECTED = """
def answer_rejected(llm_request):
    last = llm_request.contents[-1].parts[-1]
    call = types.FunctionCall(name="planet_facts", args={"planet": "Jupiter"})
    part = types.Part(text="Not allowed.") if last.function_response else types.Part(function_call=call)
    return LlmResponse(content=types.Content(role="model", parts=[part]))
"""
AGENT = """%%agent planner --tools planet_facts --model gemini-2.5-flash
Answer with facts.
"""
EVAL = """%%eval planner
| id | message | calls | answer |
| --- | --- | --- | --- |
| jupiter | How long is a day on Jupiter? | planet_facts(planet="Jupiter") | 9.9 |
| venus | How long is a day on Venus? | planet_facts(planet="Venus") | 5832 |
"""


@pytest.fixture
def planner(shell: Shell) -> Shell:
    """A shell with an agent that knows one number."""
    shell.cell(MODEL)
    shell.cell(TOOL)
    shell.cell(AGENT)
    shell.cell("planner.before_model_callback = answer")
    return shell


def _text(shell: Shell, value: object) -> str:
    """What a cell shows of a value, as text."""
    data, _ = shell.ip.display_formatter.format(value)  # type: ignore[union-attr]
    return data["text/plain"]


def test_a_table_of_cases_becomes_a_table_of_results(planner: Shell) -> None:
    evaluation = planner.cell(EVAL)
    assert isinstance(evaluation, Evaluation) and planner.names["_eval"] is evaluation
    shown = _text(planner, evaluation)
    assert "1 of 2" in shown and "✓  jupiter" in shown and "✗  venus" in shown
    assert "5832" in shown and "9.9 hours" in shown  # what was expected, and what came


def test_the_same_cell_asks_nobody_again(planner: Shell) -> None:
    planner.cell(EVAL)
    planner.cell(EVAL)
    assert len(planner.names["asked"]) == 2


def test_an_edited_agent_is_asked_again_and_the_difference_names_its_line(planner: Shell) -> None:
    planner.cell(EVAL)
    planner.cell(AGENT.replace("Answer with facts.", "Answer in hours."))
    planner.cell("planner.before_model_callback = answer")
    planner.cell(EVAL.replace("5832", "9.9"))
    assert len(planner.names["asked"]) == 4
    difference = str(planner.cell("%eval diff -1 -2"))
    assert "venus" in difference and "✗ failed" in difference and "✓ passed" in difference
    assert "-Answer with facts." in difference and "+Answer in hours." in difference


def test_an_edited_tool_or_variable_runs_the_rows_again(planner: Shell) -> None:
    planner.cell("tone = 'friendly'")
    planner.cell(AGENT.replace("Answer with facts.", "Be {{tone}}."))
    planner.cell("planner.before_model_callback = answer")
    planner.cell(EVAL)
    planner.cell(TOOL.replace("9.9", "5832"))
    assert [row.outcome for row in planner.cell(EVAL).rows] == ["failed", "passed"]
    planner.cell("tone = 'stern'")
    planner.cell(EVAL)
    assert len(planner.names["asked"]) == 6


def test_a_tool_that_now_asks_for_approval_runs_the_rows_again(planner: Shell) -> None:
    planner.cell(EVAL)
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm"))
    assert {row.outcome for row in planner.cell(EVAL).rows} == {"pending"}


def test_below_the_minimum_the_cell_fails_and_shows_its_table(planner: Shell) -> None:
    printed = planner.fails(EVAL.replace("%%eval planner", "%%eval planner --min 0.9"))
    assert "EvaluationFailedError" in printed and "0.50" in printed and "0.9" in printed
    assert "✗  venus" in printed
    planner.cell(EVAL.replace("%%eval planner", "%%eval planner --min 0.5"))


def test_a_case_without_a_value_fails_the_gate_and_is_named(planner: Shell) -> None:
    planner.cell("def fragile(run):\n    if run.case.id != 'jupiter': raise RuntimeError('over quota')\n    return 1.0")
    cases = "\n".join(EVAL.splitlines()[1:]).replace(" | 9.9", " | 9").replace(" | 5832", " | 9")
    printed = planner.fails(f"%%eval planner --metrics fragile --min 0.9\n{cases}")
    assert "EvaluationFailedError" in printed and "'venus'" in printed and "over quota" in printed
    assert "'jupiter'" not in printed.splitlines()[-1]
    assert planner.cell(f"%%eval planner --min 0.9\n{cases}").score == 1.0


def test_one_name_limits_the_runs_at_once_everywhere(planner: Shell) -> None:
    cases = "\n".join(EVAL.splitlines()[1:])
    assert len(planner.cell(f"%%eval planner --max-concurrency 1\n{cases}").rows) == 2
    planner.cell("rows = [{'message': 'Venus?'}]")
    assert planner.cell("%map planner --over rows --max-concurrency 1")[0]["_status"] == "done"
    assert "0" in planner.fails("%map planner --over rows --max-concurrency 0")


def test_a_run_of_a_case_is_opened(planner: Shell) -> None:
    planner.cell(EVAL)
    opened = planner.cell("%eval open jupiter")
    assert opened.text == "It has 9.9 hours." and opened.status == "done"
    assert "planet_facts" in opened._repr_mimebundle_()["text/html"]
    assert "'nowhere'" in planner.fails("%eval open nowhere")


def test_the_run_that_is_opened_is_the_one_that_did_not_pass(planner: Shell) -> None:
    planner.cell("from adk_nb.models.scripted_llm import ScriptedLlm\nplanner.before_model_callback = None")
    planner.cell("planner.model = ScriptedLlm('yes', 'no', 'yes')")
    table = "| id | message | answer |\n| --- | --- | --- |\n| x | Well? | yes |"
    cell = f"%%eval planner --repeats 3 --max-concurrency 1\n{table}"
    evaluation = planner.cell(cell)
    assert "~  x" in _text(planner, evaluation) and "%eval open x" in _text(planner, evaluation)
    assert planner.cell("%eval open x").text == "no"
    assert planner.cell("%eval open x 2").text == "yes"
    assert "3 runs" in planner.fails("%eval open x 3")
    assert "'x'" in planner.fails("%eval open y")


def test_a_run_of_a_table_is_opened(planner: Shell) -> None:
    planner.cell("rows = [{'planet': 'Jupiter'}]")
    (row,) = planner.cell('%map planner --over rows --message "How long is a day on {{planet}}?"')
    opened = planner.cell(f"%eval open {row['_run']}")
    assert opened.text == "It has 9.9 hours." and "planet_facts" in opened._repr_mimebundle_()["text/html"]
    assert "_run" in planner.fails("%eval open row-00000000000000000000")


def test_a_turn_becomes_a_case(planner: Shell) -> None:
    planner.cell("%chat planner How long is a day on Jupiter?")
    added = str(planner.cell("%eval add -1 --as jupiter"))
    assert "'jupiter'" in added and "planet_facts(planet='Jupiter')" in added
    evaluation = planner.cell("%eval planner")
    assert evaluation.score == 1.0
    assert set(evaluation.rows[0].scores) == {"tool_trajectory_avg_score", "response_match_score"}


def test_cases_are_exported_for_google_adk(planner: Shell, tmp_path: Path) -> None:
    planner.cell(EVAL)
    printed = str(planner.cell(f"%eval export {tmp_path}/planner.evalset.json"))
    assert "planner.evalset.json" in printed and "1" in printed
    (case,) = read_eval_set(tmp_path / "planner.evalset.json").eval_cases
    assert case.eval_id == "jupiter"
    evaluation = planner.cell(f"%eval planner --cases {tmp_path}/planner.evalset.json")
    assert evaluation.score == 1.0


def test_cases_come_from_a_variable_or_a_file(planner: Shell, tmp_path: Path) -> None:
    planner.cell("cases = [{'message': 'How long is a day on Jupiter?', 'answer': '9.9'}]")
    assert planner.cell("%eval planner --cases cases").score == 1.0
    (tmp_path / "cases.json").write_text(json.dumps({"eval_set_id": "x", "eval_cases": []}))
    assert "message" in planner.fails(f"%eval planner --cases {tmp_path}/cases.json")


def test_metrics_of_the_notebook_are_named(planner: Shell) -> None:
    planner.cell("def short(run): return len(run.answer) < 10")
    evaluation = planner.cell(EVAL.replace("%%eval planner", "%%eval planner --metrics short"))
    assert {row.scores["short"].verdict for row in evaluation.rows} == {"failed"}
    planner.cell("cases = [{'message': 'a'}]")
    assert "'shrt'" in planner.fails("%eval planner --cases cases --metrics shrt")


@pytest.mark.parametrize("before", ["", "from adk_nb.evaluation import judge"])
def test_the_judge_is_named_as_its_column(planner: Shell, before: str) -> None:
    planner.cell(before)
    planner.names["judging"] = ScriptedLlm('{"verdicts": [{"reason": "it is", "holds": true}]}')
    table = "| message | judge |\n| --- | --- |\n| How long is a day on Jupiter? | is brief |"

    evaluation = planner.cell(f"%%eval planner --metrics judge --judge judging\n{table}")

    assert [row.scores["judge"].verdict for row in evaluation.rows] == ["passed"]


def test_open_approvals_are_answered_for_all_runs(planner: Shell) -> None:
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm"))
    evaluation = planner.cell(EVAL)
    assert {row.outcome for row in evaluation.rows} == {"pending"}
    assert "%eval approve planet_facts" in _text(planner, evaluation)
    approved = planner.cell("%eval approve planet_facts")
    assert [row.outcome for row in approved.rows] == ["passed", "failed"]


@each(
    "cell, facts",
    [
        ("%eval planner", ["%%eval planner", "--cases", "%eval add"]),
        ("%eval plannr --cases x", ["'plannr'", "planner"]),
        ("%eval planner venus", ["venus"]),
        ("%eval planner --cases nothing", ["'nothing'"]),
        ("%eval open", ["CASE"]),
        ("%eval open x y", ["CASE 2"]),
        ("%eval opn venus", ["'opn'", "%eval open"]),
        ("%eval aprove", ["'aprove'", "%eval approve"]),
        ("%eval diff -1", ["-1", "-2"]),
        ("%eval diff a b", ["'a'"]),
        ("%eval rerun", ["no evaluation"]),
        ("%%eval planner --min 2\n| message |\n| --- |\n| a |", ["'2'"]),
        ("%%eval planner --budget 0\n| message |\n| --- |\n| a |", ["'0'"]),
        ("%%eval planner --yes --no\n| message |\n| --- |\n| a |", ["--yes", "--no"]),
        ("%%eval planner\n| mesage |\n| --- |\n| a |", ["'message'", "'mesage'"]),
        ("%%eval planner\n| message | anser |\n| --- | --- |\n| a | b |", ["'anser'", "'answer'"]),
        ("%%eval planner\nmessage | answer\na | b", ["| message | answer |", "- message:"]),
        (
            "%%eval planner\n| message | calls |\n| --- | --- |\n| a | planet_facts(planet=Mars) |",
            ["planet_facts(planet=Mars)", 'planet="Mars"'],
        ),
        (
            "%%eval planner\n| message | initial_state |\n| --- | --- |\n| a | budget=5 |",
            ["'budget=5'", '{"budget": 5}'],
        ),
    ],
)
def test_a_wrong_line_says_what_to_type(planner: Shell, cell: str, facts: list[str]) -> None:
    printed = planner.fails(cell)
    assert all(fact in printed for fact in facts), printed
    assert planner.names["asked"] == []


def test_a_call_that_is_no_python_is_refused_without_a_place_in_a_file_of_nobody(planner: Shell) -> None:
    printed = planner.fails("%%eval planner\n| message | calls |\n| --- | --- |\n| a | planet_facts(planet=1 |")
    assert "planet_facts(planet=1" in printed and "<unknown>" not in printed


def test_a_case_that_misses_a_key_of_the_state_is_told_the_column_for_it(planner: Shell) -> None:
    planner.cell(AGENT.replace("with facts", "with facts about {system}"))
    planner.cell("planner.before_model_callback = answer")
    planner.cell("%state system=solar")
    without, table = "%%eval planner\n| message |\n| --- |\n| Hi |", '| Hi | {"system": "solar"} |'
    [missing] = planner.cell(without).rows
    assert missing.outcome == "error" and "initial_state" in missing.reason
    [there] = planner.cell(f"%%eval planner\n| message | initial_state |\n| --- | --- |\n{table}").rows
    assert there.answer == "Which planet?"


def test_a_turn_without_an_answer_in_text_becomes_no_case(planner: Shell) -> None:
    planner.cell("def echo(node_input: str) -> str:\n    return node_input")
    planner.cell("%%workflow parrot\nSTART -> echo")
    planner.cell("%chat parrot Polly")
    assert "'Polly'" in planner.fails("%eval add -1")


def test_a_turn_that_waits_for_an_approval_becomes_no_case(planner: Shell) -> None:
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm"))
    planner.cell("%chat planner How long is a day on Jupiter?")
    assert planner.names["_run"].status == "pending"
    assert "has no answer" in planner.fails("%eval add -1")


def test_one_call_waits_and_two_calls_wait(planner: Shell) -> None:
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm"))
    assert "2 calls of planet_facts wait for approval" in _text(planner, planner.cell(EVAL))
    one_case = "\n".join(EVAL.splitlines()[:4])
    assert "1 call of planet_facts waits for approval" in _text(planner, planner.cell(one_case))


def test_map_answers_a_table(planner: Shell) -> None:
    planner.cell("rows = [{'planet': 'Jupiter'}, {'planet': 'Venus'}, {'planet': 'Jupiter'}]")
    table = planner.cell('%map planner --over rows --message "How long is a day on {{planet}}?"')
    assert [row["answer"] for row in table] == ["It has 9.9 hours."] * 3
    assert len(planner.names["asked"]) == 2 and planner.names["_map"] is table
    planner.cell("from adk_nb import Chat")
    same = planner.cell("Chat(planner).map(rows, message='How long is a day on {{planet}}?')")
    assert [row["answer"] for row in same] == ["It has 9.9 hours."] * 3


def test_the_approvals_that_a_table_waits_for_are_answered_by_tool(planner: Shell) -> None:
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm"))
    planner.cell("rows = [{'message': 'How long is a day on Jupiter?'}, {'message': 'On Venus?'}]")
    assert "no table yet" in planner.fails("%map approve")
    waiting = planner.cell("%map planner --over rows")
    assert [row["_status"] for row in waiting] == ["pending", "pending"]
    assert "there is: planet_facts" in planner.fails("%map approve fly")
    answered = planner.cell("%map approve planet_facts")
    assert [row["answer"] for row in answered] == ["It has 9.9 hours."] * 2
    assert planner.names["_map"] == answered and len(planner.names["asked"]) == 2
    assert "no call waits" in planner.fails("%map reject")


def test_what_a_table_waits_for_can_be_rejected(planner: Shell) -> None:
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm"))
    planner.cell("planner.before_model_callback = lambda callback_context, llm_request: answer_rejected(llm_request)")
    planner.cell(REJECTED)
    planner.cell("rows = [{'message': 'How long is a day on Jupiter?'}]")
    planner.cell("%map planner --over rows")
    (row,) = planner.cell("%map reject")
    assert (row["_status"], row["answer"]) == ("done", "Not allowed.")


def test_map_refuses_what_it_cannot_ask(planner: Shell) -> None:
    planner.cell("rows = [{'planet': 'Jupiter'}]")
    assert "--over" in planner.fails("%map planner")
    assert "'message'" in planner.fails("%map planner --over rows")
    assert "'plnt'" in planner.fails('%map planner --over rows --message "{{plnt}}"')
    assert "'rowz'" in planner.fails("%map planner --over rowz")
    assert "rowz.csv" in planner.fails("%map planner --over rowz.csv")
    assert "--message" in planner.fails("%map planner --over rows --message How long is {{planet}}?")
    surplus = planner.fails("%map planner rows Tell me about {{planet}}")
    assert "--over" in surplus and "--message" in surplus
    assert planner.names["asked"] == []


def test_a_changed_agent_is_not_rerun_as_it_was(planner: Shell) -> None:
    planner.cell(EVAL)
    planner.cell(AGENT.replace("with facts", "with numbers"))
    assert "%%eval planner" in planner.fails("%eval rerun --failed")


def test_open_approvals_of_a_changed_agent_run_on_as_they_were_asked(planner: Shell) -> None:
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm"))
    planner.cell(EVAL)
    planner.cell(AGENT.replace("with facts", "with numbers"))
    approved = planner.cell("%eval approve planet_facts")
    assert [row.outcome for row in approved.rows] == ["passed", "failed"]


PRICED = """
def answer(callback_context, llm_request):
    usage = types.GenerateContentResponseUsageMetadata(candidates_token_count=1000, total_token_count=1000)
    content = types.Content(role="model", parts=[types.Part(text="yes")])
    return LlmResponse(content=content, usage_metadata=usage, model_version="gemini-2.5-flash")

planner.before_model_callback = answer
rows = [{"message": f"question {number}"} for number in range(100)]
"""


def test_what_is_projected_above_the_limit_pauses_until_it_is_allowed(planner: Shell) -> None:
    planner.cell(PRICED)
    planner.cell("%config AdkNb.confirm_above_usd = 0.1")
    paused = planner.cell("%eval planner --cases rows --max-concurrency 1")
    assert [row.outcome for row in paused.rows].count("not run") == 95
    assert "95 runs" in _text(planner, paused) and "%eval rerun" in _text(planner, paused)
    assert not [row for row in planner.cell("%eval rerun").rows if row.outcome == "not run"]
    answered = planner.cell("%map planner --over rows --max-concurrency 1 --message 'map {{message}}'")
    assert [row["_status"] for row in answered].count("not run") == 95
    assert "--budget" in planner.printed


def test_rows_without_an_answer_are_counted_below_a_table(planner: Shell) -> None:
    planner.cell("def fail(callback_context, llm_request):\n    raise RuntimeError('no luck')")
    planner.cell("planner.before_model_callback = fail")
    planner.cell("rows = [{'message': 'a'}, {'message': 'b'}]")
    answered = planner.cell("%map planner --over rows")
    assert all("no luck" in row["_error"] for row in answered)
    assert "2 of 2" in planner.printed and "_error" in planner.printed


JUDGED = "%%eval planner --judge jury\n| message | judge |\n| --- | --- |\n| Well? | is polite |"


def test_a_judge_is_recorded_and_replayed(planner: Shell, tmp_path: Path) -> None:
    planner.cell("from adk_nb.models.scripted_llm import ScriptedLlm\nplanner.before_model_callback = None")
    planner.cell("planner.model = ScriptedLlm('Good day.')")
    planner.cell("""jury = ScriptedLlm('{"verdicts": [{"reason": "it greets", "holds": true}]}')""")
    planner.cell(f"%record --file {tmp_path}/judged.jsonl")
    assert planner.cell(JUDGED).score == 1.0
    planner.cell("planner.model = jury = ScriptedLlm()")  # has no answer
    planner.cell(f"%replay --file {tmp_path}/judged.jsonl")
    assert planner.cell(JUDGED).score == 1.0


def test_a_judge_that_is_not_there_is_refused_before_anything_runs(planner: Shell) -> None:
    assert "'jury'" in planner.fails(JUDGED)
    assert planner.names["asked"] == []


def test_a_stand_in_is_named_above_the_table(shell: Shell) -> None:
    shell.cell("%%agent clerk -m offline\nAnswer.")
    shell.cell("%%eval clerk\n| message | answer |\n| --- | --- |\n| a | b |")
    assert "Offline stand-in" in shell.printed
    shell.cell("rows = [{'message': 'a'}]")
    shell.cell("%map clerk --over rows")
    assert "Offline stand-in" in shell.printed


STOPPED = """
import _thread, asyncio

async def answer(callback_context, llm_request):
    text = llm_request.contents[-1].parts[-1].text
    if text == "question 3" and not asked:
        asked.append(text)
        _thread.interrupt_main()
        await asyncio.Event().wait()
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="yes")]))

planner.before_model_callback = answer
rows = [{"message": f"question {number}", "answer": "yes"} for number in range(6)]
"""


def test_a_stopped_evaluation_keeps_what_is_done_and_the_same_cell_goes_on(planner: Shell) -> None:
    planner.cell(STOPPED)
    printed = planner.fails("%eval planner --cases rows --max-concurrency 1")
    assert "KeyboardInterrupt" in printed and "Traceback" not in printed
    assert "3 of 6 cases passed, 3 not run" in printed and "run this cell again" in printed
    assert [row.outcome for row in planner.names["_eval"].rows] == ["passed"] * 3 + ["not run"] * 3
    again = planner.cell("%eval planner --cases rows --max-concurrency 1")
    assert again.score == 1.0 and again.progress.reused == 3


def test_a_stopped_table_keeps_its_answers(planner: Shell) -> None:
    planner.cell(STOPPED)
    printed = planner.fails("%map planner --over rows --max-concurrency 1")
    assert "KeyboardInterrupt" in printed and "3 of 6" in printed and "_map" in printed
    assert [row["_status"] for row in planner.names["_map"]] == ["done"] * 3 + ["not run"] * 3
    assert {row["_status"] for row in planner.cell("%map planner --over rows --max-concurrency 1")} == {"done"}


def test_a_call_that_was_stopped_is_not_made_again_until_it_is_wanted(planner: Shell) -> None:
    planner.cell("import _thread, asyncio")
    planner.cell("""%%tool
async def planet_facts(planet: str) -> dict:
    "Facts about a planet."
    asked.append(planet)
    _thread.interrupt_main()
    await asyncio.Event().wait()
""")
    planner.cell("cases = [{'message': 'Jupiter?'}]\nplanner.before_model_callback = None")
    planner.cell(
        "from adk_nb.models.scripted_llm import ScriptedLlm, call\n"
        "planner.model = ScriptedLlm(call('planet_facts', planet='Jupiter'), 'Done.')"
    )
    assert "KeyboardInterrupt" in planner.fails("%eval planner --cases cases")
    (case,) = planner.cell("%eval planner --cases cases").cases
    assert (case.rows[0].outcome, planner.names["asked"]) == ("error", ["Jupiter"])
    assert "planet_facts" in case.reason and "failed" in case.reason
    planner.cell("planner.model = ScriptedLlm('Done.')")
    assert planner.cell("%eval rerun --failed").rows[0].answer == "Done."


def test_an_answer_to_nothing_is_refused(planner: Shell) -> None:
    planner.cell(EVAL)
    assert "no call" in planner.fails("%eval approve")
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm"))
    planner.cell(EVAL)
    printed = planner.fails("%eval approve planet_fact")
    assert "'planet_fact'" in printed and "planet_facts" in printed


def test_a_file_of_another_format_is_not_written(planner: Shell, tmp_path: Path) -> None:
    planner.cell(EVAL)
    planner.cell("%chat planner How long is a day on Jupiter?")
    for name in ("c.jsonl", "c.csv", "c.html", "c"):
        assert "c.evalset.json" in planner.fails(f"%eval export {tmp_path}/{name}")
    assert "c.json" in planner.fails(f"%session save {tmp_path}/c.html")
    assert list(tmp_path.glob("c*")) == []


def test_what_was_added_is_exported_without_a_run(planner: Shell, tmp_path: Path) -> None:
    file = tmp_path / "added.evalset.json"
    assert "no evaluation" in planner.fails(f"%eval export {file}")
    planner.cell("%chat planner How long is a day on Jupiter?")
    planner.cell("%eval add -1 --as jupiter")
    assert "1 case" in str(planner.cell(f"%eval export {file}"))
    (case,) = read_eval_set(file).eval_cases
    assert case.eval_id == "jupiter" and case.session_input and case.session_input.app_name == "planner"
    planner.cell(EVAL.replace("| jupiter |", "| other |"))
    planner.cell(f"%eval export {file}")
    assert [case.eval_id for case in read_eval_set(file).eval_cases] == ["jupiter", "other"]


def test_a_stubbed_tool_does_not_run_and_asks_nobody(planner: Shell) -> None:
    planner.cell(TOOL.replace("%%tool", "%%tool --confirm").replace("return {", "done.append(planet); return {"))
    planner.cell("done = []")
    planner.cell("cases = [{'message': 'Jupiter?', 'answer': '7 hours', 'stubs': {'planet_facts': {'day_hours': 7}}}]")
    assert planner.cell("%eval planner --cases cases --stub planet_facts").score == 1.0
    assert planner.names["done"] == []
    assert {row.outcome for row in planner.cell("%eval planner --cases cases").rows} == {"pending"}
    assert "planet_facts" in planner.fails("%eval planner --cases cases --stub planet_fact")
