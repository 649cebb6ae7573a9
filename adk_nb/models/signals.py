"""What a model may say beside its words, in the metadata of a response: that its agent has done enough."""

from collections.abc import Mapping
from typing import Any

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
