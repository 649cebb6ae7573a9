"""`%export`: the agents and tools of the cells as Python files."""

from adk_nb.notebook.registry import Extension, Magic

extension = Extension(name="export", magics=[Magic("export", f"{__name__}.export:export", f"{__name__}.export:EXPORT")])
