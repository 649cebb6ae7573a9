"""The panel of artifacts: their names come as they are saved, their content on request."""

from typing import Any

from adk_nb import types
from adk_nb.notebook.view import results
from adk_nb.notebook.view.panel import Follower, Json, Panel, PanelRun, add

_FACTS = ("id", "name", "version", "mime", "size")


class _Saved(Follower):
    def __init__(self, run: PanelRun) -> None:
        self._run = run

    def saved(self, name: str, version: int, file: types.Part | None) -> list[Json]:
        artifact = results.artifact(name, version, file)
        self._run.artifacts[artifact["id"]] = artifact
        return [{"op": "artifact", "artifact": {fact: artifact[fact] for fact in _FACTS}}]


def _content(run: PanelRun, id: str) -> Any:
    return run.artifacts.get(id)


add(
    Panel(
        name="artifacts",
        title="Artifacts",
        order=60,
        exists=lambda run: bool(run.artifacts),
        requests={"artifact": _content},
        follow=_Saved,
    )
)
