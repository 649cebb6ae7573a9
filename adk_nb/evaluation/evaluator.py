"""Results of metrics, under google-adk's path."""

from adk_nb.evaluation.eval_metrics import EvalStatus, EvaluationResult, PerInvocationResult

__all__ = ["EvalStatus", "EvaluationResult", "PerInvocationResult"]
