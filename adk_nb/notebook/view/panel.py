"""Panels of a run's view: each a tab on the page, and a file of its own that registers it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.notebook.view.document import Block, Code, Fold
from adk_nb.runtime.trace import Trace
from adk_nb.sessions.state import State

Json = dict[str, Any]

_PORT = re.compile(r"(?<=\b127\.0\.0\.1):\d+|(?<=\blocalhost):\d+")
"""Of a server on this machine: another one in each run."""


@dataclass(kw_only=True)
class PanelRun:
    """A run as its panels see it, up to now. A chat box has one for all its turns."""

    agent: BaseAgent | None = None
    """The agent that was asked. None: in a chat box, which may ask another one next."""
    history: Sequence[Event] = ()
    """The session before the run, where it answers an interrupt that was raised there."""
    status: str = "running"
    """Or `done`, `pending`, `cancelled`, `error`."""
    trace: Trace = field(default_factory=Trace)
    """Requests to models and calls of tools, with their times."""
    events: list[Event] = field(default_factory=list[Event])
    """Oldest first, without partial ones."""
    start_state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The session's state before the first event."""
    artifacts: dict[str, Json] = field(default_factory=dict[str, Json])
    """Saved by the run, by id, as `results.artifact`."""
    rows: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    """Row of the log -> the events that it shows."""

    def __post_init__(self) -> None:
        self._state: tuple[int, dict[str, Any]] = 0, {}
        """A count of events, and the state after them. Replaced as a whole: pages ask from any thread."""

    @property
    def state(self) -> dict[str, Any]:
        """The session's state after the last event; in a saved form, the changes of the turn alone."""
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
        """Take a whole event in. `ops`: those that show it."""
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
        """One more event, partial or whole."""
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
"""Returns what a page has asked for, as JSON: its id is "" for the panel itself. None: there is nothing."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A tab of a run's view.

    Args:
        name: Lower case, unique.
        title: The label of the tab.
        order: Its place among the tabs, from the left; those of the package are 10 to 60.
        data: Called when a page opens the panel, and at most once a second while it is open and the run goes on. Runs
            beside the run, so it only reads. Models, dataclasses, dates and sets become JSON.
        exists: Whether there is a tab, asked before the run and after each event until it is true.
        requests: Further names that its page asks for, each with what answers it.
        follow: Makes what follows a run, for data that is pushed as it comes.
        saved: Makes what a saved notebook keeps of it, beside the events of a finished run: blocks that are the same in
            every run of one notebook.
        module: The text of an ES module with `export default {render(root, data, view)}`: `root` is the element of the
            panel, `data` what `data` returned, `view.need(id)` asks for more. Empty: the view has it built in.
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
        """The data of a page's request, as JSON; None: nothing of this panel."""
        request = self.data if name == self.name else self.requests.get(name)
        data = request(run, id) if request else None
        return json.loads(to_json(data, fallback=str, inf_nan_mode="null")) if self.module else data


registry: dict[str, Panel] = {}
"""By name."""


def add(panel: Panel) -> None:
    """Register a panel of this package, whose script the view has built in."""
    registry[panel.name] = panel


def registered() -> list[Panel]:
    """All panels, in the order of their tabs."""
    return sorted(registry.values(), key=lambda panel: panel.order)


def text_fold(summary: str, lines: Sequence[str], left_out: int = 0) -> Fold:
    """Lines of text in a fold. `left_out`: how many more there were."""
    more = [f"… {left_out} more"] if left_out > 0 else []
    return Fold(summary, (Code(without_port("\n".join([*lines, *more]))),))


def without_port(text: str) -> str:
    """`text` without the ports of servers on this machine."""
    return _PORT.sub("", text)
