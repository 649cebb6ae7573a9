"""`%export`: write the agents and tools of the cells as Python files."""

from adk_nb.notebook.extensions.export import project
from adk_nb.notebook.extensions.export.statements import statements
from adk_nb.notebook.magics.grammar import Argument, Grammar
from adk_nb.notebook.magics.output import Host, Output, text
from adk_nb.notebook.place import folder_of

EXPORT = Grammar(
    "export",
    "Write the agents and tools of this notebook as Python: a package that google-adk runs, or a script.",
    examples=["%export my_agents/", "%export agent.py", "%export ~/agents/weather_desk"],
    arguments=[
        Argument(
            "PATH",
            "a folder, for google-adk (adk run, adk web); or a .py file, a script with adk_nb",
            needed=True,
        )
    ],
)


def export(host: Host, line: str, cell: str | None) -> Output:
    """Write the agents and tools of a notebook as Python. Raises as `project.export`."""
    path = EXPORT.parse(line, cell).path
    cells = statements(host.cell_sources, host.shell.transform_cell)
    return text(*project.export(host.notebook, cells, path, folder_of(host.shell)))
