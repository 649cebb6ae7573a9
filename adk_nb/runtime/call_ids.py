"""Ids of function calls: no two calls of a session have the same."""

from adk_nb import clock
from adk_nb.events.requests import NODE_APPROVAL
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import NODE, TOOLSET
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.wire import replace_surrogates

_RESERVED_PREFIXES = (NODE, NODE_APPROVAL, TOOLSET)
"""Ids of toolsets and nodes start so; no model may use them."""


def new_call_id() -> str:
    """A fresh id, as ADK spells it."""
    return f"adk-{clock.new_id()}"


def claim(ctx: InvocationContext, proposed: str | None) -> str:
    """The id of a new call from a model: `proposed`, or a fresh id if that is taken, reserved or not valid text.

    Ids are also unique among agents that run in parallel.
    """
    # The history has only stored events: parallel agents see each other's new ids here.
    claimed = ctx.shared.call_ids
    is_free = (
        proposed
        and not proposed.startswith(_RESERVED_PREFIXES)
        and replace_surrogates(proposed) == proposed
        and proposed not in claimed
    )
    if not proposed or not is_free or proposed in history_of(ctx.session).call_ids:
        proposed = new_call_id()
    claimed.add(proposed)
    return proposed
