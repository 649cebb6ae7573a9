"""Hooks before and after cells: they count cells, import modules in the background, and print hints."""

import importlib
import re
import shutil
import sys
from contextlib import suppress
from threading import Timer, current_thread
from typing import Any, cast

from IPython.core.error import UsageError

from adk_nb.errors import closest
from adk_nb.google_adk import COMMANDS
from adk_nb.notebook.magics.catalog import MAGICS


class CellCounter:
    """The cells of one shell, numbered as in `In[n]`.

    nbval runs cells with `store_history=False`. IPython numbers none of those, and outputs that name a cell would
    differ from the saved ones. So they are counted here, from the cell that loads the magics.
    """

    def __init__(self, shell: Any) -> None:
        self._history = shell.history_manager
        self._unstored = ["", ""]  # no cell has the number 0, and the one that loads the magics has begun

    def begin_cell(self, info: Any) -> None:
        """Count a cell; IPython calls this before each that is not silent."""
        if not info.store_history and not self._is_stored:
            self._unstored.append(str(info.raw_cell or ""))

    @property
    def number(self) -> int:
        """The n of `In[n]` of the cell that runs."""
        # IPython's versions differ in when they count `execution_count` up.
        return len(self._history.input_hist_parsed if self._is_stored else self._unstored) - 1

    @property
    def sources(self) -> list[str]:
        """The texts of the cells; the first is empty."""
        return [str(cell) for cell in self._history.input_hist_raw] if self._is_stored else self._unstored

    @property
    def _is_stored(self) -> bool:
        return len(self._history.input_hist_parsed) > 1


_PRELOADED = (
    "adk_nb.types",  # google.genai.types: most of the time
    "adk_nb.agents.llm_agent",
    "adk_nb.notebook.magics.tool",
    "adk_nb.notebook.magics.agent",
    "adk_nb.notebook.magics.chat",
    "adk_nb.notebook.view.widget",
    "adk_nb.models.offline_llm",
)
"""In the order in which they are imported; a cell that comes stops the import between two."""
_IDLE_SECONDS = 0.1
"""A cell's reply leaves the kernel after `post_run_cell`, and cells that are run together come within this time."""


class Preload:
    """Import the modules of the first definition in a daemon thread, while no cell runs.

    A module that cannot be imported is left to the cell that needs it, which raises the error.
    """

    def __init__(self) -> None:
        self._modules = list(_PRELOADED)
        self._timer = Timer(0, self._load)

    def after_cell(self, _: Any = None) -> None:
        """Go on; IPython calls this after each cell that is not silent."""
        self.pause()
        if self._modules:
            self._timer = Timer(_IDLE_SECONDS, self._load)
            self._timer.daemon = True
            self._timer.start()

    def pause(self, _: Any = None) -> None:
        """Stop after the module that is being imported; IPython calls this before each cell that is not silent."""
        self._timer.cancel()

    def _load(self) -> None:
        timer = cast(Timer, current_thread())
        while self._modules and not timer.finished.is_set():
            with suppress(Exception):
                importlib.import_module(self._modules.pop(0))


_COMMAND = re.compile(r"^\s*(?:\w+\s*=\s*)?(?:!{1,2}|%(?:sx|system)\s)\s*adk\s+([a-z_]+)", re.MULTILINE)
_SCRIPT = re.compile(r"%%(?:bash|sh|system|sx|!)")
_COMMAND_IN_SCRIPT = re.compile(r"^\s*adk\s+([a-z_]+)", re.MULTILINE)
_NO_MAGIC = re.compile(r"(?:Line|Cell) magic (?:function )?`(%%?)(\w+)` not found")
_SETTING = re.compile(r"\s*%config\s+AdkNb\.(\w+)\s*=\s*([^\s'\"]+)\s*$")


def hint(result: Any) -> None:
    """Print a line to type after a cell that was written for google-adk, or failed as beginners' cells do."""
    cell = result.info.raw_cell or ""
    commands = (_COMMAND_IN_SCRIPT if _SCRIPT.match(cell) else _COMMAND).findall(cell)
    for command in dict.fromkeys(commands) if not shutil.which("adk") else ():
        instead = COMMANDS.get(command, "see %%agent?, %chat? and %agents")
        sys.stderr.write(f"adk_nb: there is no `adk {command}` here; {instead}\n")
    if result.error_in_exec and (line := _hint_on(result.error_in_exec, cell)):
        sys.stderr.write(f"adk_nb: {line}\n")


def _hint_on(error: BaseException, cell: str) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name in ("google", "google.adk"):
        return "google-adk is not installed; type: %config AdkNb.google_adk = True, and import again"
    if isinstance(error, RuntimeError) and "asyncio.run() cannot be called from a running event loop" in str(error):
        return "write `await main()` in the cell, or type: %config AdkNb.nest_asyncio = True"
    if isinstance(error, UsageError) and (magic := _NO_MAGIC.match(str(error))):
        near = closest(magic[2], MAGICS)
        return f"did you mean {magic[1]}{near}?" if near else ""
    if isinstance(error, NameError) and (setting := _SETTING.match(cell)):
        return f'text stands in quotes here, type: %config AdkNb.{setting[1]} = "{setting[2]}"'
    return ""
