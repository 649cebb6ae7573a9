"""Eval sets in files, under google-adk's path."""

from pathlib import Path

from adk_nb.errors import NotFoundError
from adk_nb.evaluation.eval_set import EvalSet, read_eval_set, write_eval_set
from adk_nb.evaluation.eval_sets_manager import EvalSetsManager, check_segment

_ENDING = ".evalset.json"


def load_eval_set_from_file(eval_set_file_path: str, eval_set_id: str) -> EvalSet:
    """`read_eval_set`. `eval_set_id` has no effect: an eval set of the older format is named after its file."""
    return read_eval_set(eval_set_file_path)


class LocalEvalSetsManager(EvalSetsManager):
    """Keeps each eval set in a file, `AGENTS_DIR/APP/ID.evalset.json`, as `adk web` and `adk eval` do.

    Args:
        agents_dir: The folder with a folder for each app.
    """

    def __init__(self, agents_dir: str | Path) -> None:
        self._folder = Path(agents_dir)

    def get_eval_set(self, app_name: str, eval_set_id: str) -> EvalSet | None:
        """The eval set, also in the older format; None if there is no file.

        Raises:
            InputError: The file is no eval set.
        """
        path = self._path(app_name, eval_set_id)
        return read_eval_set(path) if path.exists() else None

    def list_eval_sets(self, app_name: str) -> list[str]:
        folder = self._folder / check_segment(app_name, "app_name")
        if not folder.is_dir():
            raise NotFoundError("folder of app", app_name)
        return sorted(path.name.removesuffix(_ENDING) for path in folder.glob(f"*{_ENDING}"))

    def _save(self, app_name: str, eval_set: EvalSet) -> None:
        path = self._path(app_name, eval_set.eval_set_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_eval_set(eval_set, path)

    def _path(self, app_name: str, eval_set_id: str) -> Path:
        name = check_segment(eval_set_id, "eval_set_id")
        return self._folder / check_segment(app_name, "app_name") / f"{name}{_ENDING}"
