"""google-adk 2.13 scores generated turns and reads our eval sets. Runs in the environment of google-adk."""

import json
import sys
from pathlib import Path

from google.adk.evaluation.agent_evaluator import AgentEvaluator
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_config import get_eval_metrics_from_config
from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.final_response_match_v1 import RougeEvaluator
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator


def trajectory_score(case: dict, match_type: str, ignore_args: bool) -> float:
    criterion = ToolTrajectoryCriterion(threshold=1.0, match_type=match_type, ignore_args=ignore_args)
    metric = EvalMetric(metric_name="tool_trajectory_avg_score", criterion=criterion)
    return TrajectoryEvaluator(eval_metric=metric).evaluate_invocations(*turns(case)).overall_score


def response_score(case: dict) -> float:
    metric = EvalMetric(metric_name="response_match_score", threshold=0.8)
    return RougeEvaluator(metric).evaluate_invocations(*turns(case)).overall_score


def turns(case: dict) -> tuple[list[Invocation], list[Invocation]]:
    return tuple([Invocation.model_validate(turn) for turn in case[key]] for key in ("actual", "expected"))


asked = json.load(sys.stdin)
scores = [
    {
        "response": response_score(case),
        **{
            f"{match_type} {ignore_args}": trajectory_score(case, match_type, ignore_args)
            for match_type in ("EXACT", "IN_ORDER", "ANY_ORDER")
            for ignore_args in (False, True)
        },
    }
    for case in asked["cases"]
]
eval_set = EvalSet.model_validate_json(Path(asked["eval_set"]).read_text())
config = AgentEvaluator.find_config_for_test_file(asked["eval_set"])
read = {
    "cases": {
        case.eval_id: [turn.user_content.parts[0].text for turn in case.conversation] for case in eval_set.eval_cases
    },
    "states": {case.eval_id: case.final_session_state for case in eval_set.eval_cases},
    "metrics": {metric.metric_name: metric.threshold for metric in get_eval_metrics_from_config(config)},
}
print(json.dumps({"scores": scores, "read": read}))
