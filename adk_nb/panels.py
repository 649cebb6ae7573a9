"""Panels of your own in the view of a run."""

from adk_nb.notebook.view.panel import Follower, Panel, PanelRun
from adk_nb.notebook.view.run_panels import register, unregister

__all__ = ["Follower", "Panel", "PanelRun", "register", "unregister"]
