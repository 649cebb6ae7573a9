"""Panels of your own in the view of a run."""

from adk_nb.notebook.view.document import Code, Fold, Markdown, Picture, Table, Text
from adk_nb.notebook.view.panels import Follower, Panel, PanelRun, register, unregister

__all__ = [
    "Code",
    "Fold",
    "Follower",
    "Markdown",
    "Panel",
    "PanelRun",
    "Picture",
    "Table",
    "Text",
    "register",
    "unregister",
]
