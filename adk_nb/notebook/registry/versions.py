"""Earlier versions of agents and tools: which agent a run addressed, and the tool that a pending call was asked of."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from adk_nb.events.event import Event
from adk_nb.notebook.registry.definitions import ToolDefinition
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint

_SPOKEN_TO = "spoken_to"
_DEFINED_AS = "defined_as"
_VERSION = "agent_version"
_VERSIONS = "agent_versions"


@dataclass(frozen=True)
class Addressed:
    """Who was spoken to; empty if that is not known."""

    name: str = ""
    digest: str = ""
    """Of its cells then."""


def told_of(name: str, digest: str, versions: Mapping[str, int]) -> dict[str, Any]:
    """What is noted on the events of a run of the agent of that name; `versions`: its own, and of those under it."""
    told: dict[str, Any] = {_SPOKEN_TO: name}
    if digest:
        told |= {_DEFINED_AS: digest, _VERSION: versions[name]}
    return told | ({_VERSIONS: dict(versions)} if len(versions) > 1 else {})


def spoken_to(id: str, history: History) -> Addressed:
    """Who was spoken to when the call `id` was made, or asked."""
    return _in(next((record.event for record in history.calls.all(id)), None))


def last_spoken_to(history: History) -> str:
    """Who was spoken to last; empty if that is not known."""
    return next((found.name for event in history.newest() if (found := _in(event)).name), "")


def of_run(invocation_id: str, history: History) -> Addressed:
    """Who was spoken to in a run."""
    began = history.began(invocation_id)
    return _in(None if began is None else history.events[began])


def _in(event: Event | None) -> Addressed:
    told: dict[str, Any] = (event.custom_metadata if event else None) or {}
    name, digest = told.get(_SPOKEN_TO), told.get(_DEFINED_AS)
    return Addressed(name if isinstance(name, str) else "", digest if isinstance(digest, str) else "")


@dataclass
class _AsItWas:
    tool: Any
    calls: set[str] = field(default_factory=set[str])
    """Ids of the calls that are to be made with it, and have no result yet."""


_in_force: ContextVar[dict[str, _AsItWas] | None] = ContextVar("tools as they were", default=None)
"""By their names."""


class EarlierTools:
    """By what they were."""

    def __init__(self) -> None:
        self._known: dict[str, ToolDefinition] = {}

    def keep(self, definition: ToolDefinition) -> None:
        """Remember a version that another one takes the place of."""
        if isinstance(definition.tool, BaseTool):
            self._known[fingerprint(definition.tool)] = definition

    def label(self, one: Interrupt) -> str:
        """Which version a waiting call was asked of, as `v2`; empty if that is not in this kernel any more."""
        found = self._known.get(one.tool_fingerprint or "")
        return f"v{found.version}" if found else ""

    @contextmanager
    def as_asked(self, waiting: Iterable[Interrupt]) -> Generator[None]:
        """Within this, agents of cells have the tools of these calls, each of which has a `label`, as they were when
        they were asked, until those calls have their results.
        """
        tools: dict[str, _AsItWas] = {}
        for one in waiting:
            found = self._known[one.tool_fingerprint or ""]
            was = tools.setdefault(one.call.name or "", _AsItWas(found.tool))
            was.tool = found.tool
            was.calls.add(one.call.id or "")
        token = _in_force.set(tools)
        try:
            yield
        finally:
            _in_force.reset(token)

    def answered(self, call_id: str) -> None:
        """That call has its result: what is called after all such calls is the tool as it is now."""
        tools = _in_force.get() or {}
        for name, was in list(tools.items()):
            was.calls.discard(call_id)
            if not was.calls:
                del tools[name]


def as_in_force(tool: Any) -> Any:
    """`tool`, or what it was where a call is made as it was asked."""
    earlier = _in_force.get()
    was = earlier.get(tool.name) if earlier and isinstance(tool, BaseTool) else None
    return was.tool if was else tool
