"""Earlier versions: the agent that a run addressed, and the tool that a pending call was asked of."""

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

# Keys of `custom_metadata` on the events of a run; stored sessions have them.
_NAME = "spoken_to"
_DIGEST = "defined_as"
_VERSION = "agent_version"
_VERSIONS = "agent_versions"


@dataclass(frozen=True)
class Addressed:
    """The agent that a run addressed; empty if unknown."""

    name: str = ""
    digest: str = ""
    """Of its cells then."""


def run_metadata(name: str, digest: str, versions: Mapping[str, int]) -> dict[str, Any]:
    """Metadata for the events of a run of an agent. `versions`: its own, and those of the agents under it."""
    metadata: dict[str, Any] = {_NAME: name}
    if digest:
        metadata |= {_DIGEST: digest, _VERSION: versions[name]}
    return metadata | ({_VERSIONS: dict(versions)} if len(versions) > 1 else {})


def of_call(call_id: str, history: History) -> Addressed:
    """The agent that was addressed when a call was made."""
    return _addressed(next((record.event for record in history.calls.all(call_id)), None))


def last_addressed(history: History) -> str:
    """The name of the agent that was addressed last; empty if unknown."""
    return next((name for event in history.newest() if (name := _addressed(event).name)), "")


def of_run(invocation_id: str, history: History) -> Addressed:
    """The agent that a run addressed."""
    start = history.began(invocation_id)
    return _addressed(None if start is None else history.events[start])


def _addressed(event: Event | None) -> Addressed:
    metadata: dict[str, Any] = (event.custom_metadata if event else None) or {}
    name, digest = metadata.get(_NAME), metadata.get(_DIGEST)
    return Addressed(name if isinstance(name, str) else "", digest if isinstance(digest, str) else "")


@dataclass
class _EarlierTool:
    tool: Any
    calls: set[str] = field(default_factory=set[str])
    """Ids of the calls that use it and have no result yet."""


_in_force: ContextVar[dict[str, _EarlierTool] | None] = ContextVar("earlier tools in force", default=None)
"""By their names."""


class EarlierTools:
    """Tools as they were before their cells were run again, so that a pending call can still use them."""

    def __init__(self) -> None:
        self._by_fingerprint: dict[str, ToolDefinition] = {}

    def keep(self, definition: ToolDefinition) -> None:
        """Remember a version that a new one replaces."""
        if isinstance(definition.tool, BaseTool):
            self._by_fingerprint[fingerprint(definition.tool)] = definition

    def label(self, interrupt: Interrupt) -> str:
        """The version that a pending call was asked of, as `v2`; empty if this kernel does not have it."""
        definition = self._by_fingerprint.get(interrupt.tool_fingerprint or "")
        return f"v{definition.version}" if definition else ""

    @contextmanager
    def as_asked(self, interrupts: Iterable[Interrupt]) -> Generator[None]:
        """Give agents of cells the tools of these calls as they were, until each call has its result.

        Each call must have a `label`.
        """
        tools: dict[str, _EarlierTool] = {}
        for interrupt in interrupts:
            tool = self._by_fingerprint[interrupt.tool_fingerprint or ""].tool
            earlier = tools.setdefault(interrupt.call.name or "", _EarlierTool(tool))
            earlier.tool = tool
            earlier.calls.add(interrupt.call.id or "")
        token = _in_force.set(tools)
        try:
            yield
        finally:
            _in_force.reset(token)

    def answered(self, call_id: str) -> None:
        """Note a result; after the last one of a tool, further calls use the tool as it is now."""
        tools = _in_force.get() or {}
        for name, earlier in list(tools.items()):
            earlier.calls.discard(call_id)
            if not earlier.calls:
                del tools[name]


def tool_in_force(tool: Any) -> Any:
    """`tool`, or its earlier version within `EarlierTools.as_asked`."""
    tools = _in_force.get()
    earlier = tools.get(tool.name) if tools and isinstance(tool, BaseTool) else None
    return earlier.tool if earlier else tool
