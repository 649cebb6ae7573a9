"""Results of cases as google-adk stores them. Source of the fields: google-adk 2.13."""

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from adk_nb.evaluation.eval_case import Invocation
from adk_nb.evaluation.eval_metrics import EvalMetricResult, EvalStatus
from adk_nb.sessions.session import Session


class _Result(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class EvalMetricResultPerInvocation(_Result):
    """The results of all metrics on one turn."""

    actual_invocation: Invocation
    expected_invocation: Invocation | None = None
    eval_metric_results: list[EvalMetricResult] = Field(default_factory=list[EvalMetricResult])


class EvalCaseResult(_Result):
    """The result of a case."""

    eval_set_id: str = ""
    eval_id: str = ""
    final_eval_status: EvalStatus
    """Failed if a metric failed or the agent did; else passed if one passed."""
    overall_eval_metric_results: list[EvalMetricResult]
    eval_metric_result_per_invocation: list[EvalMetricResultPerInvocation]
    session_id: str
    session_details: Session | None = None
    user_id: str | None = None


class EvalSetResult(_Result):
    """The results of the cases of an eval set, of one evaluation."""

    eval_set_result_id: str
    eval_set_result_name: str | None = None
    eval_set_id: str
    eval_case_results: list[EvalCaseResult] = Field(default_factory=list[EvalCaseResult])
    creation_timestamp: float = 0.0
    """Seconds since the epoch, UTC."""
