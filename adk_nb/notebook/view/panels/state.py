"""The panel of the session's state: changes come with their events, whole values on request, to be edited."""

from typing import Any

from adk_nb.notebook.view.panel import Panel, PanelRun, add
from adk_nb.notebook.view.state_changes import ShownState


def _values(run: PanelRun, _: str) -> list[dict[str, Any]]:
    return ShownState(run.state).whole()


add(Panel(name="state", title="State", order=30, data=_values, exists=lambda run: bool(run.state)))
