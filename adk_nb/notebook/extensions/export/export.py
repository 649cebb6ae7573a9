"""`%export`: write the agents and tools of the cells as Python files."""

from adk_nb.notebook.extensions.export import project
from adk_nb.notebook.extensions.export.statements import statements
from adk_nb.notebook.magics.grammar import Argument, Grammar
from adk_nb.notebook.magics.output import Host, Output, text
from adk_nb.notebook.place import folder_of

EXPORT = Grammar(
    "export",
    "Write the agents and tools of this notebook as Python: a package that google-adk runs, or a script.",
    examples=["%export my_agents/", "%export agent.py", "%export ~/agents/weather_desk desk"],
    arguments=[
        Argument(
            "PATH",
            "a folder, for google-adk (adk run, adk web); or a .py file, a script with adk_nb",
            needed=True,
        ),
        Argument(
            "AGENT",
            "the root agent, before or after the path; left out: the one marked --root, or that is under no other",
            names="agent",
        ),
    ],
)


def export(host: Host, line: str, cell: str | None) -> Output:
    """Write the agents and tools of a notebook as Python. Raises as `project.export`."""
    args, names = EXPORT.parse(line, cell), host.notebook.agent_names
    path, agent = args.path, args.agent
    if agent is not None and agent not in names and (path in names or "/" in agent or agent.endswith(".py")):
        path, agent = agent, path
    if agent is not None:
        host.notebook.agent(agent)  # raises if there is none
    cells = statements(host.cell_sources, host.shell.transform_cell)
    return text(*project.export(host.notebook, cells, path, folder_of(host.shell), root=agent))
