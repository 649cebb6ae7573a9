"""Tools as they were before their cells were run again: a call that waits for a person can still be made as it was."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from adk_nb.notebook.registry.definitions import ToolDefinition
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint


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
