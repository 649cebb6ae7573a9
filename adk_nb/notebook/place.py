"""Where this shell runs; nothing of the runtime is loaded to find out."""

import os
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython

from adk_nb.errors import InputError


def is_being_tested(shell: Any) -> bool:
    """True under nbval, nbclient and nbconvert, where nobody looks: they run a kernel that cannot ask for input."""
    kernel = getattr(shell, "kernel", None)
    return "PYTEST_VERSION" in os.environ or not getattr(kernel, "_allow_stdin", True)


def folder_of(shell: Any) -> Path:
    """Where the notebook lies, whatever directory its cells have gone to since."""
    notebook = shell.user_ns.get("__vsc_ipynb_file__")  # VS Code starts kernels elsewhere
    return Path(notebook).parent if isinstance(notebook, str) else Path(shell.starting_dir)


def check_folder_above(path: Path) -> None:
    """Refuse a path in a folder that is not there: one that was typed wrong is not made.

    Raises:
        InputError: It is not there.
    """
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it, or give another path")


def this_cell() -> str:
    """The cell that is run now, as `in [8]`; empty outside of IPython."""
    shell: Any = get_ipython()
    if not shell:
        return ""
    # execution_count: versions of IPython differ in when they count it up
    return f"in [{len(shell.history_manager.input_hist_parsed) - 1}]"
