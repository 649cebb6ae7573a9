"""What a model may say beside its words: that its agent has done enough, or that nobody pays for the answer now."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

ESCALATE = "escalate"
"""The agent leaves the loop around it: its event's `actions.escalate`."""
EXIT_FLOW = "exit_flow"
"""The agent's task is complete."""
WAIT_FOR_USER_INPUT = "wait_for_user_input"
"""The user has the word."""
HITL_REQUEST = "hitl_request"
"""A person is asked."""
_ENOUGH = (ESCALATE, EXIT_FLOW, WAIT_FOR_USER_INPUT, HITL_REQUEST)


def says_enough(metadata: Mapping[str, Any]) -> bool:
    """True if the model is not asked again in this turn, even about the results of what it calls."""
    return any(metadata.get(name) is True for name in _ENOUGH)


REPLAYED = "replayed"
"""In the metadata of an event: its tokens were counted, and paid for, when the answer was recorded."""
_replayed: WeakValueDictionary[int, Any] = WeakValueDictionary()


def note_replayed(usage: object) -> None:
    """Remember of the very object that counts an answer's tokens: they were counted when that was recorded."""
    _replayed[id(usage)] = usage


def was_replayed(usage: object) -> bool:
    """True if `note_replayed` was told of it."""
    return id(usage) in _replayed
