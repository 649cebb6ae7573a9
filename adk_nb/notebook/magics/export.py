"""`%export`: the cells of this kernel, read as Python, become files."""

from adk_nb.notebook.export import project
from adk_nb.notebook.export.statements import statements
from adk_nb.notebook.magics.grammar import Argument, Grammar
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, text
from adk_nb.notebook.place import folder_of

EXPORT = Grammar(
    "export",
    "Write the agents and tools of this notebook as Python: a package that google-adk runs, or a script.",
    examples=["%export my_agents/", "%export agent.py", "%export ~/agents/weather_desk"],
    arguments=[
        Argument(
            "PATH",
            "a folder: google-adk's (adk run, adk web); a file that ends in .py: a script with adk_nb",
            needed=True,
        )
    ],
)


def export(host: Host, line: str, cell: str | None) -> Output:
    """Write the agents and tools of a notebook as Python. Raises as `project.export`."""
    path = EXPORT.parse(line, cell).path
    cells = statements(host.cell_sources, host.shell.transform_cell)
    return text(*project.export(host.notebook, cells, path, folder_of(host.shell)))
