"""The interface of what keeps the results of eval sets. Source: google-adk 2.13."""

from abc import ABC, abstractmethod

from adk_nb.evaluation.eval_result import EvalCaseResult, EvalSetResult


class EvalSetResultsManager(ABC):
    """Keeps the results of evaluations."""

    @abstractmethod
    def save_eval_set_result(self, app_name: str, eval_set_id: str, eval_case_results: list[EvalCaseResult]) -> None:
        """Store the results of one evaluation, under an id of their own."""

    @abstractmethod
    def get_eval_set_result(self, app_name: str, eval_set_result_id: str) -> EvalSetResult:
        """The results of that id.

        Raises:
            NotFoundError: There are none.
        """

    @abstractmethod
    def list_eval_set_results(self, app_name: str) -> list[str]:
        """The ids of an app's results, sorted."""
