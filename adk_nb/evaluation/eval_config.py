"""`test_config.json`: the metrics for a folder of eval sets. Source: google-adk 2.13."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError
from pydantic.alias_generators import to_camel

from adk_nb.errors import InputError
from adk_nb.evaluation.eval_metrics import BaseCriterion, EvalMetric


class CodeConfig(BaseModel):
    """Dotted path of a function."""

    model_config = ConfigDict(extra="allow")

    name: str


class CustomMetricConfig(BaseModel):
    """A metric that the user wrote."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    code_config: CodeConfig
    metric_info: Any = None
    description: str = ""


class EvalConfig(BaseModel):
    """Metrics and their criteria: a threshold, or a criterion with options."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    criteria: dict[str, float | SerializeAsAny[BaseCriterion]] = Field(
        default_factory=dict[str, float | SerializeAsAny[BaseCriterion]]
    )
    custom_metrics: dict[str, CustomMetricConfig] | None = None
    user_simulator_config: Any = None
    live_model_config: Any = None

    def metrics(self) -> list[EvalMetric]:
        """The criteria as metrics, in order."""
        custom = self.custom_metrics or {}
        metrics: list[EvalMetric] = []
        for name, criterion in self.criteria.items():
            parsed = criterion if isinstance(criterion, BaseCriterion) else BaseCriterion(threshold=criterion)
            path = custom[name].code_config.name if name in custom else None
            metrics.append(
                EvalMetric(metric_name=name, threshold=parsed.threshold, criterion=parsed, custom_function_path=path)
            )
        return metrics


DEFAULT_CRITERIA: dict[str, float | BaseCriterion] = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""Criteria where no file has any. Source: google-adk 2.13."""


def read_eval_config(path: str | Path) -> EvalConfig:
    """Read a `test_config.json`; the default criteria if there is no such file.

    Raises:
        InputError: The file is not a config.
    """
    path = Path(path)
    if not path.exists():
        return EvalConfig(criteria=dict(DEFAULT_CRITERIA))
    try:
        return EvalConfig.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{str(path)!r}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def get_evaluation_criteria_or_default(eval_config_file_path: str | None) -> EvalConfig:
    """`read_eval_config`, under google-adk's name."""
    if eval_config_file_path is None:
        return EvalConfig(criteria=dict(DEFAULT_CRITERIA))
    return read_eval_config(eval_config_file_path)


def get_eval_metrics_from_config(eval_config: EvalConfig) -> list[EvalMetric]:
    """`EvalConfig.metrics`, under google-adk's name."""
    return eval_config.metrics()
