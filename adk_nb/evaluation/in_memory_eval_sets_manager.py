"""Eval sets in this process's memory, under google-adk's path."""

from adk_nb.errors import NotFoundError
from adk_nb.evaluation.eval_set import EvalSet
from adk_nb.evaluation.eval_sets_manager import EvalSetsManager


class InMemoryEvalSetsManager(EvalSetsManager):
    """Keeps eval sets until the end of the process."""

    def __init__(self) -> None:
        self._by_app: dict[str, dict[str, EvalSet]] = {}

    def get_eval_set(self, app_name: str, eval_set_id: str) -> EvalSet | None:
        found = self._by_app.get(app_name, {}).get(eval_set_id)
        return found.model_copy(update={"eval_cases": list(found.eval_cases)}) if found else None

    def list_eval_sets(self, app_name: str) -> list[str]:
        if app_name not in self._by_app:
            raise NotFoundError("app", app_name, self._by_app)
        return sorted(self._by_app[app_name])

    def _save(self, app_name: str, eval_set: EvalSet) -> None:
        self._by_app.setdefault(app_name, {})[eval_set.eval_set_id] = eval_set
