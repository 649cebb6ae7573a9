"""Requests and results of google-adk's eval services. Source of the fields: google-adk 2.13."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from enum import Enum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from adk_nb.evaluation.eval_case import Invocation
from adk_nb.evaluation.eval_metrics import EvalMetric
from adk_nb.evaluation.eval_result import EvalCaseResult


class _Request(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class EvaluateConfig(_Request):
    """The metrics of an evaluation."""

    eval_metrics: list[EvalMetric]
    parallelism: int = Field(default=4, ge=1)
    """Cases that are scored at the same time."""


class InferenceConfig(_Request):
    """Settings of the runs."""

    labels: dict[str, str] | None = None
    """Labels of every request to a model, for billing."""
    parallelism: int = Field(default=4, ge=1)
    """Cases that run at the same time."""


class InferenceRequest(_Request):
    """Which cases to run."""

    app_name: str
    eval_set_id: str
    eval_case_ids: list[str] | None = None
    """None or empty: all of the eval set."""
    inference_config: InferenceConfig


class InferenceStatus(Enum):
    """The end of a run."""

    UNKNOWN = 0
    SUCCESS = 1
    FAILURE = 2


class InferenceResult(_Request):
    """The run of a case."""

    app_name: str
    eval_set_id: str
    eval_case_id: str
    inferences: list[Invocation] | None = None
    """The turns of the conversation."""
    session_id: str | None
    status: InferenceStatus = InferenceStatus.UNKNOWN
    error_message: str | None = None


class EvaluateRequest(_Request):
    """Which runs to score, and how."""

    inference_results: list[InferenceResult]
    evaluate_config: EvaluateConfig


class BaseEvalService(ABC):
    """Runs the cases of eval sets, and scores the runs."""

    @abstractmethod
    def perform_inference(self, inference_request: InferenceRequest) -> AsyncGenerator[InferenceResult, None]:
        """Run cases; yield each run as it ends."""

    @abstractmethod
    def evaluate(self, evaluate_request: EvaluateRequest) -> AsyncGenerator[EvalCaseResult, None]:
        """Score runs; yield the result of each as it is known."""
