"""Ids of function calls: no two calls of a session have the same."""

from collections.abc import Sequence

from adk_nb import clock
from adk_nb.events.event import Event
from adk_nb.events.requests import NODE_APPROVAL
from adk_nb.runtime.credentials import NODE, TOOLSET
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.session import Session

_RESERVED = (NODE, NODE_APPROVAL, TOOLSET)
"""An id that starts so is that of a toolset or a node, which no model calls."""
_VIEW = "call ids"


class _Used:
    """The ids of a session's calls, kept up to date as events are appended."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self._seen = 0

    def look(self, events: Sequence[Event]) -> set[str]:
        if self._seen > len(events):  # the session was read again
            self.ids, self._seen = set(), 0
        for at in range(self._seen, len(events)):
            self.ids.update(call.id for call in events[at].get_function_calls() if call.id)
        self._seen = len(events)
        return self.ids


def new_call_id() -> str:
    """A fresh id, as ADK spells it."""
    return f"adk-{clock.new_id()}"


def claim(ctx: InvocationContext, wanted: str | None) -> str:
    """The id for a call that has just come from a model: `wanted`, or a new one if another call of the session has it.

    Agents that work side by side in one run get different ids, too.
    """
    claimed = ctx.shared.call_ids
    if not wanted or wanted.startswith(_RESERVED) or wanted in claimed or wanted in _used(ctx.session):
        wanted = new_call_id()
    claimed.add(wanted)
    return wanted


def _used(session: Session) -> set[str]:
    used = session.views.get(_VIEW)
    if not isinstance(used, _Used):
        used = session.views[_VIEW] = _Used()
    return used.look(session.events)
