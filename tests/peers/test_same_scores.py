"""adk_nb scores what google-adk 2.13 scores, and google-adk reads the eval sets that adk_nb writes."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.evaluation.agent_evaluator import metric_of
from adk_nb.evaluation.case_run import CaseRun
from adk_nb.evaluation.cases import Case, case_of_eval_case
from adk_nb.evaluation.eval_case import IntermediateData, Invocation
from adk_nb.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from adk_nb.evaluation.eval_set import EvalSet, write_eval_set
from adk_nb.evaluation.final_response_match_v1 import RougeEvaluator
from adk_nb.evaluation.trajectory_evaluator import TrajectoryEvaluator
from adk_nb.events.event import Event

HERE = Path(__file__).parent
PYTHON = HERE.parent.parent / ".venv-adk/bin/python"
WORDS = """
the a dog dogs running runs ran jumps jumped quickly relational conditional hopeful hopping 9.9 hours
Jupiter skies dying lying news inning proceed exceed succeed über naïve café Αθήνα Москва 木星 一天 ความเร็ว
안녕 день It's e-mail x_1 NASA generalizations oscillators university flying cries agreed plastered bled
sing motoring conflated troubled sized
""".split()  # noqa: SIM905
TOOLS = ("planet_facts", "save", "search")

pytestmark = pytest.mark.peers


def _call(rng: random.Random) -> types.FunctionCall:
    return types.FunctionCall(name=rng.choice(TOOLS), args={"planet": rng.choice(["Venus", "Mars"])})


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) + rng.choice(["", ",", ".", "!"]) for _ in range(rng.randint(0, 12)))


def _turn(rng: random.Random, calls: list[types.FunctionCall], text: str) -> Invocation:
    return Invocation(
        user_content=types.Content(role="user", parts=[types.Part(text="Question")]),
        final_response=types.Content(role="model", parts=[types.Part(text=text)]),
        intermediate_data=IntermediateData(tool_uses=calls),
    )


def _pair(rng: random.Random) -> tuple[Invocation, Invocation]:
    """An actual and an expected turn that share some calls and words."""
    expected_calls = [_call(rng) for _ in range(rng.randint(0, 3))]
    actual_calls = [call for call in expected_calls if rng.random() > 0.15]
    for _ in range(rng.choice([0, 0, 1, 2])):
        actual_calls.insert(rng.randint(0, len(actual_calls)), _call(rng))
    if rng.random() < 0.2:
        rng.shuffle(actual_calls)
    expected_text = _sentence(rng)
    words = expected_text.split()
    text = " ".join(rng.choice([word, word.upper(), rng.choice(WORDS)]) for word in words)
    return _turn(rng, actual_calls, text), _turn(rng, expected_calls, expected_text)


def _generated(count: int) -> list[tuple[list[Invocation], list[Invocation]]]:
    rng = random.Random(7)
    cases = []
    for _ in range(count):
        pairs = [_pair(rng) for _ in range(rng.randint(1, 3))]
        cases.append(([pair[0] for pair in pairs], [pair[1] for pair in pairs]))
    return cases


def _score(metric: EvalMetric, actual: list[Invocation], expected: list[Invocation]) -> float | None:
    """The score of a run, which google-adk's evaluators, under their own names, agree with."""
    case = Case(id="case", messages=("Question",), reference=tuple(expected))
    run = CaseRun(case, [event for number, turn in enumerate(actual) for event in _events(turn, number)], {}, seconds=0)
    score = sync.run(metric_of(metric).score(run)).value
    kind = RougeEvaluator if metric.metric_name == "response_match_score" else TrajectoryEvaluator
    assert kind(eval_metric=metric).evaluate_invocations(actual, expected).overall_score == score
    return score


def _events(turn: Invocation, number: int) -> list[Event]:
    """The events of a run that did this turn."""
    key = f"turn{number}"
    assert isinstance(turn.intermediate_data, IntermediateData)
    calls = [types.Part(function_call=call) for call in turn.intermediate_data.tool_uses]
    contents = [("user", turn.user_content), *([("agent", types.Content(role="model", parts=calls))] if calls else [])]
    return [
        Event(author=author, invocation_id=key, content=content)
        for author, content in [*contents, ("agent", turn.final_response)]
    ]


