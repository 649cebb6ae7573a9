"""All panels, each registered by its module; and the panels of one view: their ops, and their answers to a page."""

import logging
import pkgutil
import re
from collections.abc import Callable, Collection
from importlib import import_module

from adk_nb.errors import InputError
from adk_nb.notebook.view.document import Block
from adk_nb.notebook.view.panel import Follower, Json, Panel, PanelRun, add, registered, registry

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RESERVED = ("call", "missed", "refused", "beside")
"""Names of requests that are of no panel."""

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)  # registers its panel


def register(panel: Panel) -> None:
    """Show a panel in the views of all later runs, in place of the one that was registered before under its name.

    Raises:
        InputError: It has no module, or its name cannot be used.
    """
    if not _NAME.fullmatch(panel.name):
        raise InputError(f"panel name {panel.name!r}: use lower case letters, digits, - and _, as in 'word-count'")
    if not panel.module or not panel.data:
        raise InputError(f"panel {panel.name!r} needs data=, a function, and module=, the text of an ES module")
    old = registry.get(panel.name)
    used = {name for peer in registry.values() if peer is not old for name in (peer.name, *peer.requests)}
    if (old and not old.module) or used.union(_RESERVED).intersection((panel.name, *panel.requests)):
        raise InputError(f"panel name {panel.name!r} is taken; choose another one")
    add(panel)


def unregister(name: str) -> None:
    """Leave a panel out of the views of all later runs.

    Raises:
        InputError: There is no such panel, or it is built in.
    """
    if name not in registry or not registry[name].module:
        names = ", ".join(panel.name for panel in registry.values() if panel.module) or "none"
        raise InputError(f"no panel {name!r} was registered; registered are: {names}")
    del registry[name]


def listed() -> list[Json]:
    """`{"name", "title"}` of each panel in the order of the tabs, and its `module` if the view has none built in."""
    return [
        {"name": panel.name, "title": panel.title} | ({"module": panel.module} if panel.module else {})
        for panel in registered()
    ]


def saved(run: PanelRun) -> tuple[Block, ...]:
    """The blocks that a saved notebook keeps of the panels of a run."""
    blocks: tuple[Block, ...] = ()
    for panel in registered():
        try:
            blocks += panel.saved(run) if panel.saved and panel.exists(run) else ()
        except Exception:
            logger.exception("panel %r cannot be saved", panel.name)
    return blocks


class RunPanels:
    """The panels of one view."""

    def __init__(self, run: PanelRun) -> None:
        self.run = run
        self._panels = registered()
        self._followers = [panel.follow(run) for panel in self._panels if panel.follow]
        self._offered: set[str] = set()

    def offers(self) -> list[Json]:
        """The op with all that a page may ask for; none if that is as before."""
        new = {panel.name for panel in self._panels if panel.name not in self._offered and self._exists(panel)}
        if not new and self._offered:
            return []
        self._offered |= new
        offered = [panel for panel in self._panels if panel.name in self._offered]
        names = [name for panel in offered for name in ((panel.name,) if panel.data else ()) + (*panel.requests,)]
        return [{"op": "offers", "what": [*names, "rerun"]}]

    def _exists(self, panel: Panel) -> bool:
        try:
            return panel.exists(self.run)
        except Exception:
            logger.exception("the panel %r cannot say whether it exists", panel.name)
            return False

    def follow(self, step: Callable[[Follower], Collection[Json]]) -> list[Json]:
        """Take a step of the run to every follower; the ops that show it."""
        ops: list[Json] = []
        for follower in self._followers:
            try:
                ops += step(follower)
            except Exception:  # a panel that fails is no fault of the run
                logger.exception("%s cannot follow the run", type(follower).__name__)
        return ops

    def answer(self, name: str, id: str) -> Json | None:
        """The op that answers a page, None if there is nothing; it costs the time of what was asked for alone."""
        for panel in self._panels:
            try:
                data = panel.answer(self.run, name, id)
            except Exception as error:
                logger.exception("panel %r cannot answer %r", panel.name, id)
                return {"op": "notice", "text": f"panel {panel.title}: {type(error).__name__}: {error}"}
            if data is not None:
                return {"op": "panel", "name": name, "id": id, "data": data}
        return None
