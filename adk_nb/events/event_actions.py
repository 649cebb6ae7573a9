"""What an event does, beside what it says."""

from typing import Any

from pydantic import Field

from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.wire import WireModel

DELETED: dict[str, bool] = {"__adk_deleted__": True}
"""In a state delta: the key is removed. `None` would set it to None."""


class EventActions(WireModel):
    """Side effects, carried as data: nothing happens until the event is appended to its session."""

    skip_summarization: bool | None = None
    """True: the tool results stand as they are, the model is not asked again."""
    state_delta: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Keys to set; values are JSON. A prefix says how far a key reaches: `app:`, `user:`, `temp:`."""
    artifact_delta: dict[str, int] = Field(default_factory=dict[str, int])
    """File name -> the version just saved."""
    transfer_to_agent: str | None = None
    """Name of the agent that answers next."""
    escalate: bool | None = None
    """True: leave the enclosing loop."""
    rewind_before_invocation_id: str | None = None
    """Set: this event undoes that invocation and all that came after it."""
    requested_tool_confirmations: dict[str, ToolConfirmation] = Field(default_factory=dict[str, ToolConfirmation])
    """Function call id -> what a human is asked before that call may run."""

    def merge(self, later: "EventActions") -> None:
        """Take in the actions of another tool of the same step: dicts united (the later wins a key), flags or-ed."""
        self.state_delta.update(later.state_delta)
        self.artifact_delta.update(later.artifact_delta)
        self.requested_tool_confirmations.update(later.requested_tool_confirmations)
        for flag in ("transfer_to_agent", "escalate", "skip_summarization"):
            if value := getattr(later, flag):
                setattr(self, flag, value)
