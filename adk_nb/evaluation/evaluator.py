"""The interface of google-adk's evaluators: they score turns that are at hand. Source: google-adk 2.13."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from adk_nb.errors import InputError
from adk_nb.evaluation.eval_case import Invocation
from adk_nb.evaluation.eval_metrics import EvalMetric, EvalStatus, EvaluationResult, PerInvocationResult

__all__ = ["EvalStatus", "EvaluationResult", "Evaluator", "PerInvocationResult"]


class Evaluator(ABC):
    """Scores each turn against the expected one; the overall score is their mean.

    Args:
        threshold: The score from which on it passes. None: that of `eval_metric`.
        eval_metric: A metric with its criterion.
    """

    def __init__(self, threshold: float | None = None, eval_metric: EvalMetric | None = None) -> None:
        criterion = eval_metric.criterion if eval_metric else None
        if threshold is None and eval_metric:
            threshold = criterion.threshold if criterion else eval_metric.threshold
        if threshold is None:
            raise InputError(f"{type(self).__name__} needs a threshold from 0 to 1, or an eval_metric that has one")
        self.threshold = threshold

    @abstractmethod
    def score(self, actual: Invocation, expected: Invocation) -> float:
        """The score of a turn, from 0 to 1."""

    def evaluate_invocations(
        self,
        actual_invocations: Sequence[Invocation],
        expected_invocations: Sequence[Invocation] | None = None,
        conversation_scenario: Any = None,
    ) -> EvaluationResult:
        """Score the turns of a conversation. `conversation_scenario` has no effect.

        Raises:
            InputError: There are not as many expected turns as actual ones.
        """
        expected = expected_invocations or ()
        if len(expected) != len(actual_invocations):
            raise InputError(f"there are {len(actual_invocations)} turns, and {len(expected)} are expected")
        scores = [self.score(turn, other) for turn, other in zip(actual_invocations, expected, strict=True)]
        if not scores:
            return EvaluationResult()
        mean = sum(scores) / len(scores)
        return EvaluationResult(
            overall_score=mean,
            overall_eval_status=self._status(mean),
            per_invocation_results=[
                PerInvocationResult(
                    actual_invocation=turn, expected_invocation=other, score=score, eval_status=self._status(score)
                )
                for turn, other, score in zip(actual_invocations, expected, scores, strict=True)
            ],
        )

    def _status(self, score: float) -> EvalStatus:
        return EvalStatus.PASSED if score >= self.threshold else EvalStatus.FAILED