def _by_google_adk(asked: dict[str, Any]) -> Any:
    done = subprocess.run(
        [PYTHON, "-W", "ignore", HERE / "told_scores.py"], input=json.dumps(asked), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def _json(turns: list[Invocation]) -> list[Any]:
    return [turn.model_dump(mode="json", exclude_none=True) for turn in turns]


def test_google_adk_scores_generated_turns_the_same_and_reads_our_eval_sets(tmp_path: Path) -> None:
    cases = _generated(200)
    eval_set = EvalSet(
        eval_set_id="planets",
        eval_cases=[
            {"eval_id": f"case{n}", "conversation": expected, "final_session_state": {"saved": n}}  # type: ignore[list-item]
            for n, (_, expected) in enumerate(cases[:3])
        ],
    )
    write_eval_set(eval_set, tmp_path / "planets.evalset.json")
    (tmp_path / "test_config.json").write_text('{"criteria": {"response_match_score": 0.5}}')
    by_google = _by_google_adk(
        {
            "cases": [{"actual": _json(actual), "expected": _json(expected)} for actual, expected in cases],
            "eval_set": str(tmp_path / "planets.evalset.json"),
        }
    )

    ours: list[dict[str, Any]] = []
    for actual, expected in cases:
        scores = {"response": _score(EvalMetric(metric_name="response_match_score", threshold=0.8), actual, expected)}
        for match_type in ("EXACT", "IN_ORDER", "ANY_ORDER"):
            for ignore_args in (False, True):
                criterion = ToolTrajectoryCriterion.model_validate(
                    {"threshold": 1.0, "match_type": match_type, "ignore_args": ignore_args}
                )
                metric = EvalMetric(metric_name="tool_trajectory_avg_score", criterion=criterion)
                scores[f"{match_type} {ignore_args}"] = _score(metric, actual, expected)
        ours.append(scores)
    assert [{key: pytest.approx(value) for key, value in scores.items()} for scores in ours] == by_google["scores"]
    assert len({json.dumps(scores) for scores in by_google["scores"]}) > 50  # the cases are not all alike
    assert by_google["read"]["states"] == {f"case{n}": {"saved": n} for n in range(3)}
    assert by_google["read"]["cases"] == {
        case.id: [turn.user_content.parts[0].text for turn in case.reference]  # type: ignore[index]
        for case in map(case_of_eval_case, eval_set.eval_cases)
    }
    assert by_google["read"]["metrics"]["response_match_score"] == 0.5


NAMES = {
    "agent_evaluator": ["AgentEvaluator"],
    "eval_case": [
        "EvalCase",
        "IntermediateData",
        "Invocation",
        "InvocationEvent",
        "InvocationEvents",
        "SessionInput",
        "get_all_tool_calls",
    ],
    "eval_config": ["EvalConfig", "get_eval_metrics_from_config", "get_evaluation_criteria_or_default"],
    "eval_metrics": [
        "BaseCriterion",
        "EvalMetric",
        "EvalMetricResult",
        "EvalStatus",
        "JudgeModelOptions",
        "LlmAsAJudgeCriterion",
        "PrebuiltMetrics",
        "RubricsBasedCriterion",
        "ToolTrajectoryCriterion",
    ],
    "eval_rubrics": ["Rubric", "RubricContent"],
    "eval_set": ["EvalCase", "EvalSet"],
    "evaluator": ["EvalStatus", "EvaluationResult", "Evaluator", "PerInvocationResult"],
    "final_response_match_v1": ["RougeEvaluator"],
    "local_eval_sets_manager": ["load_eval_set_from_file"],
    "trajectory_evaluator": ["TrajectoryEvaluator", "get_all_tool_calls"],
}
"""Names that public code imports most from google.adk.evaluation."""


def test_names_of_google_adks_evaluation_are_found_under_the_same_path() -> None:
    statements = [f"from PACKAGE.{module} import {', '.join(names)}" for module, names in NAMES.items()]
    code = "\n".join([*statements, "from PACKAGE import AgentEvaluator"])
    exec(code.replace("PACKAGE", "adk_nb.evaluation"), {})
    subprocess.run([PYTHON, "-W", "ignore", "-c", code.replace("PACKAGE", "google.adk.evaluation")], check=True)
