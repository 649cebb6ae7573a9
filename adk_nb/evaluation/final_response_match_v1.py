"""`response_match_score` of turns that are at hand, under google-adk's path."""

from adk_nb.evaluation.eval_case import Invocation, content_text
from adk_nb.evaluation.eval_metrics import EvalMetric
from adk_nb.evaluation.evaluator import Evaluator
from adk_nb.evaluation.rouge import rouge_1


class RougeEvaluator(Evaluator):
    """The mean ROUGE-1 of the answers with the expected ones."""

    def __init__(self, eval_metric: EvalMetric) -> None:
        super().__init__(eval_metric=eval_metric)

    def score(self, actual: Invocation, expected: Invocation) -> float:
        """ROUGE-1 of the answer of a turn."""
        return rouge_1(content_text(actual.final_response), content_text(expected.final_response))
