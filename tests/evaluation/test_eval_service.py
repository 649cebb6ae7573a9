"""google-adk's eval service and its managers: cases run, are scored, and are kept in files that google-adk reads."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.errors import InputError, NotFoundError
from adk_nb.evaluation.base_eval_service import (
    EvaluateConfig,
    EvaluateRequest,
    InferenceConfig,
    InferenceRequest,
    InferenceResult,
    InferenceStatus,
)
from adk_nb.evaluation.eval_case import EvalCase, IntermediateData, Invocation, SessionInput
from adk_nb.evaluation.eval_metrics import EvalMetric, EvalStatus
from adk_nb.evaluation.eval_result import EvalCaseResult
from adk_nb.evaluation.eval_sets_manager import EvalSetsManager
from adk_nb.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
from adk_nb.evaluation.local_eval_service import LocalEvalService
from adk_nb.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager
from adk_nb.evaluation.local_eval_sets_manager import LocalEvalSetsManager
from adk_nb.models import ScriptedLlm, call

ROOT = Path(__file__).parent.parent.parent
METRICS = [
    EvalMetric(metric_name="tool_trajectory_avg_score", threshold=1.0),
    EvalMetric(metric_name="response_match_score", threshold=0.8),
    EvalMetric(metric_name="tool_call_count_v1"),
]


def roll(sides: int) -> int:
    """Roll a die."""
    return 4


def turn(message: str, answer: str, *calls: types.FunctionCall) -> Invocation:
    return Invocation(
        user_content=types.Content(role="user", parts=[types.Part(text=message)]),
        final_response=types.Content(role="model", parts=[types.Part(text=answer)]),
        intermediate_data=IntermediateData(tool_uses=list(calls)),
    )


ROLL = types.FunctionCall(name="roll", args={"sides": 6})
GOOD = EvalCase(
    eval_id="good",
    conversation=[turn("Roll", "It is four", ROLL), turn("Thanks", "You are welcome")],
    session_input=SessionInput(app_name="dice", user_id="ada", state={"lang": "en"}),
)
BAD = EvalCase(eval_id="bad", conversation=[turn("Roll", "It is four", ROLL)])


def agent(*answers: Any) -> LlmAgent:
    return LlmAgent(name="dice", model=ScriptedLlm(*answers), tools=[roll])


def inferred(service: LocalEvalService, *ids: str) -> list[InferenceResult]:
    async def run() -> list[InferenceResult]:
        request = InferenceRequest(
            app_name="dice", eval_set_id="rolls", eval_case_ids=list(ids), inference_config=InferenceConfig()
        )
        return [result async for result in service.perform_inference(request)]

    return sync.run(run())


def evaluated(service: LocalEvalService, runs: list[InferenceResult], metrics: Any = METRICS) -> list[EvalCaseResult]:
    async def run() -> list[EvalCaseResult]:
        request = EvaluateRequest(inference_results=runs, evaluate_config=EvaluateConfig(eval_metrics=metrics))
        return [result async for result in service.evaluate(request)]

    return sync.run(run())


@pytest.fixture(params=["memory", "files"])
def sets(request: pytest.FixtureRequest, tmp_path: Path) -> EvalSetsManager:
    return InMemoryEvalSetsManager() if request.param == "memory" else LocalEvalSetsManager(str(tmp_path))


def test_eval_sets_are_made_changed_and_listed(sets: EvalSetsManager):
    with pytest.raises(NotFoundError):
        sets.list_eval_sets("dice")
    assert sets.get_eval_set("dice", "rolls") is None and sets.get_eval_case("dice", "rolls", "good") is None
    assert sets.create_eval_set("dice", "rolls").eval_cases == []
    sets.add_eval_case("dice", "rolls", GOOD)
    sets.add_eval_case("dice", "rolls", BAD)
    assert sets.list_eval_sets("dice") == ["rolls"]
    assert sets.get_eval_case("dice", "rolls", "good") == GOOD
    sets.update_eval_case("dice", "rolls", GOOD.model_copy(update={"creation_timestamp": 5.0}))
    sets.delete_eval_case("dice", "rolls", "bad")
    kept = sets.get_eval_set("dice", "rolls")
    assert kept and [(case.eval_id, case.creation_timestamp) for case in kept.eval_cases] == [("good", 5.0)]


def test_what_cannot_be_kept_is_refused(sets: EvalSetsManager, tmp_path: Path):
    sets.create_eval_set("dice", "rolls")
    sets.add_eval_case("dice", "rolls", GOOD)
    for wrong in (
        lambda: sets.create_eval_set("dice", "rolls"),
        lambda: sets.create_eval_set("dice", "../rolls"),
        lambda: sets.add_eval_case("dice", "rolls", GOOD),
    ):
        with pytest.raises(InputError):
            wrong()
    for missing in (
        lambda: sets.add_eval_case("dice", "other", GOOD),
        lambda: sets.update_eval_case("dice", "rolls", BAD),
        lambda: sets.delete_eval_case("dice", "rolls", "bad"),
    ):
        with pytest.raises(NotFoundError):
            missing()
    with pytest.raises(InputError, match="app_name"):
        LocalEvalSetsManager(tmp_path).get_eval_set("..", "rolls")


def test_cases_run_and_are_scored_and_kept(tmp_path: Path):
    sets, results = LocalEvalSetsManager(tmp_path), LocalEvalSetResultsManager(tmp_path)
    sets.create_eval_set("dice", "rolls")
    sets.add_eval_case("dice", "rolls", GOOD)
    sets.add_eval_case("dice", "rolls", BAD)
    script = agent(call("roll", sides=6), "It is four", "You are welcome", "Something else")
    service = LocalEvalService(script, sets, eval_set_results_manager=results)
    runs = [*inferred(service, "good"), *inferred(service, "bad")]
    assert [run.status for run in runs] == [InferenceStatus.SUCCESS] * 2
    scored = {result.eval_id: result for result in evaluated(service, runs)}

    good, bad = scored["good"], scored["bad"]
    assert (good.final_eval_status, bad.final_eval_status) == (EvalStatus.PASSED, EvalStatus.FAILED)
    assert [result.score for result in good.overall_eval_metric_results] == [1.0, 1.0, 1.0]
    assert good.overall_eval_metric_results[2].eval_status is EvalStatus.INFORMATIONAL
    first, second = good.eval_metric_result_per_invocation
    assert [result.score for result in first.eval_metric_results] == [1.0, 1.0, None]
    assert second.expected_invocation == GOOD.conversation[1] and good.user_id == "ada"  # type: ignore[index]
    assert good.session_details and good.session_details.state["lang"] == "en"
    assert bad.overall_eval_metric_results[0].score == 0.0
    (name,) = results.list_eval_set_results("dice")
    kept = results.get_eval_set_result("dice", name)
    assert [case.eval_id for case in kept.eval_case_results] == list(scored)
    with pytest.raises(NotFoundError):
        results.get_eval_set_result("dice", "other")


def test_runs_of_elsewhere_are_scored_without_their_sessions():
    sets = InMemoryEvalSetsManager()
    sets.create_eval_set("dice", "rolls")
    sets.add_eval_case("dice", "rolls", GOOD)
    run = InferenceResult(
        app_name="dice", eval_set_id="rolls", eval_case_id="good", session_id=None,
        inferences=GOOD.conversation, status=InferenceStatus.SUCCESS,
    )  # fmt: skip
    (result,) = evaluated(LocalEvalService(agent(), sets), [run])
    assert [metric.score for metric in result.overall_eval_metric_results] == [1.0, 1.0, 1.0]


def test_an_agent_that_fails_is_a_failed_case_and_a_wrong_request_an_error():
    sets = InMemoryEvalSetsManager()
    sets.create_eval_set("dice", "rolls")
    sets.add_eval_case("dice", "rolls", BAD)
    service = LocalEvalService(agent(ValueError("the model is away")), sets)
    (run,) = inferred(service)
    assert run.status is InferenceStatus.FAILURE and "the model is away" in (run.error_message or "")
    (result,) = evaluated(service, [run])
    assert result.final_eval_status is EvalStatus.FAILED and result.overall_eval_metric_results == []
    with pytest.raises(NotFoundError, match="'other'"):
        inferred(service, "other")
    with pytest.raises(InputError, match="safety_v1"):
        evaluated(service, [run], [EvalMetric(metric_name="safety_v1", threshold=0.5)])


READ = """
import json, sys
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager
from google.adk.evaluation.local_eval_sets_manager import LocalEvalSetsManager
sets, results = LocalEvalSetsManager(sys.argv[1]), LocalEvalSetResultsManager(sys.argv[1])
cases = sets.get_eval_set("dice", "rolls").eval_cases
sets.delete_eval_case("dice", "rolls", "bad")
kept = results.get_eval_set_result("dice", results.list_eval_set_results("dice")[0])
results.save_eval_set_result("dice", "again", kept.eval_case_results)
told = [[case.eval_id, case.final_eval_status.name, len(case.session_details.events)]
        for case in kept.eval_case_results]
print(json.dumps([[case.eval_id for case in cases], told]))
"""


@pytest.mark.peers
def test_google_adk_reads_these_files_and_what_it_writes_is_read(tmp_path: Path):
    test_cases_run_and_are_scored_and_kept(tmp_path)
    done = subprocess.run(
        [ROOT / ".venv-adk/bin/python", "-W", "ignore", "-c", READ, tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told[0] == ["good", "bad"] and told[1][0] == ["good", "PASSED", 6] and told[1][1][:2] == ["bad", "FAILED"]
    kept = LocalEvalSetsManager(tmp_path).get_eval_set("dice", "rolls")
    assert kept and [case.eval_id for case in kept.eval_cases] == ["good"]
    results = LocalEvalSetResultsManager(tmp_path)
    (again,) = [name for name in results.list_eval_set_results("dice") if "again" in name]
    assert results.get_eval_set_result("dice", again).eval_case_results[0].final_eval_status is EvalStatus.PASSED
