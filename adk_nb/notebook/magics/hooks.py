"""What happens before and after cells: they are counted, modules are imported in the background, hints are printed."""

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
from adk_nb.notebook.magics.catalog import MODULES


class CellCounter:
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


_PRELOADED = (
    "adk_nb.types",  # google.genai.types: most of the time
    "adk_nb.agents.llm_agent",
    "adk_nb.notebook.magics.tool",
    "adk_nb.notebook.magics.agent",
    "adk_nb.notebook.magics.chat",
    "adk_nb.notebook.view.widget",
    "adk_nb.models.offline_llm",
)
"""In the order in which they are imported; each is a place to stop at when a cell comes."""
_IDLE_SECONDS = 0.1
"""A cell's reply leaves the kernel after `post_run_cell`, and cells that are run together come within this time."""


class Preload:
    """Imports what the first definition needs in a daemon thread, a module at a time, while no cell runs.

    A module that cannot be imported is left to the cell that needs it, which raises the error.
    """

    def __init__(self) -> None:
        self._left = list(_PRELOADED)
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


_COMMAND = re.compile(r"^\s*(?:\w+\s*=\s*)?(?:!{1,2}|%(?:sx|system)\s)\s*adk\s+([a-z_]+)", re.MULTILINE)
_COMMAND_IN_SCRIPT = re.compile(r"^\s*adk\s+([a-z_]+)", re.MULTILINE)
_NO_MAGIC = re.compile(r"(?:Line|Cell) magic (?:function )?`(%%?)(\w+)` not found")
_SETTING = re.compile(r"\s*%config\s+AdkNb\.(\w+)\s*=\s*([^\s'\"]+)\s*$")


def hint(result: Any) -> None:
    """After a cell that was written for google-adk, or failed as beginners' cells do: a line with what to type."""
    cell = result.info.raw_cell or ""
    commands = (_COMMAND_IN_SCRIPT if re.match(r"%%(?:bash|sh|system|sx|!)", cell) else _COMMAND).findall(cell)
    for command in dict.fromkeys(commands) if not shutil.which("adk") else ():
        instead = COMMANDS.get(command, "see %%agent?, %chat? and %agents")
        _print(f"there is no `adk {command}` here; {instead}")
    error = result.error_in_exec
    if isinstance(error, ModuleNotFoundError) and error.name in ("google", "google.adk"):
        _print("google-adk is not installed; type: %config AdkNb.google_adk = True, and import again")
    if isinstance(error, RuntimeError) and "asyncio.run() cannot be called from a running event loop" in str(error):
        _print("write `await main()` in the cell, or type: %config AdkNb.nest_asyncio = True")
    missing = _NO_MAGIC.match(str(error)) if isinstance(error, UsageError) else None
    if missing and (near := closest(missing[2], MODULES)):
        _print(f"did you mean {missing[1]}{near}?")
    setting = _SETTING.match(cell) if isinstance(error, NameError) else None
    if setting:
        _print(f'text stands in quotes here, type: %config AdkNb.{setting[1]} = "{setting[2]}"')


def _print(line: str) -> None:
    sys.stderr.write(f"adk_nb: {line}\n")
