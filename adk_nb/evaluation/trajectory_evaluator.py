"""`tool_trajectory_avg_score` of turns that are at hand, under google-adk's path."""

from collections.abc import Mapping

from adk_nb.evaluation.calls import Order
from adk_nb.evaluation.eval_case import Invocation, get_all_tool_calls
from adk_nb.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from adk_nb.evaluation.evaluator import Evaluator
from adk_nb.evaluation.metrics import call_problem

__all__ = ["ORDERS", "ToolTrajectoryCriterion", "TrajectoryEvaluator", "get_all_tool_calls"]

ORDERS: Mapping[ToolTrajectoryCriterion.MatchType, Order] = {
    ToolTrajectoryCriterion.MatchType.EXACT: "exact",
    ToolTrajectoryCriterion.MatchType.IN_ORDER: "in order",
    ToolTrajectoryCriterion.MatchType.ANY_ORDER: "any order",
}


class TrajectoryEvaluator(Evaluator):
    """The share of turns whose tool calls are as expected; exactly, unless the criterion of `eval_metric` says more."""

    def __init__(self, threshold: float | None = None, eval_metric: EvalMetric | None = None) -> None:
        super().__init__(threshold, eval_metric)
        criterion = eval_metric.criterion if eval_metric else None
        options = criterion.model_dump() if criterion else {"threshold": self.threshold}
        self._criterion = ToolTrajectoryCriterion.model_validate(options)

    def score(self, actual: Invocation, expected: Invocation) -> float:
        """1.0 if the calls of a turn are as expected, else 0.0."""
        order, ignore_args = ORDERS[self._criterion.match_type], self._criterion.ignore_args
        return float(not call_problem(actual, expected, order, ignore_args=ignore_args))
