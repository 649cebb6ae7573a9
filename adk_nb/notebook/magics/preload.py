"""Import in the background what the first definition needs, while no cell runs."""

import importlib
from contextlib import suppress
from threading import Timer, current_thread
from typing import Any, cast

_MODULES = (
    "adk_nb.types",  # google.genai.types: most of the time
    "adk_nb.agents.llm_agent",
    "adk_nb.notebook.registry.tool_cell",
    "adk_nb.notebook.magics.agent",
    "adk_nb.notebook.magics.chat",
    "adk_nb.notebook.magics.what_came",
    "adk_nb.notebook.view.widget",
    "adk_nb.models.offline_llm",
)
"""In the order in which they are imported; each is a place to stop at when a cell comes."""
_IDLE_SECONDS = 0.1
"""A cell's reply leaves the kernel after `post_run_cell`, and cells that are run together come within this time."""


class Preload:
    """Imports modules in a daemon thread, one after the other, and pauses for cells.

    A module that cannot be imported is left to the cell that needs it, which raises the error.
    """

    def __init__(self) -> None:
        self._left = list(_MODULES)
        self._timer = Timer(0, self._load)

    def after_cell(self, _: Any = None) -> None:
        """IPython calls this after each cell that is not silent."""
        self.pause()
        if self._left:
            self._timer = Timer(_IDLE_SECONDS, self._load)
            self._timer.daemon = True
            self._timer.start()

    def pause(self, _: Any = None) -> None:
        """IPython calls this before each cell that is not silent. A module on its way is still imported."""
        self._timer.cancel()

    def _load(self) -> None:
        timer = cast(Timer, current_thread())
        while self._left and not timer.finished.is_set():
            with suppress(Exception):
                importlib.import_module(self._left.pop(0))
