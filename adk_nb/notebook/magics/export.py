"""What `%export` does: the cells of this kernel, read as Python, become files."""

from typing import Any

from adk_nb.notebook.export import project
from adk_nb.notebook.export.statements import statements
from adk_nb.notebook.place import folder_of
from adk_nb.notebook.registry.notebook import Notebook


def export_from(shell: Any, cells: list[str], notebook: Notebook, place: str) -> list[str]:
    """As `export`, of the `cells` that ran in `shell`."""
    return project.export(notebook, statements(cells, shell.transform_cell), place, folder_of(shell))
