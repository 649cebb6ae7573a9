"""Panels of a run's view: each a tab on the page, registered by its module; and their data for one view."""

import json
import logging
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from pydantic_core import to_json

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.notebook.registry import registry as extensions
from adk_nb.notebook.view.document import Block, Code, Fold
from adk_nb.runtime.trace import Trace
from adk_nb.sessions.state import State

Json = dict[str, Any]

_PORT = re.compile(r"(?<=\b127\.0\.0\.1):\d+|(?<=\blocalhost):\d+")
"""The port of a server on this machine, which differs from run to run."""


@dataclass(kw_only=True)
class PanelRun:
    """The data of a run for its panels, so far. A chat box has one for all its turns."""

    agent: BaseAgent | None = None
    """The agent of the run. None: in a chat box, whose turns may have different agents."""
    history: Sequence[Event] = ()
    """The session before the run, if the run answers an interrupt raised there; else empty."""
    status: str = "running"
    """Or `done`, `pending`, `cancelled`, `error`."""
    trace: Trace = field(default_factory=Trace)
    """Requests to models and calls of tools, with their times."""
    events: list[Event] = field(default_factory=list[Event])
    """Oldest first, without partial ones."""
    start_state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The session's state before the first event."""
    artifacts: dict[str, Json] = field(default_factory=dict[str, Json])
    """Artifacts that the run has saved, by id, as `results.artifact` returns them."""
    rows: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    """Id of a row in the log -> the events that it shows."""

    def __post_init__(self) -> None:
        self._state: tuple[int, dict[str, Any]] = 0, {}
        """A number of events, and the state after them. Replaced as a whole, since pages ask from any thread."""

    @property
    def state(self) -> dict[str, Any]:
        """The session's state after the last event; without a `start_state`, only the changes of the run."""
        count, state = self._state
        state = dict(state if count else self.start_state)
        for event in self.events[count:]:
            if count and self.events[count - 1].invocation_id != event.invocation_id:
                state = {key: value for key, value in state.items() if not key.startswith(State.TEMP_PREFIX)}
            state |= event.actions.state_delta
            state = {key: value for key, value in state.items() if value != DELETED}
            count += 1
        self._state = count, state
        return state

    def feed(self, event: Event, ops: Iterable[Json] = ()) -> None:
        """Take in a complete event. `ops`: the ops that show it."""
        self.events.append(event)
        for op in ops:
            row = op["row"]["id"] if op["op"] == "append" else op["id"] if op["op"] == "patch" else None
            if row is None:
                continue
            events = self.rows.setdefault(row, [])
            if not events or events[-1] is not event:
                events.append(event)


class Follower:
    """Follows a run for a panel; each method returns ops for the view, as `LiveView.push` takes them."""

    def begin(self) -> list[Json]:
        """The run begins, or resumes."""
        return []

    def event(self, event: Event) -> list[Json]:
        """A further event, partial or complete."""
        return []

    def saved(self, name: str, version: int, file: types.Part | None) -> list[Json]:
        """The run has saved an artifact."""
        return []

    def agent_begins(self, name: str, branch: str | None, path: str) -> list[Json]:
        """An agent begins. `path`: of the node of a workflow that runs it; empty if there is none."""
        return []

    def agent_ends(self, name: str, branch: str | None, path: str) -> list[Json]:
        """An agent has ended, or pauses."""
        return []

    def end(self, status: str) -> list[Json]:
        """The run has ended (`done`, `error`, `cancelled`), or pauses (`pending`)."""
        return []


Data = Callable[[PanelRun, str], Any]
"""Returns the JSON that a page has requested; the id is "" for the panel itself. None: there is nothing."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A tab of a run's view.

    Args:
        name: Lower case, unique.
        title: The label of the tab.
        order: Tabs are sorted by it, from the left; those of the package have 10 to 60.
        data: Called when a page opens the panel, and at most once a second while it is open and the run continues.
            It runs at the same time as the run, so it must only read. Models, dataclasses, dates and sets become JSON.
        exists: Returns True if there is a tab; called before the run and after each event until it does.
        requests: Further requests of its page, by name.
        follow: Makes a follower of a run, for data that is pushed without a request.
        saved: Returns the blocks for the saved notebook, which must be the same in all runs of a notebook.
        module: The source of an ES module with `export default {render(root, data, view)}`: `root` is the element of
            the panel, `data` the result of `data`, `view.need(id)` requests more. Empty: the view has it built in.
    """

    name: str
    title: str
    order: int = 100
    data: Data | None = None
    exists: Callable[[PanelRun], bool] = lambda run: True
    requests: Mapping[str, Data] = field(default_factory=dict[str, Data])
    follow: Callable[[PanelRun], Follower] | None = None
    saved: Callable[[PanelRun], tuple[Block, ...]] | None = None
    module: str = ""

    def answer(self, run: PanelRun, name: str, id: str) -> Any:
        """The response to a page's request, as JSON. None: the request is not of this panel, or has no data."""
        request = self.data if name == self.name else self.requests.get(name)
        data = request(run, id) if request else None
        return json.loads(to_json(data, fallback=str, inf_nan_mode="null")) if self.module else data


