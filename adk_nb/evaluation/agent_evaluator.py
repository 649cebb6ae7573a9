"""google-adk's door to evaluation: an agent module, eval files, and an AssertionError for what does not pass."""

import csv
import importlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import AgentNotFoundError, InputError
from adk_nb.evaluation.eval_config import EvalConfig, read_eval_config
from adk_nb.evaluation.eval_metrics import (
    BaseCriterion,
    EvalMetric,
    HallucinationsCriterion,
    LlmAsAJudgeCriterion,
    PrebuiltMetrics,
    RubricsBasedCriterion,
    ToolTrajectoryCriterion,
)
from adk_nb.evaluation.eval_set import EvalSet, read_eval_set, write_eval_set
from adk_nb.evaluation.evaluation import CaseResult, Evaluation, aevaluate
from adk_nb.evaluation.hallucinations import conversation_judge, hallucinations
from adk_nb.evaluation.judges import judge, response_judge
from adk_nb.evaluation.metrics import BUILT_IN, Metric, metric, response_match, trajectory
from adk_nb.evaluation.trajectory_evaluator import ORDERS

NUM_RUNS = 2
"""Runs of each case. Source: google-adk 2.13."""
_RUBRIC_METRICS = (
    PrebuiltMetrics.RUBRIC_BASED_FINAL_RESPONSE_QUALITY_V1.value,
    PrebuiltMetrics.RUBRIC_BASED_TOOL_USE_QUALITY_V1.value,
    PrebuiltMetrics.RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1.value,
)
_REFUSED = {
    **dict.fromkeys(
        (
            "safety_v1",
            "response_evaluation_score",
            "multi_turn_task_success_v1",
            "multi_turn_trajectory_quality_v1",
            "multi_turn_tool_use_quality_v1",
        ),
        "it is computed by a service of Google Cloud",
    ),
    "per_turn_user_simulator_quality_v1": "it judges a simulated user, and none is simulated here",
}
"""Metrics of google-adk that are not computed here -> the reason."""


class AgentEvaluator:
    """Evaluates the agent of a module on eval files. Source of the interface: google-adk 2.13."""

    @staticmethod
    def find_config_for_test_file(test_file: str) -> EvalConfig:
        """The `test_config.json` beside a file; the default criteria if there is none."""
        return read_eval_config(Path(test_file).parent / "test_config.json")

    @staticmethod
    async def evaluate(
        agent_module: str,
        eval_dataset_file_path_or_dir: str,
        num_runs: int = NUM_RUNS,
        agent_name: str | None = None,
        initial_session_file: str | None = None,
        print_detailed_results: bool = True,
        output_file: str | None = None,
        **unused: Any,
    ) -> None:
        """Evaluate an agent on a file, or on every `*.test.json` below a folder.

        Args:
            agent_module: Module with `root_agent` or `get_agent_async`, itself or as its `agent`.
            eval_dataset_file_path_or_dir: An eval set, or a folder.
            num_runs: Runs of each case.
            agent_name: A sub-agent to evaluate instead of the root.
            initial_session_file: JSON of the session in which cases of the older format begin.
            print_detailed_results: Print a table of the results of each metric.
            output_file: CSV file to which the results are appended.
            unused: Options of google-adk without an effect here.

        Raises:
            AssertionError: A metric did not pass; the message names each with its value.
            InputError: There is no eval file, or it cannot be read.
        """
        initial = _read_session(initial_session_file)
        for path in _test_files(Path(eval_dataset_file_path_or_dir)):
            await AgentEvaluator.evaluate_eval_set(
                agent_module=agent_module,
                eval_set=read_eval_set(path, initial),
                eval_config=AgentEvaluator.find_config_for_test_file(str(path)),
                num_runs=num_runs,
                agent_name=agent_name,
                print_detailed_results=print_detailed_results,
                output_file=output_file,
                **unused,
            )

    @staticmethod
    async def evaluate_eval_set(
        agent_module: str,
        eval_set: EvalSet,
        criteria: dict[str, float] | None = None,
        eval_config: EvalConfig | None = None,
        num_runs: int = NUM_RUNS,
        agent_name: str | None = None,
        print_detailed_results: bool = True,
        output_file: str | None = None,
        **unused: Any,
    ) -> None:
        """As `evaluate`, on an eval set. `criteria`: thresholds by metric, instead of `eval_config`."""
        if num_runs < 1:
            raise InputError(f"num_runs is 1 or more, got {num_runs}")
        config = EvalConfig(criteria=dict(criteria)) if criteria else eval_config
        if config is None:
            raise InputError("name the metrics: eval_config=EvalConfig(criteria={'response_match_score': 0.8})")
        metrics = [metric_of(entry) for entry in config.metrics()]
        agent = await _load_agent(agent_module, agent_name)
        evaluation = await aevaluate(agent, eval_set, metrics=metrics, repeats=num_runs)
        if print_detailed_results:
            for chosen in metrics:
                for row in _result_rows(evaluation, chosen):
                    score = "none" if row["score"] is None else f"{row['score']:.3f}"
                    line = (
                        f"{row['eval_status']:13} {chosen.name} {score} (threshold {chosen.threshold}) {row['eval_id']}"
                    )
                    sys.stdout.write(f"{line}: {row['reason']}\n" if row["reason"] else f"{line}\n")
        if output_file:
            _append_csv(Path(output_file), eval_set.eval_set_id, evaluation, metrics)
        failures = [line for case in evaluation.cases for line in _failures(case, metrics, agent_module)]
        assert not failures, "Following are all the test failures.\n" + "\n".join(failures)

    @staticmethod
    def migrate_eval_data_to_new_schema(
        old_eval_data_file: str, new_eval_data_file: str, initial_session_file: str | None = None
    ) -> None:
        """Convert a file of the older format."""
        initial = _read_session(initial_session_file)
        write_eval_set(read_eval_set(old_eval_data_file, initial), new_eval_data_file)


