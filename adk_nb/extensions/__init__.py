"""Extend the notebook: magics, settings, panels, options, checks and metrics of a package, or of a cell."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "AgentOption": "adk_nb.notebook.magics.grammar",
        "Argument": "adk_nb.notebook.magics.grammar",
        "Extension": "adk_nb.notebook.registry",
        "Finding": "adk_nb.notebook.magics.output",
        "Grammar": "adk_nb.notebook.magics.grammar",
        "Host": "adk_nb.notebook.magics.output",
        "Magic": "adk_nb.notebook.registry",
        "Option": "adk_nb.notebook.magics.grammar",
        "Output": "adk_nb.notebook.magics.output",
        "Setting": "adk_nb.notebook.registry",
        "ToolOption": "adk_nb.notebook.magics.grammar",
        "TurnOption": "adk_nb.notebook.magics.grammar",
        "register": "adk_nb.notebook.registry",
        "table": "adk_nb.notebook.magics.output",
        "text": "adk_nb.notebook.magics.output",
    },
)
