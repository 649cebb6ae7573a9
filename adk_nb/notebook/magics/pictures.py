"""An agent, a team or a workflow as it draws itself."""

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.notebook.magics.shown import Shown
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.view.drawing import drawing_of, tree_of
from adk_nb.notebook.view.drawing_svg import drawn, svg


class Picture(Shown):
    """The drawing of an agent, with the same as text under it."""

    def __init__(self, agent: BaseAgent, notebook: Notebook, *lines: str) -> None:
        """`lines`: what is said above it."""
        drawing = drawing_of(agent)
        super().__init__(drawn(drawing, tree_of(agent, notebook.version_in_words), *lines))
        self.mermaid = drawing.mermaid
        """The same in mermaid's language."""
        self.svg = str(svg(drawing))


def picture(notebook: Notebook, name: str, *lines: str) -> Picture:
    """The drawing of the agent of that name.

    Raises:
        AgentNotFoundError: There is none.
    """
    return Picture(notebook.agent(name), notebook, *lines)


def forms_of(notebook: Notebook, agent: BaseAgent) -> dict[str, str]:
    """What a cell shows that ends with an agent, by mime type."""
    return Picture(agent, notebook).forms