def metric_of(entry: EvalMetric) -> Metric:
    """The metric that a config names.

    Raises:
        InputError: It needs a service of Google Cloud or a simulated user, takes no threshold, or is unknown.
    """
    criterion = entry.criterion or BaseCriterion(threshold=entry.threshold or 0.0)
    options, threshold, name = criterion.model_dump(by_alias=False), criterion.threshold, entry.metric_name
    if entry.custom_function_path:
        # A metric of the user's in google-adk's form: `(eval_metric, actual, expected, scenario) -> EvaluationResult`.
        module, _, attribute = entry.custom_function_path.rpartition(".")
        function: Any = getattr(importlib.import_module(module), attribute)

        async def measure_custom(run: Any) -> float | None:
            # None: no scenario, since no user is simulated.
            result = function(entry, run.turns, list(run.case.reference) or None, None)
            result = await result if hasattr(result, "__await__") else result
            return result.overall_score

        return metric(measure_custom, name=entry.metric_name, threshold=threshold)
    if name == PrebuiltMetrics.TOOL_TRAJECTORY_AVG_SCORE.value:
        calls = ToolTrajectoryCriterion.model_validate(options)
        measure = trajectory(ORDERS[calls.match_type], ignore_args=calls.ignore_args)
        return replace(BUILT_IN[name], measure=measure, threshold=threshold)
    if name == PrebuiltMetrics.RESPONSE_MATCH_SCORE.value:
        return replace(BUILT_IN[name], measure=response_match, threshold=threshold)
    if name == PrebuiltMetrics.FINAL_RESPONSE_MATCH_V2.value:
        judged_by = LlmAsAJudgeCriterion.model_validate(options).judge_model_options
        return response_judge(
            model=judged_by.judge_model, samples=judged_by.num_samples, threshold=threshold, name=name
        )
    if name == PrebuiltMetrics.HALLUCINATIONS_V1.value:
        checked = HallucinationsCriterion.model_validate(options)
        return hallucinations(
            model=checked.judge_model_options.judge_model,
            threshold=threshold,
            intermediate=checked.evaluate_intermediate_nl_responses,
            name=name,
        )
    if name in _RUBRIC_METRICS:
        rubrics = RubricsBasedCriterion.model_validate(options)
        texts = [rubric.rubric_content.text_property or "" for rubric in rubrics.rubrics]
        judged_by = rubrics.judge_model_options
        is_of_all_turns = name == PrebuiltMetrics.RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1.value
        make = conversation_judge if is_of_all_turns else judge
        return make(*texts, model=judged_by.judge_model, samples=judged_by.num_samples, threshold=threshold, name=name)
    if name in BUILT_IN and BUILT_IN[name].threshold is None:
        return _count(entry)
    known = ", ".join(member.value for member in PrebuiltMetrics)
    reason = _REFUSED.get(name, "google-adk has no such metric")
    raise InputError(
        f"metric {name!r} is not computed by adk_nb: {reason}; there is: {known}; or write a custom metric"
    )


