"""Code and files of google-adk's evaluation run here."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import Agent, sync, types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError
from adk_nb.evaluation import AgentEvaluator, evaluate
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.eval_case import IntermediateData, Invocation
from adk_nb.evaluation.eval_set import read_eval_set
from adk_nb.models.default_model import set_default_model
from adk_nb.models.scripted_llm import ScriptedLlm, call

AGENT = """
from adk_nb import Agent, types
from adk_nb.models.llm_response import LlmResponse

def roll_die(sides: int) -> int:
    "Roll a die."
    return 4

def answer(callback_context, llm_request):
    last = llm_request.contents[-1].parts[-1]
    if last.function_response:
        part = types.Part(text="You rolled a 4.")
    elif "roll" in last.text:
        part = types.Part(function_call=types.FunctionCall(name="roll_die", args={"sides": 6}))
    else:
        part = types.Part(text="I can roll dice.")
    return LlmResponse(content=types.Content(role="model", parts=[part]))

root_agent = Agent(name="dice", model="gemini-2.5-flash", tools=[roll_die], before_model_callback=answer)
"""


def _turn(question: str, answer: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {
        "user_content": {"role": "user", "parts": [{"text": question}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": list(calls)},
    }


ROLL = {"name": "roll_die", "args": {"sides": 6}}
EVAL_SET = {
    "eval_set_id": "dice",
    "eval_cases": [
        {
            "eval_id": "roll",
            "conversation": [_turn("What can you do?", "I can roll dice."), _turn("roll", "You rolled a 4.", ROLL)],
            "session_input": {"app_name": "dice", "user_id": "user", "state": {}},
        }
    ],
}
OLD = [
    {
        "query": "roll",
        "reference": "You rolled a 4.",
        "expected_tool_use": [{"tool_name": "roll_die", "tool_input": {"sides": 6}}],
    }
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the package `dice`, whose agent rolls dice."""
    package = tmp_path / "dice"
    package.mkdir()
    (package / "__init__.py").write_text("from . import agent\n")
    (package / "agent.py").write_text(AGENT)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("dice", "dice.agent"):
        sys.modules.pop(name, None)


def _write(folder: Path, data: Any, name: str = "roll.test.json") -> str:
    (folder / name).write_text(json.dumps(data))
    return str(folder / name)


def _evaluate(path: str, **options: Any) -> None:
    sync.run(AgentEvaluator.evaluate("dice", path, **options))


