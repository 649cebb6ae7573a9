"""The cells that were run, also where a runner of notebooks stores no history."""

from typing import Any


class RunCells:
    """The cells of one shell, numbered as in `In[n]`.

    nbval runs cells with `store_history=False`. IPython numbers none of those, and outputs that name a cell would
    differ from the saved ones. So they are counted here, from the cell that loads the magics.
    """

    def __init__(self, shell: Any) -> None:
        self._history = shell.history_manager
        self._unstored = ["", ""]
        """None has the number 0, and the cell that loads the magics has begun."""

    def begin_cell(self, info: Any) -> None:
        """IPython calls this before each cell that is not silent."""
        if not info.store_history and not self._is_stored:
            self._unstored.append(str(info.raw_cell or ""))

    @property
    def number(self) -> int:
        """The n of `In[n]` of the cell that runs."""
        # IPython's versions differ in when they count `execution_count` up.
        return len(self._history.input_hist_parsed if self._is_stored else self._unstored) - 1

    @property
    def sources(self) -> list[str]:
        """What was typed; the first is empty."""
        return [str(cell) for cell in self._history.input_hist_raw] if self._is_stored else self._unstored

    @property
    def _is_stored(self) -> bool:
        return len(self._history.input_hist_parsed) > 1
