"""A line with the progress of many runs, updated in place."""

from typing import Any, Self

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.evaluation.progress import Progress
from adk_nb.notebook.extensions.evaluation.tables import progress_text
from adk_nb.notebook.place import Mode, display_mode

_DELAY = 2.0
"""Seconds before the line appears, so that short batches leave the same outputs in the file on every machine."""


class ProgressLine:
    """Shows progress in the output of the cell; a saved notebook keeps nothing of it."""

    def __init__(self, mode: Mode) -> None:
        self._is_shown = display_mode(mode) != "static"
        self._handle: Any = None
        self.last: Progress | None = None
        """The counts at the end."""

    def show(self, progress: Progress) -> None:
        """Show the counts."""
        self.last = progress
        if not self._is_shown:
            return
        bundle = {"text/plain": progress_text(progress)}
        if progress.is_over:  # a later run of the same batch begins a line of its own
            self._clear()
        elif self._handle is None and progress.seconds < _DELAY:
            return
        elif self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()

    def _clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
            self._handle = None
