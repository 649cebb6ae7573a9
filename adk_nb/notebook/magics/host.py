"""What a magic works on: the shell it was typed into, with its settings and what its notebook has defined."""

from typing import Any, Protocol

from adk_nb.notebook.registry.notebook import Notebook


class Host(Protocol):
    """The magics of one shell."""

    shell: Any
    settings: Any
    """`AdkNb`; what traitlets hold is untyped."""

    @property
    def notebook(self) -> Notebook:
        """What this notebook has defined."""
        ...

    @property
    def cell_number(self) -> int:
        """The n of `In[n]` of the cell that runs."""
        ...

    @property
    def cell_sources(self) -> list[str]:
        """The cells that were run, in order."""
        ...
