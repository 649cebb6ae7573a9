"""Names of google-adk's metrics, their criteria and their results. Source: google-adk 2.13."""

from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator
from pydantic.alias_generators import to_camel

from adk_nb.evaluation.eval_case import EvalBaseModel, Invocation, Rubric


class EvalStatus(Enum):
    """The verdict of a metric."""

    PASSED = 1
    FAILED = 2
    NOT_EVALUATED = 3
    INFORMATIONAL = 4
    """A value is reported; the metric neither passes nor fails."""


class PrebuiltMetrics(Enum):
    """The metrics of google-adk that are computed here."""

    TOOL_TRAJECTORY_AVG_SCORE = "tool_trajectory_avg_score"
    RESPONSE_MATCH_SCORE = "response_match_score"
    FINAL_RESPONSE_MATCH_V2 = "final_response_match_v2"
    RUBRIC_BASED_FINAL_RESPONSE_QUALITY_V1 = "rubric_based_final_response_quality_v1"
    RUBRIC_BASED_TOOL_USE_QUALITY_V1 = "rubric_based_tool_use_quality_v1"
    RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1 = "rubric_based_multi_turn_trajectory_quality_v1"
    HALLUCINATIONS_V1 = "hallucinations_v1"
    TOOL_CALL_COUNT_V1 = "tool_call_count_v1"
    INFERENCE_CALL_COUNT_V1 = "inference_call_count_v1"
    TOKEN_USAGE_V1 = "token_usage_v1"
    INVOCATION_DURATION_V1 = "invocation_duration_v1"


class JudgeModelOptions(EvalBaseModel):
    """The model that judges, and how often it is asked about the same answer.

    `judge_model` is empty for the default model; google-adk names one of Gemini.
    """

    judge_model: str = ""
    judge_model_config: Any = None
    num_samples: int = Field(default=5, ge=1)
    parallelism_limit: int = Field(default=1, ge=1)


class BaseCriterion(BaseModel):
    """The score from which on a metric passes."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    threshold: float
    include_intermediate_responses_in_final: bool = False


class LlmAsAJudgeCriterion(BaseCriterion):
    """Criterion of a metric that asks a model."""

    judge_model_options: JudgeModelOptions = Field(default_factory=JudgeModelOptions)


class RubricsBasedCriterion(LlmAsAJudgeCriterion):
    """Criterion of a metric that asks a model about each rubric."""

    rubrics: list[Rubric] = Field(default_factory=list[Rubric])


class HallucinationsCriterion(LlmAsAJudgeCriterion):
    """Criterion of `hallucinations_v1`; `num_samples` has no effect."""

    evaluate_intermediate_nl_responses: bool = False
    """Also the texts before the final answer."""


class ToolTrajectoryCriterion(BaseCriterion):
    """Criterion of `tool_trajectory_avg_score`."""

    class MatchType(Enum):
        """The comparison of expected and actual calls."""

        EXACT = 0
        """The same calls in the same order."""
        IN_ORDER = 1
        """Every expected call, in order; other calls may come between."""
        ANY_ORDER = 2
        """Every expected call; other calls may come between."""

    match_type: MatchType = MatchType.EXACT
    ignore_args: bool = False
    """True: only the names of the tools are compared."""

    @field_validator("match_type", mode="before")
    @classmethod
    def _match_type(cls, value: Any) -> Any:
        name = value.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(value, str) else None
        return cls.MatchType.__members__.get(name, value) if name else value


class EvalMetric(EvalBaseModel):
    """A metric with its criterion."""

    metric_name: str
    threshold: float | None = None
    criterion: SerializeAsAny[BaseCriterion] | None = None
    custom_function_path: str | None = None
    """Dotted path of a function that computes the metric."""


class EvalMetricResult(EvalMetric):
    """The score and the verdict of a metric."""

    score: float | None = None
    eval_status: EvalStatus
    details: Any = None


class PerInvocationResult(BaseModel):
    """The score of one turn."""

    actual_invocation: Invocation
    expected_invocation: Invocation | None = None
    score: float | None = None
    eval_status: EvalStatus = EvalStatus.NOT_EVALUATED


class EvaluationResult(BaseModel):
    """The score of a conversation: the mean of its turns'."""

    overall_score: float | None = None
    overall_eval_status: EvalStatus = EvalStatus.NOT_EVALUATED
    per_invocation_results: list[PerInvocationResult] = Field(default_factory=list[PerInvocationResult])
