"""The place where this shell runs: display mode, folder, current cell. Imports nothing of the runtime."""

import os
from pathlib import Path
from typing import Any, Literal, cast, get_args

from IPython.core.getipython import get_ipython

from adk_nb.errors import InputError

Mode = Literal["auto", "widget", "static", "text", "off"]
"""`auto`: live if a user may be there. `widget`: live in any kernel. `static`: only the reply. `text`: the reply as
plain text. `off`: nothing; the reply is only returned."""
DISPLAY_VARIABLE = "ADK_NB_DISPLAY"
"""Environment variable of the kernel with the meaning of `auto`."""


def display_mode(mode: Mode = "auto") -> Mode:
    """The display mode of this place; `auto` is the mode in `ADK_NB_DISPLAY`, else `widget` or `static`.

    It is `static` where the kernel cannot ask for input: nbval, nbclient and nbconvert say so with every cell they run.

    Raises:
        InputError: `ADK_NB_DISPLAY` is not a mode.
    """
    if mode == "auto" and (word := os.environ.get(DISPLAY_VARIABLE, "").strip()):
        if word not in get_args(Mode):
            modes = ", ".join(get_args(Mode))
            raise InputError(f"{DISPLAY_VARIABLE}={word!r} is not a display mode; set it to one of {modes}")
        mode = cast(Mode, word)
    if mode != "auto":
        return mode
    return "widget" if can_ask() else "static"


def can_ask() -> bool:
    """True if the user can be asked for a line of input: as the newest cell of the user was sent."""
    shell: Any = get_ipython()
    kernel = getattr(shell, "kernel", None)
    if kernel is None or not hasattr(shell, "get_parent"):
        return bool(getattr(kernel, "_allow_stdin", True))
    if not hasattr(shell, _CELLS):
        setattr(shell, _CELLS, _Cells(shell))
    return getattr(shell, _CELLS).can_ask


_CELLS = "_adk_nb_cells"


class _Cells:
    """Keeps whether the user's cells may ask for input.

    ipykernel knows it of the newest request alone, and extensions of front ends send requests of their own: between
    cells, and in a subshell also while one runs.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._is_stored = False
        self.can_ask = bool(getattr(shell.kernel, "_allow_stdin", True))
        self._read_request()
        shell.events.register("pre_run_cell", self._begin_cell)

    def _begin_cell(self, info: Any) -> None:
        """Note a cell; IPython's `pre_run_cell`, which silent requests do not raise."""
        self._is_stored |= info.store_history
        # nbval stores no cell; where cells are stored, a request that is not is no cell
        if info.store_history or not self._is_stored:
            self._read_request()

    def _read_request(self) -> None:
        request = self._shell.get_parent().get("content", {})
        if not request.get("silent", False):
            self.can_ask = bool(request.get("allow_stdin", self.can_ask))


def folder_of(shell: Any) -> Path:
    """The notebook's folder, whatever directory its cells have changed to since."""
    notebook = shell.user_ns.get("__vsc_ipynb_file__")  # VS Code starts kernels elsewhere
    return Path(notebook).parent if isinstance(notebook, str) else Path(shell.starting_dir)


def check_folder_above(path: Path) -> None:
    """Raise an InputError if the folder of a path does not exist: it may be misspelt, so it is not created."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it, or give another path")


def is_in_this_cell(text: str) -> bool:
    """True if the source of the cell that is run now has `text`, with any white space in it."""
    shell: Any = get_ipython()
    if hasattr(shell, "get_parent"):  # nbval stores no history
        source = shell.get_parent().get("content", {}).get("code", "")
    else:
        source = shell.history_manager.input_hist_raw[-1] if shell else ""
    return " ".join(text.split()) in " ".join(source.split())


def request() -> dict[str, Any]:
    """The message of the front end that is answered now: of a cell, or of a click; empty outside of a kernel."""
    shell: Any = get_ipython()
    if hasattr(shell, "get_parent"):
        return shell.get_parent()
    return getattr(getattr(shell, "kernel", None), "_parent_header", None) or {}  # Pyodide's has the whole message


def cell_id() -> str:
    """The id of the cell that is run now; empty where the front end sends none."""
    return str(cast(dict[str, Any], request().get("metadata") or {}).get("cellId", ""))


def this_cell() -> str:
    """The cell that is run now, as `in [8]`; empty outside of IPython."""
    shell: Any = get_ipython()
    if not shell:
        return ""
    # execution_count: versions of IPython differ in when they count it up
    return f"in [{len(shell.history_manager.input_hist_parsed) - 1}]"
