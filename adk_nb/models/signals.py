"""Signals in a response's metadata: the agent ends its turn, or the answer was replayed and cost nothing."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

ESCALATE = "escalate"
"""Leave the enclosing loop: the event's `actions.escalate`."""
EXIT_FLOW = "exit_flow"
"""The agent's task is complete."""
WAIT_FOR_USER_INPUT = "wait_for_user_input"
"""The agent waits for the user's next message."""
HITL_REQUEST = "hitl_request"
"""A person is asked to decide."""
_END_OF_TURN = (ESCALATE, EXIT_FLOW, WAIT_FOR_USER_INPUT, HITL_REQUEST)


def ends_turn(metadata: Mapping[str, Any]) -> bool:
    """True if the model is not called again in this turn, not even with the results of its calls."""
    return any(metadata.get(name) is True for name in _END_OF_TURN)


REPLAYED = "replayed"
"""Key of an event's metadata: the tokens were counted and paid for when the answer was recorded."""
_replayed: WeakValueDictionary[int, Any] = WeakValueDictionary()


def note_replayed(usage: object) -> None:
    """Mark this usage object, by identity, as replayed."""
    _replayed[id(usage)] = usage


def was_replayed(usage: object) -> bool:
    """True if `note_replayed` has marked this object."""
    return id(usage) in _replayed
