"""Build, run and watch LLM agents cell by cell."""

import sys
from typing import Any

from adk_nb.google_adk import MissingModules
from adk_nb.lazy import face

__version__ = "0.1.0"

__getattr__, _public_names = face(__name__)
if not any(isinstance(finder, MissingModules) for finder in sys.meta_path):
    sys.meta_path.append(MissingModules())


def __dir__() -> list[str]:
    """Return the public names, for Tab and help."""
    return sorted([*_public_names(), "__version__"])


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext adk_nb` calls this."""
    from adk_nb.notebook.magics.extension import load_ipython_extension as load  # noqa: PLC0415  # the one door to IPython

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext adk_nb` calls this."""
    from adk_nb.notebook.magics.extension import unload_ipython_extension as unload  # noqa: PLC0415  # as above

    unload(shell)
