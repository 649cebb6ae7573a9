"""Results of eval sets in files, under google-adk's path."""

import json
from pathlib import Path

from adk_nb import clock
from adk_nb.errors import NotFoundError
from adk_nb.evaluation.eval_result import EvalCaseResult, EvalSetResult
from adk_nb.evaluation.eval_set_results_manager import EvalSetResultsManager
from adk_nb.evaluation.eval_sets_manager import check_segment

_ENDING = ".evalset_result.json"


class LocalEvalSetResultsManager(EvalSetResultsManager):
    """Keeps each result in a file, `AGENTS_DIR/APP/.adk/eval_history/ID.evalset_result.json`, as google-adk does.

    Args:
        agents_dir: The folder with a folder for each app.
    """

    def __init__(self, agents_dir: str | Path) -> None:
        self._folder = Path(agents_dir)

    def save_eval_set_result(self, app_name: str, eval_set_id: str, eval_case_results: list[EvalCaseResult]) -> None:
        folder, now = self._history(app_name), clock.now()
        name = f"{app_name}_{check_segment(eval_set_id, 'eval_set_id')}_{now}"
        result = EvalSetResult(
            eval_set_result_id=name,
            eval_set_result_name=name,
            eval_set_id=eval_set_id,
            eval_case_results=eval_case_results,
            creation_timestamp=now,
        )
        folder.mkdir(parents=True, exist_ok=True)
        # Without empty fields: google-adk may have an older google-genai, which refuses those that it does not know.
        text = result.model_dump_json(indent=2, exclude_none=True)
        (folder / f"{name}{_ENDING}").write_text(f"{text}\n", encoding="utf-8")

    def get_eval_set_result(self, app_name: str, eval_set_result_id: str) -> EvalSetResult:
        path = self._history(app_name) / f"{check_segment(eval_set_result_id, 'eval_set_result_id')}{_ENDING}"
        if not path.exists():
            raise NotFoundError("eval set result", eval_set_result_id, self.list_eval_set_results(app_name))
        data = json.loads(path.read_text(encoding="utf-8"))
        # Earlier versions of google-adk wrote the JSON as a JSON string.
        return EvalSetResult.model_validate_json(data) if isinstance(data, str) else EvalSetResult.model_validate(data)

    def list_eval_set_results(self, app_name: str) -> list[str]:
        return sorted(path.name.removesuffix(_ENDING) for path in self._history(app_name).glob(f"*{_ENDING}"))

    def _history(self, app_name: str) -> Path:
        return self._folder / check_segment(app_name, "app_name") / ".adk" / "eval_history"