def _count(entry: EvalMetric) -> Metric:
    """A count, which google-adk, too, takes without a threshold only."""
    if entry.threshold is not None or entry.criterion is not None:
        raise InputError(
            f"metric {entry.metric_name!r} takes no threshold: it counts, and nothing passes or fails by it; "
            "leave it out of the criteria"
        )
    return BUILT_IN[entry.metric_name]


async def _load_agent(module_name: str, agent_name: str | None) -> BaseAgent | App:
    """The agent of a module, or its app, as google-adk finds them."""
    module: Any = importlib.import_module(module_name)
    # google-adk's rule: a package with a module `agent`, or that module itself.
    if not (hasattr(module, "agent") or module_name.endswith(".agent")):
        raise InputError(f"module {module_name!r} has no member 'agent', and its name does not end with '.agent'")
    module = getattr(module, "agent", module)
    root = getattr(module, "root_agent", None)
    if root is None:
        if not hasattr(module, "get_agent_async"):
            raise InputError(f"module {module_name!r} has neither root_agent nor get_agent_async")
        root, _ = await module.get_agent_async()
    app = getattr(module, "app", None)
    if agent_name:
        agent = root.find_agent(agent_name)
        if agent is None:
            raise AgentNotFoundError(
                "agent", agent_name, [root.name, *(sub_agent.name for sub_agent in root.sub_agents)]
            )
        return agent
    return app if isinstance(app, App) else root


def _test_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.rglob("*.test.json"))
    if not files:
        raise InputError(f"there is no *.test.json file below {str(path)!r}")
    return files


def _read_session(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path!r}: {error}") from error


def _failures(case: CaseResult, metrics: Sequence[Metric], module: str) -> Iterable[str]:
    errors = [row for row in case.rows if row.outcome in ("error", "pending", "not run")]
    if errors:
        yield f"{case.case.id} for {module} Failed. {len(errors)} of {len(case.rows)} runs: {errors[0].reason}"
    for chosen in metrics:
        scores = [row.scores[chosen.name] for row in case.rows if chosen.name in row.scores]
        # google-adk compares the mean of a case's runs, not each run.
        values = [score.value for score in scores if score.value is not None]
        if chosen.threshold is None or not scores:
            continue
        if unknown := [score for score in scores if score.value is None]:
            yield f"{chosen.name} for {module} was not evaluated in {case.case.id}: {unknown[0].reason}"
        elif (mean := sum(values) / len(values)) < chosen.threshold:
            yield f"{chosen.name} for {module} Failed in {case.case.id}. Expected {chosen.threshold}, but got {mean}."


def _result_rows(evaluation: Evaluation, chosen: Metric) -> list[dict[str, Any]]:
    return [
        {
            "eval_id": row.case.id,
            "metric_name": chosen.name,
            "threshold": chosen.threshold,
            "score": score.value,
            "eval_status": score.verdict.upper().replace(" ", "_"),
            "prompt": row.case.question,
            "actual_response": row.answer,
            "reason": score.reason,
        }
        for row in evaluation.rows
        if (score := row.scores.get(chosen.name))
    ]


def _append_csv(path: Path, eval_set_id: str, evaluation: Evaluation, metrics: Sequence[Metric]) -> None:
    rows = [{"eval_set_id": eval_set_id} | row for chosen in metrics for row in _result_rows(evaluation, chosen)]
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        if is_new:
            writer.writeheader()
        writer.writerows(rows)