@pytest.mark.parametrize("data", [EVAL_SET, OLD])
def test_an_eval_file_of_either_format_passes(folder: Path, data: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _evaluate(_write(folder, data))
    assert "tool_trajectory_avg_score" in capsys.readouterr().out


def test_a_folder_is_searched_for_test_files(folder: Path) -> None:
    _write(folder, OLD)
    (folder / "more").mkdir()
    _write(folder / "more", [{**OLD[0], "reference": "No idea at all."}])
    with pytest.raises(AssertionError, match="response_match_score"):
        _evaluate(str(folder), num_runs=1)


def test_a_config_beside_the_file_sets_metrics_and_thresholds(folder: Path) -> None:
    path = _write(folder, [{**OLD[0], "reference": "You rolled a five or so."}])
    with pytest.raises(AssertionError, match=r"response_match_score.*0\.8"):
        _evaluate(path)
    (folder / "test_config.json").write_text('{"criteria": {"response_match_score": 0.2}}')
    _evaluate(path)


def test_wrong_calls_fail_unless_arguments_are_ignored(folder: Path) -> None:
    path = _write(folder, [{**OLD[0], "expected_tool_use": [{"tool_name": "roll_die", "tool_input": {"sides": 20}}]}])
    with pytest.raises(AssertionError, match="tool_trajectory_avg_score"):
        _evaluate(path)
    criterion = {"threshold": 1.0, "match_type": "in_order", "ignore_args": True}
    (folder / "test_config.json").write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": criterion}}))
    _evaluate(path)


def test_results_are_appended_to_a_csv_file(folder: Path) -> None:
    _evaluate(_write(folder, OLD), num_runs=1, output_file=str(folder / "out" / "results.csv"))
    header, *lines = (folder / "out" / "results.csv").read_text().splitlines()
    assert {"eval_id", "metric_name", "score", "eval_status"} <= set(header.split(","))
    assert len(lines) == 2 and all("PASSED" in line for line in lines)


def test_a_metric_of_google_cloud_is_refused_by_name(folder: Path) -> None:
    (folder / "test_config.json").write_text('{"criteria": {"safety_v1": 0.5}}')
    with pytest.raises(InputError, match="safety_v1"):
        _evaluate(_write(folder, OLD))


def test_a_count_takes_no_threshold(folder: Path) -> None:
    (folder / "test_config.json").write_text('{"criteria": {"tool_call_count_v1": 5}}')
    with pytest.raises(InputError, match=r"tool_call_count_v1.*threshold"):
        _evaluate(_write(folder, OLD))


@pytest.mark.parametrize("text", ["{", "[]", '{"eval_set_id": "x"}', '[{"query": 3}]', '{"eval_cases": 1}'])
def test_a_file_that_is_no_eval_set_is_refused_with_its_name(folder: Path, text: str) -> None:
    (folder / "bad.test.json").write_text(text)
    with pytest.raises(InputError, match=r"bad\.test\.json|column 'message'"):
        _evaluate(str(folder / "bad.test.json"))


def test_old_files_are_migrated(folder: Path) -> None:
    old, new = _write(folder, OLD), folder / "new.evalset.json"
    AgentEvaluator.migrate_eval_data_to_new_schema(old, str(new))
    (case,) = read_eval_set(new).eval_cases
    assert case.conversation and len(case.conversation) == 1
    _evaluate(str(new))


def test_an_eval_set_is_a_table_of_cases_too(folder: Path) -> None:
    from dice.agent import root_agent  # type: ignore[import-not-found] # noqa: PLC0415 # made by the fixture

    evaluation = evaluate(root_agent, _write(folder, EVAL_SET, "dice.evalset.json"))
    (row,) = evaluation.rows
    assert row.outcome == "passed"
    assert set(row.scores) == {"tool_trajectory_avg_score", "response_match_score"}


@pytest.fixture
def judged() -> Iterator[Callable[..., ScriptedLlm]]:
    """Makes the default model, which judges, answer so."""

    def judge_by(*answers: Any) -> ScriptedLlm:
        judge = ScriptedLlm(*answers)
        LlmAgent.set_default_model(judge)
        return judge

    yield judge_by
    set_default_model(None)


def _labels(*labels: str) -> str:
    blocks = (
        f"sentence: s{number}\nlabel: {label}\nrationale: r\nsupporting_excerpt: null\ncontradicting_excerpt: null"
        for number, label in enumerate(labels)
    )
    return "\n\n".join(blocks)


def test_sentences_that_the_context_supports_are_counted(folder: Path, judged: Callable[..., ScriptedLlm]) -> None:
    segments = "<sentence>It is a five.</sentence>\n<sentence>Hello!</sentence>\n<sentence>It is red.</sentence>"
    labels = _labels("supported", "not_applicable", "contradictory", "nonsense")
    judge = judged(segments, labels)
    (folder / "test_config.json").write_text('{"criteria": {"hallucinations_v1": 0.7}}')
    path = _write(folder, OLD)
    with pytest.raises(AssertionError, match=r"hallucinations_v1.*0\.7.*0\.66"):
        _evaluate(path, num_runs=1)
    assert len(judge.requests) == 2
    asked = str(judge.requests[1].contents)
    assert "It is red." in asked and "roll_die" in asked
    judged(segments, _labels("supported", "disputed", "unsupported"))
    with pytest.raises(AssertionError, match=r"0\.33"):
        _evaluate(path, num_runs=1)
    judged("no sentence")
    with pytest.raises(AssertionError, match="not evaluated"):
        _evaluate(path, num_runs=1)


def test_rubrics_of_a_conversation_see_all_of_its_turns(folder: Path, judged: Callable[..., ScriptedLlm]) -> None:
    verdicts = {"verdicts": [{"reason": "r", "holds": True}, {"reason": "r", "holds": False}]}
    judge = judged(json.dumps(verdicts))
    rubrics = [{"rubric_id": text, "rubric_content": {"text_property": text}} for text in ("rolls", "is polite")]
    criterion = {"threshold": 0.5, "rubrics": rubrics, "judge_model_options": {"num_samples": 1}}
    name = "rubric_based_multi_turn_trajectory_quality_v1"
    (folder / "test_config.json").write_text(json.dumps({"criteria": {name: criterion}}))
    _evaluate(_write(folder, OLD), num_runs=1)
    asked = str(judge.requests[0].contents)
    assert len(judge.requests) == 1 and "USER TURN 1" in asked and "roll_die" in asked and "is polite" in asked


@pytest.mark.parametrize(
    "name",
    [
        "safety_v1",
        "response_evaluation_score",
        "multi_turn_task_success_v1",
        "multi_turn_trajectory_quality_v1",
        "multi_turn_tool_use_quality_v1",
        "per_turn_user_simulator_quality_v1",
    ],
)
def test_a_metric_that_is_refused_says_why(folder: Path, name: str) -> None:
    (folder / "test_config.json").write_text(json.dumps({"criteria": {name: 0.5}}))
    with pytest.raises(InputError, match=r"Google Cloud|no(ne)? (user )?is simulated"):
        _evaluate(_write(folder, OLD))


def test_a_stub_answers_with_the_result_of_the_expected_turns(folder: Path) -> None:
    called: list[str] = []

    def pay(to: str) -> str:
        """Pay somebody."""
        called.append(to)
        return "paid"

    def run(*expected: Any, stubs: tuple[str, ...] = ("pay",)) -> list[Any]:
        data = IntermediateData(
            tool_uses=[types.FunctionCall(name="pay", args={"to": "ada"}) for _ in expected],
            tool_responses=[types.FunctionResponse(name="pay", response=result) for result in expected],
        )
        content = types.Content(role="user", parts=[types.Part(text="Pay ada twice")])
        turn = Invocation(user_content=content, final_response=None, intermediate_data=data)
        case = Case(id="one", messages=("Pay ada twice",), reference=(turn,))
        agent = Agent(
            name="payer", model=ScriptedLlm(call("pay", to="ada"), call("pay", to="bob"), "Done."), tools=[pay]
        )
        evaluation = evaluate(agent, [case], metrics=["tool_call_count_v1"], stubs=stubs)
        events = evaluation.run("one").events
        return [answered.response for event in events for answered in event.get_function_responses()]

    assert run({"receipt": 1}, {"receipt": 2}) == [{"receipt": 1}, {"receipt": 2}]
    assert run({"receipt": 1}) == [{"receipt": 1}, {"result": "(stubbed)"}]
    assert run() == [{"result": "(stubbed)"}] * 2
    assert called == []
    assert run(stubs=()) == [{"result": "paid"}] * 2 and called == ["ada", "bob"]
