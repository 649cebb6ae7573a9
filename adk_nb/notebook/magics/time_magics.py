"""The magics that look back and go back: %trace and %rewind."""

# pyright: basic
# IPython's shells and Magics are untyped, and what is loaded late has no type here.

from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from adk_nb.lazy import face
from adk_nb.notebook.magics.asked import alone, helps, unless_silent
from adk_nb.notebook.magics.time_grammar import REWIND, TRACE

_late, _ = face(
    __name__,
    {"rewind": "adk_nb.notebook.magics.rewind", "trace": "adk_nb.notebook.magics.trace"},
)


@magics_class
class TimeMagics(Magics):
    """Those of one shell."""

    shell: Any

    def __init__(self, shell: Any, of: Any) -> None:
        """`of`: the magics of the conversation, with the notebook and its settings."""
        super().__init__(shell)
        self._of = of

    @no_var_expand
    @line_cell_magic
    @helps(TRACE)
    def trace(self, line: str, cell: str | None = None) -> Any:
        asked = alone(TRACE, line, cell)
        return unless_silent(_late("trace").show(self._of.notebook, asked), asked)

    @no_var_expand
    @line_cell_magic
    @helps(REWIND)
    def rewind(self, line: str, cell: str | None = None) -> Any:
        asked = alone(REWIND, line, cell)
        told = _late("rewind").run(self._of.notebook, asked, self._of.settings.display)
        return self._of.what_came(told, silent=asked.silent)
