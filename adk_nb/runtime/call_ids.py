"""Ids of function calls: no two calls of a session have the same."""

from adk_nb import clock
from adk_nb.events.requests import NODE_APPROVAL
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import NODE, TOOLSET
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.wire import mended

_RESERVED = (NODE, NODE_APPROVAL, TOOLSET)
"""An id that starts so is that of a toolset or a node, which no model calls."""


def new_call_id() -> str:
    """A fresh id, as ADK spells it."""
    return f"adk-{clock.new_id()}"


def claim(ctx: InvocationContext, wanted: str | None) -> str:
    """The id for a call that has just come from a model: `wanted`, or a new one if another call of the session has it,
    or none can.

    Agents that work side by side in one run get different ids, too.
    """
    claimed = ctx.shared.call_ids
    may_be = wanted and not wanted.startswith(_RESERVED) and mended(wanted) == wanted and wanted not in claimed
    if not wanted or not may_be or wanted in history_of(ctx.session).call_ids:
        wanted = new_call_id()
    claimed.add(wanted)
    return wanted
