"""The magics beside the conversation: recordings, keys, how all is, and what becomes of the notebook elsewhere."""

# pyright: basic
# IPython's shells and Magics are untyped, and what is loaded late has no type here.

from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from adk_nb.lazy import face
from adk_nb.notebook.magics.asked import alone, helps, shown, unless_silent
from adk_nb.notebook.magics.config import AdkNb
from adk_nb.notebook.magics.grammar import DOCTOR, EXPORT, KEY, RECORD, REPLAY

_late, _ = face(
    __name__,
    {
        "doctor": "adk_nb.notebook.doctor",
        "export": "adk_nb.notebook.magics.export",
        "key": "adk_nb.notebook.magics.key",
        "record": "adk_nb.notebook.magics.record",
        "reports": "adk_nb.notebook.magics.reports",
    },
)


@magics_class
class BesideMagics(Magics):
    """Those of one shell."""

    shell: Any

    def __init__(self, shell: Any, of: Any) -> None:
        """`of`: the magics of the conversation, with the notebook and its settings."""
        super().__init__(shell)
        self._of = of
        self.settings: AdkNb = of.settings

    @property
    def notebook(self) -> Any:
        """What this notebook has defined."""
        return self._of.notebook

    @no_var_expand
    @line_cell_magic
    @helps(RECORD)
    def record(self, line: str, cell: str | None = None) -> Any:
        asked = alone(RECORD, line, cell)
        return shown(_late("record").switch(self.shell, self.settings, asked, "record"), asked)

    @no_var_expand
    @line_cell_magic
    @helps(REPLAY)
    def replay(self, line: str, cell: str | None = None) -> Any:
        asked = alone(REPLAY, line, cell)
        return shown(_late("record").switch(self.shell, self.settings, asked, "replay"), asked)

    @no_var_expand
    @line_cell_magic
    @helps(KEY)
    def key(self, line: str, cell: str | None = None) -> Any:
        asked = alone(KEY, line, cell)
        return shown(_late("key").run(self.shell, self.settings, asked), asked)

    @no_var_expand
    @line_cell_magic
    @helps(DOCTOR)
    def doctor(self, line: str, cell: str | None = None) -> Any:
        asked = alone(DOCTOR, line, cell)
        found = _late("doctor").findings(self.shell, self.settings)
        rows = [[one.about, one.found, one.next] for one in found]
        return unless_silent(_late("reports").in_a_whole_table(["look at", "found", "type next"], rows), asked)

    @no_var_expand
    @line_cell_magic
    @helps(EXPORT)
    def export(self, line: str, cell: str | None = None) -> Any:
        asked = alone(EXPORT, line, cell)
        return shown(_late("export").export_from(self.shell, self._of.cells.sources, self.notebook, asked.path), asked)
