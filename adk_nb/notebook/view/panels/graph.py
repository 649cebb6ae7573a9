"""The panel of the graph: the drawing of a team or a workflow, marked with the path of the run."""

from adk_nb.events.event import Event
from adk_nb.notebook.view.document import Block
from adk_nb.notebook.view.drawing import Drawing, drawing_of
from adk_nb.notebook.view.drawing_path import Marks, VisitedPath, path_of
from adk_nb.notebook.view.drawing_svg import live_drawing, picture
from adk_nb.notebook.view.panel import Follower, Json, Panel, PanelRun, add


class _Path(Follower):
    def __init__(self, run: PanelRun) -> None:
        self._drawing = drawing_of(run.agent) if run.agent else Drawing("")
        self._path = VisitedPath(self._drawing)
        self._is_drawn = not self._drawing.has_picture

    def begin(self) -> list[Json]:
        drawn: list[Json] = [] if self._is_drawn else [{"op": "drawing", "drawing": live_drawing(self._drawing)}]
        self._is_drawn = True
        return drawn + self._marked(self._path.begin())

    def event(self, event: Event) -> list[Json]:
        return self._marked(self._path.feed(event))

    def agent_begins(self, name: str, branch: str | None, path: str) -> list[Json]:
        return self._marked(self._path.agent_begins(name, branch, path))

    def agent_ends(self, name: str, branch: str | None, path: str) -> list[Json]:
        return self._marked(self._path.agent_ends(name, path))

    def end(self, status: str) -> list[Json]:
        return self._marked(self._path.end(status))

    def _marked(self, marks: Marks) -> list[Json]:
        return [{"op": "mark", "marks": marks}] if marks and self._drawing.has_picture else []


def _has_picture(run: PanelRun) -> bool:
    return run.agent is not None and drawing_of(run.agent).has_picture


def _saved(run: PanelRun) -> tuple[Block, ...]:
    if not run.agent:
        return ()
    drawing = drawing_of(run.agent)
    return (picture(drawing, path_of(drawing, run.events, run.history, run.status)),)


add(Panel(name="graph", title="Graph", order=40, exists=_has_picture, follow=_Path, saved=_saved))
