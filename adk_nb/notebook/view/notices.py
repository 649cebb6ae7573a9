"""The notices of a run: remarks, and a chip for a stand-in or recorded model, explained once in a kernel session."""

from typing import Any, cast
from weakref import WeakKeyDictionary

from IPython.core.getipython import get_ipython

from adk_nb.notebook.view.document import Notice
from adk_nb.notebook.view.plain_text import one_line

_MAX_CHARS = 2_000
_MAX_LABEL = 60
_Run = tuple[str, int]
"""The id of a cell, empty where the front end sends none, and its execution count."""
_explaining_runs: WeakKeyDictionary[Any, dict[str, _Run]] = WeakKeyDictionary()
"""By shell: explanation -> the cell that shows it."""


class Notices:
    """The notices of one run, in the order of arrival.

    Args:
        model_notice: `BaseLlm.notice` of the model that answers; the part before the colon becomes a chip.
    """

    def __init__(self, model_notice: str | None = None) -> None:
        self._texts: dict[str, bool] = {}
        """Text -> True if its label becomes a chip."""
        self._folded: dict[str, bool] = {}
        if model_notice:
            self.add(model_notice, is_chip=True)

    def __str__(self) -> str:
        return "; ".join(self._texts)

    def of_next_turn(self, model_notice: str | None) -> "Notices":
        """The notices of the next run in the same output."""
        notices = Notices(model_notice)
        notices._folded = self._folded
        return notices

    def add(self, text: str, *, is_chip: bool = False) -> None:
        """Add a remark unless it is empty or there already."""
        if text:
            self._texts.setdefault(text, is_chip)

    def blocks(self) -> list[Notice]:
        """The notices to show; the first call decides which of them the current cell explains."""
        return [self._block(text, is_chip) for text, is_chip in self._texts.items()]

    def _block(self, text: str, is_chip: bool) -> Notice:
        label, colon, explanation = text.partition(": ")
        if not (is_chip and colon) or len(label) > _MAX_LABEL:
            return Notice(one_line(text, _MAX_CHARS))
        if text not in self._folded:
            self._folded[text] = not _explain(text)
        return Notice(one_line(explanation, _MAX_CHARS), one_line(label), self._folded[text])


def _explain(text: str) -> bool:
    """Return True in the first cell of the kernel session that shows `text`, and when that cell is run again."""
    if (shell := get_ipython()) is None:
        return True
    runs, run = _explaining_runs.setdefault(shell, {}), (_cell_id(shell), shell.execution_count)
    first_run = runs.get(text)
    if first_run and not (first_run[0] and first_run[0] == run[0] and first_run[1] != run[1]):
        return False
    runs[text] = run
    return True


def _cell_id(shell: Any) -> str:
    parent = cast(dict[str, Any], shell.get_parent() if hasattr(shell, "get_parent") else {})
    metadata = cast(dict[str, Any], parent.get("metadata", {}))
    return str(metadata.get("cellId", ""))