registry: dict[str, Panel] = {}
"""By name."""
_of_extensions: dict[int, list[Panel]] = {}
"""The panels of the extensions at one version of their registry."""


def add(panel: Panel) -> None:
    """Register a panel of this package, whose script the view has built in."""
    registry[panel.name] = panel


def registered() -> list[Panel]:
    """All panels, in the order of their tabs."""
    if extensions.version not in _of_extensions:  # those of an extension that was replaced go
        for panel in [panel for panels in _of_extensions.values() for panel in panels]:
            if registry.get(panel.name) is panel:
                del registry[panel.name]
        _of_extensions.clear()
        added = _of_extensions[extensions.version] = list[Panel]()
        for extension in extensions:
            for reference in extension.panels:
                if panel := extensions.use(extension, reference, Panel):
                    try:
                        if any(panel.name == other.name for other in added):
                            raise InputError(f"panel name {panel.name!r} is taken; choose another one")
                        register(panel)
                        added.append(panel)
                    except Exception as error:
                        extensions.note(extension, error)
    return sorted(registry.values(), key=lambda panel: panel.order)


def text_fold(summary: str, lines: Sequence[str], left_out: int = 0) -> Fold:
    """Lines of text in a fold. `left_out`: the number of further lines."""
    more = [f"… {left_out} more"] if left_out > 0 else []
    return Fold(summary, (Code(without_port("\n".join([*lines, *more]))),))


def without_port(text: str) -> str:
    """`text` without the ports of servers on this machine."""
    return _PORT.sub("", text)


logger = logging.getLogger(__name__)

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RESERVED = ("call", "missed", "refused", "beside")
"""Names of the view's own requests."""

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)  # registers its panel


def register(panel: Panel) -> None:
    """Show a panel in the views of all later runs, replacing an earlier one of that name.

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
    """`{"name", "title"}` of each panel in the order of the tabs, with the `module` of those that are not built in."""
    return [
        {"name": panel.name, "title": panel.title} | ({"module": panel.module} if panel.module else {})
        for panel in registered()
    ]


def saved(run: PanelRun) -> tuple[Block, ...]:
    """The blocks of the panels of a run for the saved notebook."""
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
        """The op with all requests that a page may send; none if they are the same as before."""
        new: set[str] = set()
        for panel in self._panels:
            try:
                if panel.name not in self._offered and panel.exists(self.run):
                    new.add(panel.name)
            except Exception:
                logger.exception("the panel %r cannot say whether it exists", panel.name)
        if not new and self._offered:
            return []
        self._offered |= new
        offered = [panel for panel in self._panels if panel.name in self._offered]
        names = [name for panel in offered for name in ((panel.name,) if panel.data else ()) + (*panel.requests,)]
        return [{"op": "offers", "what": [*names, "rerun"]}]

    def follow(self, step: Callable[[Follower], Collection[Json]]) -> list[Json]:
        """Call `step` with each follower; returns their ops."""
        ops: list[Json] = []
        for follower in self._followers:
            try:
                ops += step(follower)
            except Exception:  # a failing panel must not fail the run
                logger.exception("%s cannot follow the run", type(follower).__name__)
        return ops

    def answer(self, name: str, id: str) -> Json | None:
        """The op that responds to a page's request. None: no panel has data for it."""
        for panel in self._panels:
            try:
                data = panel.answer(self.run, name, id)
            except Exception as error:
                logger.exception("panel %r cannot answer %r", panel.name, id)
                return {"op": "notice", "text": f"panel {panel.title}: {type(error).__name__}: {error}"}
            if data is not None:
                return {"op": "panel", "name": name, "id": id, "data": data}
        return None
